"""What a head is made on: a model that is given, or a preset."""

import os
from typing import Any

from keras_elmo.checkpoints import language_model_of, load_checkpoint
from keras_elmo.elmo_embedding import dtype_of
from keras_elmo.models import BidirectionalLanguageModel, ElmoModel
from keras_elmo.models.reads_bytes import check_reads_bytes


def model_of(
    source: Any, trainable_bilm: bool | None, needs_language_model: bool, dtype: Any
) -> tuple[ElmoModel, BidirectionalLanguageModel | None, str | None]:
    """What a head is made on.

    Args:
        source: An `ElmoModel`, a `BidirectionalLanguageModel`, or what `load_checkpoint` takes.
        trainable_bilm: Whether the biLM is trained; `None`: as a given model has it.
        needs_language_model: Whether there must be a softmax.
        dtype: Of a model that is loaded.

    Returns:
        The model, its language model, if there is one, and the tokenizer that it was trained with, if known.

    Raises:
        ValueError: if it is something else, or lacks what is needed.
    """
    language_model = trained_with = None
    if isinstance(source, str | os.PathLike):
        checkpoint = load_checkpoint(
            source, dtype=dtype or "float32", trainable_bilm=bool(trainable_bilm)
        )
        elmo, trained_with = checkpoint.model, checkpoint.metadata.get("tokenizer")
        if needs_language_model:
            if checkpoint.softmax is None or checkpoint.vocabulary is None:
                missing = "softmax" if checkpoint.softmax is None else "vocabulary"
                raise ValueError(
                    f"`language_model_loss_weight` needs a language model, and {source} has no {missing}. "
                    "Leave it out, or take a preset with one."
                )
            language_model = language_model_of(checkpoint, source)
    elif isinstance(source, BidirectionalLanguageModel):
        elmo, language_model = source.elmo_model, source
    elif isinstance(source, ElmoModel):
        elmo = source
        if needs_language_model:
            raise ValueError(
                "`language_model_loss_weight` needs a language model, and an `ElmoModel` has no softmax. Give a "
                "`BidirectionalLanguageModel`, as `keras_elmo.load_language_model` makes it."
            )
    else:
        raise ValueError(
            "`model_or_preset` must be an `ElmoModel`, a `BidirectionalLanguageModel`, the name of a preset or a path. "
            f"Received: {type(source).__name__}"
        )
    check_reads_bytes("A head", elmo)
    if not isinstance(source, str | os.PathLike):
        dtype_of(elmo, dtype)
    if trainable_bilm not in (None, elmo.trainable_bilm):
        raise ValueError(
            f"`trainable_bilm` is decided by the model that was given, where it is {elmo.trainable_bilm}. Received: "
            f"trainable_bilm={trainable_bilm}. Load the model with `trainable_bilm={trainable_bilm}`."
        )
    return elmo, language_model, trained_with
