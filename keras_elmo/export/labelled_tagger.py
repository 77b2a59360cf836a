"""LabelledTagger: a tagger that answers with names instead of numbers."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_elmo.elmo_embedding import ElmoEmbedding
from keras_elmo.export.keras_signatures import layers_of
from keras_elmo.export.probabilities import check_probabilities
from keras_elmo.labelled_signatures import named_tokens
from keras_elmo.labels import check_labels
from keras_elmo.text import tokenize


class LabelledTagger:
    """Serves a Keras model that labels every token of a sentence, with the labels' names and the tokens.

    Args:
        model: A functional or `Sequential` model with one `ElmoEmbedding` that takes the strings, (batch,), or the
            tokens, (batch, num_tokens), padded with "", and returns probabilities (batch, num_tokens, num_labels).
        labels: The labels, in the order of the model's output.

    Raises:
        ValueError: if the model takes or returns something else, or there are more or fewer labels.

    Example:
    >>> text = keras.Input((), dtype="string")
    >>> tags = keras.layers.Dense(2, activation="softmax", kernel_initializer="zeros")(ElmoEmbedding()(text))
    >>> default = LabelledTagger(keras.Model(text, tags), ["NOUN", "VERB"]).serving_signatures()["default"]
    >>> answer = default(tf.constant(["Banks lend."]))
    >>> answer["tokens"].numpy().tolist(), answer["label"].numpy().tolist()
    ([[b'Banks', b'lend', b'.']], [[b'NOUN', b'NOUN', b'NOUN']])
    """

    def __init__(self, model: keras.Model, labels: Sequence[str]):
        self.model = model
        self.labels = list(labels)
        check_labels(self.labels)
        inputs = getattr(model, "inputs", None) or []
        if [(tensor.dtype, len(tensor.shape)) for tensor in inputs] not in (
            [("string", 1)],
            [("string", 2)],
        ):
            raise ValueError(
                'The model must begin with one `keras.Input((), dtype="string")`, or `(None,)` for tokens, to be a '
                f"tagger. Received inputs: {inputs!r}"
            )
        embeddings = [layer for layer in layers_of(model) if isinstance(layer, ElmoEmbedding)]
        if len(embeddings) != 1:
            raise ValueError(
                f"The model must have one `ElmoEmbedding`, which cuts the text. Received: {len(embeddings)}"
            )
        self.tokenizer = embeddings[0].tokenizer
        answer = self._answer(tf.constant(["The bank is near the river."]))
        check_probabilities(answer["probabilities"], self.labels)

    def _answer(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        cut = tokenize(text, self.tokenizer)
        takes_tokens = len(self.model.inputs[0].shape) == 2
        outputs = self.model(cut.to_tensor() if takes_tokens else text, training=False)
        found = keras.tree.flatten(outputs)
        if len(found) != 1 or found[0].shape.rank != 3:
            raise ValueError(
                "The model must have one output (batch, num_tokens, num_labels) to be a tagger. Received outputs of "
                f"the shapes {', '.join(str(tuple(tensor.shape)) for tensor in found)}"
            )
        probabilities = tf.cast(found[0], tf.float32)
        return named_tokens(cut, tf.argmax(probabilities, axis=-1), probabilities, self.labels)

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
        return {"labels": self.labels, "tokenizer": self.tokenizer}

    def serving_signatures(self) -> dict[str, Any]:
        """What a SavedModel of this tagger answers to.

        Returns:
            A dict of one `tf.function`, `default`, which takes `text`, strings (batch,), and returns the `tokens`
            (batch, num_tokens), padded with "", the likeliest `label` of each (batch, num_tokens), all `labels` in
            order (batch, num_labels), their `probabilities` (batch, num_tokens, num_labels), and `sequence_len`
            (batch,).
        """
        default = tf.function(
            self._answer, input_signature=[tf.TensorSpec([None], tf.string, "text")]
        )
        return {"default": default}
