"""What every layer is checked for, the same way: `check_layer`; and the oracle's weights in layers.

Neutral to the backend: Keras and NumPy alone.
"""

import inspect
import json
import tempfile
from pathlib import Path

import keras
import numpy as np
from keras import tree

TOLERANCE = 1e-5


def close(actual, expected, tolerance=TOLERANCE):
    """Whole arrays, of the same shape, no value further apart than `tolerance`, none of them NaN."""
    actual, expected = to_numpy(actual), to_numpy(expected)
    assert actual.shape == expected.shape
    assert np.isfinite(actual).all()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


def to_numpy(x):
    """A tensor, a variable or an array of any kind as NumPy array, bfloat16 as float32."""
    if isinstance(x, keras.Variable):
        return x.numpy()
    if keras.backend.standardize_dtype(x.dtype) == "bfloat16":
        x = keras.ops.cast(x, "float32")
    return keras.ops.convert_to_numpy(x)


def mask_of(output):
    """The mask that Keras attached to a tensor, as NumPy array, or None."""
    mask = getattr(output, "_keras_mask", None)
    return None if mask is None else to_numpy(mask)


def masked(x, mask_value=0.0):
    """The tensor with a mask attached: rows of nothing but `mask_value` are padding."""
    return keras.layers.Masking(mask_value)(x)


def randomize(layer, seed=0, scale=0.5):
    """Gives every weight random values: zeros and ones hide mistakes."""
    random = np.random.default_rng(seed)
    layer.set_weights(
        [random.normal(0, scale, w.shape).astype("float32") for w in layer.get_weights()]
    )
    return layer


def check_layer(
    layer_class,
    init_kwargs,
    inputs,
    *,
    mask=None,
    num_weights=0,
    num_trainable=None,
    padding=None,
    passes_mask=True,
    call=None,
    input_shape=None,
):
    """Runs all checks of this file on one layer.

    Args:
        layer_class: The class.
        init_kwargs: Arguments for it, `name` and `dtype` aside.
        inputs: An array, or a list of arrays where the call takes a list. (batch, num_tokens, ..).
        mask: (batch, num_tokens) for a layer whose call takes one.
        num_weights: How many weights the layer has.
        num_trainable: How many of them are trainable; None: all.
        padding: "mask" if the layer takes the mask, "zeros" if it finds it in the ids, None if
            there is nothing to see about padding.
        passes_mask: Whether outputs carry a mask (with `padding`).
        call: `call(layer, inputs, mask)` if a plain call is not it.
        input_shape: For `build`, if it is not the shape (or list of shapes) of the inputs.
    """
    harness = _Harness(layer_class, init_kwargs, inputs, mask, call, input_shape)
    num_trainable = num_weights if num_trainable is None else num_trainable
    harness.check_signature()
    harness.check_config()
    harness.check_build(num_weights, num_trainable)
    harness.check_symbolic_call()
    harness.check_batch_invariance()
    if padding is not None:
        harness.check_padding(padding, passes_mask)
    harness.check_fit()
    harness.check_bfloat16()
    harness.check_saving()


