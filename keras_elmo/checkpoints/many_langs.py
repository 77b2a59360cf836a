"""The format of ELMoForManyLangs: two lexicons, two files of PyTorch weights and a configuration."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np

from keras_elmo import presets
from keras_elmo.checkpoints.checkpoint import Checkpoint
from keras_elmo.checkpoints.lexicon_file import read_lexicon
from keras_elmo.checkpoints.options import Options
from keras_elmo.checkpoints.torch_file import read_state_dict
from keras_elmo.layers.char_cnn_encoder import check_filters
from keras_elmo.lexicon import Lexicon
from keras_elmo.models import ElmoModel

CONFIG_FILE = "config.json"
EMBEDDER_FILE = "token_embedder.pkl"
ENCODER_FILE = "encoder.pkl"
CHARACTERS_FILE = "char.dic"
WORDS_FILE = "word.dic"

# Some published models name a configuration that comes with their tool, not with them; both files say the same.
SAMPLE_CONFIGS = ("cnn_50_100_512_4096_sample.json", "cnn_0_100_512_4096_sample.json")
SAMPLE_CONFIG: dict[str, Any] = {
    "encoder": {
        **{"name": "elmo", "dim": 4096, "projection_dim": 512, "n_layers": 2},
        **{"cell_clip": 3, "proj_clip": 3},
    },
    "token_embedder": {
        **{"name": "cnn", "word_dim": 100, "char_dim": 50, "max_characters_per_token": 50},
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        **{"n_highway": 2, "activation": "relu"},
    },
}

Arrays = dict[str, np.ndarray]


def recognizes(folder: Path) -> bool:
    """Whether a folder looks like this format: it has one of its files of weights."""
    return (folder / EMBEDDER_FILE).is_file() or (folder / ENCODER_FILE).is_file()


def read(folder: Path, **overrides: Any) -> Checkpoint:
    """Reads a model of ELMoForManyLangs: character CNN, words or both, and the projected LSTMs.

    Args:
        folder: The folder with `config.json`, the configuration that it names, `token_embedder.pkl`, `encoder.pkl`,
            and the lexicons `char.dic` and `word.dic`, as far as the model has such parts.
        **overrides: Arguments of `ElmoModel` that change no weights, such as `trainable_bilm=True`.

    Returns:
        The model, with its lexicon.

    Raises:
        ValueError: naming the file, and the key, line or array that is missing, unknown or misshaped.
    """
    options = _options(folder)
    arguments = _arguments(options)
    embedder, encoder = (_read_arrays(folder / name) for name in (EMBEDDER_FILE, ENCODER_FILE))
    characters = words = None
    if options.get("token_embedder.char_dim", int):
        characters = read_lexicon(folder / CHARACTERS_FILE, _num_rows(embedder, _CHARACTER_VECTORS))
    if options.get("token_embedder.word_dim", int):
        words = read_lexicon(folder / WORDS_FILE, _num_rows(embedder, _WORD_VECTORS))
    try:
        lexicon = Lexicon(characters, words)
        # Before the model is made: the sizes in a configuration may be anything.
        for arrays, shapes, name in (
            (embedder, _embedder_shapes(arguments, lexicon), EMBEDDER_FILE),
            (encoder, _encoder_shapes(arguments), ENCODER_FILE),
        ):
            _check_arrays(arrays, shapes, name, options.path)
        model = ElmoModel(**{**arguments, "lexicon": lexicon, **overrides})
    except ValueError as error:
        source = f"{folder} and overrides" if overrides else folder
        raise ValueError(f"No ElmoModel can be made of {source}: {error}") from error
    _assign_embedder(model.encoder, _as_float32(embedder))
    _assign_encoder(model.bilm, _as_float32(encoder))
    # Their models read text that others have cut into words.
    metadata = {"tokenizer": "whitespace", **presets.read_metadata(folder)}
    return Checkpoint(model, metadata=metadata, format="ELMoForManyLangs")


# --- configuration ---


def _options(folder: Path) -> Options:
    """The configuration that `config.json` names, wherever it was where the model was trained."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise ValueError(f"{folder} must have the file {CONFIG_FILE}. Get the whole model again.")
    named = Options(path).get("config_path", str)
    # Of any system: a model that was trained on Windows has backslashes.
    name = PureWindowsPath(named).name
    within = PurePosixPath(named)
    candidates = [folder / name, folder / "configs" / name]
    if not within.is_absolute() and ".." not in within.parts and "\\" not in named:
        candidates.insert(0, folder / within)
    for candidate in candidates:
        if name and candidate.is_file():
            return Options(candidate)
    if name in SAMPLE_CONFIGS:
        return Options(path, SAMPLE_CONFIG)
    tried = " nor ".join(str(candidate) for candidate in dict.fromkeys(candidates))
    raise ValueError(
        f"{path}: `config_path` is {named!r}, but there is neither {tried}. Put that file into the folder."
    )


