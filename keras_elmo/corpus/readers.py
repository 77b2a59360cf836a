"""Readers: text files in, lines and sentences out, one at a time.

A line number is a sentence's address in everything this package writes, so lines end where every
editor and `wc -l` end them, at a line feed with or without a carriage return before it, and nowhere
else: `str.splitlines` would also cut at U+2028, U+0085 and others that occur inside of sentences.
"""

from __future__ import annotations

import contextlib
import glob
import gzip
import io
import lzma
import os
import re
import reprlib
import sys
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args, overload

AnyPath = str | os.PathLike[str]
Format = Literal["plain", "tokens", "conllu"]

_STANDARD_INPUT = "-"
_GZIP_MAGIC = b"\x1f\x8b"
_XZ_MAGIC = b"\xfd7zXZ\x00"
_UTF_16_MARKS = (BOM_UTF16_LE, BOM_UTF16_BE)

_CONLLU_COLUMNS = 10
_WORD_ID = re.compile(r"[1-9][0-9]*")
# 1-2 is a word as written whose parts follow (`don't`); 1.1 is a word that was never written.
_SKIPPED_ID = re.compile(r"[1-9][0-9]*-[1-9][0-9]*|[0-9]+\.[1-9][0-9]*")


class LocatedSentence(NamedTuple):
    """A sentence and where it stands.

    Attributes:
        file: The path as given, or "standard input".
        line: The number of the line it begins on, from 1; in CoNLL-U the line of its first word.
        sentence: A string (`plain`) or a list of tokens.
    """

    file: str
    line: int
    sentence: str | list[str]


def read_lines(path: AnyPath) -> Iterator[str]:
    r"""Reads a text file line by line, in the memory that its longest line takes.

    gzip and xz are recognized by content, also on standard input. The text must be UTF-8 to the
    last byte; a byte order mark at the very start is dropped. Lines end at `\n` or `\r\n` only.

    Args:
        path: A file or pipe; "-" is standard input.

    Returns:
        The lines without their ends. The number of a line is its place in this, from 1.

    Raises:
        ValueError: At once if the file does not exist or is a folder; on the way if it cannot be
            read, holds a byte that is not UTF-8, or is compressed and cut short or damaged.
            The sentence names the file, and the line and the byte in it, counted from 0.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     name = os.path.join(folder, "two.txt")
        ...     with open(name, "wb") as file:
        ...         _ = file.write(b"one\x0bline\r\nanother")
        ...     list(read_lines(name))
        ['one\x0bline', 'another']
    """
    _check_exists(path)
    return _decoded_lines(path)


@overload
def read_sentences(
    paths: AnyPath | Iterable[AnyPath], format: Literal["plain"] = "plain"
) -> Iterator[str]: ...


@overload
def read_sentences(
    paths: AnyPath | Iterable[AnyPath], format: Literal["tokens", "conllu"]
) -> Iterator[list[str]]: ...


@overload
def read_sentences(
    paths: AnyPath | Iterable[AnyPath], format: Format
) -> Iterator[str] | Iterator[list[str]]: ...


def read_sentences(
    paths: AnyPath | Iterable[AnyPath], format: Format = "plain"
) -> Iterator[str] | Iterator[list[str]]:
    r"""Reads sentences from files, one file after the other.

    Args:
        paths: One path or several; each as in `read_lines`.
        format: How sentences are written. Defaults to "plain".

            - "plain": one a line, as it is. A blank line is an empty sentence: leaving it out would
              move all the others to other numbers.
            - "tokens": one a line, tokens parted by white space. A blank line has no tokens.
            - "conllu": the FORM column of CoNLL-U; a blank line ends a sentence. The words with a
              whole-number ID count, as in Universal Dependencies tagging: of `1-2 don't`, `1 do`,
              `2 n't` the last two. Comments and empty nodes (`1.1`) are left out.

    Returns:
        Strings if `format` is "plain", else lists of tokens.

    Raises:
        ValueError: As `read_lines`; at once if `format` is another; on the way if a line is not
            CoNLL-U. The sentence names file, line and what was expected there.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     name = os.path.join(folder, "two.txt")
        ...     with open(name, "w") as file:
        ...         _ = file.write("The cat sat .\nIt purred .\n")
        ...     list(read_sentences(name, "tokens"))
        [['The', 'cat', 'sat', '.'], ['It', 'purred', '.']]
    """
    located = locate_sentences(paths, format)
    return (sentence for _, _, sentence in located)  # type: ignore[return-value]


