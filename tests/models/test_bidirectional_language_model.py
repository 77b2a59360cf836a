"""The biLM as a language model: against the oracle, with state, with dropout, in training, saved and loaded."""

import functools
import os
import subprocess
import sys

import keras
import numpy as np
import pytest
import reference
from harness import close, options_for, to_numpy
from keras import ops

import keras_elmo
from keras_elmo import presets
from keras_elmo.checkpoints import bilm_tf
from keras_elmo.checkpoints.checkpoint import Checkpoint, Softmax
from keras_elmo.corpus import (
    SentenceStream,
    TrainingStream,
    random_generator,
    sample_negatives,
    sentence_batches,
)
from keras_elmo.layers import sampled_softmax
from keras_elmo.models import BidirectionalLanguageModel, ElmoModel
from keras_elmo.vocabulary import Vocabulary

# Keras saves TensorFlow's variables through a call that NumPy 2 warns about.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

WORDS = ["<S>", "</S>", "<UNK>", "the", "cat", "sat", "on", "mat", "."]
VOCABULARY = Vocabulary(WORDS)
SENTENCES = [
    ["the", "cat", "sat", "on", "the", "mat", "."],
    ["the", "dog", "sat"],
    [],
    ["cat"],
    ["on", "on", "on", "unheard-of", "."],
]
CONFIGS = {
    "plain": options_for(n_layers=2, use_skip_connections=True, cell_clip=3, proj_clip=3),
    "no skip": options_for(n_layers=2, use_skip_connections=False),
    "no projection": options_for(units=6, n_layers=2, use_skip_connections=True),
    "one layer, tanh": options_for(activation="tanh", n_layers=1),
    "three layers": options_for(n_layers=3, use_skip_connections=True, num_highway_layers=0),
    "words": {
        "lstm": {"dim": 10, "projection_dim": 6, "n_layers": 2, "use_skip_connections": True}
    },
}
# JAX outside of `jit` compiles every loop anew, a second each: there one configuration must do.
FEW = ["plain"] if keras.backend.backend() == "jax" else list(CONFIGS)
ONE_LAYER_OF_WORDS = {"lstm": {"dim": 6, "projection_dim": 6, "n_layers": 1}}
DIRECTIONS = ("forward", "backward")


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """`load(name or options, dropout=0, vocabulary=.., **overrides)` -> (options, weights, a new model)."""

    def load(config="plain", dropout=0.0, vocabulary=VOCABULARY, seed=1, **overrides):
        options = CONFIGS[config] if isinstance(config, str) else config
        options = options | {"n_tokens_vocab": len(vocabulary)}
        weights = reference.random_model(options, seed, softmax=True)
        folder = tmp_path_factory.mktemp("model")
        reference.write_model(folder, options, weights, list(vocabulary))
        model = keras_elmo.load_language_model(folder, dropout=dropout, **overrides)
        return options, weights, model

    return load


@pytest.fixture(scope="module")
def loaded(load):
    """The same, with one model for all tests: it must not be changed."""
    return functools.cache(load)


@pytest.fixture(scope="module")
def plain(loaded):
    """The plain configuration: (options, weights, model). Not to be changed."""
    return loaded("plain")


def oracle(options, weights, tokens, state=None):
    """Log-probabilities (T + 1, V) of all words, forward in reading order, backward in reading order; the state."""
    if "char_cnn" in options:
        width = options["char_cnn"]["max_characters_per_token"]
        rows = reference.character_rows(tokens, width)
    else:
        rows = reference.token_rows(tokens, WORDS)
    vectors = reference.token_embeddings(options, weights, rows)
    found, states = [], []
    for direction, order in enumerate((vectors[:-1], vectors[:0:-1])):
        layers, final = reference.lstm_stack(
            options, weights, direction, order, state and state[direction]
        )
        logits = layers[-1] @ weights["softmax/W"].T + weights["softmax/b"]
        found.append(logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))
        states.append(final)
    return found, states


def oracle_score(options, weights, tokens):
    ids = [WORDS.index(word) if word in WORDS else 2 for word in ["<S>", *tokens, "</S>"]]
    (forward, backward), _ = oracle(options, weights, tokens)
    steps = np.arange(len(ids) - 1)
    return forward[steps, ids[1:]], backward[steps, ids[-2::-1]][::-1]


