"""CRF: against all sequences of tags, one by one."""

import itertools

import harness
import keras
import numpy as np
import pytest
from keras import ops

from keras_elmo.layers import CRF, bio_transitions

NUM_TAGS, NUM_TOKENS = 3, 4
# Full, right-padded, left-padded, holed, a single token, none.
MASK = np.array(
    [[1, 1, 1, 1], [1, 1, 0, 0], [0, 1, 1, 1], [1, 0, 1, 1], [0, 0, 1, 0], [0, 0, 0, 0]], bool
)
ALLOWED = bio_transitions(["O", "B-X", "I-X"])


@pytest.fixture(params=[None, ALLOWED], ids=["free", "bio"])
def crf(request):
    crf = CRF(request.param)
    crf.build((None, None, NUM_TAGS))
    return harness.randomize(crf, seed=1, scale=1.0)


@pytest.fixture
def emissions():
    return np.random.default_rng(2).normal(size=(len(MASK), NUM_TOKENS, NUM_TAGS)).astype("float32")


def scores(crf, emissions):
    """The score of every sequence of tags for the real tokens of a sentence, float64."""
    transitions, start, end = (np.float64(weight) for weight in crf.get_weights())
    forbidden = np.zeros((NUM_TAGS + 1, NUM_TAGS + 1))
    if crf.allowed_transitions is not None:
        forbidden[~np.array(crf.allowed_transitions)] = -1e4
    found = {}
    for tags in itertools.product(range(NUM_TAGS), repeat=len(emissions)):
        chain = [NUM_TAGS, *tags, NUM_TAGS]
        score = (
            start[tags[0]]
            + end[tags[-1]]
            + sum(transitions[i, j] for i, j in itertools.pairwise(tags))
        )
        score += sum(row[tag] for row, tag in zip(np.float64(emissions), tags, strict=True))
        found[tags] = score + sum(forbidden[i, j] for i, j in itertools.pairwise(chain))
    return found


def brute_force(crf, emissions):
    """Log-probability of every sequence, the best one, and the marginals."""
    found = scores(crf, emissions)
    total = np.logaddexp.reduce(list(found.values()))
    logs = {tags: score - total for tags, score in found.items()}
    marginals = np.zeros((len(emissions), NUM_TAGS))
    for tags, log in logs.items():
        marginals[range(len(tags)), tags] += np.exp(log)
    return logs, max(found, key=found.get), marginals


def test_everything_by_brute_force(crf, emissions):
    decoded = harness.to_numpy(crf(emissions, mask=MASK))
    marginals = harness.to_numpy(crf.marginals(emissions, MASK))
    random = np.random.default_rng(3)
    for row, mask in enumerate(MASK[:-1]):
        logs, best, expected = brute_force(crf, emissions[row, mask])
        assert tuple(decoded[row, mask]) == best
        assert not decoded[row, ~mask].any()
        np.testing.assert_allclose(marginals[row, mask], expected, atol=1e-5)
        assert not marginals[row, ~mask].any()
        for number in random.permutation(len(logs))[:5]:
            tags, log = list(logs.items())[number]
            # Tags where there is no token do not matter.
            given = random.integers(NUM_TAGS, size=(1, NUM_TOKENS))
            given[0, mask] = tags
            one = slice(row, row + 1)
            found = harness.to_numpy(crf.log_likelihood(emissions[one], given, MASK[one]))
            np.testing.assert_allclose(found, [log], rtol=1e-5, atol=1e-4 if log > -1e3 else 1e-2)


def test_a_sentence_without_tokens(crf, emissions):
    tags = np.zeros(MASK.shape, int)
    assert harness.to_numpy(crf.log_likelihood(emissions, tags, MASK))[-1] == 0
    assert not harness.to_numpy(crf(emissions, mask=MASK))[-1].any()
    assert not harness.to_numpy(crf.marginals(emissions, MASK))[-1].any()


def test_without_a_mask(crf, emissions):
    whole = np.ones(MASK.shape, bool)
    harness.close(crf.marginals(emissions), crf.marginals(emissions, whole))
    tags = np.random.default_rng(0).integers(NUM_TAGS, size=MASK.shape)
    harness.close(
        crf.log_likelihood(emissions, tags), crf.log_likelihood(emissions, tags, whole), 1e-2
    )
    np.testing.assert_array_equal(
        harness.to_numpy(crf(emissions)), harness.to_numpy(crf(emissions, mask=whole))
    )


def test_decoded_tags_are_allowed(emissions):
    crf = CRF(ALLOWED)
    crf.build((None, None, NUM_TAGS))
    inside = np.zeros((1, 3, NUM_TAGS), "float32")
    inside[..., 2] = 5.0  # I-X, I-X, I-X
    assert harness.to_numpy(crf(inside)).tolist() == [[1, 2, 2]]


