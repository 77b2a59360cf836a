"""Words of a corpus, counted, and the vocabulary made of the frequent ones.

A count is how often the model meets a word: `<S>` and `</S>` once a sentence, `<UNK>` for every
token that is not in the vocabulary. They start the bias of the output layer, tell how many
predictions an epoch has, and whether the words are in the order that the sampled softmax takes for
granted. They stand in a file beside the vocabulary, `vocab.counts.tsv` for `vocab.txt`: a line for
each word in the same order, its count, a tab, the word.
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

import numpy as np

from keras_elmo.corpus.checks import check_integer
from keras_elmo.corpus.readers import AnyPath, expand, read_lines
from keras_elmo.corpus.sentence_stream import (
    LINES_TOKENIZED_TOGETHER,
    CorpusFormat,
    Tokenize,
    line_tokenizer,
    no_words,
)
from keras_elmo.files import written_beside
from keras_elmo.vocabulary import (
    BEGIN_OF_SENTENCE_TOKEN,
    END_OF_SENTENCE_TOKEN,
    UNKNOWN_TOKEN,
    Vocabulary,
)

_SPECIALS = (BEGIN_OF_SENTENCE_TOKEN, END_OF_SENTENCE_TOKEN, UNKNOWN_TOKEN)
# Between the logarithms of rank and count. Vocabularies of other, or very small, corpora of the
# language stay below -0.5 as a rule; any order that has nothing to do with frequency is close to 0.
_MAX_CORRELATION = -0.2


def count_words(
    patterns: AnyPath | Iterable[AnyPath],
    format: CorpusFormat = "tokens",
    tokenize: Tokenize | None = None,
) -> Counter[str]:
    r"""Counts the words of a corpus.

    The text is read line by line; the counts take about 100 bytes for each distinct word, which
    grows with a corpus more and more slowly.

    Args:
        patterns: File name or glob pattern, or several; plain text, gzip or xz, UTF-8. "-" is
            standard input.
        format: "tokens" (default): tokens parted by white space; "plain": lines are cut by
            `tokenize`.
        tokenize: For "plain", and only there: a function from a list of strings to the tokens of
            each.

    Returns:
        How often each word occurs; `<S>` and `</S>` once for each line, blank ones included, as in
        training, and once more where they are written in the text.

    Raises:
        ValueError: If a pattern matches no file, `format` is unknown or does not fit `tokenize`, or
            there is no word at all; as `read_lines`, with the file, line and byte of what is not
            UTF-8.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     name = os.path.join(folder, "two.txt")
        ...     with open(name, "w") as file:
        ...         _ = file.write("the cat\nthe end\n")
        ...     count_words(name).most_common(3)
        [('the', 2), ('<S>', 2), ('</S>', 2)]
    """
    cut = line_tokenizer(format, tokenize)
    files = expand(patterns)
    counts: Counter[str] = Counter()
    num_sentences = 0
    for file in files:
        lines = read_lines(file)
        while chunk := list(islice(lines, LINES_TOKENIZED_TOGETHER)):
            for tokens in cut(chunk):
                counts.update(tokens)
            num_sentences += len(chunk)
    if not counts:
        raise no_words(files)
    counts[BEGIN_OF_SENTENCE_TOKEN] += num_sentences
    counts[END_OF_SENTENCE_TOKEN] += num_sentences
    return counts


def build_vocabulary(
    counts: Mapping[str, int], max_size: int | None = None, min_count: int = 1
) -> tuple[Vocabulary, np.ndarray]:
    """Makes a vocabulary of the most frequent words.

    `<S>`, `</S>` and `<UNK>` come first, then words by falling frequency; equally frequent ones in
    the order of their code points, so that the same corpus always gives the same vocabulary. What a
    vocabulary cannot hold (blank tokens, line ends, lone surrogates) is left to `<UNK>`.

    Args:
        counts: Of `count_words`.
        max_size: Number of words at most, the three specials included, at least 4. Defaults to
            `None`, all.
        min_count: How often a word must occur. Defaults to 1.

    Returns:
        The vocabulary, and the counts of its words: see `counts_of`.

    Raises:
        ValueError: If a number is out of range, or no word is frequent enough.

    Example:
        >>> vocabulary, kept = build_vocabulary({"<S>": 2, "</S>": 2, "cat": 1, "the": 2, "end": 1}, 5)
        >>> list(zip(vocabulary, kept.tolist()))
        [('<S>', 2), ('</S>', 2), ('<UNK>', 1), ('the', 2), ('cat', 1)]
    """
    check_integer("min_count", min_count)
    if max_size is not None:
        check_integer("max_size", max_size, len(_SPECIALS) + 1, ": three specials and a word")
    frequent = [
        item for item in counts.items() if item[1] >= min_count and item[0] not in _SPECIALS
    ]
    frequent.sort(key=lambda item: (-item[1], item[0]))
    fitting = (word for word, _ in frequent if _fits_vocabulary(word))
    words = list(islice(fitting, max_size and max_size - len(_SPECIALS)))
    if not words:
        raise ValueError(
            f"A word must occur at least {min_count} times (`min_count`), and none does. "
            "Take a smaller number or a larger corpus."
        )
    vocabulary = Vocabulary([*_SPECIALS, *words])
    return vocabulary, counts_of(vocabulary, counts)


def counts_of(vocabulary: Vocabulary, counts: Mapping[str, int]) -> np.ndarray:
    """Returns the counts of the words of a vocabulary.

    The sum, less the count of `<S>`, is the number of predictions, in each direction, of one epoch.

    Args:
        vocabulary: The vocabulary.
        counts: Of `count_words`.

    Returns:
        int64 array of shape (vocabulary_size,) in the order of the ids, of the same sum as `counts`:
        all other words are counted as `<UNK>`.

    Example:
        >>> vocabulary = Vocabulary(["<S>", "</S>", "<UNK>", "the"])
        >>> counts_of(vocabulary, {"<S>": 2, "</S>": 2, "cat": 1, "the": 2, "end": 1})
        array([2, 2, 2, 2])
    """
    kept = np.array([counts.get(word, 0) for word in vocabulary], np.int64)
    kept[vocabulary.unknown_id] += sum(counts.values()) - kept.sum()
    return kept


def frequencies_fall(vocabulary: Vocabulary, counts: np.ndarray) -> bool:
    """Whether the words of a vocabulary are, by and large, in the order of falling frequency.

    The sampled softmax draws its negatives as if they were: from a vocabulary in another order, it
    draws words that are easily told from the right one, and learns little. The counts need not be those
    the vocabulary was made from; those of the corpus to train on tell what matters.

    Args:
        vocabulary: The vocabulary. Where its specials stand makes no difference.
        counts: Of its words, as `counts_of` gives them.

    Returns:
        False if the logarithms of rank and count have a correlation above -0.2.

    Example:
        >>> vocabulary = Vocabulary(["<S>", "</S>", "<UNK>", "cat", "sat", "the"])
        >>> frequencies_fall(vocabulary, np.array([9, 9, 9, 1, 1, 5]))
        False
        >>> frequencies_fall(vocabulary, np.array([9, 9, 9, 5, 1, 1]))
        True
    """
    specials = [vocabulary.begin_id, vocabulary.end_id, vocabulary.unknown_id]
    counts = np.delete(counts, specials)
    if len(set(counts.tolist())) < 2:
        return True
    ranks = np.arange(1, len(counts) + 1)
    return bool(np.corrcoef(np.log(ranks), np.log1p(counts))[0, 1] <= _MAX_CORRELATION)


def counts_path(vocabulary_path: AnyPath) -> Path:
    """Where the counts of a vocabulary file stand.

    Example:
        >>> [counts_path(name).name for name in ("vocab.txt", "vocab.txt.gz", "vocab.en")]
        ['vocab.counts.tsv', 'vocab.counts.tsv', 'vocab.en.counts.tsv']
    """
    path = Path(vocabulary_path)
    return path.with_name(path.name.removesuffix(".gz").removesuffix(".txt") + ".counts.tsv")


def save_counts(path: AnyPath, vocabulary: Vocabulary, counts: np.ndarray) -> None:
    """Writes counts, beside and renamed.

    Args:
        path: The file, of `counts_path`; one that is there is replaced, missing folders are made.
        vocabulary: The vocabulary.
        counts: Of its words, as `counts_of` gives them.

    Raises:
        ValueError: If there are not as many counts as words.
        OSError: If the file cannot be written.
    """
    if len(counts) != len(vocabulary):
        raise ValueError(
            "`counts` must have one count for each word of the vocabulary. "
            f"Received: {len(counts)} counts and {len(vocabulary)} words"
        )
    lines = (f"{count}\t{word}\n" for count, word in zip(counts, vocabulary, strict=True))
    with written_beside(path, overwrite=True) as beside:
        beside.write_bytes("".join(lines).encode())


def load_counts(path: AnyPath, vocabulary: Vocabulary) -> np.ndarray:
    """Reads the file that `save_counts` writes.

    Args:
        path: The file.
        vocabulary: The vocabulary that the counts must belong to.

    Returns:
        int64 array of shape (vocabulary_size,).

    Raises:
        ValueError: If there is no such file, if it holds anything but counts and words, or the words
            are not those of the vocabulary in the same order.
    """
    counts, words = [], []
    for number, line in enumerate(read_lines(path), start=1):
        count, _, word = line.partition("\t")
        if not (count.isascii() and count.isdigit() and word):
            raise ValueError(
                f"{os.fspath(path)}, line {number}: must be a count, a tab and a word. "
                f"Received: {line[:60]!r}"
            )
        counts.append(int(count))
        words.append(word)
    if words != list(vocabulary):
        raise ValueError(
            f"{os.fspath(path)} must have the words of the vocabulary in the same order, but belongs "
            "to another. Make it again with the vocabulary, or remove it."
        )
    return np.array(counts, np.int64)


def _fits_vocabulary(word: str) -> bool:
    """Whether a vocabulary may hold a word: it alone knows its rules."""
    try:
        Vocabulary([*_SPECIALS, word])
    except ValueError:
        return False
    return True
