"""What the outputs of classifiers and taggers with named labels are checked for."""

from typing import Any

import numpy as np

# So far from 1 may a sum of probabilities be, in bfloat16 too.
_TOLERANCE = 0.02


def check_probabilities(probabilities: Any, labels: list[str]) -> None:
    """Raises `ValueError` unless the last axis has probabilities, one for each label."""
    values = np.asarray(probabilities, np.float64)
    if values.shape[-1] != len(labels):
        raise ValueError(
            f"`labels` must be as many as the model has outputs, {values.shape[-1]}, or two for a single one. "
            f"Received: {len(labels)} labels"
        )
    # Not the other way round: a NaN is no probability.
    if not ((values >= 0).all() and (np.abs(values.sum(axis=-1) - 1) <= _TOLERANCE).all()):
        raise ValueError(
            "The model must return probabilities, which add up to 1. Received: "
            f"{values.reshape(-1, len(labels))[0].round(3).tolist()} for a sentence. End it with the activation "
            "'softmax' (or 'sigmoid' for a single output)."
        )
