"""The format of bilm-tf and AllenNLP: options and an HDF5 file of weights, in and out.

In as well: options and the TensorFlow checkpoint of bilm-tf's training, which has the softmax.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from keras_elmo import presets
from keras_elmo.character_ids import MAX_WORD_LENGTH, NUM_CHARACTERS
from keras_elmo.checkpoints import tensorflow_checkpoint
from keras_elmo.checkpoints.checkpoint import Checkpoint, Softmax, check_softmax
from keras_elmo.checkpoints.options import Options
from keras_elmo.files import written_beside
from keras_elmo.models import ElmoModel
from keras_elmo.vocabulary import Vocabulary

OPTIONS_FILE = "options.json"
WEIGHTS_FILE = "model.hdf5"
VOCABULARY_FILE = "vocab.txt"

# The file has a row for each id but 0, the row of which is zero and not stored.
CHARACTER_ROWS = NUM_CHARACTERS - 1


@dataclass
class _Dataset:
    """One dataset of the file: the variables in it, and how their arrays go in and out."""

    variables: list
    to_file: Callable[..., np.ndarray] = lambda array: array
    from_file: Callable[[np.ndarray], list[np.ndarray]] = lambda array: [array]

    def array(self) -> np.ndarray:
        arrays = [np.asarray(variable.numpy(), np.float32) for variable in self.variables]
        return np.ascontiguousarray(self.to_file(*arrays))

    def assign(self, array: np.ndarray) -> None:
        for variable, part in zip(self.variables, self.from_file(array), strict=True):
            variable.assign(part)


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
    arguments = {**_arguments(options, arrays, weights_file, vocabulary), **overrides}
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
    table = _table(model)
    _check_arrays(table, arrays, weights_file, options_file)
    for name, dataset in table.items():
        dataset.assign(arrays[name])
    metadata = presets.read_metadata(folder)
    kind = "bilm-tf, TensorFlow checkpoint" if is_checkpoint else "bilm-tf / AllenNLP"
    return Checkpoint(model, vocabulary, softmax, metadata, format=kind)


def write(checkpoint: Checkpoint, folder: str | os.PathLike) -> None:
    """Writes a model as `options.json`, `model.hdf5` and, if it has a vocabulary, `vocab.txt`.

    The format has no place for the learned mix: it is left out. What is known of the model's origin, its licence
    above all, goes along in `metadata.json`, at which other tools do not look.

    Args:
        checkpoint: The model, and its vocabulary and softmax if it has them.
        folder: The folder to make.

    Raises:
        ValueError: if the folder exists, if model, softmax and vocabulary do not fit each other, or if the model
            reads a lexicon.
    """
    if checkpoint.model.lexicon is not None:
        raise ValueError(
            "The format of bilm-tf has no place for the lexicon of an ELMoForManyLangs model: write it as a preset."
        )
    if checkpoint.softmax is not None:
        check_softmax(checkpoint.softmax, checkpoint.model, checkpoint.vocabulary, folder)
    with written_beside(folder) as beside:
        beside.mkdir()
        presets.write_json(beside / OPTIONS_FILE, _options_of(checkpoint))
        with h5py.File(beside / WEIGHTS_FILE, "w") as file:
            for name, dataset in _table(checkpoint.model).items():
                file.create_dataset(name, data=dataset.array())
            if checkpoint.softmax is not None:
                file.create_dataset(presets.SOFTMAX_KERNEL, data=checkpoint.softmax.kernel)
                file.create_dataset(presets.SOFTMAX_BIAS, data=checkpoint.softmax.bias)
        if checkpoint.metadata:
            presets.write_json(beside / presets.METADATA_FILE, checkpoint.metadata)
        if checkpoint.vocabulary is not None:
            checkpoint.vocabulary.save(beside / VOCABULARY_FILE)


# --- the table of names ---


def _table(model: ElmoModel) -> dict[str, _Dataset]:
    """Every dataset of the file that a model is stored in, by name."""
    table = {}
    encoder = model.encoder
    if model.vocabulary_size is None:
        table["char_embed"] = _without_row_0(encoder.character_embedding.embeddings)
        for i, convolution in enumerate(encoder.convolutions):
            # The file's convolutions are two-dimensional, of height 1.
            table[f"CNN/W_cnn_{i}"] = _Dataset(
                [convolution.kernel], lambda kernel: kernel[None], lambda array: [array[0]]
            )
            table[f"CNN/b_cnn_{i}"] = _Dataset([convolution.bias])
        for i, highway in enumerate(encoder.highways):
            table[f"CNN_high_{i}/W_carry"] = _Dataset([highway.carry_kernel])
            table[f"CNN_high_{i}/b_carry"] = _Dataset([highway.carry_bias])
            table[f"CNN_high_{i}/W_transform"] = _Dataset([highway.transform_kernel])
            table[f"CNN_high_{i}/b_transform"] = _Dataset([highway.transform_bias])
        if encoder.projection is not None:
            table["CNN_proj/W_proj"] = _Dataset([encoder.projection.kernel])
            table["CNN_proj/b_proj"] = _Dataset([encoder.projection.bias])
    else:
        table["embedding"] = _without_row_0(encoder.embeddings)
    for direction, stack in enumerate((model.bilm.forward_stack, model.bilm.backward_stack)):
        for i, cell in enumerate(stack.cells):
            prefix = f"RNN_{direction}/RNN/MultiRNNCell/Cell{i}/LSTMCell"
            table[f"{prefix}/W_0"] = _stacked(cell.kernel, cell.recurrent_kernel)
            table[f"{prefix}/B"] = _Dataset([cell.bias])
            if cell.projection_kernel is not None:
                table[f"{prefix}/W_P_0"] = _Dataset([cell.projection_kernel])
    return table


def _without_row_0(embeddings) -> _Dataset:
    """A table of vectors: the row of id 0, which means that there is no token, is not stored."""
    return _Dataset(
        [embeddings],
        lambda rows: rows[1:],
        lambda rows: [np.concatenate([np.zeros_like(rows[:1]), rows])],
    )


def _stacked(kernel, recurrent_kernel) -> _Dataset:
    """The LSTM's two kernels, one above the other."""
    input_dim = kernel.shape[0]
    return _Dataset(
        [kernel, recurrent_kernel],
        lambda *kernels: np.concatenate(kernels),
        lambda rows: [rows[:input_dim], rows[input_dim:]],
    )