def locate_sentences(
    paths: AnyPath | Iterable[AnyPath], format: Format = "plain"
) -> Iterator[LocatedSentence]:
    r"""Reads sentences as `read_sentences` does, each with its file and line.

    For who finds something wrong with a sentence later on and has to say where it came from.

    Args:
        paths: One path or several; each as in `read_lines`.
        format: As in `read_sentences`. Defaults to "plain".

    Returns:
        The sentences, each as a `LocatedSentence`.

    Raises:
        ValueError: As `read_sentences`.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     name = os.path.join(folder, "two.txt")
        ...     with open(name, "w") as file:
        ...         _ = file.write("The cat sat.\nIt purred.\n")
        ...     [(line, sentence) for _, line, sentence in locate_sentences(name)]
        [(1, 'The cat sat.'), (2, 'It purred.')]
    """
    if format not in get_args(Format):
        known = ", ".join(f'"{name}"' for name in get_args(Format))
        raise ValueError(f"`format` must be one of {known}. Received: format={format!r}")
    paths = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    for path in paths:
        _check_exists(path)
    return (sentence for path in paths for sentence in _located(path, format))


def expand(patterns: AnyPath | Iterable[AnyPath]) -> list[Path]:
    """Turns file names and glob patterns into files.

    Args:
        patterns: One or several. What exists under just this name is taken as it is; anything else
            is a pattern with `*`, `?`, `[...]` and `**`. "-" stays "-", standard input.

    Returns:
        The files in the order of the patterns, those of one pattern sorted by name, each file once
        where it comes first.

    Raises:
        ValueError: If a pattern matches no file, a name is a folder, or there are no patterns.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("b.txt", "a.txt", "notes.md"):
        ...         open(os.path.join(folder, name), "w").close()
        ...     [file.name for file in expand(os.path.join(folder, "*.txt"))]
        ['a.txt', 'b.txt']
    """
    patterns = [patterns] if isinstance(patterns, str | os.PathLike) else list(patterns)
    if not patterns:
        raise ValueError("`patterns` must name at least one file. Received: none")
    files: dict[str, Path] = {}
    for pattern in patterns:
        pattern = os.fspath(pattern)
        if pattern == _STANDARD_INPUT:
            files.setdefault(_STANDARD_INPUT, Path(_STANDARD_INPUT))
            continue
        for name in _matches(pattern):
            # A file that is really called "-" must not turn into standard input.
            path = Path(name) if Path(name) != Path(_STANDARD_INPUT) else Path(name).absolute()
            files.setdefault(os.path.abspath(name), path)
    return list(files.values())


def _matches(pattern: str) -> list[str]:
    if os.path.isdir(pattern):
        _check_exists(pattern)
    if os.path.exists(pattern):
        return [pattern]
    names = sorted(name for name in glob.glob(pattern, recursive=True) if not os.path.isdir(name))
    if not names:
        raise ValueError(
            "`patterns` must each name a file or match at least one. "
            f"Received: {pattern!r}, which matches none. Check the spelling."
        )
    return names


def _check_exists(path: AnyPath) -> None:
    name = os.fspath(path)
    if name == _STANDARD_INPUT or (os.path.exists(name) and not os.path.isdir(name)):
        return
    if os.path.isdir(name):
        problem = 'which is a folder. Name the files in it, for example with "*.txt".'
    else:
        problem = "which does not exist. Check the spelling."
    raise ValueError(f"`path` must be a text file. Received: path={name!r}, {problem}")


def _name(path: AnyPath) -> str:
    name = os.fspath(path)
    return "standard input" if name == _STANDARD_INPUT else name


def _located(path: AnyPath, format: Format) -> Iterator[LocatedSentence]:
    lines = enumerate(_decoded_lines(path), start=1)
    if format == "conllu":
        yield from _conllu_sentences(_name(path), lines)
        return
    for number, line in lines:
        yield LocatedSentence(_name(path), number, line if format == "plain" else line.split())


