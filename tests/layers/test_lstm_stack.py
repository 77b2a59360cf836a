"""LSTMStack: the harness, the oracle, state in and out, and both ways to compute the gates."""

import harness
import keras
import numpy as np
import pytest
import reference

from keras_elmo.layers import LSTMStack, lstm_stack, without_shortcuts

# Depth 1 to 4, skip connections or not, projection or not, clips that bite or none.
CONFIGS = [
    {"n_layers": 1, "use_skip_connections": True},
    {"n_layers": 2, "use_skip_connections": True, "cell_clip": 0.4, "proj_clip": 0.3},
    {"n_layers": 2, "use_skip_connections": False, "cell_clip": 3, "proj_clip": 3},
    {"n_layers": 3, "use_skip_connections": True, "projection_dim": 10},
    {"n_layers": 3, "use_skip_connections": False, "projection_dim": 10, "cell_clip": 0.3},
    {"n_layers": 4, "use_skip_connections": True, "proj_clip": 0.2},
    {"n_layers": 4, "use_skip_connections": False, "units": 3, "projection_dim": 8},
]


def stack_for(options, weights, direction=0):
    lstm = options["lstm"]
    units, projection_dim = lstm["dim"], lstm["projection_dim"]
    stack = LSTMStack(
        units,
        None if units == projection_dim else projection_dim,
        lstm["n_layers"],
        lstm.get("cell_clip"),
        lstm.get("proj_clip"),
        lstm["use_skip_connections"],
    )
    stack.build((None, None, projection_dim))
    harness.set_stack(stack, weights, direction)
    return stack


def oracle_batch(options, weights, x, mask, states=None, direction=0):
    """Each row alone, its real tokens only -> (layers, batch, num_tokens, p), states by row."""
    lstm = options["lstm"]
    zeros = [(np.zeros(lstm["dim"]), np.zeros(lstm["projection_dim"]))] * lstm["n_layers"]
    layers, finals = [], []
    for i, (row, real) in enumerate(zip(x, mask, strict=True)):
        wide = np.zeros((lstm["n_layers"], len(row), lstm["projection_dim"]))
        final = states[i] if states else zeros
        if real.any():
            outputs, final = reference.lstm_stack(
                options, weights, direction, row[real].astype("float64"), final
            )
            wide[:, real] = outputs[1:]
        layers.append(wide)
        finals.append(final)
    return np.stack(layers, axis=1), finals


def state_of(finals, layer):
    """The oracle's (cell, output) of all rows as our [output, memory]."""
    return [np.stack([final[layer][part] for final in finals]) for part in (1, 0)]


def some_batch(dim, seed=0, num_tokens=6):
    """Distinct rows; padded right, left, with holes, not at all, and with nothing but padding."""
    x = np.random.default_rng(seed).normal(size=(5, num_tokens, dim)).astype("float32")
    mask = np.ones((5, num_tokens), bool)
    mask[1, 3:] = mask[2, :2] = mask[3, [1, 4]] = mask[4] = False
    return x, mask


@pytest.mark.parametrize(
    ("projection_dim", "num_weights"), [(4, 3 * 4), (None, 3 * 3)], ids=["projection", "plain"]
)
def test_harness(projection_dim, num_weights):
    x = np.random.default_rng(0).normal(size=(3, 4, projection_dim or 6)).astype("float32")
    mask = np.ones((3, 4), bool)
    mask[1, 2:] = mask[2, 0] = False
    kwargs = {
        "units": 6,
        "projection_dim": projection_dim,
        "num_layers": 3,
        "cell_clip": 3.0,
        "projection_clip": 2.0,
        "use_skip_connections": True,
    }
    harness.check_layer(LSTMStack, kwargs, x, mask=mask, num_weights=num_weights, padding="mask")


@pytest.mark.parametrize("config", CONFIGS, ids=repr)
def test_oracle_with_padding_anywhere_and_state(config):
    options = harness.options_for(**config)
    weights = reference.random_model(options, seed=len(repr(config)))
    stack = stack_for(options, weights)
    x, mask = some_batch(options["lstm"]["projection_dim"])
    outputs, state = stack(x, mask=mask, return_state=True)
    expected, finals = oracle_batch(options, weights, x, mask)
    assert len(outputs) == len(state) == config["n_layers"]
    for layer, output in enumerate(outputs):
        harness.close(output, expected[layer])
        assert not harness.to_numpy(output)[~mask].any()
        for part, value in zip(state[layer], state_of(finals, layer), strict=True):
            harness.close(part, value)
    # A row of padding leaves the state at zero, and another one where it was.
    assert not harness.to_numpy(state[0][0])[4].any()
    # The next sentences go on from there, as in bilm-tf.
    x, mask = some_batch(options["lstm"]["projection_dim"], seed=1, num_tokens=3 + 2)
    outputs, state = stack(x, mask=mask, initial_state=state, return_state=True)
    expected, finals = oracle_batch(options, weights, x, mask, finals)
    for layer, output in enumerate(outputs):
        harness.close(output, expected[layer])
        for part, value in zip(state[layer], state_of(finals, layer), strict=True):
            harness.close(part, value)


