"""Weights archives: a zip or a tar from anywhere, unpacked into a temporary folder.

An archive is a stranger's program for writing files, so nothing in it is trusted: not the names,
not the kinds, not the sizes its headers claim. The members are read one after the other and written
by hand, never by `extractall`, and the first one that is wrong ends it.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import gzip
import os
import stat
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, Any, NamedTuple

MAX_UNPACKED_BYTES = 8 * 2**30
MAX_RATIO = 100

_CHUNK = 2**20
# A tar's headers and padding are not files and compress to nothing: this much is free of charge.
_HEADER_BYTES = 2**20


@contextlib.contextmanager
def unpacked(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives the folder that holds an archive's files, for as long as the `with` block lasts.

    Made for ELMo weights as the NLPL repository hands them out: `options.json`, one `.hdf5` file
    and perhaps `vocab.txt`, at the root of the archive or in one folder. A zip, a tar and a gzipped
    tar are told apart by their content, whatever their name. The files live in a temporary folder
    that is removed at the end; nothing is ever written anywhere else.

    The files may take 8 GiB together, and 100 times the archive. Trained weights hardly shrink at
    all, but a small archive of, say, all-zero weights can pass 100 times and is refused as well:
    unpack such a one by hand and give the folder.

    Args:
        path: A folder, which is given back as it is, or an archive file.

    Yields:
        The folder: the root, or the one folder in it where it holds nothing else. Hidden files and
        the `__MACOSX` folder, which packers leave beside the real ones, do not count.

    Raises:
        ValueError: If `path` does not exist; if it is no archive of these kinds, is cut short or
            damaged, or holds no file; if a member is encrypted, a link, a device or a pipe, if its
            name leads out of the folder, is no plain relative path or comes twice; or if the files
            would take too much room. The sentence names the archive and the member. Of a refused
            member nothing is written, unless the header lies about its size: then writing stops
            at the limit.

    Example:
        >>> import os, tempfile, zipfile
        >>> with tempfile.TemporaryDirectory() as there:
        ...     name = os.path.join(there, "weights.zip")
        ...     with zipfile.ZipFile(name, "w") as archive:
        ...         archive.writestr("158/options.json", "{}")
        ...     with unpacked(name) as folder:
        ...         print(folder.name, [file.name for file in folder.iterdir()])
        158 ['options.json']
    """
    source = Path(path)
    if source.is_dir():
        yield source
        return
    if not source.is_file():
        problem = "is not a regular file" if source.exists() else "does not exist"
        raise ValueError(_sentence(source, f"which {problem}", "Check the spelling."))
    with tempfile.TemporaryDirectory(prefix="keras_elmo_") as folder:
        _unpack(source, Path(folder))
        yield _folder_of_files(Path(folder))


class _Refused(Exception):
    """What is wrong, as the end of a sentence that begins with the archive or the member."""


class _Member(NamedTuple):
    """One entry of an archive, before anything of it is read."""

    name: str
    kind: str  # "file", "folder", or the reason why it is neither
    size: int  # as the header claims
    open: Callable[[], IO[bytes]]


def _unpack(source: Path, folder: Path) -> None:
    """Writes every member of the archive below `folder`, or explains why not."""
    member = None
    try:
        with source.open("rb") as file:
            budget = limit = min(MAX_UNPACKED_BYTES, MAX_RATIO * source.stat().st_size)
            for member in _members(file, limit):
                budget = _extract(member, folder, budget)
        member = None
        if not any(written.is_file() for written in folder.rglob("*")):
            raise _Refused("holds no file")
    except Exception as error:
        # On broken bytes the readers raise a dozen kinds of exceptions. `OSError` is among them,
        # without a number, or with EINVAL after a leap to before the file; with any other number
        # it comes from the disk and says best itself what is wrong.
        if isinstance(error, _Refused):
            problem = str(error)
        elif isinstance(error, NotImplementedError):
            problem = f"is packed in a way that Python cannot read ({error})"
        elif isinstance(error, PermissionError):
            problem = "may not be read"
        elif getattr(error, "errno", None) in (None, errno.EINVAL):
            place = "here or in what follows " if member else ""
            problem = f"is {place}cut short or damaged ({str(error) or 'no data'})"
        else:
            raise
        whose = f"whose member {member.name!r}" if member else "which"
        advice = "Get the archive again, or unpack it by hand and pass the folder."
        raise ValueError(_sentence(source, f"{whose} {problem}", advice)) from error


def _sentence(source: Path, problem: str, advice: str) -> str:
    return (
        "`path` must be a folder or a sound .zip, .tar or .tar.gz archive of weights. "
        f"Received: path={str(source)!r}, {problem}. {advice}"
    )