class _Harness:
    def __init__(self, layer_class, init_kwargs, inputs, mask, call, input_shape):
        self.layer_class = layer_class
        self.init_kwargs = init_kwargs
        self.inputs = inputs
        self.mask = mask
        self.call = call or _plain_call
        self.input_shape = input_shape or tree.map_structure(_unknown, inputs)
        self.is_float = tree.flatten(inputs)[0].dtype.kind == "f"

    def new(self, **kwargs):
        return self.layer_class(**self.init_kwargs, **kwargs)

    def built(self, **kwargs):
        """A layer with random weights."""
        layer = self.new(**kwargs)
        self.call(layer, self.inputs, self.mask)
        return randomize(layer)

    def model(self, layer, before=False):
        """A functional model of the layer with unknown batch and sequence sizes."""
        symbols = tree.map_structure(
            lambda x: keras.Input(_unknown(x)[1:], dtype=str(x.dtype)), self.inputs
        )
        mask = None if self.mask is None else keras.Input((None,), dtype="bool")
        inputs = tree.flatten(symbols) + ([] if mask is None else [mask])
        if before:
            # Something to train below, so that gradients have to come through the layer.
            # Shared, for a layer need not use all that it is given.
            shared = {x.shape[-1]: keras.layers.Dense(x.shape[-1]) for x in tree.flatten(symbols)}
            symbols = tree.map_structure(lambda x: shared[x.shape[-1]](x), symbols)
        return keras.Model(inputs, tree.flatten(self.call(layer, symbols, mask)))

    def model_inputs(self):
        return tree.flatten(self.inputs) + ([] if self.mask is None else [self.mask])

    # The checks ------------------------------------------------------------------------------

    def check_signature(self):
        parameters = list(inspect.signature(self.layer_class.__init__).parameters)
        assert parameters[0] == "self"
        assert parameters[-1] == "kwargs"
        config = self.new().get_config()
        base = ("name", "trainable", "dtype")
        assert list(config)[: len(base)] == list(base)
        assert parameters[1:-1] == [key for key in config if key not in base]
        assert parameters[1:-1] + ["**kwargs"] == documented_arguments(self.layer_class)

    def check_config(self):
        layer = self.new(name="some_name", dtype="float32", trainable=True)
        config = layer.get_config()
        as_json = json.loads(json.dumps(config))
        assert as_json == config, "not JSON types: they come back as others"
        assert self.layer_class.from_config(as_json).get_config() == config
        for name, value in self.init_kwargs.items():
            assert _plain(config[name]) == _plain(value), name
        serialized = json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
        assert serialized["registered_name"] == f"keras_elmo>{self.layer_class.__name__}"
        assert keras.saving.deserialize_keras_object(serialized).get_config() == config

    def check_build(self, num_weights, num_trainable):
        def describe(weights):
            return [(w.name, tuple(w.shape)) for w in weights]

        built, called = self.new(), self.new()
        built.build(self.input_shape)
        assert built.built
        self.call(called, self.inputs, self.mask)
        assert describe(built.weights) == describe(called.weights)
        assert len(built.weights) == num_weights
        assert len(built.trainable_weights) == num_trainable
        self.call(built, self.inputs, self.mask)
        assert len(built.weights) == num_weights

    def check_symbolic_call(self):
        layer = self.built()
        actual = tree.flatten(self.call(layer, self.inputs, self.mask))
        model = self.model(layer)
        assert len(model.outputs) == len(actual)
        for symbol, output in zip(model.outputs, actual, strict=True):
            assert symbol.dtype == keras.backend.standardize_dtype(output.dtype)
            assert len(symbol.shape) == len(output.shape)
            assert symbol.shape[0] is None
            for expected, size in zip(symbol.shape, output.shape, strict=True):
                assert expected in (None, size)
            # Only the batch and the sequence are unknown.
            assert None not in symbol.shape[2:]
        if self.call is _plain_call:
            for shape_of, outputs in ((_unknown, model.outputs), (lambda x: x.shape, actual)):
                shapes = layer.compute_output_shape(tree.map_structure(shape_of, self.inputs))
                shapes = shapes if isinstance(shapes, list) else [shapes]
                assert [tuple(shape) for shape in shapes] == [tuple(x.shape) for x in outputs]
        # The graph gives what the direct call gives.
        predicted = tree.flatten(model.predict(self.model_inputs(), verbose=0))
        for output, expected in zip(predicted, actual, strict=True):
            close(output, expected)

    def check_batch_invariance(self):
        layer = self.built()
        together = tree.flatten(self.call(layer, self.inputs, self.mask))
        batch = tree.flatten(self.inputs)[0].shape[0]
        assert batch > 1

        def rows(index):
            inputs = tree.map_structure(lambda x: x[index], self.inputs)
            mask = None if self.mask is None else self.mask[index]
            return tree.flatten(self.call(layer, inputs, mask))

        for i in range(batch):
            for whole, alone in zip(together, rows(slice(i, i + 1)), strict=True):
                close(alone[0], whole[i])
        for whole, turned in zip(together, rows(slice(None, None, -1)), strict=True):
            close(turned, to_numpy(whole)[::-1])
        for whole, empty in zip(together, rows(slice(0, 0)), strict=True):
            assert tuple(empty.shape) == (0, *whole.shape[1:])

    def check_padding(self, padding, passes_mask):
        layer = self.built()
        num_tokens = tree.flatten(self.inputs)[0].shape[1]
        assert num_tokens > 2
        plain = tree.flatten(self.call(layer, self.inputs, self.mask))
        # Where the real columns stand in a wider batch.
        right, left = range(num_tokens), range(4, num_tokens + 4)
        holes = (0, *range(2, num_tokens), num_tokens + 2)
        for columns in map(list, (right, left, holes)):

            def spread(x, fill, columns=columns):
                wide = np.full((x.shape[0], num_tokens + 4, *x.shape[2:]), fill, x.dtype)
                wide[:, columns] = x
                return wide

            if padding == "zeros":
                mask = None
                inputs = tree.map_structure(lambda x: spread(x, 0), self.inputs)
                first = tree.flatten(inputs)[0]
                real = first.reshape(*first.shape[:2], -1).any(axis=-1)
            else:
                # What stands in the padding must not matter.
                inputs = tree.map_structure(lambda x: spread(x, 7), self.inputs)
                real = mask = spread(
                    np.ones(tree.flatten(self.inputs)[0].shape[:2], bool)
                    if self.mask is None
                    else self.mask,
                    False,
                )
            for output, expected in zip(
                tree.flatten(self.call(layer, inputs, mask)), plain, strict=True
            ):
                if output.ndim == expected.ndim == 2:  # (batch, dim): the sequence is gone
                    close(output, expected)
                    assert mask_of(output) is None
                    continue
                values = to_numpy(output)
                close(values[:, columns], expected)
                assert not values[~real].any(), "padding is not exactly zero"
                if passes_mask:
                    np.testing.assert_array_equal(mask_of(output), real)

    def check_fit(self):
        layer = self.built()
        if not self.is_float and not layer.trainable_weights:
            return
        model = self.model(layer, before=self.is_float)
        targets = [
            np.random.default_rng(1).normal(size=output.shape).astype("float32")
            for output in tree.flatten(self.call(layer, self.inputs, self.mask))
        ]
        # Adam moves every value that has a gradient at all.
        model.compile(keras.optimizers.Adam(0.01), loss=["mse"] * len(targets))
        frozen = [to_numpy(w) for w in layer.non_trainable_weights]
        before = [to_numpy(w).copy() for w in model.trainable_weights]
        history = model.fit(
            self.model_inputs(), targets, batch_size=len(targets[0]), epochs=1, verbose=0
        )
        assert np.isfinite(history.history["loss"]).all()
        assert model.trainable_weights
        for weight, old in zip(model.trainable_weights, before, strict=True):
            new = to_numpy(weight)
            assert np.isfinite(new).all()
            assert np.abs(new - old).max() > 0, f"{weight.path} did not move"
        for weight, old in zip(layer.non_trainable_weights, frozen, strict=True):
            np.testing.assert_array_equal(to_numpy(weight), old)

    def check_bfloat16(self):
        exact = self.built()
        layer = self.new(dtype="mixed_bfloat16")
        self.call(layer, self.inputs, self.mask)
        layer.set_weights(exact.get_weights())
        assert {w.dtype for w in layer.weights} <= {"float32"}
        outputs = tree.flatten(self.call(layer, self.inputs, self.mask))
        expected = tree.flatten(self.call(exact, self.inputs, self.mask))
        symbols = self.model(layer).outputs
        for output, symbol, value in zip(outputs, symbols, expected, strict=True):
            if self.is_float or layer.weights:
                assert keras.backend.standardize_dtype(output.dtype) == "bfloat16"
                assert symbol.dtype == "bfloat16"
            close(output, value, tolerance=0.05 * max(1.0, np.abs(to_numpy(value)).max()))
        self.model(layer).predict(self.model_inputs(), verbose=0)

    def check_saving(self):
        layer = self.built()
        model = self.model(layer)
        expected = tree.flatten(model(self.model_inputs()))
        with tempfile.TemporaryDirectory() as folder:
            model.save(Path(folder) / "model.keras")
            loaded = keras.models.load_model(Path(folder) / "model.keras")
            self._check_same(loaded, model, expected)
            if not layer.weights:
                return
            model.save_weights(Path(folder) / "model.weights.h5")
            other = self.model(randomize(self.built(), seed=5))
            other.load_weights(Path(folder) / "model.weights.h5")
            self._check_same(other, model, expected)

    def _check_same(self, loaded, model, expected):
        for ours, theirs in zip(model.get_weights(), loaded.get_weights(), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        for output, value in zip(tree.flatten(loaded(self.model_inputs())), expected, strict=True):
            np.testing.assert_array_equal(to_numpy(output), to_numpy(value))


def documented_arguments(layer_class):
    """The names in the `Args:` section of the class docstring, in order."""
    lines = inspect.getdoc(layer_class).splitlines()
    names = []
    for line in lines[lines.index("Args:") + 1 :]:
        if line and not line.startswith(" "):
            break
        # An argument stands four spaces in; what goes on with its text stands further in.
        if line.startswith("    ") and not line.startswith("     "):
            names.append(line.split(":")[0].strip())
    return names


def _plain_call(layer, inputs, mask):
    return layer(inputs) if mask is None else layer(inputs, mask=mask)


def _unknown(x):
    """The shape of an array with the batch and the sequence unknown."""
    if x.ndim == 2 and x.dtype.kind == "f":  # the input of a cell: no sequence
        return (None, x.shape[1])
    return (None, None, *x.shape[2:])


def _plain(value):
    return json.loads(json.dumps(value))


# The oracle's weights in layers ------------------------------------------------------------------


def options_for(
    filters=((1, 5), (2, 6), (4, 9)),
    activation="relu",
    num_highway_layers=1,
    max_word_length=12,
    embedding_dim=4,
    units=10,
    projection_dim=6,
    **lstm,
):
    """Options as bilm-tf writes them."""
    return {
        "char_cnn": {
            "activation": activation,
            "filters": [list(pair) for pair in filters],
            "embedding": {"dim": embedding_dim},
            "n_highway": num_highway_layers,
            "n_characters": 262,
            "max_characters_per_token": max_word_length,
        },
        "lstm": {"dim": units, "projection_dim": projection_dim} | lstm,
    }


def set_encoder(encoder, weights):
    """Puts the oracle's weights into a built `CharCNNEncoder`."""
    table = weights["char_embed"]
    encoder.character_embedding.set_weights([np.concatenate([np.zeros_like(table[:1]), table])])
    for i, convolution in enumerate(encoder.convolutions):
        convolution.set_weights([weights[f"CNN/W_cnn_{i}"][0], weights[f"CNN/b_cnn_{i}"]])
    for k, highway in enumerate(encoder.highways):
        set_highway(highway, weights, k)
    if encoder.projection is not None:
        encoder.projection.set_weights([weights["CNN_proj/W_proj"], weights["CNN_proj/b_proj"]])


def set_highway(highway, weights, k=0):
    """Puts highway layer `k` of the oracle into a built `Highway`."""
    name = f"CNN_high_{k}"
    highway.carry_kernel.assign(weights[f"{name}/W_carry"])
    highway.carry_bias.assign(weights[f"{name}/b_carry"])
    highway.transform_kernel.assign(weights[f"{name}/W_transform"])
    highway.transform_bias.assign(weights[f"{name}/b_transform"])


def set_cell(cell, weights, direction, layer):
    """Puts one layer of one direction of the oracle into a built `ProjectedLSTMCell`."""
    name = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
    kernel = weights[f"{name}/W_0"]
    input_dim = kernel.shape[0] - cell.output_size
    cell.kernel.assign(kernel[:input_dim])
    cell.recurrent_kernel.assign(kernel[input_dim:])
    cell.bias.assign(weights[f"{name}/B"])
    if cell.projection_kernel is not None:
        cell.projection_kernel.assign(weights[f"{name}/W_P_0"])


def set_stack(stack, weights, direction):
    """Puts one direction of the oracle into a built `LSTMStack`."""
    for layer, cell in enumerate(stack.cells):
        set_cell(cell, weights, direction, layer)


def set_bilm(bilm, weights):
    """Puts both directions of the oracle into a built `BiLMStack`."""
    set_stack(bilm.forward_stack, weights, 0)
    set_stack(bilm.backward_stack, weights, 1)
