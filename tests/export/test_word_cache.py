"""A word cache changes no number, of the first word either; it saves the character CNN (user problem 33)."""

import json
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_elmo import (
    BidirectionalLanguageModel,
    ElmoEmbedding,
    ElmoModel,
    TextClassifier,
    character_ids,
)
from keras_elmo.export import LanguageModelServer, export_saved_model
from keras_elmo.export.word_cache import WordCache, make_word_cache
from keras_elmo.vocabulary import Vocabulary

WIDTH = 12
SPECIALS = ["<S>", "</S>", "<UNK>"]
# One is longer than the 10 bytes that the model reads, one is no ASCII. The specials stand anywhere.
WORDS = ["the", "<S>", "bank", "riverbankers", "</S>", "我", "a", "<UNK>", ",", "rare", "rarer"]
NUM_CACHED = 6
CACHED = [word for word in WORDS if word not in SPECIALS][:NUM_CACHED]
# Words that are stored and that are not, twice, cut at the same byte, typed boundaries, sentences without a word.
TEXTS = [
    "the bank, a riverbanks",
    "",
    "<S> the rare </S> <UNK> other other",
    "riverbankers riverbankerz 我 😀",
    "other  the",
]


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(1)
    return ElmoModel(
        filters=[[1, 4], [2, 4]],
        embedding_dim=4,
        units=8,
        projection_dim=4,
        num_highway_layers=1,
        max_word_length=WIDTH,
    )


@pytest.fixture(scope="module")
def language_model(model):
    keras.utils.set_random_seed(2)
    language_model = BidirectionalLanguageModel(model, WORDS)
    count = len(WORDS)
    kernel, bias = (
        np.random.default_rng(k).normal(size=s) for k, s in enumerate([(count, 4), (count,)])
    )
    language_model.set_softmax(kernel.astype("float32"), bias.astype("float32"))
    return language_model


@pytest.fixture(scope="module")
def paths(language_model, tmp_path_factory):
    """The same model without cache and with it; some of the texts are cut at white space, and hold "<S>"."""
    folder = tmp_path_factory.mktemp("saved_models")
    server = LanguageModelServer(language_model, "whitespace", top=3)
    plain = export_saved_model(server, folder / "plain")
    cached = export_saved_model(server, folder / "cached", word_cache=NUM_CACHED)
    # Nothing in it depends on where it lies.
    return plain, cached.rename(tmp_path_factory.mktemp("moved") / "1")


@pytest.fixture(scope="module")
def both(paths):
    return [tf.saved_model.load(path).signatures for path in paths]


def check_same(both, name, **inputs):
    plain, cached = (served[name](**inputs) for served in both)
    assert set(plain) == set(cached)
    for key, value in plain.items():
        assert (value.shape, value.dtype) == (cached[key].shape, cached[key].dtype)
        if value.dtype.is_floating:
            np.testing.assert_allclose(cached[key], value, atol=1e-6, rtol=0)
        else:
            np.testing.assert_array_equal(cached[key], value)
    return cached


# --- the same numbers ---


@pytest.mark.parametrize("texts", [TEXTS, *([text] for text in TEXTS), ["", ""], []], ids=len)
def test_text(both, texts):
    check_same(both, "default", text=tf.constant(texts, tf.string))


@pytest.mark.parametrize("length", [[5, 3, 0], [0, 0, 0], [5, 5, 5], [1, 4, 2]], ids=str)
def test_tokens_of_which_only_the_length_says_what_is_padding(both, length):
    tokens = [
        ["the", "", "other", "<S>", "bank"],
        ["", "", "", "the", "other"],
        ["new", "</S>", "the\0", "a", "riverbankers"],
    ]
    inputs = {"tokens": tf.constant(tokens), "sequence_len": tf.constant(length)}
    found = check_same(both, "tokens", **inputs)
    assert not found["elmo"].numpy()[~np.array(tf.sequence_mask(length, 5))].any()


def test_no_columns_and_no_rows(both):
    for shape in ((2, 0), (0, 3), (0, 0)):
        lengths = tf.zeros(shape[:1], tf.int32)
        check_same(both, "tokens", tokens=tf.fill(shape, "the"), sequence_len=lengths)


def test_bytes_that_are_no_text(both):
    check_same(
        both,
        "tokens",
        tokens=tf.constant([[b"\xff\x00", "我".encode()[:2], b"the"]]),
        sequence_len=tf.constant([3]),
    )


def test_character_ids(both):
    check_same(both, "character_ids", character_ids=character_ids(TEXTS, WIDTH))


def test_substitutes(both):
    check_same(
        both,
        "substitutes",
        tokens=tf.constant([["the", "other", "bank"], ["rare", "the", "the"]]),
        sequence_len=tf.constant([3, 1]),
        position=tf.constant([1, 0]),
    )


@pytest.mark.parametrize(
    "config",
    [
        {"keep_sentence_boundaries": True, "layer_norm": "sentence", "trainable_bilm": True},
        {"dtype": "mixed_bfloat16"},
    ],
    ids=str,
)
def test_other_models(model, config):
    other = ElmoModel.from_config(model.get_config() | config)
    other.set_weights(model.get_weights())
    layer = ElmoEmbedding(other)
    both = [layer.serving_signatures(cache) for cache in (None, WordCache(other, CACHED))]
    check_same(both, "default", text=tf.constant(TEXTS))
    check_same(both, "default", text=tf.constant(["the bank", ""]))


def test_weights_that_are_stored_in_float16(model, tmp_path):
    """What is stored is computed with these weights, too."""
    caches = {}, {"word_cache": NUM_CACHED, "vocabulary": Vocabulary(WORDS)}
    paths = [
        export_saved_model(model, tmp_path / "elmo", ["word_emb"], "float16", **cache)
        for cache in caches
    ]
    both = [tf.saved_model.load(path).signatures for path in paths]
    check_same(both, "default", text=tf.constant(TEXTS))