def windows(model, tokens, *ends):
    """The call's inputs for pieces of one sentence, in both reading orders, cut at `ends`."""
    (batch,) = sentence_batches([tokens], model.vocabulary, model.elmo_model.max_word_length)
    whole = model.inputs_of(batch)
    for start, end in zip((0, *ends), (*ends, len(tokens) + 1), strict=True):
        yield {
            name: value if name == "word_ids" else value[:, start:end]
            for name, value in whole.items()
        }


# --- losses ---


@pytest.mark.parametrize("config", CONFIGS)
def test_oracle(loaded, config):
    options, weights, model = loaded(config)
    scores = model.score(SENTENCES)
    assert len(scores) == len(SENTENCES)
    for tokens, score in zip(SENTENCES, scores, strict=True):
        forward, backward = oracle_score(options, weights, tokens)
        assert score.forward.dtype == score.backward.dtype == np.float32
        close(score.forward, forward, 2e-5)
        close(score.backward, backward, 2e-5)


def test_exact_softmax_in_pieces(plain, monkeypatch):
    """A vocabulary, or a batch, whose logits do not fit at once."""
    options, weights, model = plain
    monkeypatch.setattr(sampled_softmax, "MAX_LOGITS", 4 * len(WORDS))
    again = BidirectionalLanguageModel(model.elmo_model, VOCABULARY)
    again.set_softmax(to_numpy(model.softmax.kernel), to_numpy(model.softmax.bias))
    for tokens, score in zip(SENTENCES, again.score(SENTENCES), strict=True):
        close(score.forward, oracle_score(options, weights, tokens)[0], 2e-5)


@pytest.mark.parametrize("training", [False, True])
def test_negatives_of_each_direction(plain, training):
    *_, model = plain
    (inputs,) = windows(model, SENTENCES[0])
    exact = model(inputs, training=training)
    for direction, other in (DIRECTIONS, DIRECTIONS[::-1]):
        everything = sample_negatives(99, len(WORDS), random_generator("n", 0))
        more = {
            f"{direction}_negatives": everything.ids,
            f"{direction}_num_tries": np.float32(everything.num_tries),
            f"{other}_negatives": np.array([1, 4], "int32"),
            f"{other}_num_tries": np.float32(3),
        }
        losses = model(inputs | more, training=training)
        close(losses[direction], exact[direction])
        assert np.abs(to_numpy(losses[other]) - to_numpy(exact[other])).min() > 0.01


def test_padding_costs_nothing(plain):
    *_, model = plain
    (batch,) = sentence_batches(SENTENCES, VOCABULARY, model.elmo_model.max_word_length)
    losses = model(model.inputs_of(batch))
    for direction in DIRECTIONS:
        found = to_numpy(losses[direction])
        assert found.shape == batch.forward_words.shape
        assert ((found != 0) == (batch.forward_words != 0)).all()
    total = sum(to_numpy(losses[direction]).sum() for direction in DIRECTIONS)
    loss = model.compute_loss(x=model.inputs_of(batch), y_pred=losses)
    close(loss, np.float32(total / (2 * batch.num_steps.sum())))


@pytest.mark.parametrize("config", ["plain", "words", "no skip"])
def test_uniform_model_has_perplexity_v(load, config):
    """User problem 59."""
    *_, model = load(config)
    for weight in model.weights:
        if weight.dtype == "float32":
            weight.assign(np.zeros(weight.shape, "float32"))
    for score in model.score(SENTENCES):
        assert np.exp(-np.mean(score.forward)) == pytest.approx(len(WORDS), rel=1e-6)
        assert np.exp(-np.mean(score.backward)) == pytest.approx(len(WORDS), rel=1e-6)


def test_mixed_bfloat16(loaded, plain):
    *_, model = loaded(dtype="mixed_bfloat16")
    assert {weight.dtype for weight in model.softmax.weights} == {"float32"}
    (inputs,) = windows(model, SENTENCES[0])
    losses, state = model(inputs, return_state=True)
    for direction in DIRECTIONS:
        assert keras.backend.standardize_dtype(losses[direction].dtype) == "float32"
        close(losses[direction], plain[2](inputs)[direction], 0.2)
    assert keras.backend.standardize_dtype(state[0][0][0].dtype) == "bfloat16"
    assert {s.word for s in model.substitutes(SENTENCES[0], 1)} == set(WORDS[3:])


# --- state ---


