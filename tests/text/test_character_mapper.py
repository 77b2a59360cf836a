"""The mapper in the graph gives what the NumPy mapper gives, whatever the strings and the sizes."""

import doctest
import json
import re
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_elmo.character_ids import character_ids, word_character_ids
from keras_elmo.text import CharacterMapper, map_characters
from keras_elmo.text import character_mapper as module

GOLDEN = Path(__file__).parents[3] / "shared" / "fixtures" / "generated"
CHINA = "中华人民共和国"
TRICKY = [
    ["<S>", "the", "</S>", "<UNK>", "</Sx", "<s>"],
    ["", "a\0b", "\0", "naïve", "🙂", ""],
    ["a" * 47 + "é", "é" * 30, "a" * 49, "a" * 60, CHINA, "x"],
]
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)


def ragged(sentences):
    """A ragged tensor of the words, without the lone surrogates that `tf.constant` refuses."""
    words = [word.encode("utf-8", "ignore") for tokens in sentences for word in tokens]
    return tf.RaggedTensor.from_row_lengths(
        tf.constant(words, tf.string), [len(tokens) for tokens in sentences]
    )


@pytest.mark.parametrize("width", [3, 5, 12, 20, 50])
def test_the_graph_spells_as_numpy_does(width):
    expected = character_ids(TRICKY, width)
    tokens, lengths = tf.constant(TRICKY), tf.constant([6, 6, 6])
    mapper = CharacterMapper(max_word_length=width)
    for ids in (
        map_characters(tokens, lengths, width),
        mapper(tokens, lengths),
        tf.function(mapper.call)(tokens, lengths),
    ):
        assert ids.dtype == tf.int32
        np.testing.assert_array_equal(ids, expected)


def test_golden_rows():
    ids = map_characters([[CHINA, "<S>", "Āt"]], max_word_length=20).numpy()[0].tolist()
    assert ids[0][:4] == [259, 229, 185, 174]
    assert ids[0][-3:] == [147, 141, 260]
    assert ids[1] == [259, 257, 260, *[261] * 17]
    assert ids[2] == [259, 197, 129, 117, 260, *[261] * 15]


def test_golden_character_ids():
    if not GOLDEN.exists():
        pytest.skip("shared/fixtures is not beside the repository")
    sentences = json.loads((GOLDEN / "sentences.json").read_text(encoding="utf-8"))
    with h5py.File(GOLDEN / "skip2" / "expected.hdf5") as file:
        np.testing.assert_array_equal(map_characters(ragged(sentences)), file["character_ids"][()])


@pytest.fixture(scope="module")
def mappers():
    """One traced function per width, so that Hypothesis' many sizes do not retrace."""
    signature = [tf.RaggedTensorSpec([None, None], tf.string, row_splits_dtype=tf.int64)]

    def mapper(width):
        return tf.function(lambda tokens: map_characters(tokens, None, width), signature)

    return {width: mapper(width) for width in (5, 12, 20, 50)}


@settings(deadline=None)
@given(st.lists(st.lists(ANY_TEXT, max_size=4), max_size=4), st.sampled_from([5, 12, 20, 50]))
def test_any_unicode_is_spelled_as_in_numpy(mappers, sentences, width):
    ids = mappers[width](ragged(sentences))
    np.testing.assert_array_equal(ids, character_ids(sentences, width))


def test_without_lengths_empty_strings_at_the_end_are_padding():
    tokens = [["a", "", "b", ""], ["", "", "", ""], ["a", "b", "c", "d"]]
    expected = character_ids([["a", "", "b"], [], ["a", "b", "c", "d"]])
    np.testing.assert_array_equal(map_characters(tokens), expected)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8"])
def test_lengths_alone_say_what_is_padding(dtype):
    tokens = tf.constant([["a", ""], ["a", ""], ["a", "b"], ["a", "b"]])
    ids = CharacterMapper()(tokens, sequence_len=np.array([1, 2, 1, 0], dtype))
    np.testing.assert_array_equal(ids, character_ids([["a"], ["a", ""], ["a"], []]))


@pytest.mark.parametrize("length", [2, -1])
def test_impossible_lengths(length):
    with pytest.raises(tf.errors.InvalidArgumentError, match="`sequence_len` must lie between 0"):
        map_characters([["a"]], [length])


def test_the_row_lengths_of_ragged_tokens_say_what_is_padding():
    sentences = [["a", ""], [], ["a", "b", "c"]]
    np.testing.assert_array_equal(CharacterMapper()(ragged(sentences)), character_ids(sentences))


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0)])
@pytest.mark.parametrize("with_lengths", [False, True])
def test_nothing_in_gives_nothing_out(shape, with_lengths):
    lengths = tf.zeros(shape[:1], tf.int32) if with_lengths else None
    ids = map_characters(tf.zeros(shape, tf.string), lengths)
    assert ids.shape == (*shape, 50)
    assert map_characters(ragged([[]] * shape[0])).shape == (shape[0], 0, 50)


def test_static_shapes_are_kept_where_known():
    def shape_of(*spec):
        function = tf.function(map_characters).get_concrete_function(*spec)
        return function.output_shapes.as_list()

    assert shape_of(tf.TensorSpec([2, None], tf.string)) == [2, None, 50]
    assert shape_of(tf.TensorSpec(None, tf.string)) == [None, None, 50]
    assert shape_of(tf.RaggedTensorSpec([2, None], tf.string)) == [2, None, 50]


