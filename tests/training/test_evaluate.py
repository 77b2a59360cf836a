"""Perplexity: against NumPy, whatever the batches, for any text."""

import gc
import importlib
import itertools
import weakref

import keras
import numpy as np
import pytest
import reference
from harness import options_for, to_numpy
from paths import shared

import keras_elmo
from keras_elmo.corpus import read_sentences
from keras_elmo.models import BidirectionalLanguageModel, ElmoModel
from keras_elmo.vocabulary import Vocabulary

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="this room is TensorFlow's"
)
if keras.backend.backend() == "tensorflow":
    from keras_elmo.training import evaluate
    from keras_elmo.training.evaluate import _losses_function

WORDS = ["<S>", "</S>", "<UNK>", "the", "cat", "sat", "on", "mat", "."]
SENTENCES = [
    ["the", "cat", "sat", "on", "the", "mat", "."],
    ["the", "dog", "sat"],
    [],
    ["cat"],
    ["on", "on", "on", "unheard-of", "."] * 9,
]
CHARACTERS = options_for(n_layers=2, use_skip_connections=True, cell_clip=3, proj_clip=3)
WORD_IDS = {"lstm": {"dim": 6, "projection_dim": 6, "n_layers": 1}}


def load(folder, options):
    options = options | {"n_tokens_vocab": len(WORDS)}
    weights = reference.random_model(options, 2, softmax=True)
    reference.write_model(folder, options, weights, WORDS)
    return options, weights, keras_elmo.load_language_model(folder)


@pytest.fixture(scope="module", params=["characters", "words"])
def loaded(request, tmp_path_factory):
    options = CHARACTERS if request.param == "characters" else WORD_IDS
    return load(tmp_path_factory.mktemp("model"), options)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return load(tmp_path_factory.mktemp("model"), CHARACTERS)[2]


def oracle_losses(options, weights, tokens):
    """The losses of both directions in NumPy float64."""
    if "char_cnn" in options:
        width = options["char_cnn"]["max_characters_per_token"]
        rows = reference.character_rows(tokens, width)
    else:
        rows = reference.token_rows(tokens, WORDS)
    vectors = reference.token_embeddings(options, weights, rows)
    ids = np.array([WORDS.index(word) if word in WORDS else 2 for word in ["<S>", *tokens, "</S>"]])
    losses = []
    for direction in range(2):
        order = slice(None) if direction == 0 else slice(None, None, -1)
        read, targets = vectors[order][:-1], ids[order][1:]
        top = reference.lstm_stack(options, weights, direction, read)[0][-1]
        logits = top @ weights["softmax/W"].T + weights["softmax/b"]
        losses.append(np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(targets)), targets])
    return losses


def test_oracle(loaded):
    options, weights, model = loaded
    result = evaluate(model, SENTENCES)
    forward, backward = (
        np.concatenate(losses)
        for losses in zip(*(oracle_losses(options, weights, s) for s in SENTENCES), strict=True)
    )
    assert result.num_sentences == len(SENTENCES)
    assert result.num_tokens == len(forward) == sum(len(tokens) + 1 for tokens in SENTENCES)
    assert result.forward_perplexity == pytest.approx(np.exp(forward.mean()), rel=1e-5)
    assert result.backward_perplexity == pytest.approx(np.exp(backward.mean()), rel=1e-5)
    mean = (forward.mean() + backward.mean()) / 2
    assert result.perplexity == pytest.approx(np.exp(mean), rel=1e-5)
    assert abs(forward.mean() - backward.mean()) > 0.01


def test_any_batch_gives_the_same(loaded):
    """Also one so small that most sentences are read in pieces."""
    *_, model = loaded
    expected = evaluate(model, SENTENCES)
    for batch_tokens in (1, 2, 5, 16, 45, 46, 100):
        result = evaluate(model, iter(SENTENCES[::-1]), batch_tokens)
        assert result[3:] == expected[3:]
        assert result[:3] == pytest.approx(expected[:3], rel=1e-6)


def test_as_score(model):
    scores = model.score(SENTENCES)
    result = evaluate(model, SENTENCES)
    forward = np.concatenate([score.forward for score in scores])
    assert result.forward_perplexity == pytest.approx(np.exp(-forward.mean()), rel=1e-5)


def test_uniform_model_has_perplexity_v():
    """User problem 59."""
    words = [*WORDS, *map(str, range(991))]
    model = BidirectionalLanguageModel(
        ElmoModel(8, 4, max_word_length=8, filters=[[1, 4]], num_highway_layers=0), words
    )
    for weight in model.trainable_weights + model.elmo_model.weights:
        weight.assign(np.zeros(weight.shape))
    result = evaluate(model, SENTENCES)
    assert result[:3] == pytest.approx([1000] * 3, rel=1e-6)