@pytest.mark.parametrize("config", FEW)
@pytest.mark.parametrize("training", [False, True])
def test_two_windows_with_carried_state_are_one_long_window(loaded, config, training):
    options, weights, model = loaded(config)
    (whole,) = windows(model, SENTENCES[0])
    expected, end = model(whole, return_state=True, training=training)
    parts, state = [], None
    for piece in windows(model, SENTENCES[0], 3, 4):
        losses, state = model(piece, initial_state=state, return_state=True, training=training)
        parts.append(losses)
    for direction in DIRECTIONS:
        losses = np.concatenate([to_numpy(part[direction]) for part in parts], axis=1)
        close(losses, expected[direction])
    _, oracle_state = oracle(options, weights, SENTENCES[0])
    for place in range(2):
        for found, last, layer in zip(state[place], end[place], oracle_state[place], strict=True):
            memory, output = layer
            close(found[0][0], output, 2e-5)
            close(found[1][0], memory, 2e-5)
            close(last[0], found[0])


def test_state_is_what_makes_the_difference(plain):
    *_, model = plain
    _, second = windows(model, SENTENCES[0], 3)
    _, state = model(next(windows(model, SENTENCES[0], 3)), return_state=True)
    with_state, without = model(second, initial_state=state), model(second)
    for direction in DIRECTIONS:
        assert np.abs(to_numpy(with_state[direction]) - to_numpy(without[direction])).max() > 0.01
    # Nothing is kept from call to call.
    close(model(second)["forward"], without["forward"], 0)


# --- what reaches what ---


@pytest.mark.parametrize("config", FEW)
@pytest.mark.parametrize("training", [False, True])
def test_no_leak(loaded, config, training):
    """A changed word reaches no forward output before it and no backward output after it, in any layer."""
    *_, model = loaded(config)
    tokens = SENTENCES[0]
    # Row 0 is the sentence; in row k + 1 its word k is another.
    rows = [tokens]
    for k, word in enumerate(tokens):
        rows.append([*tokens[:k], "cat" if word == "mat" else "mat", *tokens[k + 1 :]])
    (batch,) = sentence_batches(rows, VOCABULARY, model.elmo_model.max_word_length)
    assert batch.indices.tolist() == list(range(len(rows)))
    inputs = model.inputs_of(batch)
    losses = model(inputs, training=training)
    words = model.elmo_model.encoder(inputs["word_ids"][None])[0]
    bilm = model.elmo_model.bilm
    for direction, stack in zip(DIRECTIONS, (bilm.forward_stack, bilm.backward_stack), strict=True):
        embeddings = ops.take(words, inputs[f"{direction}_words"], axis=0)
        layers = [to_numpy(layer) for layer in stack(embeddings, training=training)]
        assert len(layers) == model.elmo_model.num_layers
        loss = to_numpy(losses[direction])
        for k in range(len(tokens)):
            # Steps are in reading order, `<S>` or `</S>` is read first. The word is read in this step:
            step = k + 1 if direction == "forward" else len(tokens) - k
            for layer in layers:
                change = np.abs(layer[k + 1] - layer[0]).max(axis=1)
                assert (change[:step] < 2e-6).all()
                assert (change[step:] > 1e-5).all()
            # And it is the target of the step before.
            change = np.abs(loss[k + 1] - loss[0])
            assert (change[: step - 1] < 5e-6).all()
            assert (change[step - 1 :] > 1e-5).all()


# --- dropout ---


def dropped(model, seed=(1, 2), training=True):
    (inputs,) = windows(model, SENTENCES[0])
    seed = None if seed is None else np.array(seed)
    losses = model(inputs, dropout_seed=seed, training=training)
    return np.stack([to_numpy(losses[direction])[0] for direction in DIRECTIONS])


def test_dropout_is_in_training_alone(loaded, plain):
    *_, model = loaded(dropout=0.4)
    expected = dropped(plain[2])
    close(dropped(plain[2], training=False), expected)
    close(dropped(model, training=False), expected)
    assert np.abs(dropped(model) - expected).max() > 0.1
    scores = model.score(SENTENCES[:1]), plain[2].score(SENTENCES[:1])
    close(scores[0][0].forward, scores[1][0].forward, 1e-6)


