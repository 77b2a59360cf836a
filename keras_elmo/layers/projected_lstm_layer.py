"""A layer of a projected LSTM over sequences without padding, with a gradient of its own: for training."""

from collections.abc import Sequence

import keras
from keras import ops

from keras_elmo.layers.projected_lstm_cell import ProjectedLSTMCell


def has_own_gradient() -> bool:
    """Whether the backend takes it: on PyTorch, Keras' custom gradients are for functions of one output."""
    return keras.backend.backend() != "torch"


def projected_lstm_layer(cell: ProjectedLSTMCell, inputs, initial_state: Sequence | None = None):
    """Computes what `keras.layers.RNN` of the cell computes, and trains in four fifths of the time.

    A backend that derives a loop's gradient adds up the gradients of the weights step by step, and turns the weights
    around in each. Here a step back has the gradients of its gates and its output only; those of the weights are one
    product over all steps.

    Reference: the equations are those of `ProjectedLSTMCell`; Graves (2012), "Supervised sequence labelling with
    recurrent neural networks", section 4.6, goes through them backwards.

    Args:
        cell: The cell, built.
        inputs: float tensor (batch, num_tokens, input_dim).
        initial_state: pair of output (batch, output_size) and memory (batch, units); zeros if not given.

    Returns:
        The outputs (batch, num_tokens, output_size), the last output and the last memory.
    """
    dtype = cell.compute_dtype
    if initial_state is None:
        initial_state = [ops.zeros((ops.shape(inputs)[0], size)) for size in cell.state_size]
    states = [ops.cast(state, dtype) for state in initial_state]
    bias = ops.cast(cell.gates_bias(), dtype)
    kernels = [ops.cast(kernel, dtype) for kernel in (cell.kernel, cell.recurrent_kernel)]
    if cell.projection_kernel is not None:
        kernels.append(ops.cast(cell.projection_kernel, dtype))

    @ops.custom_gradient
    def run(inputs, output, memory, bias, kernel, recurrent_kernel, *projection_kernel):
        """Inputs and outputs begin with the axis of the steps."""
        gates = ops.matmul(inputs, kernel) + bias

        def step(carry, gates):
            output, memory, *_ = carry
            values = _step(cell, gates, output, memory, recurrent_kernel, *projection_kernel)
            return values, values

        # Keras' scan wants what a step gives in the form of what it carries on.
        carry = (output, memory, *[ops.zeros_like(memory)] * 4)
        (last_output, last_memory, *_), (outputs, memories, *opened) = ops.scan(step, carry, gates)

        def gradient(*upstream):
            # TensorFlow hands the three over one by one, JAX in a tuple.
            to_outputs, to_last_output, to_last_memory = keras.tree.flatten(upstream)
            # A product with a matrix that is turned around already takes half the time.
            turned = [ops.transpose(kernel) for kernel in (recurrent_kernel, *projection_kernel)]

            memories_before = _shifted(memory, memories)
            sequences = (to_outputs, outputs, memories_before, memories, *opened)

            def step_back(carry, place):
                to_output, to_memory, *_ = carry
                to_step, *values = (sequence[place] for sequence in sequences)
                found = _step_back(cell, to_output + to_step, to_memory, values, *turned)
                return found, found

            carry = (
                to_last_output,
                to_last_memory,
                ops.zeros_like(gates[0]),
                ops.zeros_like(output),
            )
            # Over places: Keras' scan takes several sequences only where their length is known beforehand.
            places = ops.arange(ops.shape(gates)[0])
            (to_output, to_memory, *_), (_, _, to_gates, to_unclipped) = ops.scan(
                step_back, carry, places, reverse=True
            )
            to_inputs = ops.matmul(to_gates, ops.transpose(kernel))
            to_bias = _product(ops.ones_like(to_gates[..., :1]), to_gates)[0]
            to_kernels = [
                _product(inputs, to_gates),
                _product(_shifted(output, outputs), to_gates),
            ]
            if projection_kernel:
                to_kernels.append(_product(opened[-1] * ops.tanh(memories), to_unclipped))
            return to_inputs, to_output, to_memory, to_bias, *to_kernels

        return (outputs, last_output, last_memory), gradient

    steps = ops.transpose(ops.cast(inputs, dtype), (1, 0, 2))
    outputs, output, memory = run(steps, *states, bias, *kernels)
    return ops.transpose(outputs, (1, 0, 2)), output, memory


def _step(cell, gates, output, memory, recurrent_kernel, projection_kernel=None):
    """The new output and memory, and what the step back needs besides."""
    gates = gates + ops.matmul(output, recurrent_kernel)
    input_gate, candidate, forget_gate, output_gate = ops.split(gates, 4, axis=-1)
    input_gate, candidate = ops.sigmoid(input_gate), ops.tanh(candidate)
    forget_gate, output_gate = ops.sigmoid(forget_gate), ops.sigmoid(output_gate)
    memory = forget_gate * memory + input_gate * candidate
    if cell.cell_clip is not None:
        memory = ops.clip(memory, -cell.cell_clip, cell.cell_clip)
    output = output_gate * ops.tanh(memory)
    if projection_kernel is not None:
        output = ops.matmul(output, projection_kernel)
        if cell.projection_clip is not None:
            output = ops.clip(output, -cell.projection_clip, cell.projection_clip)
    return output, memory, input_gate, candidate, forget_gate, output_gate


def _step_back(cell, to_output, to_memory, values, turned_recurrent, turned_projection=None):
    """Gradients of the output and the memory before the step, of its gates, and of its output before the clip."""
    output, memory_before, memory, input_gate, candidate, forget_gate, output_gate = values
    # Computed once more: that takes less time than to keep it.
    tanh = ops.tanh(memory)
    to_hidden = to_output
    if turned_projection is not None:
        if cell.projection_clip is not None:
            to_output = ops.where(ops.abs(output) < cell.projection_clip, to_output, 0)
        to_hidden = ops.matmul(to_output, turned_projection)
    through_gate = to_hidden * output_gate
    to_memory = to_memory + through_gate * (1 - tanh * tanh)
    if cell.cell_clip is not None:
        to_memory = ops.where(ops.abs(memory) < cell.cell_clip, to_memory, 0)
    to_candidate, to_memory_before = to_memory * input_gate, to_memory * forget_gate
    to_gates = ops.concatenate(
        [
            to_candidate * candidate * (1 - input_gate),
            to_candidate * (1 - candidate * candidate),
            to_memory_before * memory_before * (1 - forget_gate),
            through_gate * tanh * (1 - output_gate),
        ],
        axis=-1,
    )
    return ops.matmul(to_gates, turned_recurrent), to_memory_before, to_gates, to_output


def _shifted(first, values):
    """The values before each step: one behind."""
    return ops.concatenate([first[None], values[:-1]], axis=0)


def _product(inputs, to_outputs):
    """Gradient of a kernel from all steps of all rows."""
    inputs, to_outputs = (ops.reshape(x, (-1, x.shape[-1])) for x in (inputs, to_outputs))
    return ops.matmul(ops.transpose(inputs), to_outputs)
