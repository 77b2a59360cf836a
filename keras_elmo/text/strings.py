"""as_strings: whatever people hold their text in, as the string tensors that Keras takes."""

from typing import Any

import numpy as np
import tensorflow as tf


def as_strings(text: Any) -> tf.Tensor | tf.RaggedTensor:
    """Turns lists and every kind of NumPy string array into a string tensor.

    Keras' own `fit`, `evaluate`, `predict` and direct calls refuse lists of strings and NumPy's `<U`
    and `S` arrays, with a message about a data type; what this gives back they take.

    Lone surrogates, which UTF-8 cannot write, are dropped.

    Args:
        text: Sentences: a str or bytes list or array of shape (batch,) or (batch, 1), or a column of
            a data frame. Or tokens: an array (batch, num_tokens), or lists of str, one for each
            sentence, of any lengths. Or a string `tf.Tensor` or `tf.RaggedTensor`, which is given
            back as it is.

    Returns:
        A string tensor of the same shape. Lists of tokens are padded with `""` to the longest.

    Raises:
        ValueError: If `text` is a single string, holds anything but strings, or is of another kind
            or rank.

    Example:
        >>> as_strings(["The bank", "Hello"]).shape
        TensorShape([2])
        >>> as_strings([["The", "bank"], ["Hello"]]).numpy().tolist()
        [[b'The', b'bank'], [b'Hello', b'']]
    """
    if isinstance(text, tf.Tensor | tf.RaggedTensor | tf.Variable):
        if text.dtype != tf.string:
            raise ValueError(f"`text` must hold strings. Received a tensor of {text.dtype.name}")
        return text
    if isinstance(text, str | bytes):
        raise ValueError(
            f"`text` must be a list or an array of strings. Received one string, {text!r:.60}: put it "
            "into a list."
        )
    if hasattr(text, "to_numpy"):  # a column of a data frame
        text = text.to_numpy()
    if isinstance(text, np.ndarray) and text.ndim == 2:
        encoded = [_encode(value) for value in text.flat]
        return tf.reshape(tf.constant(encoded, tf.string), text.shape)
    if not _is_row(text):
        raise ValueError(
            "`text` must be a list or an array of strings, (batch,), (batch, 1) or (batch, num_tokens). "
            f"Received: {_describe(text)}"
        )
    rows = list(text)
    if not any(map(_is_row, rows)):
        return tf.constant([_encode(row) for row in rows], tf.string, shape=(len(rows),))
    if any(isinstance(row, str | bytes) for row in rows):
        raise ValueError(
            "`text` must be all sentences (strings) or all lists of tokens. Received a list of both."
        )
    encoded_rows = [
        [_encode(token) for token in row] if _is_row(row) else [_encode(row)] for row in rows
    ]
    width = max(map(len, encoded_rows))
    padded = [[*row, *[b""] * (width - len(row))] for row in encoded_rows]
    return tf.constant(padded, tf.string, shape=(len(rows), width))


def _is_row(value: Any) -> bool:
    return isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim == 1)


def _encode(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "ignore")
    if isinstance(value, bytes):
        return value
    raise ValueError(
        f"`text` must hold strings. Received: {value!r:.60} of type {type(value).__name__}. Write a missing "
        'value as "" and a number as `str(number)`.'
    )


def _describe(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return type(value).__name__ + ("" if shape is None else f" of shape {tuple(shape)}")