def test_same_seed_same_mask(loaded):
    *_, model = loaded(dropout=0.4)
    first = dropped(model)
    close(dropped(model), first, 0)
    for other in ((1, 3), (2, 2)):
        assert np.abs(dropped(model, other) - first).max() > 0.01
    # Without a seed it is another every time.
    assert np.abs(dropped(model, None) - dropped(model, None)).max() > 0.01


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32"])
def test_seeds_of_any_integer_type(loaded, dtype):
    *_, model = loaded(dropout=0.4)
    close(dropped(model, np.array([1, 2], dtype)), dropped(model, (1, 2)), 0)


@pytest.mark.parametrize("config", sorted({*FEW} & {"plain", "three layers", "no skip"}))
def test_dropout_is_on_the_input_of_every_layer_and_on_the_last_output(loaded, monkeypatch, config):
    """As in bilm-tf: what the skip connection adds is the dropped input. By another mask for each place."""
    options, weights, model = loaded(config, dropout=0.4)
    masks = []

    def dropout(inputs, rate, seed):
        assert rate == 0.4
        mask = np.random.default_rng(len(masks)).random(inputs.shape) > rate
        masks.append((mask / (1 - rate))[0])
        seeds.append(tuple(int(x) for x in to_numpy(seed.next())))
        return inputs * ops.cast(ops.convert_to_tensor(mask / (1 - rate)), inputs.dtype)

    seeds = []
    monkeypatch.setattr(keras.random, "dropout", dropout)
    found = dropped(model)
    num_layers = options["lstm"]["n_layers"]
    assert len(masks) == 2 * (num_layers + 1)
    assert len(set(seeds)) == len(seeds)

    width = options["char_cnn"]["max_characters_per_token"]
    rows = reference.character_rows(SENTENCES[0], width)
    vectors = reference.token_embeddings(options, weights, rows)
    ids = np.array(VOCABULARY.ids(["<S>", *SENTENCES[0], "</S>"]))
    masks = iter(masks)
    for direction, (x, targets) in enumerate(
        ((vectors[:-1], ids[1:]), (vectors[:0:-1], ids[-2::-1]))
    ):
        for layer in range(num_layers):
            x = x * next(masks)
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            output, _ = reference.lstm_layer(
                x,
                weights[f"{cell}/W_0"],
                weights[f"{cell}/B"],
                weights[f"{cell}/W_P_0"],
                options["lstm"].get("cell_clip"),
                options["lstm"].get("proj_clip"),
            )
            skip = layer > 0 and options["lstm"]["use_skip_connections"]
            x = output + x if skip else output
        x = x * next(masks)
        logits = x @ weights["softmax/W"].T + weights["softmax/b"]
        expected = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(targets)), targets]
        close(found[direction], expected, 5e-5)


def test_dropout_keeps_the_mean(loaded):
    """What is kept is scaled up."""
    *_, model = loaded(dropout=0.25)
    drop = model._drop(0, np.array([5, 6]))
    kept = to_numpy(drop(ops.ones((100, 200)), 0))
    assert set(np.unique(kept.round(5))) == {np.float32(0), np.float32(1.33333)}
    assert abs(kept.mean() - 1) < 0.02


# --- score ---


def test_score_does_not_depend_on_the_batch(plain):
    """User problem 63, and 2."""
    *_, model = plain
    together = model.score(SENTENCES)
    for batch_tokens in (1, 8, 2048):
        for one, other in zip(model.score(SENTENCES, batch_tokens), together, strict=True):
            close(one.forward, other.forward, 2e-6)
            close(one.backward, other.backward, 2e-6)
    for tokens, score in zip(SENTENCES[::-1], model.score(SENTENCES[::-1]), strict=True):
        expected = together[SENTENCES.index(tokens)]
        close(score.forward, expected.forward, 2e-6)
        close(score.backward, expected.backward, 2e-6)


def test_probabilities_of_the_next_word_sum_to_1(loaded):
    """User problem 63: over a small vocabulary."""
    words = ["<S>", "</S>", "<UNK>", "a", "b"]
    *_, model = loaded(vocabulary=Vocabulary(words))
    assert len(model.vocabulary) == 5
    for before in ([], ["a"], ["b", "a", "a"]):
        step = len(before)
        # The word that follows, and what would end the sentence there; `<S>` is scored as the model reads it.
        sentences = [[*before, word] for word in words]
        forward = [score.forward[step] for score in model.score(sentences)]
        close(np.exp(forward).sum(), np.float64(1))
        close(forward[1], model.score([before])[0].forward[step])
        sentences = [[word, *before] for word in words]
        backward = [score.backward[1] for score in model.score(sentences)]
        close(np.exp(backward).sum(), np.float64(1))
        close(backward[0], model.score([before])[0].backward[0])


