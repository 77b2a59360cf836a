"""ForgettingReport: what training on a task costs the biLM as a language model."""

from collections.abc import Sequence
from typing import Any

import keras

from keras_elmo.models import BidirectionalLanguageModel
from keras_elmo.training.evaluate import evaluate


class ForgettingReport(keras.callbacks.Callback):
    """Measures the perplexity of the language model before and after training, and prints both.

    Args:
        language_model: The language model whose biLM is trained: what the head was made on, or `head.language_model`.
        sentences: Text to measure it on, as lists of tokens: of the language it was trained on, and not of the task, if
            forgetting that is the question.

    Attributes:
        before: Perplexity before training.
        after: Perplexity after training.

    Raises:
        ValueError: when training begins, if the head does not train this language model, or has a frozen biLM.

    Example:
    >>> import keras_elmo
    >>> language_model = keras_elmo.load_language_model("elmo_tiny_en", trainable_bilm=True)
    >>> report = ForgettingReport(language_model, [["The", "bank", "is", "near", "the", "river", "."]])
    """

    def __init__(
        self, language_model: BidirectionalLanguageModel, sentences: Sequence[Sequence[str]]
    ):
        super().__init__()
        self.language_model = language_model
        self.sentences = sentences
        self.before = self.after = float("nan")

    def on_train_begin(self, logs: Any = None) -> None:
        """Measures the perplexity."""
        if getattr(self.model, "elmo_model", None) is not self.language_model.elmo_model:
            raise ValueError(
                "`language_model` must be the one that the head was made on. Make the head on it: "
                "`TextClassifier(language_model, ..)`."
            )
        if not self.language_model.elmo_model.trainable_bilm:
            raise ValueError(
                "`ForgettingReport` is for a biLM that is trained: a frozen one forgets nothing. Load the language "
                "model with `trainable_bilm=True`."
            )
        self.before = self._perplexity()

    def on_train_end(self, logs: Any = None) -> None:
        """Measures it again."""
        self.after = self._perplexity()
        print(f"Perplexity of the language model: {self.before:.1f} before, {self.after:.1f} after")

    def _perplexity(self) -> float:
        return evaluate(self.language_model, self.sentences).perplexity
