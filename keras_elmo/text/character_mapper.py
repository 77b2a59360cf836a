"""CharacterMapper: string tokens to character ids, in the TensorFlow graph."""

from typing import Any

import keras
import tensorflow as tf

from keras_elmo.character_ids import (
    BEGIN_OF_SENTENCE_WORD,
    BEGIN_OF_WORD,
    END_OF_SENTENCE_WORD,
    END_OF_WORD,
    MAX_WORD_LENGTH,
    NO_TOKEN,
    WORD_PADDING,
    check_max_word_length,
    word_character_ids,
)


def map_characters(
    tokens: tf.Tensor | tf.RaggedTensor,
    sequence_len: tf.Tensor | None = None,
    max_word_length: int = MAX_WORD_LENGTH,
) -> tf.Tensor:
    """Spells a batch of string tokens as character ids, the same as NumPy's `character_ids`.

    There is no lookup table: ids are the bytes of the strings, plus one. It works in eager mode and
    in graphs of unknown sizes, but not under XLA, which has no strings.

    Reference: Peters et al. 2018, https://arxiv.org/abs/1802.05365

    Args:
        tokens: UTF-8 string tensor of shape (batch, num_tokens), or a `tf.RaggedTensor` of rank 2,
            whose row lengths say what is padding.
        sequence_len: Integer tensor of shape (batch,), the number of tokens of each sentence: what
            stands before it is a word, even `""`, and what stands after it is padding. Defaults to
            None: the `""` at the end of a sentence are padding, any other `""` is a word.
        max_word_length: Ids per word, begin and end of word included. At least 3. Defaults to 50.

    Returns:
        int32 tensor of shape (batch, num_tokens, max_word_length); padding is 0.

    Raises:
        ValueError: If `tokens` is not a string tensor of rank 2, if `sequence_len` is not an
            integer tensor of shape (batch,) or is given with ragged tokens, or if `max_word_length`
            is no integer of at least 3.
        tf.errors.InvalidArgumentError: If a `sequence_len` is negative or beyond `num_tokens`.

    Example:
        >>> map_characters(tf.constant([["The", ""], ["a", "cat"]]), max_word_length=6).numpy()
        array([[[259,  85, 105, 102, 260, 261],
                [  0,   0,   0,   0,   0,   0]],
        <BLANKLINE>
               [[259,  98, 260, 261, 261, 261],
                [259, 100,  98, 117, 260, 261]]], dtype=int32)
    """
    max_word_length = check_max_word_length(max_word_length)
    is_ragged = isinstance(tokens, tf.RaggedTensor)
    if not is_ragged:
        tokens = tf.convert_to_tensor(tokens)
    if sequence_len is not None:
        sequence_len = tf.convert_to_tensor(sequence_len)
    _check_inputs(tokens, sequence_len, is_ragged)
    if is_ragged:
        tokens, sequence_len = tokens.to_tensor(), tokens.row_lengths()
    tokens = tf.ensure_shape(tokens, [None, None])
    if sequence_len is None:
        sequence_len = _length_without_trailing_empty(tokens)
    else:
        num_tokens = tf.cast(tf.shape(tokens)[1], sequence_len.dtype)
        is_possible = tf.logical_and(sequence_len >= 0, sequence_len <= num_tokens)
        message = "`sequence_len` must lie between 0 and the number of tokens in a row of `tokens`."
        tf.debugging.Assert(tf.reduce_all(is_possible), [message, sequence_len, num_tokens])
    # Sizes that a graph learns at run time only: a single length would be broadcast silently.
    tf.debugging.assert_equal(
        tf.shape(sequence_len), tf.shape(tokens)[:1], "`sequence_len` must have shape (batch,)."
    )

    rows = _spell(tokens, max_word_length)
    for word in (BEGIN_OF_SENTENCE_WORD, END_OF_SENTENCE_WORD):
        is_boundary = tf.equal(tokens, word)[..., tf.newaxis]
        rows = tf.where(is_boundary, word_character_ids(word, max_word_length), rows)
    is_token = tf.sequence_mask(sequence_len, tf.shape(tokens)[1])[..., tf.newaxis]
    ids = tf.where(is_token, rows, NO_TOKEN)
    return tf.ensure_shape(ids, [*tokens.shape, max_word_length])


