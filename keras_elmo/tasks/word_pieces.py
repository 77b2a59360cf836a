"""Given words, cut as the model's tokenizer cuts text, and to which word each piece belongs."""

from typing import NamedTuple

import tensorflow as tf

from keras_elmo.text import tokenize_with_offsets


class WordPieces(NamedTuple):
    """What a biLM reads of sentences whose words are given.

    Attributes:
        tokens: The pieces, ragged strings (batch, num_tokens).
        words: The word that each piece belongs to, counted from 0, ragged int32 (batch, num_tokens).
    """

    tokens: tf.RaggedTensor
    words: tf.RaggedTensor


def word_pieces(words: tf.RaggedTensor, tokenizer: str) -> WordPieces:
    """Cuts given words as a tokenizer cuts the sentence that they make, parted by spaces.

    So the pieces are those of running text: "Mr." stays whole, and "cannot" becomes "can" and "not". No piece spans two
    words. A word of nothing but white space has no piece.

    Args:
        words: Strings (batch, num_words).
        tokenizer: "word" or "whitespace", see `keras_elmo.text.tokenize`.

    Example:
        >>> pieces = word_pieces(tf.ragged.constant([["Mr.", "Li", "cannot", "go"], ["北京"]]), "word")
        >>> pieces.tokens.to_list()[0], pieces.words.to_list()
        ([b'Mr.', b'Li', b'can', b'not', b'go'], [[0, 1, 2, 2, 3], [0, 0]])
    """
    # A space before each word, not a separator: TensorFlow leaves that out behind empty words at the beginning.
    text = tf.strings.reduce_join(words.with_values(" " + words.values), axis=-1)
    tokens, starts, _ = tokenize_with_offsets(text, tokenizer)
    lengths = words.with_values(tf.cast(tf.strings.length(words.values), tf.int64) + 1)
    # Where each word ends, in bytes of its own sentence, the space before it included.
    ends = tf.cumsum(lengths.values)
    before = tf.gather(tf.concat([[0], ends], axis=0), words.row_splits[:-1])
    # All sentences' places in one row, in which each sentence begins where the one before ended.
    places = starts.values + tf.gather(before, starts.value_rowids())
    word = tf.searchsorted(ends, places, side="right") - tf.cast(
        tf.gather(words.row_splits[:-1], starts.value_rowids()), tf.int32
    )
    return WordPieces(tokens, tokens.with_values(word))


def mean_of_pieces(vectors: tf.Tensor, words: tf.Tensor, num_words: tf.Tensor) -> tf.Tensor:
    """The mean of the vectors of each word's pieces.

    Args:
        vectors: (batch, num_tokens, dim).
        words: int32 (batch, num_tokens), the word that each vector belongs to; of padding -1.
        num_words: int32 scalar, how many words the longest sentence has.

    Returns:
        Tensor (batch, num_words, dim), zero for a word without pieces.

    Example:
        >>> vectors = tf.constant([[[1.0], [2.0], [4.0]]])
        >>> mean_of_pieces(vectors, tf.constant([[0, 1, 1]]), tf.constant(2)).numpy().tolist()
        [[[1.0], [3.0]]]
    """
    batch, dim = tf.shape(words)[0], vectors.shape[-1]
    rows = tf.range(batch)[:, tf.newaxis] * num_words
    segments = tf.where(words < 0, -1, rows + words)  # a negative segment is dropped
    means = tf.math.unsorted_segment_mean(
        tf.reshape(vectors, [-1, dim]), tf.reshape(segments, [-1]), batch * num_words
    )
    return tf.reshape(means, [batch, num_words, dim])
