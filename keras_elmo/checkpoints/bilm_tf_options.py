"""The options of bilm-tf and the arguments of `ElmoModel`, from one to the other."""

from pathlib import Path
from typing import Any

from keras_elmo.character_ids import MAX_WORD_LENGTH, NUM_CHARACTERS
from keras_elmo.checkpoints.bilm_tf_weights import CHARACTER_ROWS
from keras_elmo.checkpoints.checkpoint import Checkpoint
from keras_elmo.checkpoints.options import Options
from keras_elmo.vocabulary import Vocabulary


def arguments_of(
    options: Options, arrays: dict, weights_file: Path, vocabulary: Vocabulary | None
) -> dict[str, Any]:
    """The arguments of `ElmoModel` that options and weights call for."""
    if options.get("bidirectional", bool, True) is False:
        raise ValueError(
            f"{options.path}: `bidirectional` is false; ELMo needs a model of both directions."
        )
    arguments = {
        "units": options.get("lstm.dim", int),
        "projection_dim": options.get("lstm.projection_dim", int),
        "num_layers": options.get("lstm.n_layers", int, 1),
        "use_skip_connections": options.get("lstm.use_skip_connections", bool, False),
        "cell_clip": options.get("lstm.cell_clip", (int, float), None),
        "projection_clip": options.get("lstm.proj_clip", (int, float), None),
    }
    if options.get("char_cnn", dict, None) is None:
        arguments |= _token_arguments(options, arrays, weights_file, vocabulary)
    else:
        _check_number_of_characters(options, arrays, weights_file)
        arguments |= {
            "max_word_length": options.get(
                "char_cnn.max_characters_per_token", int, MAX_WORD_LENGTH
            ),
            "embedding_dim": options.get("char_cnn.embedding.dim", int),
            "filters": options.get("char_cnn.filters", list),
            "num_highway_layers": options.get("char_cnn.n_highway", int, 0),
            "activation": options.get("char_cnn.activation", str),
        }
    return arguments


def _check_number_of_characters(options: Options, arrays: dict, weights_file: Path) -> None:
    """The rows of the file decide; 261 and 262, which only says whether id 0 is counted, are both right."""
    rows = len(arrays["char_embed"]) if "char_embed" in arrays else CHARACTER_ROWS
    stated = options.get("char_cnn.n_characters", int, NUM_CHARACTERS)
    if rows != CHARACTER_ROWS or stated not in (CHARACTER_ROWS, NUM_CHARACTERS):
        raise ValueError(
            f"{options.path} states `char_cnn.n_characters` {stated} and {weights_file} has {rows} rows in "
            f"`char_embed`; expected {CHARACTER_ROWS} rows and a statement of {CHARACTER_ROWS} or {NUM_CHARACTERS}."
        )


def _token_arguments(
    options: Options, arrays: dict, weights_file: Path, vocabulary: Vocabulary | None
) -> dict[str, Any]:
    """A model without characters: its words are the rows of `embedding`."""
    stated = options.get("n_tokens_vocab", int, None)
    if "embedding" not in arrays:
        raise ValueError(
            f"{options.path} has no key `char_cnn`, which makes it a model of whole words, but {weights_file} has "
            "no dataset `embedding` with their vectors."
        )
    rows = len(arrays["embedding"])
    counts = {f"`n_tokens_vocab` of {options.path}": stated}
    if vocabulary is not None:
        counts["the vocabulary"] = len(vocabulary)
    for what, count in counts.items():
        if count not in (None, rows):
            raise ValueError(
                f"`embedding` in {weights_file} has {rows} rows, but {what} says {count} words."
            )
    arguments: dict[str, Any] = {"vocabulary_size": rows}
    if vocabulary is not None:
        arguments["boundary_token_ids"] = (vocabulary.begin_id + 1, vocabulary.end_id + 1)
    return arguments


def options_of(checkpoint: Checkpoint) -> dict[str, Any]:
    """The options that describe a model to bilm-tf and AllenNLP."""
    model = checkpoint.model
    options: dict[str, Any] = {"bidirectional": True}
    if model.vocabulary_size is None:
        options["char_cnn"] = {
            "activation": model.activation,
            "embedding": {"dim": model.embedding_dim},
            "filters": model.filters,
            "max_characters_per_token": model.max_word_length,
            "n_characters": NUM_CHARACTERS,
            "n_highway": model.num_highway_layers,
        }
    lstm: dict[str, Any] = {
        "dim": model.units,
        "n_layers": model.num_layers,
        "projection_dim": model.projection_dim,
        "use_skip_connections": model.use_skip_connections,
    }
    for key, clip in (("cell_clip", model.cell_clip), ("proj_clip", model.projection_clip)):
        if clip is not None:
            lstm[key] = clip
    options["lstm"] = lstm
    if model.vocabulary_size is not None:
        options["n_tokens_vocab"] = model.vocabulary_size
    elif checkpoint.softmax is not None:
        options["n_tokens_vocab"] = len(checkpoint.softmax.kernel)
    return options