def test_unknown_words_are_read_by_their_characters_and_predicted_as_unk(plain):
    *_, model = plain
    (one, other, unk) = model.score([["the", word, "sat"] for word in ("dog", "yak", "<UNK>")])
    assert one.forward[1] == pytest.approx(other.forward[1], abs=1e-6)
    assert one.forward[1] == pytest.approx(unk.forward[1], abs=1e-6)
    assert one.backward[2] == pytest.approx(other.backward[2], abs=1e-6)
    assert abs(one.forward[2] - other.forward[2]) > 1e-4
    assert abs(one.backward[1] - other.backward[1]) > 1e-4


def test_a_model_of_words_reads_unk(loaded):
    *_, model = loaded("words")
    one, other = model.score([["the", word, "sat"] for word in ("dog", "yak")])
    close(one.forward, other.forward, 1e-6)
    close(one.backward, other.backward, 1e-6)


def test_empty_sentences(plain):
    *_, model = plain
    (score,) = model.score([[]])
    assert score.forward.shape == score.backward.shape == (1,)
    assert model.score([]) == []
    assert model.score(iter([])) == []


def test_the_preset_knows_some_english():
    model = keras_elmo.load_language_model("elmo_tiny_en")
    good, bad = model.score(
        [["He", "was", "born", "in", "London", "."], ["born", ".", "in", "was", "London", "He"]]
    )
    assert good.forward.sum() > bad.forward.sum() + 10
    assert good.backward.sum() > bad.backward.sum() + 10
    found = model.substitutes(["He", "was", "born", "in", "1912", "."], 3, top=3)
    assert found[0].word == "in"


@pytest.mark.parametrize("sentences", [["the cat"], [["the", 5]], [b"the"], [5]])
def test_sentences_that_are_none(plain, sentences):
    with pytest.raises(ValueError, match="`sentences` must be lists of str tokens. Received: "):
        plain[2].score(sentences)


# --- substitutes ---


@pytest.mark.parametrize("config", sorted({*FEW} & {"plain", "words", "no projection"}))
@pytest.mark.parametrize("position", [0, 3, 6])
def test_substitutes(loaded, config, position):
    options, weights, model = loaded(config)
    tokens = SENTENCES[0]
    found = model.substitutes(tokens, position)
    (forward, backward), _ = oracle(options, weights, tokens)
    forward, backward = forward[position], backward[len(tokens) - 1 - position]
    total = (forward + backward)[3:]
    total -= np.log(np.exp(total).sum())
    order = np.argsort(-total)
    assert [substitute.word for substitute in found] == [WORDS[3 + k] for k in order]
    close(np.array([substitute.log_probability for substitute in found]), total[order], 2e-5)
    close(np.array([substitute.forward for substitute in found]), forward[3 + order], 2e-5)
    close(np.array([substitute.backward for substitute in found]), backward[3 + order], 2e-5)
    assert sum(np.exp(substitute.log_probability) for substitute in found) == pytest.approx(1)


def test_substitutes_agree_with_score(plain):
    *_, model = plain
    tokens = SENTENCES[0]
    for substitute in model.substitutes(tokens, 2):
        (score,) = model.score([[*tokens[:2], substitute.word, *tokens[3:]]])
        assert substitute.forward == pytest.approx(score.forward[2], abs=2e-5)
        assert substitute.backward == pytest.approx(score.backward[3], abs=2e-5)


def test_substitutes_use_the_context_and_not_the_word(plain):
    *_, model = plain
    first = model.substitutes(["the", "cat", "sat"], 1)
    for again in (
        model.substitutes(["the", "mat", "sat"], 1),
        model.substitutes(("the", "zyxxy", "sat"), np.int64(1)),
    ):
        for one, other in zip(again, first, strict=True):
            assert one.word == other.word
            assert one[1:] == pytest.approx(other[1:], abs=1e-5)
    for other in (["on", "cat", "sat"], ["the", "cat", "on"], ["on", "the", "cat", "sat"]):
        found = model.substitutes(other, other.index("cat"))
        assert abs(found[0].log_probability - first[0].log_probability) > 1e-4


