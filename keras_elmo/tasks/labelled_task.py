"""LabelledTask: what heads share whose answers are labels."""

import json
import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from keras_elmo.labels import Labels
from keras_elmo.tasks.task import Task
from keras_elmo.tasks.texts import as_list


class LabelledTask(Task):
    """A head with a softmax over named labels; for one label a text, unless a subclass says more.

    Args:
        model_or_preset: See `Task`.
        labels: The names of the labels, two or more.
        **kwargs: Arguments of `Task`.
    """

    def __init__(self, model_or_preset: Any, labels: Sequence[str], **kwargs: Any):
        # Before Keras takes over, which makes lists of its own of those it is given.
        checked = Labels(labels)
        super().__init__(model_or_preset, **kwargs)
        self._labels = checked
        self._refused: ValueError | None = None

    @property
    def labels(self) -> list[str]:
        """The names of the labels, in the order of the probabilities."""
        return list(self._labels.names)

    def predict_probabilities(
        self, x: Any, batch_size: int = 32, verbose: str | int = "auto"
    ) -> np.ndarray:
        """The probability of each label, float32 (num_texts, num_labels).

        Args:
            x: The texts.
            batch_size: Texts in a batch. Defaults to 32.
            verbose: As in Keras.
        """
        outputs = self._predict(as_list("x", x), batch_size, verbose)
        logits = np.array([output["logits"] for output in outputs], np.float32)
        return tf.nn.softmax(logits.reshape(-1, len(self._labels))).numpy()

    def _check_learnable(self, targets):
        ids = np.unique(np.concatenate([np.atleast_1d(ids) for ids in targets.columns["labels"]]))
        if len(ids) < 2:
            raise ValueError(
                "`y` must hold two different labels at least, to learn to tell them apart. "
                f"Received: {self._labels.names[ids[0]]!r} alone"
            )

    def _targets(self, x, y):
        return {"labels": np.array(self._labels.ids(y), np.int32)}

    def _example_losses(self, y, outputs):
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y["labels"], outputs["logits"])
        return losses, tf.ones_like(losses)

    def _accuracy(self, y, outputs):
        found = tf.argmax(outputs["logits"], axis=-1, output_type=tf.int32)
        return tf.cast(found == y["labels"], tf.float32)

    def _decoded(self, outputs):
        return [self._labels.names[int(np.argmax(output["logits"]))] for output in outputs]

    def save_own_variables(self, store):
        """Writes the labels beside the weights, which mean nothing without them."""
        super().save_own_variables(store)
        store["labels"] = np.frombuffer(json.dumps(self._labels.names).encode(), np.uint8)

    def load_own_variables(self, store):
        """Refuses weights that were trained for other labels, or for the same in another order."""
        found = None
        if "labels" in store:
            found = json.loads(bytes(np.asarray(store["labels"])).decode())
        if found != self._labels.names:
            # Keras makes a page of what is raised here: `load_weights` says it in a sentence.
            self._refused = ValueError(
                f"The weights were saved with the labels {reprlib.repr(found)}; this model has "
                f"{reprlib.repr(self._labels.names)}. Make the model with the same labels in the same order, or load "
                "the whole model by `keras.saving.load_model`."
            )
            raise self._refused

    def load_weights(self, filepath: Any, *args: Any, **kwargs: Any) -> None:
        """Loads weights as Keras does; if they are of other labels, everything stays as it was.

        Raises:
            ValueError: if the weights do not fit, or were trained for other labels.
        """
        self._refused = None
        before = [variable.numpy() for variable in self.weights]
        try:
            super().load_weights(filepath, *args, **kwargs)
        except ValueError as error:
            if self._refused is None:
                raise error from None
        if self._refused is not None:
            # Keras goes on with the layers, and may only have warned.
            for variable, value in zip(self.weights, before, strict=True):
                variable.assign(value)
            raise self._refused

    def get_config(self):
        return {**super().get_config(), "labels": self.labels}

    def serving_description(self) -> dict[str, Any]:
        """What `assets.extra/keras_elmo.json` says of the model."""
        return {**super().serving_description(), "labels": self.labels}
