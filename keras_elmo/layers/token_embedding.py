"""TokenEmbedding: token ids -> token vectors, for a biLM that reads whole words instead of characters."""

import keras
from keras import ops

from keras_elmo.layers.checks import check_positive_integer, check_rank
from keras_elmo.layers.masked_layer import zero_where_masked


@keras.saving.register_keras_serializable(package="keras_elmo")
class TokenEmbedding(keras.layers.Layer):
    """A word's vector from a table; zero, and masked, for id 0 (no token here).

    Args:
        num_tokens: int, number of ids, 0 included.
        projection_dim: int, size of a token vector.
        **kwargs: Arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        token_ids: int tensor (batch, num_tokens).

    Output shape:
        (batch, num_tokens, projection_dim).

    Masking:
        Makes the mask (batch, num_tokens): `True` where the id is above 0.

    Raises:
        ValueError: if an argument is out of range, or if the input has not two axes.

    Example:
    >>> import numpy as np
    >>> TokenEmbedding(10, 4)(np.array([[3, 0]])).numpy()[0, 1].tolist()
    [0.0, 0.0, 0.0, 0.0]
    """

    def __init__(self, num_tokens: int, projection_dim: int, **kwargs):
        super().__init__(**kwargs)
        check_positive_integer("num_tokens", num_tokens)
        check_positive_integer("projection_dim", projection_dim)
        self.num_tokens = num_tokens
        self.projection_dim = projection_dim
        self.supports_masking = True

    def build(self, input_shape):
        check_rank("`token_ids`", input_shape, 2, "(batch, num_tokens)")
        self.embeddings = self.add_weight(
            (self.num_tokens, self.projection_dim), "uniform", name="embeddings"
        )

    def call(self, token_ids):
        check_rank("`token_ids`", token_ids.shape, 2, "(batch, num_tokens)")
        vectors = ops.take(self.embeddings, token_ids, axis=0)
        return zero_where_masked(
            ops.cast(vectors, self.compute_dtype), self.compute_mask(token_ids)
        )

    def compute_mask(self, inputs, mask=None):
        return ops.not_equal(inputs, 0)

    def compute_output_shape(self, input_shape):
        return (*input_shape, self.projection_dim)

    def get_config(self):
        return {
            **super().get_config(),
            "num_tokens": self.num_tokens,
            "projection_dim": self.projection_dim,
        }
