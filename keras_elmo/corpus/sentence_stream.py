"""SentenceStream: the sentences of a corpus, epoch after epoch, shuffled through a buffer."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from keras_elmo.corpus.checks import check_integer
from keras_elmo.corpus.random_generator import random_generator
from keras_elmo.corpus.readers import AnyPath, expand, read_lines

CorpusFormat = Literal["tokens", "plain"]
Tokenize = Callable[[Sequence[str]], Iterable[Sequence[str]]]

# A tokenizer works best on many lines at a time; but a line may be very long.
LINES_TOKENIZED_TOGETHER = 64
# Where lines are very long, the buffer holds fewer of them.
_MAX_BUFFERED_CHARACTERS = 1 << 26


class DrawnSentence(NamedTuple):
    """A sentence and where it stands.

    Attributes:
        file: The place of its file in `SentenceStream.files`, from 0.
        line: The number of its line, from 1.
        tokens: Its tokens.
        is_last: Whether it is the last of its epoch.
    """

    file: int
    line: int
    tokens: Sequence[str]
    is_last: bool


class SentenceStream:
    r"""The sentences of a corpus, in an order that depends on the seed and the epoch alone.

    Every epoch has each line of each file once. Files follow one another in a shuffled order and
    fill a buffer, out of which lines are drawn at random: a corpus of any size is read in the memory
    that the buffer takes. But lines far more than its size apart seldom change places: a file that is
    sorted by something should be shuffled on disk, once.

    A blank line is a sentence without tokens, as everywhere in this package and as in bilm-tf: it
    trains one prediction, that of `</S>` after `<S>`. An empty file is fine beside others.

    Nothing is kept between calls: what `epoch` gives is a function of its arguments. With NumPy's
    random numbers, it is the same on any machine.

    Args:
        patterns: File name or glob pattern, or several; plain text, gzip or xz, UTF-8. Files are read
            more than once, so standard input and pipes are refused.
        format: "tokens" (default): one sentence a line, tokens parted by white space; "plain": one
            sentence a line, cut by `tokenize`.
        tokenize: For "plain", and only there: a function from a list of strings to the tokens of
            each. Sentences that a resumed run skips are not cut again.
        shuffle: Whether to shuffle. Defaults to `True`; else files come in their order, line by line.
        buffer_size: Lines in the buffer, fewer if they are very long: 64 million characters in all.
            Defaults to 100,000, some 35 MB of English.
        seed: int of at least 0. Defaults to 0.

    Raises:
        ValueError: If an argument is out of range, a pattern matches no file, a file is no regular
            file, or there is no word in any of them. On the way, as `read_lines`: with the file, line
            and byte of what is not UTF-8.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     name = os.path.join(folder, "three.txt")
        ...     with open(name, "w") as file:
        ...         _ = file.write("The cat sat .\nIt purred .\nAnd slept .\n")
        ...     stream = SentenceStream(name, seed=1)
        ...     [(sentence.line, sentence.is_last) for sentence in stream.epoch(0)]
        ...     [sentence.line for sentence in stream.epoch(1)]
        [(3, False), (1, False), (2, True)]
        [2, 1, 3]
    """

    def __init__(
        self,
        patterns: AnyPath | Iterable[AnyPath],
        format: CorpusFormat = "tokens",
        tokenize: Tokenize | None = None,
        shuffle: bool = True,
        buffer_size: int = 100_000,
        seed: int = 0,
    ):
        self._tokenize = line_tokenizer(format, tokenize)
        self.format = format
        self.shuffle = shuffle
        self.buffer_size = check_integer("buffer_size", buffer_size)
        self.seed = check_integer("seed", seed, minimum=0)
        self.files = expand(patterns)
        for file in self.files:
            if not file.is_file():
                raise ValueError(
                    "A corpus must be made of files, because it is read more than once. "
                    f"Received: {str(file)!r}; write it to a file first."
                )
        if not any(line.strip() for file in self.files for line in read_lines(file)):
            raise no_words(self.files)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of what the order of sentences depends on: names and sizes of the files, settings.

        Folders do not count: a corpus may be moved.
        """
        files = [(file.name, file.stat().st_size) for file in self.files]
        settings = [self.format, self.shuffle, self.buffer_size, self.seed]
        return hashlib.sha256(json.dumps([files, settings]).encode()).hexdigest()[:16]

    def epoch(self, number: int, start: int = 0) -> Iterator[DrawnSentence]:
        """Draws the sentences of an epoch, in its order.

        Args:
            number: The epoch, from 0.
            start: How many sentences to leave out at its beginning. Defaults to 0. They are read, but
                not cut into tokens.

        Yields:
            The sentences, each as a `DrawnSentence`.
        """
        drawn = islice(self._draw(number), start, None)
        while chunk := list(islice(drawn, LINES_TOKENIZED_TOGETHER)):
            sentences = self._tokenize([line.text for line, _ in chunk])
            for (line, is_last), tokens in zip(chunk, sentences, strict=True):
                yield DrawnSentence(line.file, line.number, tokens, is_last)

    def tokens_at(self, places: Iterable[tuple[int, int]]) -> dict[tuple[int, int], Sequence[str]]:
        """Reads single sentences.

        Args:
            places: File and line of each, as in `DrawnSentence`.

        Returns:
            The tokens by place.

        Raises:
            ValueError: If there is no such file or line.
        """
        wanted: dict[int, set[int]] = {}
        for file, line in places:
            wanted.setdefault(file, set()).add(line)
        found = {}
        for file, numbers in wanted.items():
            if not 0 <= file < len(self.files):
                raise ValueError(f"The corpus has {len(self.files)} files, no file {file}.")
            lines = enumerate(islice(read_lines(self.files[file]), max(numbers)), start=1)
            found.update({(file, n): text for n, text in lines if n in numbers})
            if missing := [number for number in numbers if (file, number) not in found]:
                raise ValueError(
                    f"{self.files[file]} must have a line {min(missing)}, but ends before it. "
                    "Has the corpus changed?"
                )
        return dict(zip(found, self._tokenize(list(found.values())), strict=True))

    def _draw(self, epoch: int) -> Iterator[tuple["_Line", bool]]:
        generator = random_generator("sentences", self.seed, epoch)
        order = range(len(self.files))
        if self.shuffle:
            order = generator.permutation(len(self.files)).tolist()
        lines = (
            _Line(file, number, text)
            for file in order
            for number, text in enumerate(read_lines(self.files[file]), start=1)
        )
        return _shuffled(lines, self.buffer_size if self.shuffle else 1, generator)


