"""ProjectedLSTMCell: one LSTM step with projection and clipping."""

import keras
import numpy as np
from keras import ops

from keras_elmo.layers.checks import check_clip, check_positive_integer


@keras.saving.register_keras_serializable(package="keras_elmo")
class ProjectedLSTMCell(keras.layers.Layer):
    """One step of an LSTM with a linear projection of its output and clipping, run by `keras.layers.RNN`.

        i, j, f, o = split(x @ W + h @ U + b)
        c = clip(sigmoid(f + 1) * c + sigmoid(i) * tanh(j), cell_clip)
        h = clip((sigmoid(o) * tanh(c)) @ P, projection_clip)

    The order of the gates and the forget bias of 1, which is added here and not stored, are those of
    TensorFlow's `LSTMCell`, with which the public ELMo weights were made.

    Reference: Sak, Senior and Beaufays (2014), "Long short-term memory based recurrent neural network
    architectures for large vocabulary speech recognition", eq. 7 to 13 without peepholes
    (https://arxiv.org/abs/1402.1128).

    Args:
        units: int, width of the memory cell.
        projection_dim: int, size of the output, or `None` (default) for no projection: the output has
            `units` values.
        cell_clip: number, memory values are clipped to [-cell_clip, cell_clip]; `None` (default): no clipping.
        projection_clip: number, the same for the projected output; without a projection it has no effect, as
            in TensorFlow's cell. Defaults to `None`.
        **kwargs: Arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        inputs: float tensor (batch, input_dim).
        states: list of two tensors: the previous output (batch, projection_dim or units) and the memory cell
            (batch, units).

    Output shape:
        (batch, projection_dim or units), and the list of the two new states.

    Masking:
        None in a single step; `keras.layers.RNN` leaves the states of masked steps as they were.

    Raises:
        ValueError: if an argument is out of range.

    Example:
    >>> import keras, numpy as np
    >>> layer = keras.layers.RNN(ProjectedLSTMCell(8, projection_dim=4, cell_clip=3.0))
    >>> tuple(layer(np.zeros((2, 5, 3), "float32")).shape)
    (2, 4)
    """

    def __init__(
        self,
        units: int,
        projection_dim: int | None = None,
        cell_clip: float | None = None,
        projection_clip: float | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive_integer("units", units)
        if projection_dim is not None:
            check_positive_integer("projection_dim", projection_dim)
        check_clip("cell_clip", cell_clip)
        check_clip("projection_clip", projection_clip)
        self.units = units
        self.projection_dim = projection_dim
        self.cell_clip = cell_clip
        self.projection_clip = projection_clip

    @property
    def output_size(self) -> int:
        """Number of values of the output."""
        return self.units if self.projection_dim is None else self.projection_dim

    @property
    def state_size(self) -> list[int]:
        """Sizes of the two states: the output and the memory cell."""
        return [self.output_size, self.units]

    def build(self, input_shape):
        gates = 4 * self.units
        self.kernel = self.add_weight((input_shape[-1], gates), "glorot_uniform", name="kernel")
        self.recurrent_kernel = self.add_weight(
            (self.output_size, gates), "glorot_uniform", name="recurrent_kernel"
        )
        self.bias = self.add_weight((gates,), "zeros", name="bias")
        self.projection_kernel = None
        if self.projection_dim is not None:
            self.projection_kernel = self.add_weight(
                (self.units, self.projection_dim), "glorot_uniform", name="projection_kernel"
            )
        self._forget_bias = np.repeat(np.array([0, 0, 1, 0], "float32"), self.units)

    def call(self, inputs, states):
        return self.step(self.input_gates(inputs), states)

    def input_gates(self, inputs):
        """The input's part of the gates, (..., 4 * units): no state is in it, so all steps can go at once."""
        return ops.matmul(inputs, self.kernel) + self.gates_bias()

    def gates_bias(self):
        """The bias of the gates, (4 * units,), with the forget bias."""
        return self.bias + ops.cast(self._forget_bias, self.compute_dtype)

    def step(self, input_gates, states):
        """One step from the input's part of the gates, (batch, 4 * units), and the states."""
        previous_output, previous_memory = states
        gates = input_gates + ops.matmul(previous_output, self.recurrent_kernel)
        input_gate, candidate, forget_gate, output_gate = ops.split(gates, 4, axis=-1)
        memory = ops.sigmoid(forget_gate) * previous_memory
        memory = memory + ops.sigmoid(input_gate) * ops.tanh(candidate)
        if self.cell_clip is not None:
            memory = ops.clip(memory, -self.cell_clip, self.cell_clip)
        output = ops.sigmoid(output_gate) * ops.tanh(memory)
        if self.projection_kernel is not None:
            output = ops.matmul(output, self.projection_kernel)
            if self.projection_clip is not None:
                output = ops.clip(output, -self.projection_clip, self.projection_clip)
        return output, [output, memory]

    def compute_output_shape(self, inputs_shape, states_shape=None):
        batch = inputs_shape[0]
        return (batch, self.output_size), [(batch, size) for size in self.state_size]

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "projection_dim": self.projection_dim,
            "cell_clip": self.cell_clip,
            "projection_clip": self.projection_clip,
        }