# --- options ---


def _arguments(
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


def _options_of(checkpoint: Checkpoint) -> dict[str, Any]:
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


# --- the files of a folder ---


def _options_files(folder: Path) -> list[Path]:
    return _named(folder, OPTIONS_FILE)


def _weights_files(folder: Path) -> list[Path]:
    return _files(folder, ".hdf5") or _files(folder, ".h5")


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
    """All datasets of an HDF5 file as float32, by name."""
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


def _check_arrays(table: dict, arrays: dict, weights_file: Path, options_file: Path) -> None:
    for name, dataset in table.items():
        expected = dataset.array().shape
        if name not in arrays:
            raise ValueError(
                f"{weights_file}: the dataset `{name}` of shape {expected}, which {options_file.name} calls for, "
                "is missing."
            )
        if arrays[name].shape != expected:
            raise ValueError(
                f"{weights_file}: the dataset `{name}` must have the shape {expected}, which {options_file.name} "
                f"calls for. Received: {arrays[name].shape}"
            )
    unused = sorted(set(arrays) - set(table))
    if unused:
        raise ValueError(
            f"{weights_file}: the dataset `{unused[0]}` of shape {arrays[unused[0]].shape} has no place in the "
            f"model that {options_file.name} describes ({len(unused)} such in all). Does {options_file.name} belong "
            "to these weights?"
        )