def line_tokenizer(format: CorpusFormat, tokenize: Tokenize | None) -> Tokenize:
    """Returns what cuts lines of a corpus into tokens, or raises a ValueError if there is no such thing."""
    if format not in ("tokens", "plain"):
        raise ValueError(f'`format` must be "tokens" or "plain". Received: format={format!r}')
    if (format == "plain") != callable(tokenize):
        raise ValueError(
            '`tokenize` must be a function if `format` is "plain", and None otherwise. '
            f"Received: format={format!r}, tokenize={tokenize!r}"
        )
    return tokenize or (lambda lines: map(str.split, lines))


def no_words(files: Sequence[Path]) -> ValueError:
    """The error for a corpus without words."""
    shown = ", ".join(map(str, files[:3])) + (", ..." if len(files) > 3 else "")
    return ValueError(
        f"The corpus must have at least one word. Received: {len(files)} empty or blank "
        f"file{'s' if len(files) > 1 else ''}: {shown}"
    )


class _Line(NamedTuple):
    file: int
    number: int
    text: str


def _shuffled(
    lines: Iterator[_Line], size: int, generator: np.random.Generator
) -> Iterator[tuple[_Line, bool]]:
    """Yields lines drawn from a buffer of `size`, and whether that was the last. 1 keeps the order."""
    buffer: list[_Line] = []
    num_characters = 0

    def fill() -> None:
        nonlocal num_characters
        while len(buffer) < size and num_characters < _MAX_BUFFERED_CHARACTERS:
            if (line := next(lines, None)) is None:
                return
            buffer.append(line)
            num_characters += len(line.text)

    fill()
    while buffer:
        index = int(generator.random() * len(buffer))
        buffer[index], buffer[-1] = buffer[-1], buffer[index]
        line = buffer.pop()
        num_characters -= len(line.text)
        fill()  # before the line goes out: only now it is known whether it is the last
        yield line, not buffer
