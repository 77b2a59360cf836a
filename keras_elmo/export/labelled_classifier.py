"""LabelledClassifier: a text classifier that answers with names instead of numbers."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_elmo.export.probabilities import check_probabilities
from keras_elmo.labelled_signatures import classifier_signatures
from keras_elmo.labels import check_labels


class LabelledClassifier:
    """Serves a Keras model from a string to probabilities of classes, with the classes' names.

    Args:
        model: A functional or `Sequential` model that takes one string, (batch,) or (batch, 1), and returns the
            probabilities (batch, num_labels), as after a softmax; or, for two labels, the second one's alone,
            (batch, 1), as after a sigmoid.
        labels: The names of the classes, in the order of the model's output.

    Raises:
        ValueError: if the model takes or returns something else, or there are more or fewer labels.

    Example:
    >>> text = keras.Input((), dtype="string")
    >>> ends_well = keras.layers.TextVectorization(vocabulary=["good"], output_mode="multi_hot")(text)[:, 1:]
    >>> model = LabelledClassifier(keras.Model(text, ends_well), ["bad", "good"])
    >>> answer = model.serving_signatures()["default"](tf.constant(["so good", "awful"]))
    >>> answer["label"].numpy().tolist(), answer["probabilities"].numpy().tolist()
    ([b'good', b'bad'], [[0.0, 1.0], [1.0, 0.0]])
    """

    def __init__(self, model: keras.Model, labels: Sequence[str]):
        self.model = model
        self.labels = list(labels)
        check_labels(self.labels)
        inputs = getattr(model, "inputs", None) or []
        if [(tensor.dtype, tuple(tensor.shape)[1:]) for tensor in inputs] not in (
            [("string", ())],
            [("string", (1,))],
        ):
            raise ValueError(
                'The model must begin with one `keras.Input((), dtype="string")` to be a text classifier. '
                f"Received inputs: {inputs!r}"
            )
        check_probabilities(
            self._probabilities(tf.constant(["The bank is near the river.", "Hello"])), self.labels
        )

    def _probabilities(self, text: tf.Tensor) -> tf.Tensor:
        if len(self.model.inputs[0].shape) == 2:
            text = text[:, tf.newaxis]
        outputs = self.model(text, training=False)
        found = keras.tree.flatten(outputs)
        if len(found) != 1 or found[0].shape.rank != 2:
            raise ValueError(
                "The model must have one output (batch, num_labels) to be a text classifier. Received outputs of the "
                f"shapes {', '.join(str(tuple(tensor.shape)) for tensor in found)}"
            )
        probabilities = tf.cast(found[0], tf.float32)
        if probabilities.shape[-1] == 1 and len(self.labels) == 2:
            probabilities = tf.concat([1 - probabilities, probabilities], axis=-1)
        return probabilities

    @property
    def layers(self) -> list[keras.layers.Layer]:
        """The model's layers."""
        return self.model.layers

    @property
    def variables(self) -> list[Any]:
        """All weights."""
        return self.model.variables

    def serving_description(self) -> dict[str, Any]:
        """What `assets.extra/keras_elmo.json` says of the model."""
        return {"labels": self.labels}

    def serving_signatures(self) -> dict[str, Any]:
        """What a SavedModel of this classifier answers to: see `classifier_signatures`."""
        return classifier_signatures(self._probabilities, self.labels)
