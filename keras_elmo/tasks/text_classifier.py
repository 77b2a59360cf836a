"""TextClassifier: one label for a text."""

import os
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_elmo import presets
from keras_elmo.labelled_signatures import classifier_signatures
from keras_elmo.models import BidirectionalLanguageModel, ElmoModel
from keras_elmo.tasks.labelled_task import LabelledTask
from keras_elmo.tasks.pooling import mean_and_max
from keras_elmo.tasks.texts import columns, cut_sentences, string_tensor, tensors


@keras.saving.register_keras_serializable(package="keras_elmo")
class TextClassifier(LabelledTask):
    """Sorts texts into classes: sentiment, topic, intent.

        probabilities = softmax(W [mean over words; maximum over words] + b)

    over the outputs of an LSTM that reads the mix of ELMo's layers.

    `fit(x, y)`, `evaluate(x, y)` and `predict(x)` take texts, a list of strings, and labels, a list of strings;
    `predict` returns labels, `predict_probabilities` a number for each of `labels`. All other arguments are those of
    `Task`.

    Args:
        model_or_preset: See `Task`. Defaults to the bundled English preset.
        labels: The names of the classes, two or more.
        **kwargs: Arguments of `Task`.

    Raises:
        ValueError: if an argument is out of range, see `Task`.

    Example:
    >>> classifier = TextClassifier(labels=["bad", "good"], lstm_units=0)
    >>> history = classifier.fit(["a fine film", "dull", "lovely", "a waste"], ["good", "bad"] * 2, epochs=2, verbose=0)
    >>> answers = classifier.predict(["a wonderful film", "a bore"], verbose=0)
    >>> len(answers), set(answers) <= {"bad", "good"}
    (2, True)
    """

    def __init__(
        self,
        model_or_preset: (
            ElmoModel | BidirectionalLanguageModel | str | os.PathLike
        ) = presets.DEFAULT_PRESET,
        labels: Sequence[str] = (),
        **kwargs: Any,
    ):
        super().__init__(model_or_preset, labels, **kwargs)
        self.classify = keras.layers.Dense(len(self.labels), dtype="float32", name="classify")
        self.classify.build((None, 2 * self.encoder.output_dim))

    def call(self, inputs, training=False):
        vectors, mask = self.encode(inputs, training=training)
        return {"logits": self.classify(mean_and_max(vectors, mask))}

    def _columns(self, x):
        return columns(cut_sentences(string_tensor(x), self.tokenizer))

    def serving_signatures(self) -> dict[str, Any]:
        """What a SavedModel of this classifier answers to: see `classifier_signatures`."""

        def probabilities(text):
            inputs = tensors(cut_sentences(text, self.tokenizer))
            return tf.nn.softmax(self(inputs, training=False)["logits"])

        return classifier_signatures(probabilities, self.labels)
