"""The model that a pre-training run begins with: new, or one that was trained before."""

import os
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from keras_elmo.checkpoints import Checkpoint, load_checkpoint
from keras_elmo.checkpoints.checkpoint import Softmax
from keras_elmo.models import BidirectionalLanguageModel, ElmoModel
from keras_elmo.models.elmo_model import ARCHITECTURE
from keras_elmo.training.pretrain_config import PretrainConfig
from keras_elmo.vocabulary import Vocabulary

Say = Callable[[str], None]


def new_model(
    config: PretrainConfig, vocabulary: Vocabulary, counts: np.ndarray
) -> BidirectionalLanguageModel:
    """Makes a model with the weights that the run's seed gives it.

    Args:
        config: The numbers of the run.
        vocabulary: The words that are predicted.
        counts: How often each occurs.
    """
    keras.utils.set_random_seed(config.seed)
    words: dict[str, Any] = {}
    if not config.use_characters:
        words = {
            "vocabulary_size": len(vocabulary),
            "boundary_token_ids": (vocabulary.begin_id + 1, vocabulary.end_id + 1),
        }
    elmo_model = ElmoModel(**config.architecture, **words, dtype=config.precision)
    return _with_softmax(elmo_model, config, vocabulary, counts)


def model_from(
    source: str | os.PathLike,
    config: PretrainConfig,
    vocabulary: Vocabulary,
    counts: np.ndarray,
    new_vocabulary: bool = False,
    say: Say = lambda message: None,
) -> tuple[BidirectionalLanguageModel, PretrainConfig]:
    """Takes a trained model to go on training it, and the configuration that has its architecture.

    Args:
        source: Anything that `load_model` reads.
        config: The numbers of the run.
        vocabulary: The words that are to be predicted.
        counts: How often each occurs.
        new_vocabulary: Whether they may be others than those of the source: then the softmax keeps those that it has.
        say: Gets a sentence for people about what is done.

    Raises:
        ValueError: If the vocabulary is not that of the source, or the source cannot be loaded or reads a lexicon.
    """
    checkpoint = load_checkpoint(source, dtype=config.precision)
    elmo_model = checkpoint.model
    if elmo_model.lexicon is not None:
        raise ValueError(
            f"{source} reads the ids of a lexicon, as ELMoForManyLangs does, and cannot be trained on here. Take a "
            "model that reads bytes."
        )
    fields = {name: getattr(elmo_model, name) for name in ARCHITECTURE}
    config = config.changed(**fields, use_characters=elmo_model.vocabulary_size is None)
    if not new_vocabulary:
        _check_vocabulary(source, checkpoint, vocabulary)
    elif not config.use_characters:
        raise ValueError(
            f"{source} reads words as ids of its vocabulary, so that there is no new one for it."
        )
    keras.utils.set_random_seed(config.seed)
    model = _with_softmax(elmo_model, config, vocabulary, counts)
    if checkpoint.softmax is None:
        say(f"{source} has no softmax: it starts anew.")
    elif not new_vocabulary:
        model.set_softmax(*checkpoint.softmax)
    elif checkpoint.vocabulary is None:
        say(f"{source} has no vocabulary to tell what its softmax predicts: it starts anew.")
    else:
        num_kept = _keep_rows(model, checkpoint.softmax, checkpoint.vocabulary)
        say(
            f"The vocabulary is new: the softmax keeps {num_kept:,} of its {len(vocabulary):,} words, the others start "
            "anew."
        )
    return model, config


def _keep_rows(model: BidirectionalLanguageModel, softmax: Softmax, vocabulary: Vocabulary) -> int:
    """Gives words that were predicted before what predicted them; returns their number."""
    row_of = {word: row for row, word in enumerate(vocabulary)}
    places = [(k, row_of[word]) for k, word in enumerate(model.vocabulary) if word in row_of]
    now, before = (list(rows) for rows in zip(*places, strict=True))
    kernel, bias = (
        keras.ops.convert_to_numpy(variable).copy()
        for variable in (model.softmax.kernel, model.softmax.bias)
    )
    kernel[now], bias[now] = softmax.kernel[before], softmax.bias[before]
    model.set_softmax(kernel, bias)
    return len(now)


def check_same_vocabulary(vocabulary: Vocabulary, other: Vocabulary, source: str) -> None:
    """Raises a ValueError if `vocabulary` is not `other`, which is that of `source`."""
    if len(vocabulary) != len(other):
        raise ValueError(
            f"The vocabulary must be that of {source}, of {len(other):,} words. "
            f"Received: {len(vocabulary):,} words"
        )
    if vocabulary.sha256 != other.sha256:
        raise ValueError(
            f"The vocabulary must be that of {source}, word for word: SHA-256 {other.sha256[:12]}. "
            f"Received: as many words, but others or in another order, SHA-256 {vocabulary.sha256[:12]}"
        )


def _check_vocabulary(
    source: str | os.PathLike, checkpoint: Checkpoint, vocabulary: Vocabulary
) -> None:
    try:
        if checkpoint.vocabulary is not None:
            check_same_vocabulary(vocabulary, checkpoint.vocabulary, str(source))
        elif checkpoint.softmax is not None and len(checkpoint.softmax.bias) != len(vocabulary):
            raise ValueError(
                f"The vocabulary must be that of {source}, of {len(checkpoint.softmax.bias):,} words. "
                f"Received: {len(vocabulary):,} words"
            )
    except ValueError as error:
        raise ValueError(
            f"{error}. Take that one (`keras-elmo convert` writes it to vocab.txt), or let the softmax learn the new "
            "words with --new-vocabulary."
        ) from error


def _with_softmax(
    elmo_model: ElmoModel, config: PretrainConfig, vocabulary: Vocabulary, counts: np.ndarray
) -> BidirectionalLanguageModel:
    model = BidirectionalLanguageModel(elmo_model, vocabulary, config.dropout)
    if config.softmax_kernel_deviation is not None:
        kernel = model.softmax.kernel
        normal = keras.random.normal(
            kernel.shape, 0.0, config.softmax_kernel_deviation, seed=config.seed
        )
        kernel.assign(normal)
    if config.softmax_bias_initializer == "log_frequencies":
        # One more for each: a word that never occurs is unlikely, not impossible.
        frequencies = (counts + 1.0) / (counts.sum() + len(counts))
        model.softmax.bias.assign(np.log(frequencies).astype(np.float32))
    return model
