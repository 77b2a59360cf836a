"""Vocabulary: the tokens that a language model predicts, and their ids."""

import gzip
import hashlib
import operator
import os
import re
import reprlib
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import Path

import numpy as np

from keras_elmo.files import written_beside

BEGIN_OF_SENTENCE_TOKEN = "<S>"
END_OF_SENTENCE_TOKEN = "</S>"
UNKNOWN_TOKEN = "<UNK>"

SPECIAL_TOKENS = (BEGIN_OF_SENTENCE_TOKEN, END_OF_SENTENCE_TOKEN, UNKNOWN_TOKEN)
# bilm-tf gives lines with this word no id.
_SKIPPED = "!!!MAXTERMID"
_GZIP_MAGIC = b"\x1f\x8b"
# What a file of one token a line cannot hold: line ends, and halves of a surrogate pair.
_UNWRITABLE = re.compile(r"[\n\r\ud800-\udfff]")


class Vocabulary:
    """The tokens of a language model in the order of their ids. It does not change once made.

    The id of a token is its place in the list, from 0. `<S>`, `</S>` and `<UNK>` must be in it,
    anywhere; a token that is not in it has the id of `<UNK>`. Tokens are compared as they are:
    upper and lower case differ, nothing is stripped. `len`, `in`, `==`, `hash` and iteration in the
    order of ids work.

    Reference: Peters et al. 2018, https://arxiv.org/abs/1802.05365; the file format is that of
        `bilm-tf`.

    Args:
        tokens: The tokens, each a str, each once.

    Raises:
        ValueError: If a special token is missing, if a token stands twice, is not a str, is empty
            or blank, holds a line end or a lone surrogate, or is the reserved `!!!MAXTERMID`.

    Example:
        >>> vocabulary = Vocabulary(["<S>", "</S>", "<UNK>", "the", "cat"])
        >>> vocabulary.ids(["the", "cat", "purrs"])
        [3, 4, 2]
        >>> vocabulary.tokens([3, 4])
        ['the', 'cat']
        >>> len(vocabulary), "cat" in vocabulary, vocabulary.begin_id, vocabulary.end_id
        (5, True, 0, 1)
    """

    def __init__(self, tokens: Iterable[str]):
        _check_is_list("tokens", tokens, "str tokens")
        self._fill(list(tokens), "`tokens`", lambda index: f"tokens[{index}]")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Vocabulary":
        r"""Reads a vocabulary file: UTF-8 whatever the locale, one token a line, plain or gzipped.

        Lines end at `\n` or `\r\n` only and nothing else is stripped, so a token may hold any other
        white space. A byte order mark is dropped, lines `!!!MAXTERMID` are skipped. gzip is known
        by content.

        Args:
            path: The file.

        Raises:
            ValueError: If the file is not UTF-8 (file, line and byte are named), is a broken gzip
                file, has a blank line or the same token on two lines, or lacks `<S>`, `</S>` or
                `<UNK>`.
            OSError: If the file cannot be opened.
        """
        text = _read_text(Path(path)).replace("\r\n", "\n").removesuffix("\n")
        lines = text.split("\n") if text else []
        numbered = [(number, line) for number, line in enumerate(lines, 1) if line != _SKIPPED]
        vocabulary = cls.__new__(cls)
        vocabulary._fill(
            [line for _, line in numbered],
            f"The vocabulary file {str(path)!r}",
            lambda index: f"line {numbered[index][0]}",
        )
        return vocabulary

    def save(self, path: str | os.PathLike[str]) -> None:
        r"""Writes the file that `load` reads: UTF-8, lines end in `\n`; gzipped if named `.gz`.

        It is written beside and renamed, so a half-written file never stands under its name.

        Args:
            path: The file; one that is there is replaced, missing folders are made.

        Raises:
            OSError: If the file cannot be written.
        """
        path = Path(path)
        data = self._data()
        if data.startswith(BOM_UTF8):  # the first token's own: `load` drops one
            data = BOM_UTF8 + data
        if path.suffix == ".gz":
            data = gzip.compress(data, mtime=0)
        with written_beside(path, overwrite=True) as beside:
            beside.write_bytes(data)

    @property
    def unknown_id(self) -> int:
        """The id of `<UNK>`, which stands for every token that is not in the vocabulary."""
        return self._ids[UNKNOWN_TOKEN]

    @property
    def begin_id(self) -> int:
        """The id of `<S>`, the beginning of a sentence."""
        return self._ids[BEGIN_OF_SENTENCE_TOKEN]

    @property
    def end_id(self) -> int:
        """The id of `</S>`, the end of a sentence."""
        return self._ids[END_OF_SENTENCE_TOKEN]

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the tokens in order, in hexadecimal: that of the plain file `save` writes.

        Two vocabularies with the same hash give the same ids: a checkpoint keeps it to be compared.
        """
        return hashlib.sha256(self._data()).hexdigest()

    def ids(self, tokens: Iterable[str]) -> list[int]:
        """Returns the ids of tokens, that of `<UNK>` for a token that is not in the vocabulary.

        Args:
            tokens: The tokens, each a str.

        Raises:
            ValueError: If `tokens` is a single str or no list, or if one of them is not a str.
        """
        _check_is_list("tokens", tokens, "str tokens")
        return [self._id(token) for token in tokens]

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """Returns the tokens that have the ids.

        Args:
            ids: Integers from 0 to the size of the vocabulary less 1.

        Raises:
            ValueError: If `ids` is no list, or if one of them is no integer or out of range.
        """
        _check_is_list("ids", ids, "integers")
        return [self._token(id_) for id_ in ids]

    def token_ids(self, sentences: Iterable[str | Iterable[str]]) -> np.ndarray:
        """Returns the input of a biLM that reads tokens, not characters: id + 1, 0 for padding.

        Sentence boundaries are not added: the model does that. A token that is not in the
        vocabulary is `<UNK>`, never 0, so the padding stands at the end of a sentence only.

        Args:
            sentences: List of sentences, each a str, cut on white space, or a sequence of str
                tokens.

        Returns:
            int32 array of shape (num_sentences, num_tokens), `num_tokens` being that of the longest
            sentence.

        Raises:
            ValueError: If `sentences` is a single str or no list, or if a token is not a str.

        Example:
            >>> vocabulary = Vocabulary(["<S>", "</S>", "<UNK>", "the", "cat"])
            >>> vocabulary.token_ids(["the red cat", ["cat"]])
            array([[4, 3, 5],
                   [5, 0, 0]], dtype=int32)
        """
        _check_is_list("sentences", sentences, "sentences, each a str or a list of str tokens")
        rows = [self.ids(text.split() if isinstance(text, str) else text) for text in sentences]
        token_ids = np.zeros((len(rows), max(map(len, rows), default=0)), np.int32)
        for target, row in zip(token_ids, rows, strict=True):
            target[: len(row)] = np.add(row, 1)
        return token_ids

    def __len__(self) -> int:
        return len(self._tokens)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def __eq__(self, other: object) -> bool:
        return self._tokens == other._tokens if isinstance(other, Vocabulary) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._tokens)

    def __repr__(self) -> str:
        return f"<Vocabulary of {len(self)} tokens, sha256 {self.sha256[:12]}>"

    def _fill(self, tokens: list[str], source: str, place: Callable[[int], str]) -> None:
        """Checks the tokens and takes them; errors name the source and the place of a token."""
        ids: dict[str, int] = {}
        for index, token in enumerate(tokens):
            if not isinstance(token, str):
                raise ValueError(
                    f"{source} must hold str tokens. Received: {reprlib.repr(token)} of type "
                    f"{type(token).__name__} at {place(index)}; convert it to str."
                )
            if not token.strip(" \t"):
                raise ValueError(
                    f"{source} must hold no blank token. Received: {token!r} at {place(index)}; "
                    "remove it."
                )
            if _UNWRITABLE.search(token) or token == _SKIPPED:
                raise ValueError(
                    f"{source} must hold tokens without line ends and lone surrogates, and no "
                    f"{_SKIPPED}. Received: {reprlib.repr(token)} at {place(index)}; remove it."
                )
            if (first := ids.setdefault(token, index)) != index:
                raise ValueError(
                    f"{source} must hold every token once. Received: {reprlib.repr(token)} at "
                    f"{place(first)} and {place(index)}; remove one of them."
                )
        _check_specials(ids, source)
        self._tokens = tuple(tokens)
        self._ids = ids

    def _data(self) -> bytes:
        return "".join(f"{token}\n" for token in self._tokens).encode("utf-8")

    def _id(self, token: str) -> int:
        if not isinstance(token, str):
            raise ValueError(
                f"A token must be a str. Received: {reprlib.repr(token)} of type "
                f"{type(token).__name__}; convert it to str, bytes with `.decode('utf-8')`."
            )
        return self._ids.get(token, self.unknown_id)

    def _token(self, id_: int) -> str:
        try:
            index = operator.index(id_)
        except TypeError:
            index = -1
        if not 0 <= index < len(self):  # Python would count negative ones from the end
            raise ValueError(
                f"`ids` must be integers from 0 to {len(self) - 1}, the vocabulary's last. "
                f"Received: {id_!r}; ids of another vocabulary or shifted by 1?"
            )
        return self._tokens[index]


def _check_is_list(name: str, value: object, content: str) -> None:
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise ValueError(
            f"`{name}` must be a list of {content}. Received: {name}={reprlib.repr(value)} of type "
            f"{type(value).__name__}; put a single one into a list."
        )


def _check_specials(ids: dict[str, int], source: str) -> None:
    missing = [special for special in SPECIAL_TOKENS if special not in ids]
    if not missing:
        return
    lower = [special.lower() for special in missing if special.lower() in ids]
    fix = f"case matters: write {', '.join(lower)} in capitals" if lower else "add what is missing"
    raise ValueError(
        f"{source} must hold {', '.join(SPECIAL_TOKENS)}, as single tokens. "
        f"Received: {len(ids)} tokens without {', '.join(missing)}; {fix}."
    )


def _read_text(path: Path) -> str:
    data = path.read_bytes()
    if data.startswith(_GZIP_MAGIC):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(
                f"The vocabulary file {str(path)!r} must be whole. Received: a gzip file that "
                f"does not unpack ({error}); fetch or write it again."
            ) from error
    try:
        text = data.removeprefix(BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_utf8(path, data, len(data) - len(error.object) + error.start) from error
    # UTF-16 of ASCII words without a byte order mark is valid UTF-8, full of NULs.
    if "<\0S\0>" in text:
        raise _not_utf8(path, data, data.index(0))
    return text


def _not_utf8(path: Path, data: bytes, offset: int) -> ValueError:
    line = data.count(b"\n", 0, offset) + 1
    return ValueError(
        f"The vocabulary file {str(path)!r} must be UTF-8 text, one token a line. "
        f"Received: not UTF-8, line {line}, byte {offset} of the file is 0x{data[offset]:02x}; "
        "convert it, e.g. with iconv."
    )