@pytest.mark.parametrize("name", ["cell_clip", "proj_clip"])
def test_the_clips_of_these_tests_bite(name):
    options = harness.options_for(**CONFIGS[1])
    weights = reference.random_model(options, seed=len(repr(CONFIGS[1])))
    x, mask = some_batch(options["lstm"]["projection_dim"])
    clipped, _ = oracle_batch(options, weights, x, mask)
    options["lstm"][name] = None
    free, _ = oracle_batch(options, weights, x, mask)
    assert np.abs(clipped - free).max() > 0.01


def test_two_halves_with_the_state_carried_equal_one_pass():
    options = harness.options_for(**CONFIGS[1])
    stack = stack_for(options, reference.random_model(options, seed=0))
    x, mask = some_batch(6)
    whole, whole_state = stack(x, mask=mask, return_state=True)
    first, state = stack(x[:, :2], mask=mask[:, :2], return_state=True)
    second, state = stack(x[:, 2:], mask=mask[:, 2:], initial_state=state, return_state=True)
    for k in range(2):
        halves = np.concatenate([harness.to_numpy(first[k]), harness.to_numpy(second[k])], axis=1)
        harness.close(halves, whole[k], tolerance=1e-6)
        for part, value in zip(state[k], whole_state[k], strict=True):
            harness.close(part, value, tolerance=1e-6)


def test_nothing_is_kept_between_calls():
    stack = LSTMStack(5, 3)
    x, mask = some_batch(3)
    first = stack(x, mask=mask)
    stack(x[::-1])
    for a, b in zip(first, stack(x, mask=mask), strict=True):
        np.testing.assert_array_equal(harness.to_numpy(a), harness.to_numpy(b))


# Masks -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("give_state", [False, True])
def test_masks_by_name_by_position_and_on_the_input_are_the_same(give_state):
    stack = LSTMStack(5, 3)
    x, mask = some_batch(3)
    state = stack(x, return_state=True)[1]
    kwargs = {"initial_state": state} if give_state else {}
    by_name = stack(x, mask=mask, **kwargs)
    by_position = stack(x, keras.ops.convert_to_tensor(mask), **kwargs)
    on_input = stack(harness.masked(np.where(mask[..., None], x, 0)), **kwargs)
    for outputs in (by_name, by_position, on_input):
        for output, expected in zip(outputs, by_name, strict=True):
            harness.close(output, expected, tolerance=1e-6)
            np.testing.assert_array_equal(harness.mask_of(output), mask)


def test_mask_with_state_returned():
    x, mask = some_batch(3)
    outputs, _ = LSTMStack(5, 3)(x, mask=mask, return_state=True)
    for output in outputs:
        np.testing.assert_array_equal(harness.mask_of(output), mask)


# State in a functional model ---------------------------------------------------------------------


def test_state_in_a_functional_model():
    stack = LSTMStack(5, 3)
    x, mask = some_batch(3)
    state = stack(x, mask=mask, return_state=True)[1]
    symbol = keras.Input((None, 3))
    state_symbols = [[keras.Input((3,)), keras.Input((5,))] for _ in range(2)]
    outputs, new_state = stack(symbol, initial_state=state_symbols, return_state=True)
    assert [tuple(output.shape) for output in outputs] == [(None, None, 3)] * 2
    assert [[tuple(p.shape) for p in pair] for pair in new_state] == [[(None, 3), (None, 5)]] * 2
    model = keras.Model([symbol, state_symbols], [outputs, new_state])
    values = model([keras.ops.convert_to_tensor(x), state])
    expected = stack(x, initial_state=state, return_state=True)
    for value, other in zip(keras.tree.flatten(values), keras.tree.flatten(expected), strict=True):
        harness.close(value, other, tolerance=1e-6)


# Gates before the loop or in it ------------------------------------------------------------------


@pytest.mark.parametrize("config", CONFIGS[:4], ids=repr)
def test_the_memory_bounded_way_gives_the_same(config, monkeypatch):
    options = harness.options_for(**config)
    stack = stack_for(options, reference.random_model(options, seed=3))
    x, mask = some_batch(options["lstm"]["projection_dim"])
    hoisted = stack(x, mask=mask, return_state=True)
    sizes = spy_on_input_gates(stack, monkeypatch)
    bounded(monkeypatch)
    in_the_loop = stack(x, mask=mask, return_state=True)
    assert set(sizes) == {2}, "not one step at a time"
    for a, b in zip(keras.tree.flatten(hoisted), keras.tree.flatten(in_the_loop), strict=True):
        harness.close(a, b, tolerance=1e-6)
    # In training all steps go at once, however many there are.
    sizes.clear()
    trained = stack(x, mask=mask, training=True)
    assert 2 not in sizes
    for a, b in zip(hoisted[0], trained, strict=True):
        harness.close(a, b, tolerance=1e-6)


