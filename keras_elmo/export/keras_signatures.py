"""What a SavedModel of any Keras model answers to: the model's own inputs and outputs."""

import re
from collections.abc import Iterator
from typing import Any

import keras
import tensorflow as tf


def keras_signatures(model: keras.Model) -> dict[str, Any]:
    """The signature `default` of a Keras model that does not say itself what it serves.

    Args:
        model: A functional or `Sequential` model, that is, one that knows its inputs.

    Returns:
        A dict with a `tf.function` of the model's inputs, that returns a dict of its outputs. They have the names of
        the model's dicts, or else of its `keras.Input`s and output layers; a single string input without a name is
        `text`.

    Raises:
        ValueError: if the model does not know its inputs, or several outputs have the same name.

    Example:
    >>> model = keras.Sequential([keras.Input((2,), name="x"), keras.layers.Dense(1, name="y")])
    >>> default = keras_signatures(model)["default"]
    >>> default.input_signature[0].name, list(default(tf.zeros((3, 2))))
    ('x', ['y'])
    """
    inputs = getattr(model, "inputs", None)
    if not inputs:
        raise ValueError(
            f"The model {model.name!r} must know its inputs to be exported. Make it a functional model, begin the "
            'Sequential one with `keras.Input((), dtype="string")`, or give it a method `serving_signatures()`.'
        )
    # A Sequential model has no `input` before it is called.
    structure = inputs[0] if isinstance(model, keras.Sequential) else model.input
    names = _input_names(structure)
    specs = [
        tf.TensorSpec(tensor.shape, tensor.dtype, name)
        for name, tensor in zip(names, inputs, strict=True)
    ]

    output_names = _output_names(model)

    @tf.function(input_signature=specs)
    def default(*tensors):
        outputs = model(keras.tree.pack_sequence_as(structure, tensors), training=False)
        if isinstance(outputs, dict):
            return outputs
        return dict(zip(output_names, keras.tree.flatten(outputs), strict=True))

    return {"default": default}


def _input_names(structure: Any) -> list[str]:
    if isinstance(structure, dict):
        return sorted(structure)  # the order in which Keras flattens it
    inputs = keras.tree.flatten(structure)
    if len(inputs) == 1 and inputs[0].dtype == "string" and _is_made_up(inputs[0].name):
        return ["text"]
    return [
        f"input_{number}" if _is_made_up(tensor.name) else tensor.name
        for number, tensor in enumerate(inputs, 1)
    ]


def _is_made_up(name: str) -> bool:
    """Whether Keras counted a name that nobody gave: the tensor's or, of a model that was loaded, its layer's."""
    return re.fullmatch(r"(keras_tensor|input_layer)(_\d+)?", name) is not None


def _output_names(model: keras.Model) -> list[str]:
    if isinstance(getattr(model, "output", None), dict):
        return list(model.output)
    names = getattr(model, "output_names", None) or [model.layers[-1].name]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(
            f"The outputs of the model {model.name!r} must have different names to be served. {names.count(twice)} "
            f"of them come from the layer {twice!r}: give `keras.Model` a dict of outputs, by the names that you want."
        )
    return names


def tables_of(model: Any) -> list[Any]:
    """The lookup tables of all layers in a model, at any depth: of Keras' StringLookup and the like."""
    return [
        found
        for layer in layers_of(model)
        for found in tf.train.TrackableView(layer).descendants()
        if isinstance(found, tf.saved_model.experimental.TrackableResource)
    ]


def layers_of(model: Any) -> Iterator[keras.layers.Layer]:
    """All layers in a model that are no models themselves."""
    for layer in getattr(model, "layers", ()):
        if isinstance(layer, keras.Model):
            yield from layers_of(layer)
        else:
            yield layer