def _arguments(options: Options) -> dict[str, Any]:
    """The arguments of `ElmoModel` that the configuration calls for, but for the lexicon."""
    for key, known in (("encoder.name", "elmo"), ("token_embedder.name", "cnn")):
        kind = options.get(key, str)
        if kind.lower() != known:
            raise ValueError(
                f"{options.path}: `{key}` must be {known!r}, which all published models have. Received: {kind!r}; "
                "models of another kind are not read."
            )
    clips = {
        # Zero is no clipping.
        argument: options.get(key, (int, float), None) or None
        for argument, key in (
            ("cell_clip", "encoder.cell_clip"),
            ("projection_clip", "encoder.proj_clip"),
        )
    }
    arguments = {
        "units": options.get("encoder.dim", int),
        "projection_dim": options.get("encoder.projection_dim", int),
        "num_layers": options.get("encoder.n_layers", int),
        **clips,
        "max_word_length": options.get("token_embedder.max_characters_per_token", int),
    }
    if word_dim := options.get("token_embedder.word_dim", int):
        arguments["word_dim"] = word_dim
    if embedding_dim := options.get("token_embedder.char_dim", int):
        arguments |= {
            "embedding_dim": embedding_dim,
            "filters": options.get("token_embedder.filters", list),
            "num_highway_layers": options.get("token_embedder.n_highway", int),
            "activation": options.get("token_embedder.activation", str),
        }
    return arguments


def _read_arrays(path: Path) -> Arrays:
    if not path.is_file():
        raise ValueError(
            f"{path.parent} must have the file {path.name}. Get the whole model again."
        )
    return read_state_dict(path)


# --- weights ---

_WORD_VECTORS = "word_emb_layer.embedding.weight"
_CHARACTER_VECTORS = "char_emb_layer.embedding.weight"

Shapes = Iterator[tuple[str, tuple[int, ...]]]


def _num_rows(arrays: Arrays, name: str) -> int:
    return len(arrays[name]) if name in arrays and arrays[name].ndim else 0


def _embedder_shapes(arguments: dict[str, Any], lexicon: Lexicon) -> Shapes:
    """The arrays of `token_embedder.pkl`."""
    dim = 0
    if lexicon.words is not None:
        dim += arguments["word_dim"]
        yield _WORD_VECTORS, (len(lexicon.words), arguments["word_dim"])
    if lexicon.characters is not None:
        embedding_dim = arguments["embedding_dim"]
        yield _CHARACTER_VECTORS, (len(lexicon.characters), embedding_dim)
        filters = check_filters(arguments["filters"])
        for i, (width, count) in enumerate(filters):
            yield f"convolutions.{i}.weight", (count, embedding_dim, width)
            yield f"convolutions.{i}.bias", (count,)
        num_filters = sum(count for _, count in filters)
        dim += num_filters
        for i in range(arguments["num_highway_layers"]):
            yield f"highways._layers.{i}.weight", (2 * num_filters, num_filters)
            yield f"highways._layers.{i}.bias", (2 * num_filters,)
    yield "projection.weight", (arguments["projection_dim"], dim)
    yield "projection.bias", (arguments["projection_dim"],)


