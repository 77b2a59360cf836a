"""Checkpoint: all that a trained biLM consists of, whatever the format it came from."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from keras_elmo.models import ElmoModel
from keras_elmo.vocabulary import Vocabulary


class Softmax(NamedTuple):
    """The output layer of a language model, shared by both directions.

    Attributes:
        kernel: float32 array (vocabulary_size, projection_dim).
        bias: float32 array (vocabulary_size,).
    """

    kernel: np.ndarray
    bias: np.ndarray


@dataclass
class Checkpoint:
    """A model and what belongs to it.

    Attributes:
        model: The `ElmoModel`.
        vocabulary: The words that the language model predicts, or that a model without characters reads.
        softmax: The language model's output layer.
        metadata: What is known of its origin: description, licence, `tokenizer` (the name of the one that cut the
            training text), `text_format` ("tokens" or "plain", in which the training text came), ..
        format: What it was read from, for people.
    """

    model: ElmoModel
    vocabulary: Vocabulary | None = None
    softmax: Softmax | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    format: str = ""


def check_softmax(softmax: Softmax, model: ElmoModel, vocabulary: Vocabulary | None, path) -> None:
    """Raises `ValueError` unless softmax, model and vocabulary fit each other."""
    kernel, bias = softmax
    if (
        kernel.ndim != 2
        or kernel.shape[1] != model.projection_dim
        or bias.shape != kernel.shape[:1]
    ):
        raise ValueError(
            f"{path}: `softmax/W` must have the shape (words, {model.projection_dim}) and `softmax/b` (words,). "
            f"Received: {kernel.shape} and {bias.shape}"
        )
    if vocabulary is not None and len(vocabulary) != len(kernel):
        raise ValueError(
            f"{path}: `softmax/W` has {len(kernel)} rows, but the vocabulary has {len(vocabulary)} words. They "
            "must belong together: use the vocabulary that the model was trained with."
        )
