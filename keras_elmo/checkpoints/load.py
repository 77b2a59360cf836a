"""Loading a model from whatever people have: recognized by what it is, not by what it is called."""

import os
from pathlib import Path
from typing import Any

from keras_elmo import hub, presets
from keras_elmo.checkpoints import allennlp, bilm_tf, many_langs, preset, run_folder, tfhub
from keras_elmo.checkpoints.archive import unpacked
from keras_elmo.checkpoints.checkpoint import Checkpoint
from keras_elmo.checkpoints.tensorflow_checkpoint import INDEX
from keras_elmo.models import BidirectionalLanguageModel, ElmoModel


def load_model(source: str | os.PathLike, **overrides: Any) -> ElmoModel:
    """Loads an `ElmoModel` from anything recognized.

    | source | what is read |
    |---|---|
    | a preset's name | the bundled preset |
    | `hf://owner/name` | a preset on the Hugging Face Hub, see `upload_preset` |
    | a folder with `config.json`, `model.weights.h5` | a preset that `save_to_preset` or `keras-elmo convert` wrote |
    | a folder with `options.json` and an `.hdf5` file | the weights of bilm-tf, AllenNLP, simple_elmo, NLPL |
    | a folder that `keras-elmo pretrain` made | its best checkpoint by validation, else the last |
    | a `.zip`, `.tar.gz` or `.tar` of such a folder | the same |
    | a folder with `options.json` and `model.ckpt-*` files | the last checkpoint of bilm-tf, with softmax |
    | `model.tar.gz` of AllenNLP, or a folder of its `config.json` and `weights.th` | the ELMo in it, and its mix |
    | a TF-Hub module, `google/elmo/1` to `3` or DeepPavlov's, as folder or archive | biLM and mix |
    | a folder with `config.json`, `char.dic`, `word.dic` and `.pkl` files | a model of ELMoForManyLangs |
    | an `.hdf5` file, or a checkpoint, of such a folder | the same; the name says which, if there are several |

    Args:
        source: Name or path.
        **overrides: Arguments of `ElmoModel` that change no weights, such as `trainable_bilm=True`,
            `layer_norm="sentence"` or `keep_sentence_boundaries=True`.

    Returns:
        The model with its weights, the biLM frozen unless `trainable_bilm=True`.

    Raises:
        ValueError: if the source is not there, is of no known kind, is damaged, or its parts do not fit each
            other; the message names the file and what is wrong with it.

    Example:
    >>> load_model("elmo_tiny_en").num_layers
    2
    """
    return load_checkpoint(source, **overrides).model


def load_language_model(
    source: str | os.PathLike, dropout: float = 0.0, **overrides: Any
) -> BidirectionalLanguageModel:
    """Loads a `BidirectionalLanguageModel` from anything that `load_model` reads and that has a softmax.

    Args:
        source: Name or path.
        dropout: Rate of dropout in training. Defaults to 0.0.
        **overrides: Arguments of `ElmoModel` that change no weights, such as `trainable_bilm=True`.

    Returns:
        The model, which scores sentences, suggests words, and can be trained on.

    Raises:
        ValueError: as `load_model`, and if there is no softmax or no vocabulary: the public weights of
            bilm-tf and AllenNLP come without the softmax.

    Example:
        >>> len(load_language_model("elmo_tiny_en").vocabulary)
        40000
    """
    return language_model_of(load_checkpoint(source, **overrides), source, dropout)


def language_model_of(
    checkpoint: Checkpoint, source: str | os.PathLike, dropout: float = 0.0
) -> BidirectionalLanguageModel:
    """The language model of a checkpoint, as `load_language_model` gives it.

    Raises:
        ValueError: if there is no softmax or no vocabulary; the message names the source.
    """
    if checkpoint.softmax is None or checkpoint.vocabulary is None:
        missing = "softmax" if checkpoint.softmax is None else "vocabulary"
        raise ValueError(
            f"{source} has no {missing}, so it is no language model; it still gives vectors: load it by "
            "`keras_elmo.load_model`."
        )
    model = BidirectionalLanguageModel(checkpoint.model, checkpoint.vocabulary, dropout)
    model.set_softmax(*checkpoint.softmax)
    return model


def load_checkpoint(source: str | os.PathLike, **overrides: Any) -> Checkpoint:
    """Like `load_model`, with the vocabulary, the softmax and the tokenizer beside the model."""
    if not isinstance(source, str | os.PathLike):
        raise ValueError(f"`source` must be a name or a path. Received: source={source!r}")
    if isinstance(source, str) and (source in presets.preset_names() or hub.is_address(source)):
        return preset.read(presets.preset_folder(source), **overrides)
    path = Path(source)
    index = path if path.suffix == INDEX else Path(f"{path}{INDEX}")
    if index.is_file():
        # TensorFlow calls a checkpoint by what the names of its files have in common.
        return bilm_tf.read(path.parent, weights_file=index, **overrides)
    if not path.exists():
        raise ValueError(
            f"There is no file, folder or preset {str(source)!r}. Presets: {', '.join(presets.preset_names())}"
        )
    if path.suffix == ".keras":
        raise ValueError(
            f"{path} is a whole Keras model: load it by `keras.saving.load_model` after `import keras_elmo`."
        )
    if path.suffix in (".hdf5", ".h5", ".safetensors") and path.is_file():
        if path.name == presets.WEIGHTS_FILE:
            return preset.read(presets.preset_folder(path.parent), **overrides)
        return bilm_tf.read(path.parent, weights_file=path, **overrides)
    with unpacked(path) as folder:
        try:
            return _read(folder, **overrides)
        except ValueError as error:
            # People know the archive, not the folder it was unpacked to.
            raise ValueError(str(error).replace(str(folder), str(path))) from error


def _read(folder: Path, **overrides: Any) -> Checkpoint:
    if presets.is_preset_folder(folder) or (folder / presets.WEIGHTS_FILE).is_file():
        return preset.read(presets.preset_folder(folder), **overrides)
    if run_folder.recognizes(folder):
        return preset.read(run_folder.best_checkpoint(folder), **overrides)
    if tfhub.recognizes(folder):
        return tfhub.read(folder, **overrides)
    if allennlp.recognizes(folder):
        return allennlp.read(folder, **overrides)
    if many_langs.recognizes(folder):
        return many_langs.read(folder, **overrides)
    if bilm_tf.recognizes(folder):
        return bilm_tf.read(folder, **overrides)
    found = ", ".join(sorted(entry.name for entry in folder.iterdir())[:8]) or "nothing"
    raise ValueError(
        f"{folder} holds no model that is known here: neither {presets.CONFIG_FILE} and {presets.WEIGHTS_FILE} "
        f"nor {bilm_tf.OPTIONS_FILE} and an .hdf5 file or a TensorFlow checkpoint, nor {tfhub.GRAPH_FILE} and "
        f"variables, nor {many_langs.EMBEDDER_FILE} and {many_langs.ENCODER_FILE}, nor {allennlp.WEIGHTS_FILE}. "
        f"Found: {found}"
    )
