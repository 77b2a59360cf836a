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
        path: Where the file or folder is to be in the end. Missing parent folders are made. A link stays: what
            it points to is written.
        overwrite: Whether something that is there already may be replaced. Defaults to `False`.

    Yields:
        A path in the same folder, with the same ending, at which nothing exists yet.

    Raises:
        ValueError: if `path` exists and `overwrite` is `False`; if it is a device or the like; if a file was
            written where a folder is, or a folder where a file is.

    Example:
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with written_beside(folder / "a.txt") as beside:
    ...     _ = beside.write_text("all of it")
    >>> (folder / "a.txt").read_text()
    'all of it'
    """
    shown, path = path, Path(os.path.realpath(path))
    if not overwrite and (os.path.lexists(shown) or path.exists()):
        raise ValueError(f"{shown} exists already. Remove it, or give another name.")
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError(f"{shown} is neither a file nor a folder. Give another name.")
    path.parent.mkdir(parents=True, exist_ok=True)
    # The name is cut: with what is added here it could become too long for the file system.
    workplace = Path(
        tempfile.mkdtemp(prefix=f".{path.name[:40]}.", suffix=".part", dir=path.parent)
    )
    try:
        beside = workplace / path.name
        yield beside
        if path.exists() and path.is_dir() != beside.is_dir():
            kinds = ("folder", "file") if path.is_dir() else ("file", "folder")
            raise ValueError(
                f"{shown} is a {kinds[0]} and no {kinds[1]} may take its place. Give another name."
            )
        if not path.is_dir():
            beside.replace(path)
            return
        # A folder that is not empty cannot be replaced in one step: the old one goes aside first.
        old = Path(tempfile.mkdtemp(dir=workplace))
        path.rename(old)
        try:
            beside.rename(path)
        except BaseException:
            old.rename(path)
            raise
    finally:
        shutil.rmtree(workplace, ignore_errors=True)
