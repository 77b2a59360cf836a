"""Presets: trained models by name, each a folder of files.

| file | what it holds |
|---|---|
| `config.json` | the architecture: the arguments of `ElmoModel` |
| `model.weights.h5` | its weights, as Keras saves them, in float32 or float16 |
| `metadata.json` | versions, number of parameters, tokenizer, format of the training text, origin, licence |
| `language_model.weights.h5` | optional: the softmax of the language model, `softmax/W` and `softmax/b` |
| `vocab.txt` | optional: the words that the softmax predicts |
| `README.md` | optional: the model card |
"""

import json
import os
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from keras_elmo import hub
from keras_elmo.files import written_beside

CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.weights.h5"
METADATA_FILE = "metadata.json"
LANGUAGE_MODEL_FILE = "language_model.weights.h5"
VOCABULARY_FILE = "vocab.txt"
MODEL_CARD_FILE = "README.md"
_FILES = (
    CONFIG_FILE,
    WEIGHTS_FILE,
    METADATA_FILE,
    LANGUAGE_MODEL_FILE,
    VOCABULARY_FILE,
    MODEL_CARD_FILE,
)

# Names of bilm-tf's checkpoints.
SOFTMAX_KERNEL = "softmax/W"
SOFTMAX_BIAS = "softmax/b"

DEFAULT_PRESET = "elmo_tiny_en"

_BUNDLED = Path(__file__).parent / "preset_files"


def preset_names() -> list[str]:
    """Names of the presets that come with the package, in alphabetical order.

    Example:
    >>> "elmo_tiny_en" in preset_names()
    True
    """
    return sorted(folder.name for folder in _BUNDLED.iterdir() if is_preset_folder(folder))


def is_preset_folder(folder: str | os.PathLike) -> bool:
    """Whether a folder holds a preset: an architecture and its weights."""
    return all((Path(folder) / name).is_file() for name in (CONFIG_FILE, WEIGHTS_FILE))


def preset_folder(preset: str | os.PathLike) -> Path:
    """The folder of a preset given by its name, by its path, or by its address on the Hugging Face Hub.

    Raises:
        ValueError: if there is none of these, or what was fetched is not what was uploaded.
        OSError: if it cannot be fetched.
    """
    if hub.is_address(preset):
        return _fetched(str(preset))
    if isinstance(preset, str) and is_preset_folder(_BUNDLED / preset) and preset in preset_names():
        return _BUNDLED / preset
    folder = Path(preset)
    if is_preset_folder(folder):
        return folder
    if folder.is_dir():
        missing = [name for name in (CONFIG_FILE, WEIGHTS_FILE) if not (folder / name).is_file()]
        raise ValueError(
            f"The folder {folder} is not a preset, for it has no {' and no '.join(missing)}. Other folders of "
            "weights are for `keras_elmo.load_model`."
        )
    raise ValueError(
        f"There is no preset and no folder {str(preset)!r}. Presets: {', '.join(preset_names())}"
    )


def upload_preset(address: str, preset: str | os.PathLike) -> None:
    """Uploads a preset to the Hugging Face Hub, for `from_preset("hf://owner/name")` and `load_model` everywhere.

    Its `metadata.json` there has the size and the SHA-256 of each file, by which a damaged download is noticed. The
    model card gets the head by which the Hub shows the licence.

    Args:
        address: `hf://owner/name`; the repository is made if it is not there.
        preset: A preset's name, or the folder that `save_to_preset` or `keras-elmo convert` wrote. `metadata.json`
            must name the `license`.

    Raises:
        ModuleNotFoundError: if huggingface_hub is not installed (extra `hub`).
        ValueError: if there is no such preset, it names no licence, the address is misspelled, or you may not write
            there.
        OSError: if the Hub cannot be reached.
    """
    folder = preset_folder(preset)
    metadata = read_metadata(folder)
    if not isinstance(metadata.get("license"), str):
        raise ValueError(
            f'{folder / METADATA_FILE} names no `license`. Add it, as in "license": "Apache-2.0": others must know '
            "what they may do."
        )
    with tempfile.TemporaryDirectory(prefix="keras_elmo_") as temporary:
        target = Path(temporary)
        names = [name for name in _FILES if (folder / name).is_file()]
        for name in names:
            shutil.copyfile(folder / name, target / name)
        _write_model_card(target / MODEL_CARD_FILE, metadata)
        facts = hub.checksums(target, [name for name in names if name not in _UNCHECKED])
        write_json(target / METADATA_FILE, metadata | {"files": facts})
        hub.upload(address, target)


