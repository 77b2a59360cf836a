"""Lists of text to what a head reads: columns of a table, or tensors of a serving graph."""

import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_elmo.tasks.table import padding_of
from keras_elmo.tasks.word_pieces import word_pieces
from keras_elmo.text import tokenize

# The name of each column's number of entries.
_LENGTHS = {"tokens": "sequence_len", "words": "num_words"}


def as_list(name: str, values: Any) -> list:
    """A list, array or column of a data frame as a list.

    Raises:
        ValueError: if it is something else; the message has the name.
    """
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    if isinstance(values, str | bytes) or not isinstance(values, list | tuple | np.ndarray):
        raise ValueError(
            f"`{name}` must be a list or an array with one entry for every text. Received: {type(values).__name__}"
        )
    return list(values)


def two_texts(pairs: Sequence[Any], first: str, second: str) -> tuple[list[str], list[str]]:
    """Pairs of texts as two lists.

    Raises:
        ValueError: if one is no pair of strings; the message says that the pairs are of `first` and `second`.
    """
    for number, pair in enumerate(pairs):
        is_pair = isinstance(pair, list | tuple | np.ndarray) and len(pair) == 2
        if not is_pair or not all(isinstance(text, str) for text in pair):
            raise ValueError(
                f"`x` must hold pairs of strings, ({first}, {second}). "
                f"Received: {reprlib.repr(pair)} at index {number}"
            )
    return [text for text, _ in pairs], [text for _, text in pairs]


def check_pairs(first: tf.Tensor, second: tf.Tensor) -> None:
    """Lets the graph fail if there are not as many texts in one as in the other."""
    sizes = [tf.size(first), tf.size(second)]
    tf.debugging.Assert(
        sizes[0] == sizes[1], ["Both inputs must hold the same number of texts. Received:", *sizes]
    )


def string_tensor(texts: Sequence[Any], name: str = "x") -> tf.Tensor:
    """Sentences as a string tensor (batch,); halves of surrogate pairs, which UTF-8 cannot write, are dropped."""
    strange = next((k for k, text in enumerate(texts) if not isinstance(text, str)), None)
    if strange is not None:
        raise ValueError(
            f"`{name}` must hold strings, each a whole text. Received: {reprlib.repr(texts[strange])} of type "
            f"{type(texts[strange]).__name__} at index {strange}"
        )
    return tf.constant(
        [text.encode("utf-8", "ignore") for text in texts], tf.string, shape=(len(texts),)
    )


def ragged_words(sentences: Sequence[Any], name: str = "x") -> tf.RaggedTensor:
    """Sentences of given words as ragged strings (batch, num_words)."""
    for number, sentence in enumerate(sentences):
        is_list = isinstance(sentence, list | tuple | np.ndarray)
        if not is_list or not all(isinstance(word, str) for word in sentence):
            raise ValueError(
                f"`{name}` must hold lists of words, each a string. Received: {reprlib.repr(sentence)} at index "
                f"{number}. Cut plain text by `keras_elmo.tokenize_sentences`."
            )
    words = string_tensor([word for sentence in sentences for word in sentence])
    return tf.RaggedTensor.from_row_lengths(words, [len(sentence) for sentence in sentences])


def cut_sentences(text: tf.Tensor, tokenizer: str) -> dict[str, tf.RaggedTensor]:
    """What is read of sentences, strings (batch,)."""
    return {"tokens": tokenize(text, tokenizer)}


def cut_words(words: tf.RaggedTensor, tokenizer: str) -> dict[str, tf.RaggedTensor]:
    """What is read of sentences whose words are given, ragged strings (batch, num_words)."""
    pieces = word_pieces(words, tokenizer)
    return {"tokens": pieces.tokens, "token_words": pieces.words, "words": words}


def columns(found: dict[str, tf.RaggedTensor], prefix: str = "") -> dict[str, list]:
    """Columns of a `Table`, with the number of entries of each."""
    made = {}
    for name, ragged in found.items():
        made[prefix + name] = np.split(ragged.values.numpy(), ragged.row_splits.numpy()[1:-1])
        if name in _LENGTHS:
            made[prefix + _LENGTHS[name]] = list(ragged.row_lengths().numpy().astype(np.int32))
    return made


def tensors(found: dict[str, tf.RaggedTensor], prefix: str = "") -> dict[str, tf.Tensor]:
    """The same as padded tensors, for a graph."""
    made = {}
    for name, ragged in found.items():
        padding = tf.constant("" if ragged.dtype == tf.string else padding_of(name), ragged.dtype)
        dense = ragged.to_tensor(padding)
        # One column at least: Keras' LSTM takes no sentences without any.
        missing = tf.maximum(1 - tf.shape(dense)[1], 0)
        fill = tf.fill([tf.shape(dense)[0], missing], padding)
        made[prefix + name] = tf.concat([dense, fill], axis=1)
        if name in _LENGTHS:
            made[prefix + _LENGTHS[name]] = tf.cast(ragged.row_lengths(), tf.int32)
    return made
