"""BiLMStack: the harness, the oracle with every layer, and what each direction may see."""

import harness
import keras
import numpy as np
import pytest
import reference

from keras_elmo.layers import BiLMStack

CONFIGS = [
    {"n_layers": 1, "use_skip_connections": False, "projection_dim": 10},
    {"n_layers": 2, "use_skip_connections": True, "cell_clip": 3, "proj_clip": 3},
    {"n_layers": 2, "use_skip_connections": False, "cell_clip": 0.4, "proj_clip": 0.3},
    {"n_layers": 3, "use_skip_connections": True, "projection_dim": 10, "cell_clip": 0.5},
    {"n_layers": 4, "use_skip_connections": True, "units": 4, "projection_dim": 7},
]


def bilm_for(options, weights):
    lstm = options["lstm"]
    units, projection_dim = lstm["dim"], lstm["projection_dim"]
    bilm = BiLMStack(
        units,
        None if units == projection_dim else projection_dim,
        lstm["n_layers"],
        lstm.get("cell_clip"),
        lstm.get("proj_clip"),
        lstm["use_skip_connections"],
    )
    bilm.build((None, None, projection_dim))
    harness.set_bilm(bilm, weights)
    return bilm


def some_batch(dim, seed=0, num_tokens=6):
    """Distinct rows; padded right, left, with holes, not at all, and with nothing but padding."""
    x = np.random.default_rng(seed).normal(size=(5, num_tokens, dim)).astype("float32")
    mask = np.ones((5, num_tokens), bool)
    mask[1, 3:] = mask[2, :2] = mask[3, [1, 4]] = mask[4] = False
    return x, mask


def test_harness():
    x, mask = some_batch(4, num_tokens=5)
    kwargs = {
        "units": 6,
        "projection_dim": 4,
        "num_layers": 2,
        "cell_clip": 3.0,
        "projection_clip": 3.0,
        "use_skip_connections": True,
    }
    harness.check_layer(BiLMStack, kwargs, x, mask=mask, num_weights=16, padding="mask")


@pytest.mark.parametrize("config", CONFIGS, ids=repr)
def test_oracle_with_padding_anywhere_and_state(config):
    options = harness.options_for(**config)
    dim = options["lstm"]["projection_dim"]
    weights = reference.random_model(options, seed=len(repr(config)))
    bilm = bilm_for(options, weights)
    zeros = [(np.zeros(options["lstm"]["dim"]), np.zeros(dim))] * config["n_layers"]
    state, oracle_states = None, [[zeros, zeros]] * 5
    for seed in range(2):  # the second time from the state of the first
        x, mask = some_batch(dim, seed)
        outputs, state = bilm(x, mask=mask, initial_state=state, return_state=True)
        assert [tuple(output.shape) for output in outputs] == [(5, 6, 2 * dim)] * (
            config["n_layers"] + 1
        )
        for i, real in enumerate(mask):
            row = x[i][real].astype("float64")
            layers = [np.zeros((0, 2 * dim))] * len(outputs)
            if real.any():  # the oracle has no empty sentences; their state stays what it was
                layers, oracle_states[i] = reference.bilm(options, weights, row, oracle_states[i])
            for output, layer in zip(outputs, layers, strict=True):
                output = harness.to_numpy(output)[i]
                harness.close(output[real], layer)
                assert not output[~real].any()
            for direction in (0, 1):
                for k, (memory, output) in enumerate(oracle_states[i][direction]):
                    harness.close(state[direction][k][0][i], output)
                    harness.close(state[direction][k][1][i], memory)


def test_parts_can_be_called_by_themselves():
    bilm = BiLMStack(5, 3)
    x, mask = some_batch(3)
    layers = bilm(x, mask=mask)
    forward = bilm.forward_stack(x, mask=mask)
    backward = bilm.backward_stack(x[:, ::-1], mask=mask[:, ::-1])
    for layer, ahead, back in zip(layers[1:], forward, backward, strict=True):
        harness.close(layer[:, :, :3], ahead, tolerance=1e-6)
        harness.close(layer[:, :, 3:], harness.to_numpy(back)[:, ::-1], tolerance=1e-6)
    both = np.where(mask[..., None], np.concatenate([x, x], axis=-1), 0)
    np.testing.assert_array_equal(harness.to_numpy(layers[0]), both)