def _encoder_shapes(arguments: dict[str, Any]) -> Shapes:
    """The arrays of `encoder.pkl`."""
    units, projection_dim = arguments["units"], arguments["projection_dim"]
    for i in range(arguments["num_layers"]):
        for prefix in (f"forward_layer_{i}", f"backward_layer_{i}"):
            yield f"{prefix}.input_linearity.weight", (4 * units, projection_dim)
            yield f"{prefix}.state_linearity.weight", (4 * units, projection_dim)
            yield f"{prefix}.state_linearity.bias", (4 * units,)
            yield f"{prefix}.state_projection.weight", (projection_dim, units)


def _check_arrays(arrays: Arrays, shapes: Shapes, name_of_file: str, options_file: Path) -> None:
    known = set()
    for name, shape in shapes:
        found = arrays.get(name)
        if found is None or found.shape != shape or found.dtype.kind != "f":
            received = "no such array" if found is None else f"{found.shape} of {found.dtype}"
            raise ValueError(
                f"{name_of_file}: the array `{name}` must have the shape {shape} of floats, which "
                f"{options_file.name} and the lexicons call for. Received: {received}"
            )
        known.add(name)
    if unused := sorted(set(arrays) - known):
        raise ValueError(
            f"{name_of_file}: the array `{unused[0]}` has no place in the model that {options_file.name} describes "
            f"({len(unused)} such in all). Does {options_file.name} belong to these weights?"
        )


def _as_float32(arrays: Arrays) -> Arrays:
    return {name: array.astype(np.float32, copy=False) for name, array in arrays.items()}


def _assign_embedder(encoder: Any, arrays: Arrays) -> None:
    if encoder.word_embedding is not None:
        encoder.word_embedding.embeddings.assign(_with_row_0(arrays[_WORD_VECTORS]))
    if encoder.char_cnn_encoder is not None:
        char_cnn = encoder.char_cnn_encoder
        char_cnn.character_embedding.embeddings.assign(_with_row_0(arrays[_CHARACTER_VECTORS]))
        for i, convolution in enumerate(char_cnn.convolutions):
            convolution.kernel.assign(arrays[f"convolutions.{i}.weight"].transpose(2, 1, 0))
            convolution.bias.assign(arrays[f"convolutions.{i}.bias"])
        for i, highway in enumerate(char_cnn.highways):
            # Their gate is on what is carried, ours on what is transformed.
            transform, carry = np.split(arrays[f"highways._layers.{i}.weight"], 2)
            highway.transform_kernel.assign(transform.T)
            highway.carry_kernel.assign(-carry.T)
            transform, carry = np.split(arrays[f"highways._layers.{i}.bias"], 2)
            highway.transform_bias.assign(transform)
            highway.carry_bias.assign(-carry)
    encoder.projection.kernel.assign(arrays["projection.weight"].T)
    encoder.projection.bias.assign(arrays["projection.bias"])


def _assign_encoder(bilm: Any, arrays: Arrays) -> None:
    for direction, stack in (("forward", bilm.forward_stack), ("backward", bilm.backward_stack)):
        for i, cell in enumerate(stack.cells):
            prefix = f"{direction}_layer_{i}"
            cell.kernel.assign(_gates(arrays[f"{prefix}.input_linearity.weight"]).T)
            cell.recurrent_kernel.assign(_gates(arrays[f"{prefix}.state_linearity.weight"]).T)
            # The cell adds the forget bias of 1 itself.
            forget_bias = np.repeat(np.array([0, 0, 1, 0], np.float32), cell.units)
            bias = _gates(arrays[f"{prefix}.state_linearity.bias"])
            cell.bias.assign(bias - forget_bias)
            cell.projection_kernel.assign(arrays[f"{prefix}.state_projection.weight"].T)


def _with_row_0(rows: np.ndarray) -> np.ndarray:
    """A table of vectors with that of id 0, no token, before the others."""
    return np.concatenate([np.zeros_like(rows[:1]), rows])


def _gates(array: np.ndarray) -> np.ndarray:
    """From PyTorch's order of the gates, input, forget, candidate, output, to TensorFlow's."""
    input_gate, forget_gate, candidate, output_gate = np.split(array, 4)
    return np.concatenate([input_gate, candidate, forget_gate, output_gate])