# The metadata hold the checksums; the card may be edited on the Hub.
_UNCHECKED = (METADATA_FILE, MODEL_CARD_FILE)


def _write_model_card(path: Path, metadata: dict[str, Any]) -> None:
    """Puts the head before the card by which the Hub knows licence, language and library."""
    card = path.read_text(encoding="utf-8") if path.is_file() else "# ELMo for Keras 3\n"
    if card.startswith("---\n"):
        return
    head = [f"license: {metadata['license'].lower()}", "library_name: keras-elmo", "tags: [elmo]"]
    if isinstance(metadata.get("language"), str):
        head.append(f"language: {metadata['language']}")
    path.write_text("\n".join(["---", *head, "---", "", card]), encoding="utf-8")


def _fetched(address: str) -> Path:
    """The folder with a preset from the Hub; what is damaged is fetched once more."""
    damaged: list[str] = []
    for _ in range(2):
        folder = hub.download(address, _FILES)
        if not is_preset_folder(folder):
            raise ValueError(
                f"{address} is no preset: it must hold {CONFIG_FILE} and {WEIGHTS_FILE}, as `upload_preset` makes them."
            )
        facts = read_metadata(folder).get("files")
        if not isinstance(facts, dict):
            # Somebody put it there by hand.
            return folder
        damaged = hub.remove_damaged(folder, {k: v for k, v in facts.items() if k in _FILES})
        if not damaged:
            return folder
    raise ValueError(
        f"{address}: {', '.join(damaged)} is not what the checksums in {METADATA_FILE} call for, twice: it is damaged "
        "there, or was changed. Ask its owner to upload it again."
    )


def read_metadata(folder: Path) -> dict[str, Any]:
    """The metadata of a preset's folder; empty if the file is missing."""
    path = folder / METADATA_FILE
    return read_json(path) if path.is_file() else {}


def base_metadata(parameter_count: int, weights_dtype: str) -> dict[str, Any]:
    """The metadata that every preset has: versions, number of parameters, precision on disk."""
    return {
        "keras_elmo_version": version("keras-elmo"),
        "keras_version": version("keras"),
        "parameter_count": parameter_count,
        "weights_dtype": weights_dtype,
    }


def read_softmax(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The output layer of a preset's language model, in float32.

    Returns:
        The kernel (vocabulary_size, projection_dim) and the bias (vocabulary_size,).

    Raises:
        ValueError: if the file is damaged or holds something else.
    """
    try:
        with h5py.File(path, "r") as file:
            kernel, bias = (
                file[name][()].astype(np.float32) for name in (SOFTMAX_KERNEL, SOFTMAX_BIAS)
            )
    except (OSError, KeyError) as error:
        raise ValueError(
            f"{path} must hold the datasets `{SOFTMAX_KERNEL}` and `{SOFTMAX_BIAS}`, or is damaged ({error})."
        ) from error
    return kernel, bias


def write_softmax(path: Path, kernel: np.ndarray, bias: np.ndarray, dtype: str) -> None:
    """Writes the file that `read_softmax` reads, in "float32" or "float16"."""
    with h5py.File(path, "w") as file:
        file.create_dataset(SOFTMAX_KERNEL, data=kernel.astype(dtype))
        file.create_dataset(SOFTMAX_BIAS, data=bias.astype(dtype))


def convert_floats(path: Path, dtype: str) -> None:
    """Rewrites the floats of an HDF5 file in another precision."""
    with written_beside(path, overwrite=True) as beside:
        with h5py.File(path) as source, h5py.File(beside, "w") as target:

            def copy(name, item):
                if not isinstance(item, h5py.Dataset):
                    copied = target.require_group(name)
                elif np.issubdtype(item.dtype, np.floating):
                    copied = target.create_dataset(name, data=item[()].astype(dtype))
                else:
                    copied = target.create_dataset(name, data=item[()])
                copied.attrs.update(item.attrs)

            source.visititems(copy)
            target.attrs.update(source.attrs)


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        ValueError: if the file holds anything else.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} must hold a JSON object. Received: {type(value).__name__}")
    return value


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Writes an object as indented JSON in UTF-8."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
