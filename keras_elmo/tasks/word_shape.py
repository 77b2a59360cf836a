"""WordShape: how a word is written: capitals, digits, suffix."""

import keras
import tensorflow as tf

# Whether the word matches, 1 or 0.
_PATTERNS = (
    r"^\p{Lu}.*",
    r"^\p{Lu}{2,}$",
    r".*\p{Nd}.*",
    r"^[\p{Nd}.,:/%-]*\p{Nd}[\p{Nd}.,:/%-]*$",
)
_SUFFIX = r"(?s)^.*(.{3})$"
_NUM_SUFFIXES = 2000
_SUFFIX_DIM = 32


@keras.saving.register_keras_serializable(package="keras_elmo")
class WordShape(keras.layers.Layer):
    """How words are written, as a vector: initial capital, all capitals, a digit, a number; and a learned suffix.

    The suffix is the last three characters, or all of a shorter word; the vectors of 2,000 of them, told apart by a
    hash, are learned.

    Call arguments:
        words: strings (batch, num_words), UTF-8.

    Output shape:
        (batch, num_words, 36).

    Example:
    >>> shape = WordShape()(tf.constant([["Paris", "1984", "USA", "x2"]]))
    >>> shape[0, :, :4].numpy().astype(int).tolist()
    [[1, 0, 0, 0], [0, 0, 1, 1], [1, 1, 0, 0], [0, 0, 1, 0]]
    """

    dim = len(_PATTERNS) + _SUFFIX_DIM

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.suffix_embedding = keras.layers.Embedding(
            _NUM_SUFFIXES, _SUFFIX_DIM, dtype=self.dtype_policy, name="suffix_embedding"
        )
        self.supports_jit = False

    def build(self, input_shape):
        self.suffix_embedding.build(input_shape)

    def call(self, words):
        signs = [
            tf.cast(tf.strings.regex_full_match(words, pattern), self.compute_dtype)
            for pattern in _PATTERNS
        ]
        suffixes = tf.strings.regex_replace(words, _SUFFIX, r"\1")
        suffix_ids = tf.strings.to_hash_bucket_fast(suffixes, _NUM_SUFFIXES)
        return tf.concat([tf.stack(signs, axis=-1), self.suffix_embedding(suffix_ids)], axis=-1)

    def compute_output_shape(self, input_shape):
        return (*input_shape, self.dim)
