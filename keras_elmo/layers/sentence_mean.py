"""SentenceMean: one vector for a sentence, the mean of its tokens' vectors."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_elmo")
class SentenceMean(keras.layers.Layer):
    """The mean over the real tokens of each sentence; zeros for a sentence without tokens.

    `keras.layers.GlobalAveragePooling1D` divides by zero there and gives NaN.

    Args:
        **kwargs: Arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        inputs: float tensor (batch, num_tokens, dim).
        mask: bool tensor (batch, num_tokens), `False` where there is no token; taken from the input if it
            carries one.

    Output shape:
        (batch, dim).

    Masking:
        The mask ends here.

    Example:
    >>> import numpy as np
    >>> x = np.array([[[1.0, 2.0], [3.0, 4.0]]], "float32")
    >>> SentenceMean()(x, mask=np.array([[True, False]])).numpy().tolist()
    [[1.0, 2.0]]
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs, mask=None):
        if mask is None:
            mask = ops.ones_like(inputs[:, :, 0])
        # In half precision the sum over a long sentence would lose its last digits.
        values = ops.cast(inputs, "float32")
        real = ops.cast(mask, "float32")[:, :, None]
        mean = ops.sum(values * real, axis=1) / ops.maximum(ops.sum(real, axis=1), 1.0)
        return ops.cast(mean, inputs.dtype)

    def compute_mask(self, inputs, mask=None):
        return None

    def compute_output_shape(self, input_shape):
        return (input_shape[0], input_shape[-1])

    def get_config(self):
        return super().get_config()