def test_in_a_graph_of_its_own(paths):
    """As servers load it: by the signature's names, with the table filled by the graph's own operation."""
    answers = []
    for path in paths:
        with tf.compat.v1.Session(graph=tf.Graph()) as session:
            graph = tf.compat.v1.saved_model.load(session, ["serve"], str(path))
            signature = graph.signature_def["serving_default"]
            feed = {signature.inputs["text"].name: TEXTS}
            answers.append(session.run(signature.outputs["elmo"].name, feed))
    np.testing.assert_allclose(*answers, atol=1e-6)


# --- the character CNN ---


def test_it_does_not_run_when_all_words_are_stored(paths):
    """Its weights are destroyed: whatever went through it is no number."""
    loaded = tf.saved_model.load(paths[1])
    served = loaded.signatures["default"]
    stored, other = tf.constant(["<S> " + " ".join(CACHED), "", "the"]), tf.constant(["the other"])
    before = served(stored)
    assert np.isfinite(served(other)["elmo"]).all()
    kernels = [variable for variable in loaded.weights if "convolution" in variable.name]
    assert kernels
    for kernel in kernels:
        kernel.assign(tf.fill(kernel.shape, float("nan")))
    after = served(stored)
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value)
    word_emb = served(other)["word_emb"].numpy()
    assert np.isfinite(word_emb[0, 0]).all()
    assert np.isnan(word_emb[0, 1]).all()


def test_it_gets_each_other_word_alone(model, monkeypatch):
    cache = WordCache(model, CACHED)
    seen = []

    def spy(ids):
        seen.append(ids.numpy())
        return encoder(ids)

    encoder = cache._encoder
    monkeypatch.setattr(cache, "_encoder", spy)
    tokens = [["the", "other", "bank"], ["new", "<S>", ""]]
    ids = character_ids(tokens, WIDTH)
    vectors = cache.token_embeddings(tf.constant(tokens), tf.constant(ids))
    np.testing.assert_allclose(vectors, model.token_encoder(ids), atol=1e-6)
    [found] = seen
    np.testing.assert_array_equal(found, character_ids([["other", "new", ""]], WIDTH))
    cache.token_embeddings(tf.constant([["a", "the"]]), character_ids([["a", "the"]], WIDTH))
    assert len(seen) == 1


# --- what is stored ---


def test_the_first_words_and_the_boundaries_are_stored(paths):
    loaded = tf.saved_model.load(paths[1])
    [vectors] = [variable for variable in loaded.weights if "word_cache" in variable.name]
    # A row for no word and two for the boundaries.
    assert vectors.shape == (3 + NUM_CACHED, 4)
    [table] = loaded.tables
    assert int(tf.raw_ops.LookupTableSizeV2(table_handle=table.resource_handle)) == 2 + NUM_CACHED
    extra = "assets.extra/keras_elmo.json"
    plain, cached = (json.loads((path / extra).read_text()) for path in paths)
    assert cached["word_cache"] == NUM_CACHED
    assert "word_cache" not in plain


def test_many_words(model):
    """More than are encoded at a time, of all lengths: every word has its own vector."""
    words = [f"{'x' * (k % 9)}{k}" for k in range(1200)]
    cache = WordCache(model, words)
    ids = character_ids([words], WIDTH)
    found = cache.token_embeddings(tf.constant([words]), tf.constant(ids))
    np.testing.assert_allclose(found, model.token_encoder(ids), atol=1e-6)
    assert cache.num_words == 1200


def test_more_words_than_there_are(model, language_model):
    count = len(WORDS) - len(SPECIALS)
    message = f"has {count} words, fewer than the 1,000 of the word cache: all of them are cached"
    with pytest.warns(UserWarning, match=message):
        cache = make_word_cache(LanguageModelServer(language_model), 1000)
    assert cache.num_words == count
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert make_word_cache(ElmoEmbedding(model), count, Vocabulary(WORDS)).num_words == count


# --- mistakes ---


@pytest.mark.parametrize("count", [0, -1, 2.5, True, "9"], ids=repr)
def test_numbers_that_are_none(language_model, tmp_path, count):
    with pytest.raises(ValueError, match="`word_cache` must be a positive integer. Received: word"):
        export_saved_model(language_model, tmp_path / "elmo", word_cache=count)
    assert not (tmp_path / "elmo").exists()


def test_no_vocabulary(model, tmp_path):
    with pytest.raises(ValueError, match="takes the first words of a `Vocabulary`.*Received: voc"):
        export_saved_model(model, tmp_path / "elmo", word_cache=3)
    with pytest.raises(ValueError, match="takes the first words of a `Vocabulary`"):
        export_saved_model(ElmoEmbedding(model), tmp_path / "elmo", word_cache=3, vocabulary=WORDS)
    with pytest.raises(ValueError, match="`vocabulary` has the words for `word_cache`. Received"):
        export_saved_model(model, tmp_path / "elmo", vocabulary=Vocabulary(WORDS))
    assert not (tmp_path / "elmo").exists()


def test_models_of_other_outputs(model, tmp_path):
    head = TextClassifier(model, ["bad", "good"])
    text = keras.Input((), dtype="string")
    outer = keras.Model(text, ElmoEmbedding(model, output="default")(text))
    for other in (head, outer):
        with pytest.raises(
            ValueError, match="`word_cache` goes with models that serve the vectors"
        ):
            export_saved_model(other, tmp_path / "elmo", word_cache=3, vocabulary=Vocabulary(WORDS))
    assert not (tmp_path / "elmo").exists()
