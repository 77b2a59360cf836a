"""LSTMStack: one direction of the biLM."""

from collections.abc import Callable

import keras
from keras import ops

from keras_elmo.layers.checks import check_positive_integer, check_rank
from keras_elmo.layers.masked_layer import MaskedLayer, zero_where_masked
from keras_elmo.layers.projected_lstm_cell import ProjectedLSTMCell
from keras_elmo.layers.projected_lstm_layer import has_own_gradient, projected_lstm_layer
from keras_elmo.layers.shortcuts import takes_shortcut

# Outside of training the inputs' part of the gates is computed for all steps at once as long as it has no more
# values than this (256 MiB in float32).
MAX_GATE_VALUES = 2**26


class _Step:
    """What `keras.layers.RNN` asks of a cell, around a function; the weights stay with the stack's cells."""

    def __init__(self, cell: ProjectedLSTMCell, function: Callable):
        self.state_size = cell.state_size
        self.output_size = cell.output_size
        self.compute_dtype = cell.compute_dtype
        self.call = function

    def __call__(self, inputs, states):
        return self.call(inputs, states)


@keras.saving.register_keras_serializable(package="keras_elmo")
class LSTMStack(MaskedLayer):
    """Layers of projected LSTMs that read in one direction: the forward or the backward half of a biLM.

    Every layer reads the outputs of the one below. With skip connections a layer from the second on gives
    `h + input`; the state that it carries on is `h` alone.

    The input's share of the gates needs no state and is computed for all steps in one product before the loop.
    Outside of training, where nothing needs to be remembered for gradients, a batch too large for that computes
    it step by step, so that memory stays bounded; the numbers are the same.

    Reference: Peters et al. (2018), section 3.1 and 3.4 (https://arxiv.org/abs/1802.05365).

    Args:
        units: int, width of the memory cells.
        projection_dim: int, size of each layer's output; `None` (default): no projection, `units` values.
        num_layers: int, 1 or more. Defaults to 2.
        cell_clip: number or `None` (default), see `ProjectedLSTMCell`.
        projection_clip: number or `None` (default), see `ProjectedLSTMCell`.
        use_skip_connections: bool. Defaults to `True`.
        **kwargs: Arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        inputs: float tensor (batch, num_tokens, input_dim), in this direction's reading order.
        mask: bool tensor (batch, num_tokens), `False` where there is no token; optional.
        initial_state: list with, for every layer, the list of its output (batch, projection_dim or units) and
            its memory cell (batch, units); zeros if not given.
        drop: function (inputs, layer number) -> inputs, applied to the input of every layer, and so to what the
            skip connection adds: dropout while a language model is trained; optional.
        return_state: bool, whether to return the final state too, as `initial_state` takes it. Defaults to
            `False`.
        training: bool. Defaults to `False`.

    Output shape:
        List of `num_layers` tensors (batch, num_tokens, projection_dim or units), from the lowest layer up; with
        `return_state=True` a pair of this list and the state.

    Masking:
        A masked step changes no state and gives zeros, wherever it stands.

    Raises:
        ValueError: if an argument is out of range, if the input has not three axes, or if `initial_state` has
            another number of layers.

    Example:
    >>> import numpy as np
    >>> stack = LSTMStack(units=8, projection_dim=4)
    >>> outputs, state = stack(np.zeros((2, 5, 4), "float32"), return_state=True)
    >>> [tuple(output.shape) for output in outputs]
    [(2, 5, 4), (2, 5, 4)]
    >>> [tuple(part.shape) for part in state[0]]
    [(2, 4), (2, 8)]
    """

    def __init__(
        self,
        units: int,
        projection_dim: int | None = None,
        num_layers: int = 2,
        cell_clip: float | None = None,
        projection_clip: float | None = None,
        use_skip_connections: bool = True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive_integer("num_layers", num_layers)
        self.units = units
        self.projection_dim = projection_dim
        self.num_layers = num_layers
        self.cell_clip = cell_clip
        self.projection_clip = projection_clip
        self.use_skip_connections = use_skip_connections
        self.supports_masking = True
        self.cells = [
            ProjectedLSTMCell(
                units,
                projection_dim,
                cell_clip,
                projection_clip,
                dtype=self.dtype_policy,
                name=f"cell_{i}",
            )
            for i in range(num_layers)
        ]

    @property
    def output_dim(self) -> int:
        """Number of values of a layer's output."""
        return self.cells[0].output_size

    def build(self, input_shape):
        check_rank("The input of an LSTM stack", input_shape, 3, "(batch, num_tokens, input_dim)")
        dim = input_shape[-1]
        for cell in self.cells:
            cell.build((None, dim))
            dim = cell.output_size

    def call(
        self, inputs, mask=None, initial_state=None, drop=None, return_state=False, training=False
    ):
        check_rank("The input of an LSTM stack", inputs.shape, 3, "(batch, num_tokens, input_dim)")
        mask = self._mask_or_that_of(mask, inputs)
        # The states of the last step are what is asked for only where each step of a row keeps or changes them.
        aligned = mask is not None and not return_state and takes_shortcut("tokens_first")
        if aligned:
            steps_mask, mask = mask, None
            order, order_back = _tokens_first(steps_mask)
            inputs = _take_steps(inputs, order)
        if initial_state is None:
            initial_state = [None] * self.num_layers
        if len(initial_state) != self.num_layers:
            raise ValueError(
                f"`initial_state` must have a pair of states for each of the {self.num_layers} layers. "
                f"Received: {len(initial_state)}"
            )
        outputs, states = [], []
        for i, cell in enumerate(self.cells):
            if drop is not None:
                inputs = drop(inputs, i)
            output, *state = self._run(cell, inputs, mask, initial_state[i], training)
            if self.use_skip_connections and i > 0:
                output = output + inputs
            outputs.append(output)
            states.append(state)
            inputs = output
        if aligned:
            outputs = [
                zero_where_masked(_take_steps(output, order_back), steps_mask) for output in outputs
            ]
        return (outputs, states) if return_state else outputs

    def _run(self, cell, inputs, mask, initial_state, training):
        def loop(inputs, function):
            rnn = keras.layers.RNN(
                _Step(cell, function),
                return_sequences=True,
                return_state=True,
                zero_output_for_mask=True,
                dtype=self.dtype_policy,
                # Without it, every call would count up Keras' automatic names.
                name="loop",
            )
            return rnn(inputs, initial_state=initial_state, mask=mask)

        def all_gates_first():
            if mask is None:
                return _scan(cell, inputs, initial_state)
            return loop(cell.input_gates(inputs), cell.step)

        def gates_in_the_loop():
            return loop(inputs, cell)

        if training:
            if mask is None and has_own_gradient():
                return projected_lstm_layer(cell, inputs, initial_state)
            return all_gates_first()
        if not takes_shortcut("gates_first"):
            return gates_in_the_loop()
        batch, num_tokens = ops.shape(inputs)[:2]
        fits = batch * num_tokens <= MAX_GATE_VALUES // (4 * cell.units)
        if isinstance(fits, bool):
            return all_gates_first() if fits else gates_in_the_loop()
        return ops.cond(fits, all_gates_first, gates_in_the_loop)

    def compute_mask(self, inputs, mask=None):
        return [mask] * self.num_layers

    def compute_output_shape(self, input_shape):
        return [(*input_shape[:-1], self.output_dim)] * self.num_layers

    def compute_output_spec(
        self, inputs, mask=None, initial_state=None, drop=None, return_state=False, training=False
    ):
        def tensor(*shape):
            return keras.KerasTensor(shape, dtype=self.compute_dtype)

        outputs = [tensor(*shape) for shape in self.compute_output_shape(inputs.shape)]
        if not return_state:
            return outputs
        batch = inputs.shape[0]
        return outputs, [[tensor(batch, size) for size in cell.state_size] for cell in self.cells]

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "projection_dim": self.projection_dim,
            "num_layers": self.num_layers,
            "cell_clip": self.cell_clip,
            "projection_clip": self.projection_clip,
            "use_skip_connections": self.use_skip_connections,
        }


