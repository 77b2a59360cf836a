"""Attention: what the words of one text find in the words of another."""

import tensorflow as tf


def attended(scores: tf.Tensor, vectors: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """The mean of the vectors for each row of scores, weighted by the softmax of that row.

    Args:
        scores: (batch, num_rows, num_words).
        vectors: (batch, num_words, dim), zero for padding.
        mask: bool (batch, num_words).

    Returns:
        Tensor (batch, num_rows, dim); zero where there are no words.

    Example:
        >>> vectors = tf.constant([[[1.0], [3.0], [0.0]]])
        >>> attended(tf.zeros([1, 1, 3]), vectors, tf.constant([[True, True, False]])).numpy()
        array([[[2.]]], dtype=float32)
    """
    weights = tf.nn.softmax(tf.where(mask[:, tf.newaxis], scores, scores.dtype.min))
    return tf.matmul(weights, vectors)
