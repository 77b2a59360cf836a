"""ScalarMix: the harness, the oracle, golden values, what is learned and what is not."""

import harness
import keras
import numpy as np
import pytest
import reference

from keras_elmo.layers import ScalarMix

SOFTMAX_001 = (0.2119416, 0.2119416, 0.5761169)  # of (0, 0, 1)


def some_layers(num_layers=3, seed=0):
    """Layers and a mask: full, right-padded, left-padded and holed rows."""
    random = np.random.default_rng(seed)
    layers = [random.normal(2 * k, 1 + k, (4, 5, 3)).astype("float32") for k in range(num_layers)]
    mask = np.ones((4, 5), bool)
    mask[1, 2:] = mask[2, :3] = mask[3, 2] = False
    return layers, mask


KINDS = {
    "learned": ({}, 2, 2),
    "l2": ({"l2": 0.01}, 2, 2),
    "layer_norm": ({"layer_norm": "sentence"}, 2, 2),
    "fixed": ({"fixed_weights": [0.5, -1.0, 2.0]}, 2, 0),
    "normalized": ({"fixed_weights": [0.25, 0.0, 0.75], "normalized": True}, 2, 0),
    "top_only": ({"top_only": True}, 1, 1),
}


@pytest.mark.parametrize(("kwargs", "num_weights", "num_trainable"), KINDS.values(), ids=KINDS)
def test_harness(kwargs, num_weights, num_trainable):
    layers, mask = some_layers()
    harness.check_layer(
        ScalarMix,
        kwargs,
        layers,
        mask=mask,
        num_weights=num_weights,
        num_trainable=num_trainable,
        padding="mask",
    )


# Values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layer_norm", [None, "sentence", "batch"])
@pytest.mark.parametrize("num_layers", [1, 2, 3, 5])
def test_oracle(num_layers, layer_norm):
    layers, mask = some_layers(num_layers)
    w = np.random.default_rng(num_layers).normal(size=num_layers)
    mix = ScalarMix(layer_norm)
    mix(layers)
    mix.set_weights([w, np.array(1.7)])
    batch = [[layer[i][real].astype("float64") for layer in layers] for i, real in enumerate(mask)]
    expected = reference.scalar_mix(batch, w, 1.7, layer_norm)
    output = harness.to_numpy(mix(layers, mask=mask))
    for row, real, value in zip(output, mask, expected, strict=True):
        harness.close(row[real], value)
        assert not row[~real].any()


@pytest.mark.parametrize("layer_norm", ["sentence", "batch"])
@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ([1, 1], [[-1.3416408, -0.4472136], [0.4472136, 1.3416408]]),
        ([1, 0], [[-1, 1], [0, 0]]),  # in bilm-tf the padding is [3, 5]
        ([0, 0], [[0, 0], [0, 0]]),  # in bilm-tf NaN
    ],
    ids=repr,
)
def test_layer_norm_goldens(layer_norm, mask, expected):
    x = np.array([[[1, 3], [5, 7]]], "float32")
    output = ScalarMix(layer_norm)([x], mask=np.array([mask], bool))
    harness.close(output, np.array([expected]))


@pytest.mark.parametrize("layer_norm", [None, "sentence", "batch"])
def test_empty_sentences_are_zero_and_have_finite_gradients(layer_norm):
    layers, mask = some_layers()
    mask[1] = False
    mix = ScalarMix(layer_norm)
    output = harness.to_numpy(mix(layers, mask=mask))
    assert np.isfinite(output).all()
    assert not output[1].any()
    inputs = [keras.Input((None, 3)) for _ in layers]
    real = keras.Input((None,), dtype="bool")
    below = [keras.layers.Dense(3)(x) for x in inputs]
    model = keras.Model([*inputs, real], mix(below, mask=real))
    model.compile("sgd", "mse")
    for one in (mask, np.zeros_like(mask)):
        model.fit([*layers, one], output, verbose=0)
        assert all(np.isfinite(w).all() for w in model.get_weights())


def test_batch_norm_depends_on_batch_mates_and_sentence_norm_does_not():
    layers, mask = some_layers()
    for layer_norm, same in (("sentence", True), ("batch", False)):
        mix = ScalarMix(layer_norm)
        together = harness.to_numpy(mix(layers, mask=mask))[:1]
        alone = harness.to_numpy(mix([x[:1] for x in layers], mask=mask[:1]))
        assert (np.abs(together - alone).max() < 1e-5) == same


@pytest.mark.parametrize(
    ("kwargs", "weights"),
    [
        ({}, (1 / 3, 1 / 3, 1 / 3)),
        ({"fixed_weights": [0, 0, 1]}, SOFTMAX_001),
        ({"fixed_weights": [0, 0, 1], "normalized": True}, (0, 0, 1)),
        ({"fixed_weights": (0.25, 0.25, 0.5), "normalized": True}, (0.25, 0.25, 0.5)),
        ({"fixed_weights": [-9e10, 1, -9e10]}, (0, 1, 0)),
        ({"top_only": True}, (0, 0, 1)),
    ],
    ids=repr,
)
def test_weights_of_the_sum(kwargs, weights):
    layers, _ = some_layers()
    expected = sum(w * x for w, x in zip(weights, layers, strict=True))
    harness.close(ScalarMix(**kwargs)(layers), expected)


