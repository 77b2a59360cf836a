"""Highway: one gated dense layer."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_elmo")
class Highway(keras.layers.Layer):
    """Highway layer: `gate * relu(x @ W_transform + b_transform) + (1 - gate) * x`.

    The gate is `sigmoid(x @ W_carry + b_carry)`. It weighs the *transformed* input, although ELMo's weight
    files call it "carry"; the names of the file are kept. The activation is always relu, as in bilm-tf.

    Reference: Srivastava, Greff and Schmidhuber (2015), "Highway Networks", eq. 3
    (https://arxiv.org/abs/1505.00387).

    Args:
        **kwargs: Arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        inputs: float tensor (..., dim).

    Output shape:
        The input's shape.

    Masking:
        A mask is passed on unchanged.

    Example:
    >>> import numpy as np
    >>> Highway()(np.zeros((2, 3), "float32")).shape
    TensorShape([2, 3])
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, input_shape):
        dim = input_shape[-1]
        kernel = keras.initializers.RandomNormal(stddev=dim**-0.5)
        self.carry_kernel = self.add_weight((dim, dim), kernel, name="carry_kernel")
        # The gate starts nearly closed: at first the layer mostly copies its input.
        self.carry_bias = self.add_weight(
            (dim,), keras.initializers.Constant(-2.0), name="carry_bias"
        )
        self.transform_kernel = self.add_weight((dim, dim), kernel.clone(), name="transform_kernel")
        self.transform_bias = self.add_weight((dim,), "zeros", name="transform_bias")

    def call(self, inputs):
        gate = ops.sigmoid(ops.matmul(inputs, self.carry_kernel) + self.carry_bias)
        transformed = ops.relu(ops.matmul(inputs, self.transform_kernel) + self.transform_bias)
        return gate * transformed + (1.0 - gate) * inputs

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return super().get_config()
