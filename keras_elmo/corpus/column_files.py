"""Files of labelled words, one a line, in columns: CoNLL-2003, WNUT-17, UNER and their like."""

import os
import reprlib
from collections.abc import Iterator
from typing import NamedTuple

from keras_elmo.corpus.readers import AnyPath, read_lines

# The first word of a line that parts documents in CoNLL-2003.
_DOCUMENT_MARK = "-DOCSTART-"
_COMMENT = "# "


class LabelledSentence(NamedTuple):
    """The words of a sentence and the label of each.

    Attributes:
        words: Strings.
        labels: As many strings.
    """

    words: list[str]
    labels: list[str]


def read_columns(path: AnyPath, word: int = 0, label: int = -1) -> list[LabelledSentence]:
    r"""Reads labelled sentences from a file with one word a line.

    The columns are parted by tabs, if the first line with a word has any, else by spaces; all such lines have as many
    columns as that one. A line of nothing but white space ends a sentence, and so does CoNLL-2003's `-DOCSTART-`.

    A comment is a line before the first word of a sentence that begins with `# ` and does not have as many columns as
    the words have, parted as they are. So `# sent_id = 1` above words that are parted by tabs is a comment, while
    `#`, tab, `O` is a word, and so is `# O` in a file that is parted by spaces. `#photography` is never a comment.

    Args:
        path: A file, as in `read_lines`: it may be compressed.
        word: int, the column of the words, from 0; from the end if negative. Defaults to 0.
        label: int, the column of the labels. Defaults to -1, the last.

    Returns:
        A list of `LabelledSentence`, pairs of words and labels.

    Raises:
        ValueError: As `read_lines`; and if a line has other columns than the first, lacks the word or the label, or if
            the file has no two such columns. The sentence names file and line, and what was expected there.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     name = os.path.join(folder, "names.tsv")
        ...     with open(name, "w") as file:
        ...         _ = file.write("# id = 1\nMr.\tO\nLi\tB-PER\n\n#\tO\nParis\tB-LOC\n")
        ...     for words, labels in read_columns(name):
        ...         print(words, labels)
        ['Mr.', 'Li'] ['O', 'B-PER']
        ['#', 'Paris'] ['O', 'B-LOC']
    """
    lines = list(enumerate(read_lines(path), start=1))
    file = "standard input" if os.fspath(path) == "-" else os.fspath(path)
    first = next(((number, line) for number, line in lines if _has_a_word(line)), None)
    if first is None:
        return []
    first_line, line = first
    tab = "\t" if "\t" in line else None
    width = len(_cut(line, tab))
    parted = f"{width} column{'s' * (width > 1)} parted by {'tabs' if tab else 'spaces'}"
    if not (-width <= word < width and -width <= label < width) or word % width == label % width:
        raise ValueError(
            f"{file}, line {first_line}: `word={word}` and `label={label}` must be two of the columns. Received: "
            f"{parted} in {reprlib.repr(line)}"
        )

    def sentences() -> Iterator[LabelledSentence]:
        found = LabelledSentence([], [])
        for number, line in lines:
            if not line.strip() or line.startswith(_DOCUMENT_MARK):
                if found.words:
                    yield found
                    found = LabelledSentence([], [])
                continue
            columns = _cut(line, tab)
            if len(columns) != width:
                if line.startswith(_COMMENT) and not found.words:
                    continue
                raise ValueError(
                    f"{file}, line {number}: there must be {parted}, as on line {first_line}. Received: "
                    f"{len(columns)} in {reprlib.repr(line)}"
                )
            if not columns[word] or not columns[label]:
                raise ValueError(
                    f"{file}, line {number}: neither the word nor the label may be empty. Received: "
                    f"{reprlib.repr(line)}"
                )
            found.words.append(columns[word])
            found.labels.append(columns[label])
        if found.words:
            yield found

    return list(sentences())


def _has_a_word(line: str) -> bool:
    return bool(line.strip()) and not line.startswith((_COMMENT, _DOCUMENT_MARK))


def _cut(line: str, tab: str | None) -> list[str]:
    if tab:
        return line.split(tab)
    # Not at other white space, which may stand in a word.
    return [column for column in line.split(" ") if column]
