"""PairClassifier: one label for two texts."""

import os
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_elmo import presets
from keras_elmo.labelled_signatures import named
from keras_elmo.layers.checks import check_positive_integer
from keras_elmo.models import BidirectionalLanguageModel, ElmoModel
from keras_elmo.tasks.attention import attended
from keras_elmo.tasks.labelled_task import LabelledTask
from keras_elmo.tasks.pooling import mean_and_max
from keras_elmo.tasks.texts import (
    check_pairs,
    columns,
    cut_sentences,
    string_tensor,
    tensors,
    two_texts,
)


@keras.saving.register_keras_serializable(package="keras_elmo")
class PairClassifier(LabelledTask):
    """Says how two texts stand to each other: entailment, paraphrase.

    Each word is compared with the words of the other text that it attends to:

        aligned_i = sum over j of softmax over j(F(a_i) . F(b_j)) b_j
        compared_i = relu(W [a_i; aligned_i; a_i - aligned_i; a_i * aligned_i] + c)

    and the other way round. Mean and maximum over the compared words of both texts go through one more layer to the
    softmax. `a` and `b` are the outputs of the same LSTM, which reads the mix of ELMo's layers.

    `fit(x, y)`, `evaluate(x, y)` and `predict(x)` take pairs of strings, (premise, hypothesis), and labels, a list of
    strings; `predict` returns labels, `predict_probabilities` a number for each of `labels`. All other arguments are
    those of `Task`.

    Reference: Parikh et al. (2016), "A Decomposable Attention Model for Natural Language Inference"
    (https://arxiv.org/abs/1606.01933), with the comparison of Chen et al. (2017), "Enhanced LSTM for Natural Language
    Inference", section 3.2 (https://arxiv.org/abs/1609.06038).

    Args:
        model_or_preset: See `Task`. Defaults to the bundled English preset.
        labels: The names of the classes, two or more.
        hidden_units: int, width of the layers that attend, compare and combine. Defaults to 128.
        **kwargs: Arguments of `Task`.

    Raises:
        ValueError: if an argument is out of range, see `Task`.

    Example:
    >>> classifier = PairClassifier(labels=["follows", "does not"], lstm_units=0, hidden_units=8)
    >>> x = [("A cat sleeps.", "An animal sleeps."), ("A cat sleeps.", "A cat runs.")]
    >>> history = classifier.fit(x, ["follows", "does not"], epochs=2, verbose=0)
    >>> answers = classifier.predict([("A dog barks.", "An animal barks.")], verbose=0)
    >>> len(answers), set(answers) <= {"follows", "does not"}
    (1, True)
    """

    _PREFIXES = ("premise_", "hypothesis_")

    def __init__(
        self,
        model_or_preset: (
            ElmoModel | BidirectionalLanguageModel | str | os.PathLike
        ) = presets.DEFAULT_PRESET,
        labels: Sequence[str] = (),
        hidden_units: int = 128,
        **kwargs: Any,
    ):
        check_positive_integer("hidden_units", hidden_units)
        super().__init__(model_or_preset, labels, **kwargs)
        self.hidden_units = hidden_units
        dim = self.encoder.output_dim
        self.attend, self.compare, self.combine = (
            keras.layers.Dense(hidden_units, "relu", dtype=self.dtype_policy, name=name)
            for name in ("attend", "compare", "combine")
        )
        self.attend.build((None, None, dim))
        self.compare.build((None, None, 4 * dim))
        self.combine.build((None, 4 * hidden_units))
        self.drop = keras.layers.Dropout(self.dropout, dtype=self.dtype_policy, name="drop")
        self.classify = keras.layers.Dense(len(self.labels), dtype="float32", name="classify")
        self.classify.build((None, hidden_units))

    def call(self, inputs, training=False):
        (premise, premise_mask), (hypothesis, hypothesis_mask) = (
            self.encode(inputs, training=training, prefix=prefix) for prefix in self._PREFIXES
        )
        scores = tf.matmul(self.attend(premise), self.attend(hypothesis), transpose_b=True)
        found = attended(scores, hypothesis, hypothesis_mask)
        found_back = attended(tf.transpose(scores, [0, 2, 1]), premise, premise_mask)
        pooled = [
            self._compared(premise, found, premise_mask),
            self._compared(hypothesis, found_back, hypothesis_mask),
        ]
        combined = self.combine(self.drop(tf.concat(pooled, axis=-1), training=training))
        return {"logits": self.classify(self.drop(combined, training=training))}

    def _compared(self, vectors, aligned, mask):
        both = tf.concat([vectors, aligned, vectors - aligned, vectors * aligned], axis=-1)
        return mean_and_max(self.compare(both), mask)

    def _columns(self, x):
        texts = map(string_tensor, two_texts(x, "premise", "hypothesis"))
        found: dict[str, Any] = {}
        for prefix, text in zip(self._PREFIXES, texts, strict=True):
            found |= columns(cut_sentences(text, self.tokenizer), prefix)
        return found

    def serving_signatures(self) -> dict[str, Any]:
        """What a SavedModel of this classifier answers to.

        Returns:
            A dict of one `tf.function`: `default` takes `premise` and `hypothesis`, strings (batch,), and returns what
            `keras_elmo.labelled_signatures.named` says.
        """

        @tf.function(
            input_signature=[
                tf.TensorSpec([None], tf.string, "premise"),
                tf.TensorSpec([None], tf.string, "hypothesis"),
            ]
        )
        def default(premise, hypothesis):
            check_pairs(premise, hypothesis)
            inputs: dict[str, Any] = {}
            for prefix, text in zip(self._PREFIXES, (premise, hypothesis), strict=True):
                inputs |= tensors(cut_sentences(text, self.tokenizer), prefix)
            return named(tf.nn.softmax(self(inputs, training=False)["logits"]), self.labels)

        return {"default": default}

    def get_config(self):
        return {**super().get_config(), "hidden_units": self.hidden_units}
