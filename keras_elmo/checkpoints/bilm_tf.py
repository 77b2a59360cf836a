"""The format of bilm-tf and AllenNLP: options and an HDF5 file of weights, in and out.

In as well: options and the TensorFlow checkpoint of bilm-tf's training, which has the softmax.
"""

import dataclasses
import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from keras_elmo import presets
from keras_elmo.checkpoints import tensorflow_checkpoint
from keras_elmo.checkpoints.bilm_tf_options import arguments_of, options_of
from keras_elmo.checkpoints.bilm_tf_weights import assign, table_of
from keras_elmo.checkpoints.checkpoint import Checkpoint, Softmax, check_softmax
from keras_elmo.checkpoints.options import Options
from keras_elmo.extras import require
from keras_elmo.files import written_beside
from keras_elmo.models import ElmoModel
from keras_elmo.vocabulary import Vocabulary

OPTIONS_FILE = "options.json"
WEIGHTS_FILE = "model.hdf5"
SAFETENSORS_FILE = "model.safetensors"
VOCABULARY_FILE = "vocab.txt"
_SAFETENSORS = ".safetensors"


def recognizes(folder: Path) -> bool:
    """Whether a folder looks like this format: it has options, an HDF5 file or a TensorFlow checkpoint."""
    return bool(
        _options_files(folder) or _weights_files(folder) or tensorflow_checkpoint.find(folder)
    )


def read(folder: Path, weights_file: Path | None = None, **overrides: Any) -> Checkpoint:
    """Reads a model from a folder with options, a file of weights and, perhaps, a vocabulary.

    Reads every variant that bilm-tf can make: with or without skip connections, projections, highway layers and
    characters; one or more layers; relu or tanh; any word width. The datasets are those of bilm-tf's
    `dump_weights.py` and, where there is a softmax, `softmax/W` and `softmax/b`.

    Args:
        folder: The folder. The options are `options.json`, or the only file whose name ends so; the weights are
            the TensorFlow checkpoint if there is one, the last of several, else the only `.hdf5` or `.h5` file,
            whatever its name; the vocabulary is `vocab.txt`, also gzipped, or the
            only file whose name ends so.
        weights_file: The file of weights to read, if the folder has more than one.
        **overrides: Arguments of `ElmoModel` that change no weights, such as `trainable_bilm=True`.

    Returns:
        The model, with its vocabulary and its softmax if they are there.

    Raises:
        ValueError: naming the file, and the key or dataset that is missing, unknown or misshaped.
    """
    options_file = _only(_options_files(folder), folder, f"file `{OPTIONS_FILE}`")
    if weights_file is None:
        # The checkpoint has the softmax, an HDF5 file beside it was made of one like it.
        weights_file = tensorflow_checkpoint.find(folder) or _only(
            _weights_files(folder), folder, "HDF5 file of weights"
        )
    is_checkpoint = weights_file.suffix == tensorflow_checkpoint.INDEX
    vocabulary = None
    if vocabulary_files := _vocabulary_files(folder):
        vocabulary = Vocabulary.load(_only(vocabulary_files, folder, f"file `{VOCABULARY_FILE}`"))
    options = Options(options_file)
    arrays = (tensorflow_checkpoint.read_arrays if is_checkpoint else _read_arrays)(weights_file)
    arguments = {**arguments_of(options, arrays, weights_file, vocabulary), **overrides}
    try:
        model = ElmoModel(**arguments)
    except ValueError as error:
        source = f"{options_file} and overrides" if overrides else options_file
        raise ValueError(f"No ElmoModel can be made of {source}: {error}") from error
    softmax = _take_softmax(arrays, weights_file)
    if softmax is not None:
        check_softmax(softmax, model, vocabulary, weights_file)
        stated = options.get("n_tokens_vocab", int, None)
        if stated not in (None, len(softmax.kernel)):
            raise ValueError(
                f"`{presets.SOFTMAX_KERNEL}` in {weights_file} has {len(softmax.kernel)} rows, but `n_tokens_vocab` in "
                f"{options_file} says {stated} words. They must belong together."
            )
    assign(model, arrays, weights_file, options_file)
    metadata = presets.read_metadata(folder)
    kind = "bilm-tf, TensorFlow checkpoint" if is_checkpoint else "bilm-tf / AllenNLP"
    return Checkpoint(model, vocabulary, softmax, metadata, format=kind)


