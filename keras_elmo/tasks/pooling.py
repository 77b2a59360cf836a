"""What a sentence's words have in common: one vector of all of theirs."""

import tensorflow as tf


def mean_and_max(vectors: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Mean and maximum over the words, side by side.

    Args:
        vectors: (batch, num_words, dim).
        mask: bool (batch, num_words).

    Returns:
        Tensor (batch, 2 * dim); zero for a sentence without words.

    Example:
        >>> mean_and_max(tf.constant([[[1.0], [3.0], [9.0]]]), tf.constant([[True, True, False]])).numpy()
        array([[2., 3.]], dtype=float32)
    """
    mask = mask[:, :, tf.newaxis]
    # In half precision a sum over a long text is rough, or too large.
    count = tf.reduce_sum(tf.cast(mask, tf.float32), axis=1)
    total = tf.reduce_sum(tf.cast(tf.where(mask, vectors, 0), tf.float32), axis=1)
    mean = tf.cast(total / tf.maximum(count, 1), vectors.dtype)
    largest = tf.reduce_max(tf.where(mask, vectors, vectors.dtype.min), axis=1)
    return tf.concat([mean, tf.where(count > 0, largest, 0)], axis=-1)