def _conllu_sentences(file: str, lines: Iterable[tuple[int, str]]) -> Iterator[LocatedSentence]:
    words: list[str] = []
    first_line = 0
    for number, line in lines:
        if line.startswith("#"):
            continue
        if not line or line.isspace():
            if words:
                yield LocatedSentence(file, first_line, words)
                words = []
            continue
        word = _conllu_word(line, len(words) + 1, f"{file}, line {number}")
        if word is not None:
            first_line = first_line if words else number
            words.append(word)
    if words:
        yield LocatedSentence(file, first_line, words)


def _conllu_word(line: str, expected_id: int, place: str) -> str | None:
    """The word on a line of CoNLL-U, or None where the line is not about a word."""
    columns = line.split("\t")
    if len(columns) != _CONLLU_COLUMNS:
        raise ValueError(
            f"{place}: CoNLL-U has {_CONLLU_COLUMNS} columns parted by tabs. "
            f"Received: {len(columns)} in {reprlib.repr(line)}"
        )
    word_id, form = columns[:2]
    if _SKIPPED_ID.fullmatch(word_id):
        return None
    if not _WORD_ID.fullmatch(word_id) or word_id != str(expected_id):
        raise ValueError(
            f"{place}: the ID must be {expected_id}, a range like 1-2 or an empty node like 1.1, "
            f"and a blank line must end each sentence. Received: ID {reprlib.repr(word_id)}"
        )
    if not form:
        raise ValueError(f"{place}: the FORM, the second column, must not be empty.")
    return form


def _decoded_lines(path: AnyPath) -> Iterator[str]:
    number = 0
    try:
        with _open_bytes(path) as file:
            for number, line in enumerate(file, start=1):
                yield _decoded(line, number, _name(path))
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        raise ValueError(
            f"{_name(path)}: the compressed file is cut short or damaged after line {number} "
            f"({error}). Get it again."
        ) from error
    except OSError as error:
        raise ValueError(f"{_name(path)} cannot be read: {error.strerror or error}.") from error


def _decoded(line: bytes, number: int, file: str) -> str:
    start = len(BOM_UTF8) if number == 1 and line.startswith(BOM_UTF8) else 0
    end = len(line)
    if line.endswith(b"\n"):
        end -= 2 if line.endswith(b"\r\n") else 1
    try:
        return line[start:end].decode("utf-8")
    except UnicodeDecodeError as error:
        offset = start + error.start
        is_utf_16 = b"\0" in line or (number == 1 and line.startswith(_UTF_16_MARKS))
        encoding = "looks like UTF-16" if is_utf_16 else "is in another encoding or damaged"
        raise ValueError(
            f"{file}, line {number}, byte {offset}: the text must be UTF-8. "
            f"Received: byte 0x{line[offset]:02x} ({error.reason}). The file {encoding}; "
            "`iconv -t UTF-8` converts it."
        ) from None


@contextlib.contextmanager
def _open_bytes(path: AnyPath) -> Iterator[Iterable[bytes]]:
    """The file's lines in bytes, unpacked if they are compressed."""
    with contextlib.ExitStack() as stack:
        if os.fspath(path) != _STANDARD_INPUT:
            source: Any = stack.enter_context(open(path, "rb"))
        elif (source := getattr(sys.stdin, "buffer", None)) is None:
            raise OSError("it is closed or has no bytes")
        head = source.read(len(_XZ_MAGIC))
        whole = io.BufferedReader(_PutBack(head, source))
        if head.startswith(_GZIP_MAGIC):
            yield stack.enter_context(gzip.GzipFile(fileobj=whole))
        elif head.startswith(_XZ_MAGIC):
            yield stack.enter_context(lzma.LZMAFile(whole))
        else:
            yield whole


class _PutBack(io.RawIOBase):
    """A stream with the bytes back in front that were read to recognize it: a pipe cannot seek.

    Closing this leaves the stream open, as is right for standard input.
    """

    def __init__(self, head: bytes, rest: Any):
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = len(buffer)
        data = self._head[:size] or self._rest.read1(size)
        self._head = self._head[size:]
        buffer[: len(data)] = data
        return len(data)