@keras.saving.register_keras_serializable(package="keras_elmo")
class CharacterMapper(keras.layers.Layer):
    """Spells string tokens as character ids: begin of word, UTF-8 bytes plus one, end, padding.

    The layer form of `map_characters`, for models that take strings. It adds no sentence
    boundaries; the words `<S>` and `</S>` are the boundary symbols. Words are cut at
    `max_word_length - 2` bytes, even inside a character. It runs on the TensorFlow backend only and
    cannot be compiled by XLA.

    Reference: Peters et al. 2018, https://arxiv.org/abs/1802.05365

    Args:
        max_word_length: Ids per word, begin and end of word included. At least 3. Defaults to 50.
        **kwargs: Of `keras.layers.Layer`: `name`, `dtype`, `trainable`.

    Call arguments:
        tokens: UTF-8 string tensor of shape (batch, num_tokens), or a `tf.RaggedTensor` of rank 2,
            whose row lengths say what is padding.
        sequence_len: Integer tensor of shape (batch,), the number of tokens of each sentence.
            Defaults to
            None: the `""` at the end of a sentence are padding, any other `""` is a word.

    Output shape:
        (batch, num_tokens, max_word_length), int32.

    Masking:
        Padding is a row of 0. The layer makes no Keras mask: models read it from the ids.

    Raises:
        ValueError: If `max_word_length` is no integer of at least 3; in a call, if `tokens` is not
            a string tensor of rank 2, or if `sequence_len` is not an integer tensor of shape
            (batch,) or is given with ragged tokens.

    Example:
        >>> mapper = CharacterMapper(max_word_length=6)
        >>> mapper(tf.constant([["The", "cat"]])).numpy()
        array([[[259,  85, 105, 102, 260, 261],
                [259, 100,  98, 117, 260, 261]]], dtype=int32)
    """

    def __init__(self, max_word_length: int = MAX_WORD_LENGTH, **kwargs: Any):
        super().__init__(**kwargs)
        self.max_word_length = check_max_word_length(max_word_length)
        self.supports_jit = False

    def call(
        self, tokens: tf.Tensor | tf.RaggedTensor, sequence_len: tf.Tensor | None = None
    ) -> tf.Tensor:
        return map_characters(tokens, sequence_len, self.max_word_length)

    def compute_output_spec(
        self, tokens: keras.KerasTensor, sequence_len: keras.KerasTensor | None = None
    ) -> keras.KerasTensor:
        _check_inputs(tokens, sequence_len, getattr(tokens, "ragged", False))
        return keras.KerasTensor((*tokens.shape, self.max_word_length), dtype="int32")

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "max_word_length": self.max_word_length}


def _check_inputs(tokens: Any, sequence_len: Any, is_ragged: bool) -> None:
    """Refuses wrong types and shapes, of tensors as of Keras' symbolic ones."""
    shape, dtype = tf.TensorShape(tokens.shape), tf.as_dtype(tokens.dtype)
    if dtype != tf.string or not shape.is_compatible_with([None, None]):
        raise ValueError(
            "`tokens` must be a string tensor of shape (batch, num_tokens). "
            f"Received: shape={shape}, dtype={dtype.name}; "
            "cut sentences into tokens first, and put a single sentence into a batch of one."
        )
    if sequence_len is None:
        return
    if is_ragged:
        raise ValueError(
            "`sequence_len` must be None for ragged `tokens`, whose rows have their own lengths. "
            "Received: both; pass `tokens.to_tensor()` with `sequence_len`, or `tokens` alone."
        )
    shape = tf.TensorShape(sequence_len.shape)
    dtype = tf.as_dtype(sequence_len.dtype)
    batch = tf.TensorShape(tokens.shape)[:1]
    if not dtype.is_integer or not shape.is_compatible_with(batch):
        raise ValueError(
            f"`sequence_len` must be an integer tensor of shape (batch,) = {batch}. "
            f"Received: shape={shape}, dtype={dtype.name}; give one length for each sentence."
        )


def _length_without_trailing_empty(tokens: tf.Tensor) -> tf.Tensor:
    ends = tf.range(1, tf.shape(tokens)[1] + 1)
    return tf.reduce_max(tf.where(tf.equal(tokens, ""), 0, ends), axis=1)


def _spell(tokens: tf.Tensor, max_word_length: int) -> tf.Tensor:
    """Spells every string alike, boundaries and padding too: (batch, num_tokens, word length)."""
    # The places after begin of word; decoding cuts and pads every word to that width. Only the
    # length in bytes tells where a word ends: it may hold NUL bytes itself.
    places = tf.range(max_word_length - 1)
    raw = tf.io.decode_raw(tokens, tf.uint8, fixed_length=max_word_length - 1)
    end = tf.minimum(tf.strings.length(tokens, unit="BYTE"), max_word_length - 2)[..., tf.newaxis]
    after = tf.where(tf.equal(places, end), END_OF_WORD, WORD_PADDING)
    rest = tf.where(places < end, tf.cast(raw, tf.int32) + 1, after)
    return tf.pad(rest, [[0, 0], [0, 0], [1, 0]], constant_values=BEGIN_OF_WORD)
