"""AddSentenceBoundaries and RemoveSentenceBoundaries: the harness, and rows of every kind."""

import harness
import keras
import numpy as np
import pytest
import reference

from keras_elmo.layers import AddSentenceBoundaries, RemoveSentenceBoundaries

BEGIN = [259, 257, 260, 261]
END = [259, 258, 260, 261]


# Adding ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_add_harness(dtype):
    if dtype == "int64" and keras.backend.backend() == "jax":
        pytest.skip("JAX has no int64 unless told to")
    tokens = np.array([[3, 1, 4], [5, 0, 0]], dtype)
    harness.check_layer(AddSentenceBoundaries, {"begin": 7, "end": 8}, tokens)
    characters = np.arange(2 * 3 * 4).reshape(2, 3, 4).astype(dtype)
    harness.check_layer(AddSentenceBoundaries, {"begin": BEGIN, "end": END}, characters)


def test_added_rows_are_the_oracle_s():
    rows = reference.character_rows(["The", "bank"], 8)
    add = AddSentenceBoundaries(rows[0].tolist(), rows[-1].tolist())
    output = harness.to_numpy(add(rows[None, 1:-1].astype("int32")))
    np.testing.assert_array_equal(output[0], rows)
    # Behind the padding of a shorter sentence: the last column of the batch.
    ids = np.stack([rows[1:-1], rows[1:-1] * [[1], [0]]]).astype("int32")
    output = harness.to_numpy(add(ids))
    np.testing.assert_array_equal(output[1], [rows[0], rows[1], 0 * rows[2], rows[3]])


@pytest.mark.parametrize("num_tokens", [0, 1])
def test_empty_batches(num_tokens):
    add = AddSentenceBoundaries(1, 2)
    output = harness.to_numpy(add(np.zeros((2, num_tokens), "int32")))
    np.testing.assert_array_equal(output, [[1, *[0] * num_tokens, 2]] * 2)


def test_arrays_are_taken_and_saved():
    layer = AddSentenceBoundaries(np.array(BEGIN), tuple(END))
    assert layer.get_config()["begin"] == BEGIN
    assert layer.get_config()["end"] == END


@pytest.mark.parametrize(("begin", "end"), [(1, [2]), (BEGIN, END[:3])])
def test_add_argument_errors(begin, end):
    with pytest.raises(
        ValueError, match="`begin` and `end` must be ids of the same kind and length"
    ):
        AddSentenceBoundaries(begin, end)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 5), (2, 3, 4, 1)])
def test_add_input_errors(shape):
    add = AddSentenceBoundaries(BEGIN, END)
    message = r"The ids of a word must have the shape \(4,\), that of `begin`. Received a tensor"
    with pytest.raises(ValueError, match=message):
        add(np.ones(shape, "int32"))


# Removing ----------------------------------------------------------------------------------------

# Words by row: full, right-padded, left-padded, holed, empty.
WORDS = np.array(
    [[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 0, 0, 0]],
    dtype=bool,
)
MASK = np.pad(WORDS, ((0, 0), (1, 1)), constant_values=True)


def some_vectors():
    x = np.random.default_rng(0).normal(size=(5, 6, 3)).astype("float32")
    return np.where(MASK[..., None], x, 0)


@pytest.mark.parametrize("keep", [False, True])
def test_remove_harness(keep):
    x = some_vectors()
    harness.check_layer(RemoveSentenceBoundaries, {"keep": keep}, x, mask=MASK)


def test_remove():
    x = some_vectors()
    output = RemoveSentenceBoundaries()(x, mask=MASK)
    np.testing.assert_array_equal(harness.to_numpy(output), x[:, 1:-1])
    np.testing.assert_array_equal(harness.mask_of(output), WORDS)
    output = RemoveSentenceBoundaries()(x)
    np.testing.assert_array_equal(harness.to_numpy(output), x[:, 1:-1])
    assert harness.mask_of(output) is None


# Where `</S>` stands with `keep=True`, by row: behind the last word.
ENDS = [5, 3, 5, 4, 1]


def test_keep():
    x = some_vectors()
    expected, mask = x.copy(), MASK.copy()
    expected[:, -1], mask[:, -1] = 0, False
    for row, end in enumerate(ENDS):
        expected[row, end], mask[row, end] = x[row, -1], True
    layer = RemoveSentenceBoundaries(keep=True)
    for output in (
        layer(x, mask=MASK),
        layer(x, keras.ops.convert_to_tensor(MASK)),
        layer(harness.masked(x)),
    ):
        np.testing.assert_array_equal(harness.to_numpy(output), expected)
        np.testing.assert_array_equal(harness.mask_of(output), mask)
    # Each row still has its words and both boundaries, and nothing else.
    assert (mask.sum(axis=1) == WORDS.sum(axis=1) + 2).all()


def test_masks_by_position_and_on_the_input():
    x = some_vectors()
    layer = RemoveSentenceBoundaries()
    for output in (layer(x, keras.ops.convert_to_tensor(MASK)), layer(harness.masked(x))):
        np.testing.assert_array_equal(harness.mask_of(output), WORDS)


def test_add_then_remove_gives_the_words_back():
    ids = np.array([[3, 1, 4], [5, 0, 0]], "int32")
    added = AddSentenceBoundaries(7, 8)(ids)
    vectors = keras.ops.cast(added, "float32")[:, :, None]
    output = RemoveSentenceBoundaries()(vectors, mask=keras.ops.not_equal(added, 0))
    np.testing.assert_array_equal(harness.to_numpy(output)[:, :, 0], ids)
    np.testing.assert_array_equal(harness.mask_of(output), ids != 0)


def test_keep_needs_a_mask():
    message = "`keep=True` needs a mask to know where each sentence ends. Received: mask=None"
    with pytest.raises(ValueError, match=message):
        RemoveSentenceBoundaries(keep=True)(some_vectors())
    with pytest.raises(ValueError, match=message):
        RemoveSentenceBoundaries(keep=True)(keras.Input((None, 3)))