def _members(file: IO[bytes], limit: int) -> Iterator[_Member]:
    """The members, in order; each must be read before the next one is asked for."""
    magic = file.read(4)
    file.seek(0)
    if magic in (b"PK\x03\x04", b"PK\x05\x06"):
        return _zip_members(file)
    stream: Any = gzip.GzipFile(fileobj=file) if magic.startswith(b"\x1f\x8b") else file
    first_block = stream.read(tarfile.BLOCKSIZE)
    stream.seek(0)
    if not _begins_tar(first_block):
        raise _Refused("is none of these")
    return _tar_members(_Metered(stream, limit + _HEADER_BYTES))


def _begins_tar(block: bytes) -> bool:
    try:
        tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return block == bytes(tarfile.BLOCKSIZE)  # the end mark: a tar of nothing
    return True


def _zip_members(file: IO[bytes]) -> Iterator[_Member]:
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            # The upper half holds the Unix mode, or zeros where another system packed.
            file_type = stat.S_IFMT(info.external_attr >> 16)
            if info.flag_bits & 0x1:
                kind = "is encrypted"
            elif file_type in (0, stat.S_IFREG, stat.S_IFDIR):
                kind = "folder" if info.is_dir() else "file"
            else:
                kind = "is a link" if file_type == stat.S_IFLNK else "is a device or a pipe"
            # `info.filename` is already cleaned up for this system; the check wants it raw.
            opener = functools.partial(archive.open, info)
            yield _Member(info.orig_filename, kind, info.file_size, opener)


def _tar_members(stream: Any) -> Iterator[_Member]:
    # Mode "r|" never seeks: a header that points backwards cannot send the reader round in circles.
    with tarfile.open(fileobj=stream, mode="r|", tarinfo=_StrictHeader) as archive:
        for info in archive:
            if info.isreg():
                kind = "file"
            elif info.isdir():
                kind = "folder"
            else:
                is_link = info.issym() or info.islnk()
                kind = "is a link" if is_link else "is a device or a pipe"
            opener: Any = functools.partial(archive.extractfile, info)
            yield _Member(info.name, kind, info.size, opener)
    # gzip has its checksum at the very end, behind the tar's own end mark.
    while stream.read(_CHUNK):
        pass


class _StrictHeader(tarfile.TarInfo):
    """A tar header; a bad one is an error, where `tarfile` takes it for the end of the archive."""

    @classmethod
    def frombuf(cls, buf: Any, encoding: str, errors: str) -> _StrictHeader:
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if buf != bytes(tarfile.BLOCKSIZE):
                raise tarfile.ReadError(str(error)) from None
            raise  # a block of zeros is the true end
        # `tarfile` holds long names and the like in memory at whatever size they claim.
        if header.size > _HEADER_BYTES and not header.isreg():
            raise tarfile.ReadError(f"a header of {header.size} bytes")
        return header


class _Metered:
    """A stream that may give only so many bytes: what a decompressor yields nobody knows before."""

    def __init__(self, stream: IO[bytes], limit: int):
        self._stream = stream
        self._left = limit

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise _Refused(_too_large())
        return data


def _extract(member: _Member, folder: Path, budget: int) -> int:
    """Writes one member and returns what is left of the budget of bytes."""
    target = folder / _safe_path(member.name)
    if member.kind not in ("file", "folder"):
        raise _Refused(member.kind)
    if member.kind == "file" and member.size > budget:
        raise _Refused(_too_large())
    try:
        if member.kind == "folder":
            target.mkdir(parents=True, exist_ok=True)
            return budget
        target.parent.mkdir(parents=True, exist_ok=True)
        output = target.open("xb")
    except (FileExistsError, NotADirectoryError) as error:
        raise _Refused("has a name that an earlier member took") from error
    except OSError as error:
        raise _Refused(f"cannot be created ({error.strerror})") from error
    with output, member.open() as data:
        while chunk := data.read(_CHUNK):
            budget -= len(chunk)
            if budget < 0:
                raise _Refused(_too_large())
            output.write(chunk)
    return budget


def _safe_path(name: str) -> PurePosixPath:
    r"""The name as a relative path; what any system could read as another place is refused.

    Backslashes and drive letters mean nothing here and a way out on Windows: they are refused on
    every system, so that an archive is good everywhere or nowhere.
    """
    path = PurePosixPath(name)
    if path.is_absolute() or PureWindowsPath(name).drive:
        raise _Refused("has an absolute name")
    if ".." in path.parts:
        raise _Refused("leads out of the folder")
    if not name or "\\" in name or "\0" in name:
        raise _Refused("is not named by a plain relative path with forward slashes")
    return path


def _too_large() -> str:
    return (
        f"goes beyond what may be unpacked: {MAX_UNPACKED_BYTES / 2**30:g} GiB "
        f"and {MAX_RATIO} times the size of the archive"
    )


def _folder_of_files(root: Path) -> Path:
    entries = [entry for entry in root.iterdir() if not _is_litter(entry.name)]
    return entries[0] if len(entries) == 1 and entries[0].is_dir() else root


def _is_litter(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"