def test_memory_of_a_long_sentence_and_one_of_many_words(model):
    """Pieces have the words of their own alone; the state goes on from one to the next."""
    seen = []
    losses = _losses_function(model)

    def spy(inputs, state):
        seen.append((inputs["word_ids"].shape[0], inputs["forward_words"].shape[1]))
        return losses(inputs, state)

    module = importlib.import_module("keras_elmo.training.evaluate")
    tokens = [f"w{k}" for k in range(500)]
    expected = evaluate(model, [tokens])
    module._COMPILED[model] = spy
    try:
        result = evaluate(model, [tokens], batch_tokens=64)
    finally:
        module._COMPILED[model] = losses
    assert result[:3] == pytest.approx(expected[:3], rel=1e-6)
    assert [steps for _, steps in seen] == [64] * 7 + [53]
    assert max(num_words for num_words, _ in seen) <= 2 * 64 + 1


def test_streamed(model):
    """Sentences are taken as they are needed."""
    taken = 0

    def sentences():
        nonlocal taken
        for k in range(500):
            taken += 1
            yield WORDS[3 : 3 + k % 7]

    at_first = []
    result = evaluate(model, sentences(), 8, lambda *counts: at_first.append(taken))
    assert at_first[0] < 200
    assert result.num_sentences == taken == 500


def test_on_batch(model):
    calls = []
    result = evaluate(model, SENTENCES, 8, lambda *counts: calls.append(counts))
    assert len(calls) > 2
    num_sentences, num_tokens = map(sum, zip(*calls, strict=True))
    assert (num_tokens, num_sentences) == result[3:]


def test_compiled_once_for_all_shapes(model):
    for batch_tokens in (4, 30):
        evaluate(model, SENTENCES, batch_tokens)
    assert _losses_function(model).experimental_get_tracing_count() == 1


def test_compiled_sees_new_weights(tmp_path):
    *_, model = load(tmp_path, WORD_IDS)
    before = evaluate(model, SENTENCES)
    model.set_softmax(-to_numpy(model.softmax.kernel), to_numpy(model.softmax.bias))
    after = evaluate(model, SENTENCES)
    assert abs(after.perplexity - before.perplexity) > 0.01


def test_model_is_not_kept_alive(tmp_path):
    *_, model = load(tmp_path, WORD_IDS)
    evaluate(model, [["cat"]])
    reference = weakref.ref(model)
    del model
    gc.collect()
    assert reference() is None


def test_no_sentences(model):
    with pytest.raises(ValueError, match="`sentences` must hold at least one sentence. Received"):
        evaluate(model, [])
    assert evaluate(model, [[]]).num_tokens == 1


def test_sentences_that_are_none(model):
    with pytest.raises(ValueError, match="`sentences` must be lists of str tokens. Received: 'the"):
        evaluate(model, ["the cat"])


def test_other_arguments(model):
    with pytest.raises(ValueError, match="`model` must be a BidirectionalLanguageModel; .* ElmoM"):
        evaluate(model.elmo_model, SENTENCES)
    with pytest.raises(ValueError, match="`batch_tokens` must be an integer of at least 1"):
        evaluate(model, SENTENCES, 0)


def test_damaged_weights(tmp_path):
    *_, model = load(tmp_path, WORD_IDS)
    model.set_softmax(
        np.full(model.softmax.kernel.shape, np.nan), np.zeros(model.softmax.bias.shape)
    )
    with pytest.raises(ValueError, match="some are not a number: its weights are damaged"):
        evaluate(model, SENTENCES)


def test_hopeless_model(tmp_path):
    """A loss too large for `exp` is no error."""
    *_, model = load(tmp_path, WORD_IDS)
    bias = np.array([1e4] + [0] * (len(WORDS) - 1), "float32")
    model.set_softmax(to_numpy(model.softmax.kernel), bias)
    assert evaluate(model, SENTENCES).forward_perplexity == np.inf


def test_mixed_bfloat16(tmp_path, model):
    load(tmp_path, CHARACTERS)
    rough = keras_elmo.load_language_model(tmp_path, dtype="mixed_bfloat16")
    assert evaluate(rough, SENTENCES)[:3] == pytest.approx(evaluate(model, SENTENCES)[:3], rel=0.05)


@pytest.mark.large
def test_figures_of_bilm_tf():
    """A few rare words swallow the forward mass: NumPy found 4,899 forward and 220 backward."""
    path = shared("data", "lm", "valid.txt.xz")
    sentences = itertools.islice(read_sentences(path, "tokens"), 3000)
    model = keras_elmo.load_language_model(shared("models", "bilm_tf_tiny_en"))
    result = evaluate(model, sentences)
    assert result.forward_perplexity == pytest.approx(4899, rel=0.001)
    assert round(result.backward_perplexity) == 220
    assert result.perplexity == pytest.approx(1039, rel=0.001)


def test_vocabulary_of_the_model_counts():
    """What is not in it is `<UNK>`."""
    elmo_model = ElmoModel(8, 4, max_word_length=8, filters=[[1, 4]], num_highway_layers=0)
    model = BidirectionalLanguageModel(elmo_model, Vocabulary(["<UNK>", "a", "</S>", "<S>"]))
    model.set_softmax(np.zeros((4, 4)), np.log([0.5, 0.1, 0.2, 0.2]))
    result = evaluate(model, [["b", "a"]])
    assert result.forward_perplexity == pytest.approx((0.5 * 0.1 * 0.2) ** (-1 / 3), rel=1e-6)
    assert result.backward_perplexity == pytest.approx((0.5 * 0.1 * 0.2) ** (-1 / 3), rel=1e-6)