def _scan(cell, inputs, initial_state):
    """The outputs (batch, num_tokens, output_size), the last output and the last memory, without padding."""
    if initial_state is None:
        initial_state = [ops.zeros((ops.shape(inputs)[0], size)) for size in cell.state_size]
    states = tuple(ops.cast(state, cell.compute_dtype) for state in initial_state)
    # The axis of the steps comes first, and of the inputs, which are much smaller than the gates.
    gates = cell.input_gates(ops.transpose(inputs, (1, 0, 2)))

    def step(states, gates):
        _, states = cell.step(gates, states)
        # Keras' scan wants what a step gives in the form of what it carries on.
        return tuple(states), tuple(states)

    (output, memory), (outputs, _) = ops.scan(step, states, gates)
    return ops.transpose(outputs, (1, 0, 2)), output, memory


def _tokens_first(mask):
    """Places in the flattened rows that bring the tokens of each row to its front, and those that bring them back.

    Where padding comes last it moves no state of a token, and no step has to look at a mask.
    """
    batch, num_tokens = ops.shape(mask)
    places = ops.arange(num_tokens)
    order = ops.argsort(ops.where(mask, places, places + num_tokens), axis=1)
    starts = ops.arange(batch)[:, None] * num_tokens
    return order + starts, ops.argsort(order, axis=1) + starts


def _take_steps(values, places):
    """The steps of (batch, num_tokens, dim) at the places of `_tokens_first`."""
    flat = ops.reshape(values, (-1, values.shape[-1]))
    return ops.reshape(ops.take(flat, places, axis=0), ops.shape(values))