def test_top(plain):
    *_, model = plain
    everything = model.substitutes(SENTENCES[0], 0, top=99)
    assert len(everything) == len(WORDS) - 3
    assert model.substitutes(SENTENCES[0], 0, top=2) == everything[:2]


@pytest.mark.parametrize("position", [-1, 7, 100, 1.0, "0", None])
def test_position_outside_of_the_sentence(plain, position):
    with pytest.raises(ValueError, match="`position` must be an index of the sentence's 7 tokens"):
        plain[2].substitutes(SENTENCES[0], position)


def test_substitutes_mistakes(plain):
    *_, model = plain
    with pytest.raises(ValueError, match="`top` must be a positive integer. Received: top=0"):
        model.substitutes(["the"], 0, top=0)
    with pytest.raises(ValueError, match="sentence's 0 tokens"):
        model.substitutes([], 0)
    with pytest.raises(ValueError, match="must be lists of str tokens. Received: 'the cat'"):
        model.substitutes("the cat", 0)


# --- made, saved, loaded ---


def small_model(**kwargs):
    return ElmoModel(
        units=10,
        projection_dim=6,
        max_word_length=8,
        embedding_dim=4,
        filters=[[1, 4], [2, 5]],
        num_highway_layers=1,
        **kwargs,
    )


def test_parts_are_shared():
    elmo_model = small_model(trainable_bilm=True)
    model = BidirectionalLanguageModel(elmo_model, WORDS)
    assert model.vocabulary == VOCABULARY
    assert model.elmo_model is elmo_model
    paths = [variable.path for variable in model.trainable_variables]
    assert paths == [variable.path for variable in model.trainable_weights]
    assert not any("scalar_mix" in path for path in paths)
    in_elmo = [variable.path for variable in elmo_model.trainable_variables]
    assert set(paths) | {"scalar_mix/scalar_weights", "scalar_mix/gamma"} == {
        *in_elmo,
        "softmax/kernel",
        "softmax/bias",
    }
    assert model.count_params() == elmo_model.count_params() + len(WORDS) * 7
    frozen = BidirectionalLanguageModel(small_model(), WORDS)
    assert [variable.path for variable in frozen.trainable_variables] == [
        "softmax/kernel",
        "softmax/bias",
    ]


def test_bias_initializer():
    bias = keras.initializers.Constant(0.25)
    model = BidirectionalLanguageModel(small_model(), WORDS, bias_initializer=bias)
    assert (to_numpy(model.softmax.bias) == 0.25).all()
    again = BidirectionalLanguageModel.from_config(model.get_config())
    assert (to_numpy(again.softmax.bias) == 0.25).all()


def test_config_survives(loaded):
    *_, model = loaded("three layers", dropout=0.1, trainable_bilm=True)
    config = model.get_config()
    again = BidirectionalLanguageModel.from_config(config)
    assert again.get_config() == config
    assert again.vocabulary == model.vocabulary
    assert again.dropout == 0.1
    assert again.elmo_model.get_config() == model.elmo_model.get_config()


def same_scores(model, other, tolerance=1e-6):
    for one, two in zip(model.score(SENTENCES), other.score(SENTENCES), strict=True):
        close(one.forward, two.forward, tolerance)
        close(one.backward, two.backward, tolerance)


@pytest.mark.parametrize("config", ["plain", "words", "no projection"])
def test_preset_there_and_back(loaded, config, tmp_path):
    *_, model = loaded(config)
    model.save_to_preset(tmp_path / "preset", metadata={"tokenizer": "whitespace"})
    assert sorted(os.listdir(tmp_path / "preset")) == sorted(
        [
            presets.CONFIG_FILE,
            presets.WEIGHTS_FILE,
            presets.METADATA_FILE,
            presets.LANGUAGE_MODEL_FILE,
            presets.VOCABULARY_FILE,
        ]
    )
    assert presets.read_metadata(tmp_path / "preset")["tokenizer"] == "whitespace"
    loaded = BidirectionalLanguageModel.from_preset(
        tmp_path / "preset", dropout=0.3, trainable_bilm=True
    )
    assert (loaded.dropout, loaded.elmo_model.trainable_bilm) == (0.3, True)
    assert loaded.vocabulary == model.vocabulary
    same_scores(model, loaded)
    other = keras_elmo.load_language_model(tmp_path / "preset", dropout=0.2)
    assert other.dropout == 0.2
    same_scores(model, other)
    # The same weights as vectors.
    elmo_model = keras_elmo.load_model(tmp_path / "preset")
    for one, two in zip(elmo_model.weights, model.elmo_model.weights, strict=True):
        np.testing.assert_array_equal(to_numpy(one), to_numpy(two))