def write(
    checkpoint: Checkpoint,
    folder: str | os.PathLike,
    with_softmax: bool = True,
    safetensors: bool = False,
) -> None:
    """Writes a model as `options.json`, `model.hdf5` and, if it has a vocabulary, `vocab.txt`.

    The format has no place for the learned mix: it is left out. What is known of the model's origin, its licence
    above all, goes along in `metadata.json`, at which other tools do not look.

    Args:
        checkpoint: The model, and its vocabulary and softmax if it has them.
        folder: The folder to make.
        with_softmax: Whether the softmax is written, too, if the model has one, as bilm-tf's own files do not.
            Defaults to `True`.
        safetensors: Whether to write `model.safetensors`, with arrays of the same names, in place of HDF5. Defaults
            to `False`.

    Raises:
        ModuleNotFoundError: if safetensors is asked for and not installed.
        ValueError: if the folder exists, if model, softmax and vocabulary do not fit each other, or if the model
            reads a lexicon.
    """
    if checkpoint.model.lexicon is not None:
        raise ValueError(
            "The format of bilm-tf has no place for the lexicon of an ELMoForManyLangs model: write it as a preset."
        )
    if not with_softmax:
        checkpoint = dataclasses.replace(checkpoint, softmax=None)
    if checkpoint.softmax is not None:
        check_softmax(checkpoint.softmax, checkpoint.model, checkpoint.vocabulary, folder)
    arrays = {name: dataset.array() for name, dataset in table_of(checkpoint.model).items()}
    if checkpoint.softmax is not None:
        arrays[presets.SOFTMAX_KERNEL], arrays[presets.SOFTMAX_BIAS] = checkpoint.softmax
    if safetensors:
        save_file = require("safetensors.numpy", "safetensors").save_file
    with written_beside(folder) as beside:
        beside.mkdir()
        presets.write_json(beside / OPTIONS_FILE, options_of(checkpoint))
        if safetensors:
            save_file(arrays, beside / SAFETENSORS_FILE)
        else:
            with h5py.File(beside / WEIGHTS_FILE, "w") as file:
                for name, array in arrays.items():
                    file.create_dataset(name, data=array)
        if checkpoint.metadata:
            presets.write_json(beside / presets.METADATA_FILE, checkpoint.metadata)
        if checkpoint.vocabulary is not None:
            checkpoint.vocabulary.save(beside / VOCABULARY_FILE)


# --- the files of a folder ---


def _options_files(folder: Path) -> list[Path]:
    return _named(folder, OPTIONS_FILE)


def _weights_files(folder: Path) -> list[Path]:
    return _files(folder, ".hdf5") or _files(folder, ".h5") or _files(folder, _SAFETENSORS)


def _vocabulary_files(folder: Path) -> list[Path]:
    return _named(folder, VOCABULARY_FILE) or _named(folder, VOCABULARY_FILE + ".gz")


def _named(folder: Path, name: str) -> list[Path]:
    """The file of this name, else the files whose names end so."""
    exact = folder / name
    return [exact] if exact.is_file() else _files(folder, name)


def _files(folder: Path, ending: str) -> list[Path]:
    # Files that begin with a dot are litter of archive programs and editors.
    return sorted(
        path
        for path in folder.iterdir()
        if path.name.endswith(ending) and path.is_file() and not path.name.startswith(".")
    )


def _only(files: list[Path], folder: Path, what: str) -> Path:
    if len(files) == 1:
        return files[0]
    found = ", ".join(path.name for path in files) or "none"
    fix = (
        "Give each model a folder of its own, or pass the path of its file of weights."
        if files
        else "Put it into the folder."
    )
    raise ValueError(f"{folder} must have one {what}. Found: {found}. {fix}")


# --- the weights ---


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    """All datasets of an HDF5 or safetensors file as float32, by name."""
    if path.suffix == _SAFETENSORS:
        return _read_safetensors(path)
    arrays: dict[str, np.ndarray] = {}

    def read(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            if not np.issubdtype(item.dtype, np.floating):
                raise ValueError(
                    f"{path}: the dataset `{name}` must hold floats. Received: {item.dtype}"
                )
            arrays[name] = item[()].astype(np.float32, copy=False)

    try:
        with h5py.File(path, "r") as file:
            file.visititems(read)
    except OSError as error:
        raise ValueError(
            f"{path} is not an HDF5 file, or is damaged or cut off ({error})."
        ) from error
    return arrays


def _read_safetensors(path: Path) -> dict[str, np.ndarray]:
    safetensors = require("safetensors", "safetensors")
    load_file = require("safetensors.numpy", "safetensors").load_file
    try:
        return {name: array.astype(np.float32) for name, array in load_file(path).items()}
    except safetensors.SafetensorError as error:
        raise ValueError(
            f"{path} is no safetensors file, or is damaged or cut off ({error})."
        ) from error


def _take_softmax(arrays: dict[str, np.ndarray], path: Path) -> Softmax | None:
    kernel, bias = arrays.pop(presets.SOFTMAX_KERNEL, None), arrays.pop(presets.SOFTMAX_BIAS, None)
    if kernel is None and bias is not None:
        # `share_embedding_softmax`: words are predicted by the vectors that they are read by.
        kernel = arrays.get("embedding")
    if kernel is None and bias is None:
        return None
    if kernel is None or bias is None:
        missing = presets.SOFTMAX_KERNEL if kernel is None else presets.SOFTMAX_BIAS
        raise ValueError(
            f"{path}: the dataset `{missing}` is missing, though the other of the pair is there."
        )
    return Softmax(kernel, bias)