def test_top_only_takes_gamma():
    layers, _ = some_layers()
    mix = ScalarMix(top_only=True)
    mix(layers)
    mix.gamma.assign(2.5)
    assert [w.name for w in mix.trainable_weights] == ["gamma"]
    harness.close(mix(layers), 2.5 * layers[-1])


# L2 ----------------------------------------------------------------------------------------------


def test_l2_golden():
    mix = ScalarMix(l2=0.001)
    layers, _ = some_layers()
    mix(layers)
    mix.set_weights([np.array([1.0, 2.0, 3.0]), np.array(5.0)])  # gamma is not regularized
    mix(layers)
    harness.close(sum(mix.losses), np.array(0.014), tolerance=1e-7)


@pytest.mark.parametrize("l2", [None, 0, 0.0])
def test_no_l2_no_loss(l2):
    mix = ScalarMix(l2=l2)
    mix(some_layers()[0])
    assert mix.losses == []
    ScalarMix(l2=l2, top_only=True)
    ScalarMix(l2=l2, fixed_weights=[1.0])


# What is learned ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_one_step_moves_what_is_learned_and_nothing_else(kind):
    kwargs, num_weights, num_trainable = KINDS[kind]
    layers, _ = some_layers()
    mix = ScalarMix(**kwargs)
    inputs = [keras.Input((None, 3)) for _ in layers]
    model = keras.Model(inputs, keras.layers.Dense(2)(mix(inputs)))
    mix.trainable = True
    model.trainable = True
    assert len(mix.weights) == num_weights
    assert len(mix.trainable_weights) == num_trainable
    before = mix.get_weights()
    model.compile(keras.optimizers.SGD(0.1), "mse")
    model.fit(layers, np.ones((4, 5, 2), "float32"), verbose=0)
    for old, new in zip(before, mix.get_weights(), strict=True):
        assert (old != new).all() if num_trainable else (old == new).all()


# Masks -------------------------------------------------------------------------------------------


def test_masks_by_name_by_position_and_on_the_inputs_are_the_same():
    layers, mask = some_layers()
    mix = ScalarMix("sentence")
    by_name = mix(layers, mask=mask)
    for output in (
        by_name,
        mix(layers, mask=[mask] * 3),
        mix(layers, keras.ops.convert_to_tensor(mask)),
        mix([harness.masked(np.where(mask[..., None], x, 0)) for x in layers]),
    ):
        harness.close(output, by_name, tolerance=1e-6)
        np.testing.assert_array_equal(harness.mask_of(output), mask)
    assert harness.mask_of(mix(layers)) is None


# Errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        (
            {"layer_norm": True},
            "`layer_norm` must be one of None, 'sentence', 'batch'. Received: layer_norm=True",
        ),
        ({"l2": -0.1}, "`l2` must be None, zero or a positive number. Received: l2=-0.1"),
        ({"l2": float("nan")}, "`l2` must be None, zero or a positive number. Received: l2=nan"),
        (
            {"fixed_weights": [0.5, 0.6], "normalized": True},
            r"must be zero or more and sum to 1. Received: fixed_weights=\[0.5, 0.6\]",
        ),
        (
            {"fixed_weights": [1.5, -0.5], "normalized": True},
            r"must be zero or more and sum to 1. Received: fixed_weights=\[1.5, -0.5\]",
        ),
        ({"normalized": True}, "`normalized=True` speaks of `fixed_weights`. Received: .*=None"),
        ({"l2": 0.1, "top_only": True}, "`l2` acts on learned weights, .*Received: l2=0.1"),
        ({"l2": 0.1, "fixed_weights": [1.0]}, "`l2` acts on learned weights, .*Received: l2=0.1"),
        (
            {"fixed_weights": [1.0], "top_only": True},
            "Give either `fixed_weights` or `top_only=True`. Received both",
        ),
    ],
    ids=repr,
)
def test_argument_errors(kwargs, message):
    with pytest.raises(ValueError, match=message):
        ScalarMix(**kwargs)


def test_number_of_weights():
    message = r"one number for each of the 3 layers. Received: fixed_weights=\[0.0, 1.0\]"
    with pytest.raises(ValueError, match=message):
        ScalarMix(fixed_weights=[0, 1])(some_layers()[0])


def test_inputs_must_be_a_list():
    layers, _ = some_layers()
    message = "`layer_outputs` must be a list of tensors .*, one per layer"
    for x in (layers[0], keras.ops.stack(layers), keras.Input((None, 3))):
        with pytest.raises(ValueError, match=message):
            ScalarMix()(x)
        mix = ScalarMix()
        mix(layers)  # built already
        with pytest.raises(ValueError, match=message):
            mix(x)
    with pytest.raises(ValueError, match=message):
        ScalarMix()([])
