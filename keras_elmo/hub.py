"""Folders of files on the Hugging Face Hub, `hf://owner/name`, each file with its checksum (extra `hub`)."""

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keras_elmo.extras import require

SCHEME = "hf://"
_ADDRESS = re.compile(re.escape(SCHEME) + r"[\w.-]+/[\w.-]+")


def is_address(source: Any) -> bool:
    """Whether something names a folder on the Hub."""
    return isinstance(source, str) and source.startswith(SCHEME)


def checksums(folder: Path, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Size and SHA-256 of files."""
    return {name: _facts(folder / name) for name in names}


def download(address: str, names: Sequence[str]) -> Path:
    """Fetches files that are not in the cache yet; a download that was interrupted goes on where it was.

    Args:
        address: `hf://owner/name`.
        names: Of the files; those that are not there are left out.

    Returns:
        The folder in the cache.

    Raises:
        ModuleNotFoundError: if huggingface_hub is not installed.
        ValueError: if the address is misspelled or there is no such repository.
        OSError: if it cannot be reached and is not in the cache.
    """
    hub = require("huggingface_hub", "hub")
    errors = require("huggingface_hub.errors", "hub")
    repository = _repository(address)
    try:
        return Path(hub.HfApi().snapshot_download(repository, allow_patterns=list(names)))
    except (errors.RepositoryNotFoundError, errors.GatedRepoError) as error:
        raise ValueError(
            f"There is no repository {repository} on the Hugging Face Hub for you. Check the name; if it is private or "
            "gated, log in with `hf auth login`."
        ) from error
    except (OSError, errors.HfHubHTTPError, _network_error()) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise OSError(
            f"{address} cannot be fetched ({reason[:200]}). What has arrived is kept: try again."
        ) from error


def remove_damaged(folder: Path, facts: dict[str, dict[str, Any]]) -> list[str]:
    """Removes the files from the cache whose size or checksum is another, and says which."""
    damaged = [
        name
        for name, expected in facts.items()
        if not (folder / name).is_file() or _facts(folder / name) != expected
    ]
    for name in damaged:
        # The cache's folder has links to what it keeps.
        for path in (Path(os.path.realpath(folder / name)), folder / name):
            path.unlink(missing_ok=True)
    return damaged


def upload(address: str, folder: Path) -> None:
    """Makes the repository, if it is not there, and a commit with the files of a folder.

    Raises:
        ModuleNotFoundError: if huggingface_hub is not installed.
        ValueError: if the address is misspelled, or nobody is logged in who may write there.
        OSError: if the Hub cannot be reached.
    """
    hub = require("huggingface_hub", "hub")
    errors = require("huggingface_hub.errors", "hub")
    repository = _repository(address)
    try:
        api = hub.HfApi()
        api.create_repo(repository, exist_ok=True)
        api.upload_folder(
            repo_id=repository, folder_path=folder, commit_message="Upload by keras_elmo"
        )
    except (errors.HfHubHTTPError, errors.LocalTokenNotFoundError) as error:
        raise ValueError(
            f"{address} cannot be written ({str(error).splitlines()[0][:200]}). Log in with `hf auth login`, as "
            "somebody who may."
        ) from error
    except (OSError, _network_error()) as error:
        raise OSError(f"{address} cannot be reached ({error}). Try again.") from error


def _repository(address: str) -> str:
    if not _ADDRESS.fullmatch(address):
        raise ValueError(
            f"An address on the Hugging Face Hub is hf://owner/name. Received: {address!r}"
        )
    return address.removeprefix(SCHEME)


def _facts(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {
            "size": path.stat().st_size,
            "sha256": hashlib.file_digest(file, "sha256").hexdigest(),
        }


def _network_error() -> type[Exception]:
    """What the Hub's library lets through when the network fails."""
    return require("httpx", "hub").HTTPError