def test_preset_in_float16(loaded, tmp_path):
    *_, model = loaded("plain")
    model.save_to_preset(tmp_path / "preset", "float16")
    same_scores(model, BidirectionalLanguageModel.from_preset(tmp_path / "preset"), 0.02)


def test_as_bilm_tf_and_back(loaded, tmp_path):
    *_, model = loaded("plain")
    softmax = Softmax(to_numpy(model.softmax.kernel), to_numpy(model.softmax.bias))
    bilm_tf.write(Checkpoint(model.elmo_model, model.vocabulary, softmax), tmp_path / "bilm")
    same_scores(model, keras_elmo.load_language_model(tmp_path / "bilm"))


def test_preset_is_not_overwritten(loaded, tmp_path):
    *_, model = loaded("plain")
    model.save_to_preset(tmp_path / "preset")
    with pytest.raises(ValueError, match="preset exists already. Remove it, or give another name"):
        model.save_to_preset(tmp_path / "preset")
    model.save_to_preset(tmp_path / "preset", overwrite=True)
    with pytest.raises(ValueError, match="`weights_dtype` must be one of"):
        model.save_to_preset(tmp_path / "other", "int8")
    assert os.listdir(tmp_path) == ["preset"]


@pytest.mark.parametrize("missing", [presets.LANGUAGE_MODEL_FILE, presets.VOCABULARY_FILE])
def test_preset_without_a_language_model(loaded, tmp_path, missing):
    loaded("plain")[2].save_to_preset(tmp_path / "preset")
    (tmp_path / "preset" / missing).unlink()
    with pytest.raises(ValueError, match=f"has no language model: {missing} is missing"):
        BidirectionalLanguageModel.from_preset(tmp_path / "preset")
    kind = "vocabulary" if missing == presets.VOCABULARY_FILE else "softmax"
    with pytest.raises(ValueError, match=f"has no {kind}, so it is no language model"):
        keras_elmo.load_language_model(tmp_path / "preset")
    keras_elmo.load_model(tmp_path / "preset")


def test_preset_with_another_vocabulary(loaded, tmp_path):
    loaded("plain")[2].save_to_preset(tmp_path / "preset")
    Vocabulary(WORDS[:-1]).save(tmp_path / "preset" / presets.VOCABULARY_FILE)
    with pytest.raises(ValueError, match=r"The softmax must have the shapes \(8, 6\) and \(8,\)"):
        BidirectionalLanguageModel.from_preset(tmp_path / "preset")
    with pytest.raises(ValueError, match="has 9 rows, but the vocabulary has 8 words"):
        keras_elmo.load_language_model(tmp_path / "preset")


def test_arguments():
    with pytest.raises(ValueError, match="`elmo_model` must be an ElmoModel. Received: str"):
        BidirectionalLanguageModel("elmo_tiny_en", WORDS)
    with pytest.raises(ValueError, match="must hold <S>, </S>, <UNK>"):
        BidirectionalLanguageModel(small_model(), WORDS[1:])
    words = ElmoModel(units=10, projection_dim=6, vocabulary_size=8)
    with pytest.raises(ValueError, match="`vocabulary` must be the one that the model reads, of 8"):
        BidirectionalLanguageModel(words, WORDS)
    for dropout in (1, 1.5, -0.1, "0.1", None):
        with pytest.raises(ValueError, match="`dropout` must be a rate, 0 or more and less than 1"):
            BidirectionalLanguageModel(small_model(), WORDS, dropout)


def test_softmax_of_another_shape(loaded):
    *_, model = loaded("plain")
    for kernel, bias in (((8, 6), 9), ((9, 5), 9), ((9, 6), 8)):
        with pytest.raises(ValueError, match=r"must have the shapes \(9, 6\) and \(9,\). Received"):
            model.set_softmax(np.zeros(kernel), np.zeros(bias))


FRESH = """
import sys
import numpy as np
import keras_elmo, keras
model = keras.saving.load_model("model.keras")
assert not any(name.startswith("test") for name in sys.modules)
score = model.score([["the", "dog", "sat"]])[0]
np.savez("score.npz", forward=score.forward, backward=score.backward)
print([word.word for word in model.substitutes(["the", "cat", "sat"], 1)], model.dropout)
"""


