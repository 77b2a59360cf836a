"""A model's folder: version folders 1, 2, .. in it; its name is the model's."""

import os
import re
from pathlib import Path

_VERSION = re.compile("[0-9]{1,18}")
_SAVED_MODEL_FILES = ("saved_model.pb", "saved_model.pbtxt")


def check_model_dir(model_dir: str | os.PathLike) -> Path:
    """Makes sure that a folder can be served.

    Args:
        model_dir: The folder with the version folders.

    Returns:
        Its absolute path.

    Raises:
        ValueError: if it does not exist, is a SavedModel itself, has no version folder, or has a name that no
            request can have.
    """
    path = Path(os.path.abspath(model_dir))
    if not path.is_dir():
        raise ValueError(
            f"{model_dir} is not a folder. Give the folder that holds a model's version folders 1, 2, .., as "
            "`keras-elmo export` makes it."
        )
    if any((path / name).exists() for name in _SAVED_MODEL_FILES):
        raise ValueError(
            f"{model_dir} is a SavedModel, not a folder of versions. "
            + (
                f"Give the folder that it is in: {path.parent}"
                if _VERSION.fullmatch(path.name)
                else f"Move it to {path / '1'}, and give {model_dir} again."
            )
        )
    if not version_folders(path):
        raise ValueError(
            f"{model_dir} has no version folders: it must hold SavedModels in folders named 1, 2, .. Make one with "
            f"`keras-elmo export MODEL {model_dir}`."
        )
    if ":" in path.name:
        raise ValueError(
            f"The model's name is the folder's, and {path.name!r} has a colon, which stands for something else in an "
            "address. Rename the folder."
        )
    return path


def version_folders(model_dir: Path) -> dict[int, Path]:
    """The version folders that are there now.

    Args:
        model_dir: The folder that they are in.

    Returns:
        Path by version.

    Example:
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("1", "12", ".2.part", "old"):
    ...     (folder / name).mkdir()
    >>> sorted(version_folders(folder))
    [1, 12]
    """
    try:
        folders = [path for path in model_dir.iterdir() if path.is_dir()]
    except OSError:
        return {}
    return {int(path.name): path for path in folders if _VERSION.fullmatch(path.name)}


def fingerprint(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Name, size and time of every file: what changes while somebody still writes.

    Args:
        folder: A version folder.
    """
    found = []
    for path in folder.rglob("*"):
        try:
            status = path.stat()
        except OSError:
            continue  # removed in this moment
        found.append((str(path.relative_to(folder)), status.st_size, status.st_mtime_ns))
    return tuple(sorted(found))
