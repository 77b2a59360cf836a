"""The LSTM layer with a gradient of its own, against the one that the backend derives."""

import harness
import keras
import numpy as np
import pytest
from keras import ops

from keras_elmo.layers import LSTMStack, ProjectedLSTMCell, lstm_stack
from keras_elmo.layers.projected_lstm_layer import has_own_gradient, projected_lstm_layer

pytestmark = pytest.mark.skipif(not has_own_gradient(), reason="PyTorch derives the gradient")

BATCH, NUM_TOKENS, DIM, UNITS = 3, 5, 4, 6


def gradients(function, arrays):
    """Of a function of arrays to a number."""
    if keras.backend.backend() == "jax":
        import jax

        return jax.jit(jax.grad(lambda arrays: function(*arrays)))(arrays)
    import tensorflow as tf

    @tf.function
    def run(*tensors):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            value = function(*tensors)
        return tape.gradient(value, tensors)

    return run(*map(tf.constant, arrays))


def derived(cell, inputs, states):
    rnn = keras.layers.RNN(cell, return_sequences=True, return_state=True)
    return rnn(inputs, initial_state=states)


@pytest.mark.parametrize("clip", [None, 0.3], ids=["no clip", "clips that bite"])
@pytest.mark.parametrize("projection_dim", [None, 4])
def test_values_and_gradients(projection_dim, clip):
    random = np.random.default_rng(7)

    def normal(*shape):
        return random.normal(size=shape).astype("float32")

    cell = ProjectedLSTMCell(UNITS, projection_dim, clip, clip)
    cell.build((None, DIM))
    harness.randomize(cell, scale=1.0)
    inputs = normal(BATCH, NUM_TOKENS, DIM)
    states = [normal(BATCH, size) for size in cell.state_size]
    arrays = [inputs, *states, *cell.get_weights()]
    own = projected_lstm_layer(cell, inputs, states)
    factors = [normal(*output.shape) for output in own]
    for actual, expected in zip(own, derived(cell, inputs, states), strict=True):
        harness.close(actual, expected, tolerance=1e-6)
    if clip is not None:
        memory = np.abs(harness.to_numpy(own[2]))
        assert 0 < (memory == np.float32(clip)).mean() < 1

    def loss_of(run):
        def loss(inputs, output, memory, *weights):
            values = zip(cell.variables, weights, strict=True)
            with keras.StatelessScope(state_mapping=list(values)):
                found = run(cell, inputs, [output, memory])
            return sum(ops.sum(f * x) for f, x in zip(factors, found, strict=True))

        return loss

    expected = gradients(loss_of(derived), arrays)
    for gradient, value in zip(
        gradients(loss_of(projected_lstm_layer), arrays), expected, strict=True
    ):
        assert np.abs(harness.to_numpy(value)).max() > 0.01
        harness.close(gradient, value)


def test_without_a_state_it_begins_with_zeros():
    cell = ProjectedLSTMCell(UNITS, 4)
    cell.build((None, DIM))
    inputs = np.ones((BATCH, NUM_TOKENS, DIM), "float32")
    zeros = [np.zeros((BATCH, size), "float32") for size in cell.state_size]
    for actual, expected in zip(
        projected_lstm_layer(cell, inputs), projected_lstm_layer(cell, inputs, zeros), strict=True
    ):
        harness.close(actual, expected, tolerance=0)


def test_half_precision():
    inputs = np.ones((BATCH, NUM_TOKENS, DIM), "float32")
    stack = LSTMStack(UNITS, DIM, dtype="mixed_bfloat16")
    outputs, states = stack(inputs, training=True, return_state=True)
    for output in keras.tree.flatten([outputs, states]):
        assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
    exact = LSTMStack(UNITS, DIM)
    exact.build(inputs.shape)
    exact.set_weights(stack.get_weights())
    for output, value in zip(outputs, exact(inputs), strict=True):
        harness.close(output, value, tolerance=0.02)


@pytest.mark.parametrize("mask", [None, np.ones((BATCH, NUM_TOKENS), bool)])
def test_the_stack_takes_it_in_training(mask, monkeypatch):
    calls = []

    def spy(*args):
        calls.append(args)
        return projected_lstm_layer(*args)

    monkeypatch.setattr(lstm_stack, "projected_lstm_layer", spy)
    stack = LSTMStack(UNITS, DIM)
    inputs = np.ones((BATCH, NUM_TOKENS, DIM), "float32")
    trained = stack(inputs, mask=mask, training=True)
    assert len(calls) == 2
    for a, b in zip(trained, stack(inputs, mask=mask), strict=True):
        harness.close(a, b, tolerance=1e-6)
