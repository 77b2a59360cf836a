"""Writing files so that nobody ever finds half of one."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_beside(path: str | os.PathLike, overwrite: bool = False) -> Iterator[Path]:
    """Yields a path beside `path` to write a file or a folder to; it takes `path`'s place when all went well.

    If the block raises, what it wrote is removed and `path` stays as it was.

    Args:
        path: Where the file or folder is to be in the end. Missing parent folders are made.
        overwrite: Whether something that is there already may be replaced. Defaults to `False`.

    Yields:
        A path in the same folder, with the same ending, at which nothing exists yet.

    Raises:
        ValueError: if `path` exists and `overwrite` is `False`.

    Example:
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with written_beside(folder / "a.txt") as beside:
    ...     _ = beside.write_text("all of it")
    >>> (folder / "a.txt").read_text()
    'all of it'
    """
    path = Path(path)
    if not overwrite and (path.exists() or path.is_symlink()):
        raise ValueError(f"{path} exists already. Remove it, or give another name.")
    path.parent.mkdir(parents=True, exist_ok=True)
    workplace = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    try:
        beside = workplace / path.name
        yield beside
        if path.is_dir() and not path.is_symlink():
            # A folder that is not empty cannot be replaced in one step: the old one goes aside first.
            path.rename(workplace / "old")
        beside.replace(path)
    finally:
        shutil.rmtree(workplace, ignore_errors=True)