@pytest.mark.parametrize("position", [0, 2, 5])
def test_no_direction_sees_what_it_is_to_predict(position):
    bilm = harness.randomize(_built(BiLMStack(5, 3, num_layers=3)))
    x, _ = some_batch(3)
    later, earlier = x.copy(), x.copy()
    later[:, position + 1 :] += 1
    earlier[:, :position] += 1
    for layer, after, before in zip(bilm(x)[1:], bilm(later)[1:], bilm(earlier)[1:], strict=True):
        layer, after, before = map(harness.to_numpy, (layer, after, before))
        # Forward: the same up to here; other further on, at every place.
        np.testing.assert_array_equal(layer[:, : position + 1, :3], after[:, : position + 1, :3])
        changed = (layer != after)[:, :, :3].any(axis=-1)
        assert changed[:, position + 1 :].all()
        # Backward: the same from here on.
        np.testing.assert_array_equal(layer[:, position:, 3:], before[:, position:, 3:])
        changed = (layer != before)[:, :, 3:].any(axis=-1)
        assert changed[:, :position].all()


def _built(bilm):
    bilm.build((None, None, 3))
    return bilm


# Masks, states -----------------------------------------------------------------------------------


@pytest.mark.parametrize("give_state", [False, True])
def test_masks_by_name_by_position_and_on_the_input_are_the_same(give_state):
    bilm = BiLMStack(5, 3)
    x, mask = some_batch(3)
    kwargs = {"initial_state": bilm(x, return_state=True)[1]} if give_state else {}
    by_name = bilm(x, mask=mask, **kwargs)
    by_position = bilm(x, keras.ops.convert_to_tensor(mask), **kwargs)
    on_input = bilm(harness.masked(np.where(mask[..., None], x, 0)), **kwargs)
    for outputs in (by_name, by_position, on_input):
        for output, expected in zip(outputs, by_name, strict=True):
            harness.close(output, expected, tolerance=1e-6)
            np.testing.assert_array_equal(harness.mask_of(output), mask)


def test_the_next_layer_gets_the_mask():
    """Problem 13: a pooling or an LSTM on top must not see padding."""
    bilm = BiLMStack(5, 3)
    x, mask = some_batch(3)
    x, mask = x[:4], mask[:4]
    top = bilm(x, mask=mask)[-1]
    pooled = keras.layers.GlobalAveragePooling1D()(top)
    real = mask[..., None]
    harness.close(pooled, (harness.to_numpy(top) * real).sum(axis=1) / real.sum(axis=1))
    lstm = keras.layers.Bidirectional(keras.layers.LSTM(4))
    wide = np.concatenate([x, np.full((4, 7, 3), 9, "float32")], axis=1)
    wide_mask = np.concatenate([mask, np.zeros((4, 7), bool)], axis=1)
    harness.close(lstm(bilm(wide, mask=wide_mask)[-1]), lstm(top))


def test_state_in_a_functional_model():
    bilm = BiLMStack(5, 3)
    x, _ = some_batch(3)
    state = bilm(x, return_state=True)[1]
    symbol = keras.Input((None, 3))
    symbols = keras.tree.map_structure(lambda part: keras.Input(part.shape[1:]), state)
    outputs, new_state = bilm(symbol, initial_state=symbols, return_state=True)
    assert [tuple(output.shape) for output in outputs] == [(None, None, 6)] * 3
    model = keras.Model([symbol, symbols], [outputs, new_state])
    expected = bilm(x, initial_state=state, return_state=True)
    for value, other in zip(
        keras.tree.flatten(model([keras.ops.convert_to_tensor(x), state])),
        keras.tree.flatten(expected),
        strict=True,
    ):
        harness.close(value, other, tolerance=1e-6)


@pytest.mark.parametrize("batch", [1, 2, 35, 36, 130])
def test_any_batch_size_gives_the_same_vectors(batch):
    bilm = BiLMStack(5, 3)
    x = np.random.default_rng(0).normal(size=(130, 4, 3)).astype("float32")
    alone, together = bilm(x[:1]), bilm(x[:batch])
    for a, b in zip(alone, together, strict=True):
        harness.close(b[:1], a)


# Errors ------------------------------------------------------------------------------------------


def test_argument_errors():
    with pytest.raises(ValueError, match="`num_layers` must be a positive integer. Received: .*=0"):
        BiLMStack(4, num_layers=0)
    with pytest.raises(ValueError, match="`cell_clip` must be a positive number, or None"):
        BiLMStack(4, cell_clip=-3)


def test_input_errors():
    bilm = BiLMStack(4, projection_dim=3)
    message = r"`token_embeddings` must have 3 axes, .*shape \(2, 3\)"
    with pytest.raises(ValueError, match=message):
        bilm(np.ones((2, 3), "float32"))
    message = r"must have the size of a layer's output, 3. Received a tensor of shape \(2, 5, 4\)"
    with pytest.raises(ValueError, match=message):
        bilm(np.ones((2, 5, 4), "float32"))
    with pytest.raises(ValueError, match="must have the size of a layer's output, 3"):
        bilm.build((None, None, 4))