def test_symbolic_call_keeps_unknown_sizes():
    tokens = keras.Input((None,), dtype="string")
    ids = CharacterMapper(max_word_length=12)(tokens)
    assert ids.shape == (None, None, 12)
    assert ids.dtype == "int32"
    assert CharacterMapper()(keras.Input((7,), batch_size=3, dtype="string")).shape == (3, 7, 50)


def test_config_holds_every_argument():
    layer = CharacterMapper(max_word_length=np.int64(12), name="mapper")
    config = layer.get_config()
    assert json.loads(json.dumps(config)) == config
    assert config["max_word_length"] == 12
    assert CharacterMapper.from_config(config).get_config() == config
    assert not layer.supports_jit


def test_a_saved_model_maps_as_before(tmp_path):
    tokens = keras.Input((None,), dtype="string", name="tokens")
    lengths = keras.Input((), dtype="int32", name="sequence_len")
    ids = CharacterMapper(max_word_length=12)(tokens, sequence_len=lengths)
    model = keras.Model({"tokens": tokens, "sequence_len": lengths}, ids)
    model.save(tmp_path / "mapper.keras")
    loaded = keras.saving.load_model(tmp_path / "mapper.keras")
    batch = {"tokens": tf.constant(TRICKY), "sequence_len": tf.constant([6, 4, 2])}
    expected = character_ids([TRICKY[0], TRICKY[1][:4], TRICKY[2][:2]], 12)
    np.testing.assert_array_equal(loaded.predict(batch, verbose=0), np.pad(expected, [(0, 0)] * 3))


def test_mixed_precision_does_not_touch_the_ids():
    ids = CharacterMapper(dtype="mixed_bfloat16")(tf.constant([["the"]]))
    np.testing.assert_array_equal(ids[0, 0], word_character_ids("the"))


def test_ragged_symbolic_tokens():
    tokens = keras.Input((None,), dtype="string", ragged=True)
    model = keras.Model(tokens, CharacterMapper()(tokens))
    sentences = [["a", ""], []]
    np.testing.assert_array_equal(model(ragged(sentences)), character_ids(sentences))


@pytest.mark.parametrize(
    ("tokens", "received"),
    [
        (tf.constant("a"), "shape=(), dtype=string"),
        (tf.constant(["a", "b"]), "shape=(2,), dtype=string"),
        (tf.constant([[["a"]]]), "shape=(1, 1, 1), dtype=string"),
        (tf.constant([[1, 2]]), "shape=(1, 2), dtype=int32"),
        (tf.ragged.constant([[["a"], []]]), "shape=(1, None, None), dtype=string"),
        (keras.KerasTensor((None,), dtype="string"), "shape=(None,), dtype=string"),
    ],
)
def test_tokens_must_be_strings_of_rank_two(tokens, received):
    sentence = (
        "`tokens` must be a string tensor of shape (batch, num_tokens). "
        f"Received: {received}; cut sentences into tokens first"
    )
    with pytest.raises(ValueError, match=re.escape(sentence)):
        CharacterMapper()(tokens)


@pytest.mark.parametrize(
    ("lengths", "received"),
    [
        (tf.constant(1), "shape=(), dtype=int32"),
        (tf.constant([1]), "shape=(1,), dtype=int32"),
        (tf.constant([[1], [1]]), "shape=(2, 1), dtype=int32"),
        (tf.constant([1.0, 1.0]), "shape=(2,), dtype=float32"),
    ],
)
def test_lengths_must_be_one_integer_per_sentence(lengths, received):
    sentence = (
        "`sequence_len` must be an integer tensor of shape (batch,) = (2,). "
        f"Received: {received}; give one length for each sentence."
    )
    with pytest.raises(ValueError, match=re.escape(sentence)):
        CharacterMapper()(tf.constant([["a"], ["b"]]), lengths)


def test_lengths_of_another_batch_are_refused_in_the_graph_too():
    function = tf.function(
        map_characters,
        [tf.TensorSpec([None, None], tf.string), tf.TensorSpec([None], tf.int32)],
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="`sequence_len` must have shape"):
        function(tf.constant([["a"], ["b"]]), tf.constant([1]))


def test_ragged_tokens_take_no_lengths():
    sentence = (
        "`sequence_len` must be None for ragged `tokens`, whose rows have their own lengths. "
        "Received: both; pass `tokens.to_tensor()` with `sequence_len`, or `tokens` alone."
    )
    with pytest.raises(ValueError, match=re.escape(sentence)):
        CharacterMapper()(ragged([["a"]]), tf.constant([1]))
    symbolic = keras.Input((None,), dtype="string", ragged=True)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        CharacterMapper()(symbolic, keras.Input((), dtype="int32"))


@pytest.mark.parametrize(
    "function", [CharacterMapper, lambda width: map_characters([[""]], None, width)]
)
def test_max_word_length_must_hold_a_byte(function):
    with pytest.raises(ValueError, match="`max_word_length` must be an integer of at least 3"):
        function(2)


def test_examples():
    assert doctest.testmod(module).failed == 0