def test_keras_file_in_a_fresh_process(loaded, tmp_path):
    *_, model = loaded("plain", dropout=0.1, trainable_bilm=True)
    model.save(tmp_path / "model.keras")
    code = FRESH
    if keras.backend.backend() == "torch":
        code = "import torch\n" + code  # has to come before TensorFlow
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=os.environ, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    (score,) = model.score([["the", "dog", "sat"]])
    with np.load(tmp_path / "score.npz") as file:
        close(file["forward"], score.forward, 1e-6)
        close(file["backward"], score.backward, 1e-6)
    words = [word.word for word in model.substitutes(["the", "cat", "sat"], 1)]
    assert process.stdout.strip() == f"{words} 0.1"


# --- plain Keras training ---


def training_batches(model, folder, num_negatives, unroll_steps=6):
    """Batches of a small corpus as `fit` takes them: dicts of arrays of the same shapes."""
    path = folder / "corpus.txt"
    path.write_text("the cat sat on the mat .\nthe mat sat on the cat .\ncat on mat .\n" * 15)
    width = model.elmo_model.max_word_length
    stream = TrainingStream(SentenceStream(path), VOCABULARY, 4, unroll_steps, width, num_epochs=1)
    for step, batch in enumerate(stream):
        inputs = model.inputs_of(batch)
        # JAX compiles once per shape.
        room = len(WORDS) + 1 - len(inputs["word_ids"])
        inputs["word_ids"] = np.pad(
            inputs["word_ids"], [[0, room]] + [[0, 0]] * (inputs["word_ids"].ndim - 1)
        )
        for place, direction in enumerate(DIRECTIONS if num_negatives else ()):
            generator = random_generator("negatives", 0, step, place)
            negatives = sample_negatives(num_negatives, len(WORDS), generator)
            inputs[f"{direction}_negatives"] = negatives.ids
            inputs[f"{direction}_num_tries"] = np.array([negatives.num_tries], "float32")
        yield inputs


@pytest.mark.parametrize("num_negatives", [None, 4])
def test_fit(load, tmp_path, num_negatives):
    *_, model = load("one layer, tanh", dropout=0.1, trainable_bilm=True)
    batches = list(training_batches(model, tmp_path, num_negatives))
    assert len(batches) > 10
    exact = next(training_batches(model, tmp_path, None))

    def losses():
        found = model(exact)
        return np.array([to_numpy(found[direction]).mean() for direction in DIRECTIONS])

    before = losses()
    mix = [to_numpy(weight).copy() for weight in model.elmo_model.scalar_mix.weights]
    weights = [to_numpy(weight).copy() for weight in model.trainable_weights]

    def forever():
        while True:
            for inputs in batches:
                yield (inputs,)

    model.compile(keras.optimizers.Adam(0.02))
    history = model.fit(
        forever(), steps_per_epoch=len(batches), epochs=4, verbose=0, shuffle=False
    ).history["loss"]
    assert np.isfinite(history).all()
    assert history[-1] < history[0] - 0.2
    assert (losses() < before - 0.3).all()
    for weight, old in zip(model.trainable_weights, weights, strict=True):
        assert np.abs(to_numpy(weight) - old).max() > 0, weight.path
    for weight, old in zip(model.elmo_model.scalar_mix.weights, mix, strict=True):
        np.testing.assert_array_equal(to_numpy(weight), old)


def test_fit_trains_a_model_of_words(load, tmp_path):
    *_, model = load(ONE_LAYER_OF_WORDS, trainable_bilm=True)
    batches = list(training_batches(model, tmp_path, None))
    model.compile(keras.optimizers.Adam(0.02))
    losses = [model.train_on_batch(inputs) for inputs in batches * 3]
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 0.3


def test_the_loss_is_the_mean_of_both_directions(load, tmp_path):
    *_, model = load("one layer, tanh", trainable_bilm=True)
    inputs = next(training_batches(model, tmp_path, None))
    losses = model(inputs)
    expected = np.mean([to_numpy(losses[direction]) for direction in DIRECTIONS])
    model.compile(keras.optimizers.SGD(0.0))
    assert model.train_on_batch(inputs) == pytest.approx(expected, abs=1e-5)
    assert model.test_on_batch(inputs) == pytest.approx(expected, abs=1e-5)