def bounded(monkeypatch):
    monkeypatch.setattr(lstm_stack, "MAX_GATE_VALUES", 1)


def spy_on_input_gates(stack, monkeypatch):
    """A list that collects the ranks of the inputs: 3 for all steps at once, 2 for one step."""
    ranks = []
    for cell in stack.cells:

        def spy(inputs, original=cell.input_gates):
            ranks.append(len(inputs.shape))
            return original(inputs)

        monkeypatch.setattr(cell, "input_gates", spy)
    return ranks


@pytest.mark.parametrize("in_graph", [False, True], ids=["eager", "graph"])
def test_both_ways_have_gradients(in_graph, monkeypatch):
    if keras.backend.backend() != "tensorflow":
        pytest.skip("looks into TensorFlow's tape")
    import tensorflow as tf

    options = harness.options_for(**CONFIGS[1] | {"n_layers": 1})
    stack = stack_for(options, reference.random_model(options, seed=0))
    x, mask = some_batch(6)

    def gradients(x, mask):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = sum(tf.reduce_sum(output**2) for output in stack(x, mask=mask))
        return tape.gradient(loss, [x, *(w.value for w in stack.trainable_weights)])

    def run():
        if not in_graph:
            return gradients(tf.constant(x), tf.constant(mask))
        # Unknown sizes: the way is chosen in the graph.
        signature = [tf.TensorSpec((None, None, 6)), tf.TensorSpec((None, None), "bool")]
        return tf.function(gradients, input_signature=signature)(x, mask)

    hoisted = run()
    bounded(monkeypatch)
    for a, b in zip(hoisted, run(), strict=True):
        assert np.abs(a).max() > 0
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_the_way_is_chosen_in_the_graph(monkeypatch):
    stack = LSTMStack(4, 3)
    x, _ = some_batch(3)
    inputs = keras.Input((None, 3))
    model = keras.Model(inputs, stack(inputs))
    monkeypatch.setattr(lstm_stack, "MAX_GATE_VALUES", 5 * 3 * 16)  # 3 tokens fit, 6 do not
    for part in (x[:, :3], x):
        for a, b in zip(model.predict(part, verbose=0), stack(part, training=True), strict=True):
            harness.close(a, b, tolerance=1e-6)


# Errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_layers", [0, 1.0, None])
def test_number_of_layers(num_layers):
    message = f"`num_layers` must be a positive integer. Received: num_layers={num_layers}"
    with pytest.raises(ValueError, match=message):
        LSTMStack(4, num_layers=num_layers)


def test_arguments_of_the_cells_are_checked_at_once():
    with pytest.raises(ValueError, match="`units` must be a positive integer. Received: units=-3"):
        LSTMStack(-3)


def test_input_errors():
    stack = LSTMStack(4)
    message = r"The input of an LSTM stack must have 3 axes, .*shape \(2, 4\)"
    with pytest.raises(ValueError, match=message):
        stack(np.ones((2, 4), "float32"))
    x = np.ones((2, 3, 4), "float32")
    with pytest.raises(ValueError, match="each of the 2 layers. Received: 1"):
        stack(x, initial_state=stack(x, return_state=True)[1][:1])


# Padding -----------------------------------------------------------------------------------------


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="takes TensorFlow's gradients")
@pytest.mark.parametrize("num_tokens", [6, None])
@pytest.mark.parametrize("training", [False, True])
def test_gradients_with_padding_are_those_of_the_masked_loop(training, num_tokens):
    import tensorflow as tf

    stack = LSTMStack(5, 3, num_layers=2, cell_clip=0.4, projection_clip=0.4)
    x, mask = some_batch(3)
    stack.build(x.shape)

    def gradients(inputs, mask):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = stack(inputs, mask=mask, training=training)
            loss = sum(tf.reduce_sum(output**2) for output in outputs)
        return tape.gradient(loss, [inputs, *stack.trainable_variables])

    # In a graph, whose sentences are as long as they are or of any length.
    shape = (None, num_tokens)
    signature = [tf.TensorSpec((*shape, 3)), tf.TensorSpec(shape, tf.bool)]
    found = tf.function(gradients, input_signature=signature)(x, mask)
    with without_shortcuts(["tokens_first"]):
        expected = gradients(tf.constant(x), mask)
    for one, other in zip(found, expected, strict=True):
        harness.close(one, other, tolerance=1e-5)


def test_what_stands_in_padding_goes_nowhere():
    stack = LSTMStack(5, 3)
    x, mask = some_batch(3)
    outputs = stack(x, mask=mask)
    poisoned = np.where(mask[:, :, None], x, np.nan).astype("float32")
    for one, other in zip(stack(poisoned, mask=mask), outputs, strict=True):
        harness.close(one, other, tolerance=0.0)