def test_the_mask_of_the_input_counts_and_is_passed_on(emissions):
    crf = CRF()
    padded = np.where(MASK[..., None], emissions, 0)
    outputs = crf(harness.masked(padded))
    np.testing.assert_array_equal(harness.mask_of(outputs), MASK)
    np.testing.assert_array_equal(
        harness.to_numpy(outputs), harness.to_numpy(crf(emissions, mask=MASK))
    )


def test_gradients(crf, emissions):
    """By differences, of every weight and of the emissions."""
    tags = np.array([[0, 1, 1, 0]] * len(MASK))  # allowed, whatever is masked

    class Loss(keras.layers.Layer):
        def call(self, inputs):
            return -ops.mean(crf.log_likelihood(inputs, tags, MASK))

    loss = Loss()

    def value(weights, inputs):
        crf.set_weights(weights)
        return float(harness.to_numpy(loss(inputs)))

    weights = crf.get_weights()
    found = _gradients(crf, loss, emissions)
    crf.set_weights(weights)
    random = np.random.default_rng(4)
    places = [(k, tuple(random.integers(s) for s in w.shape)) for k, w in enumerate(weights)]
    for k, place in places:
        ends = []
        for sign in (1, -1):
            moved = [w.copy() for w in weights]
            moved[k][place] += sign * 1e-2
            ends.append(value(moved, emissions))
        np.testing.assert_allclose(found[k][place], (ends[0] - ends[1]) / 2e-2, atol=5e-3)
    crf.set_weights(weights)


def _gradients(crf, loss, emissions):
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            value = loss(emissions)
        return [g.numpy() for g in tape.gradient(value, [v.value for v in crf.trainable_variables])]
    if keras.backend.backend() == "torch":
        crf.zero_grad()
        loss(emissions).backward()
        return [v.value.grad.detach().cpu().numpy() for v in crf.trainable_variables]
    import jax

    def stateless(values):
        mapping = list(zip(crf.trainable_variables, values, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return loss(emissions)

    return [np.asarray(g) for g in jax.grad(stateless)([v.value for v in crf.trainable_variables])]


def test_it_learns_a_rule_that_no_token_shows(emissions):
    """Tags that take turns, from emissions that say nothing."""
    crf = CRF()

    class Tagger(keras.Model):
        def __init__(self):
            super().__init__()
            self.crf = crf

        def call(self, inputs):
            return self.crf(inputs)

        def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, **kwargs):
            return -ops.mean(self.crf.log_likelihood(x, y))

    model = Tagger()
    model.compile(keras.optimizers.Adam(0.1))
    nothing = np.zeros((8, 5, 2), "float32")
    tags = np.tile([0, 1, 0, 1, 0], (8, 1))
    model.fit(nothing, tags, epochs=60, verbose=0)
    np.testing.assert_array_equal(model.predict(nothing, verbose=0), tags)


def test_symbolic_call_and_config():
    inputs = keras.Input((None, NUM_TAGS))
    outputs = CRF(ALLOWED)(inputs)
    assert outputs.shape == (None, None)
    assert outputs.dtype == "int32"
    model = keras.Model(inputs, outputs)
    copy = CRF.from_config(CRF(ALLOWED).get_config())
    assert copy.allowed_transitions == ALLOWED.tolist()
    assert model.predict(np.zeros((2, 3, NUM_TAGS)), verbose=0).shape == (2, 3)


@pytest.mark.parametrize("value", [[[True]] * 2, [1, 0], [[1, 0], [0, 1]]], ids=str)
def test_transitions_that_are_no_table(value):
    with pytest.raises(ValueError, match="`allowed_transitions` must be booleans"):
        CRF(value)


def test_inputs_that_do_not_fit():
    with pytest.raises(ValueError, match="a row and a column for each of the 2 tags and one more"):
        CRF(ALLOWED)(np.zeros((1, 1, 2)))
    with pytest.raises(ValueError, match="The input of a CRF must have 3 axes"):
        CRF()(np.zeros((1, 2)))


def test_everything_is_float32(emissions):
    """Also in mixed precision: nothing is rounded."""
    plain, mixed = CRF(), CRF(dtype="mixed_bfloat16")
    for layer in (plain, mixed):
        layer.build(emissions.shape)
        layer.transitions.assign(np.random.default_rng(0).normal(size=layer.transitions.shape))
    harness.close(mixed(emissions), plain(emissions))
    tags = np.zeros(emissions.shape[:2], "int32")
    harness.close(mixed.log_likelihood(emissions, tags), plain.log_likelihood(emissions, tags), 0)
    harness.close(mixed.marginals(emissions), plain.marginals(emissions), 0)
