"""Our own format: a preset folder, with the softmax and the vocabulary of the language model if there are any."""

import os
import shutil
from pathlib import Path
from typing import Any

from keras_elmo import presets
from keras_elmo.checkpoints.checkpoint import Checkpoint, Softmax, check_softmax
from keras_elmo.files import written_beside
from keras_elmo.models import ElmoModel
from keras_elmo.vocabulary import Vocabulary


def read(folder: Path, **overrides: Any) -> Checkpoint:
    """Reads a preset folder.

    Args:
        folder: The folder.
        **overrides: Arguments of `ElmoModel` that change no weights.

    Returns:
        The model, with its vocabulary, softmax and tokenizer if they are there.

    Raises:
        ValueError: naming the file that is damaged or does not fit the others.
    """
    model = ElmoModel.from_preset(folder, **overrides)
    vocabulary_file = folder / presets.VOCABULARY_FILE
    vocabulary = Vocabulary.load(vocabulary_file) if vocabulary_file.is_file() else None
    softmax = None
    softmax_file = folder / presets.LANGUAGE_MODEL_FILE
    if softmax_file.is_file():
        softmax = Softmax(*presets.read_softmax(softmax_file))
        check_softmax(softmax, model, vocabulary, softmax_file)
    metadata = presets.read_metadata(folder)
    return Checkpoint(model, vocabulary, softmax, metadata, format="keras_elmo preset")


def write(
    checkpoint: Checkpoint,
    folder: str | os.PathLike,
    weights_dtype: str = "float32",
    model_card: str | os.PathLike | None = None,
) -> None:
    """Writes a preset folder.

    Args:
        checkpoint: The model, and its vocabulary and softmax if it has them.
        folder: The folder to make.
        weights_dtype: "float32" (default) or "float16", of the files; both load into float32.
        model_card: Path of a Markdown file to take along as `README.md`.

    Raises:
        ValueError: if the folder exists, `weights_dtype` is another, or model, softmax and vocabulary do not fit
            each other.
    """
    if checkpoint.softmax is not None:
        check_softmax(checkpoint.softmax, checkpoint.model, checkpoint.vocabulary, folder)
    with written_beside(folder) as beside:
        checkpoint.model.save_to_preset(beside, weights_dtype, checkpoint.metadata)
        if checkpoint.vocabulary is not None:
            checkpoint.vocabulary.save(beside / presets.VOCABULARY_FILE)
        if checkpoint.softmax is not None:
            presets.write_softmax(
                beside / presets.LANGUAGE_MODEL_FILE, *checkpoint.softmax, weights_dtype
            )
        if model_card is not None:
            shutil.copyfile(model_card, beside / presets.MODEL_CARD_FILE)
