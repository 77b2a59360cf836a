"""VocabularyLookup: string tokens to the ids of a vocabulary, in the TensorFlow graph."""

import tensorflow as tf

from keras_elmo.vocabulary import Vocabulary


class VocabularyLookup:
    """What a language model is to predict, from the text itself: `Vocabulary.ids` in the graph.

    It has a table, unlike all else in this package that turns text into numbers: it is for training, and no part of a
    model that is saved or exported.

    Args:
        vocabulary: The vocabulary.

    Example:
        >>> lookup = VocabularyLookup(Vocabulary(["<S>", "</S>", "<UNK>", "the", "cat"]))
        >>> lookup(tf.constant([["the", "cat"], ["the", "dog"]])).numpy()
        array([[3, 4],
               [3, 2]], dtype=int32)
    """

    def __init__(self, vocabulary: Vocabulary):
        with tf.init_scope():
            self._table = tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(
                    list(vocabulary), tf.range(len(vocabulary), dtype=tf.int64)
                ),
                default_value=vocabulary.unknown_id,
            )

    def __call__(self, tokens: tf.Tensor) -> tf.Tensor:
        """The ids of tokens, int32 of the same shape; that of `<UNK>` for a token that is not in the vocabulary."""
        return tf.cast(self._table.lookup(tokens), tf.int32)
