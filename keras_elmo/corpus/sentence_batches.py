"""Sentences to evaluate a biLM on: each alone in its row, with others of about its length."""

import reprlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from keras_elmo.character_ids import MAX_WORD_LENGTH, check_max_word_length
from keras_elmo.corpus.batch import Batch
from keras_elmo.corpus.checks import check_integer
from keras_elmo.corpus.reading import Reading, Steps
from keras_elmo.corpus.word_rows import WordRows
from keras_elmo.vocabulary import Vocabulary

# Sentences are sorted within so many times the steps of a batch.
_BATCHES_SORTED_TOGETHER = 64


@dataclass(frozen=True, eq=False)
class SentenceBatch(Batch):
    """Whole sentences: a `Batch` of shape (num_sentences, steps of the longest), padded at the end.

    A sentence of n tokens has n + 1 predictions in each direction. Backward words and targets are in
    their reading order: that of the last token comes second.

    Attributes:
        num_steps: Predictions of each sentence, in each direction, int32 (num_sentences,).
        indices: The place of each in the sentences given, from 0, int64 (num_sentences,).
    """

    num_steps: np.ndarray
    indices: np.ndarray


def sentence_batches(
    sentences: Iterable[Sequence[str]],
    vocabulary: Vocabulary,
    max_word_length: int = MAX_WORD_LENGTH,
    batch_tokens: int = 2048,
) -> Iterator[SentenceBatch]:
    """Puts sentences of about the same length together.

    Sentences are read as they are needed, sorted within some dozens of batches' worth, the longest
    first. An empty sentence is one prediction: that there is nothing.

    Args:
        sentences: The sentences, each a list of str tokens.
        vocabulary: What gives words their ids; others are `<UNK>`.
        max_word_length: Character ids per word. At least 3. Defaults to 50.
        batch_tokens: Steps in a batch at most, padding included; a longer sentence has a batch of its
            own. Defaults to 2048.

    Returns:
        The batches, each a `SentenceBatch`. No sentences make no batch.

    Raises:
        ValueError: At once if a number is out of range; on the way if a sentence is not a list of str.

    Example:
        >>> vocabulary = Vocabulary(["<S>", "</S>", "<UNK>", "the", "cat"])
        >>> for batch in sentence_batches([["cat"], ["the", "cat", "sat"]], vocabulary):
        ...     print(batch.indices, batch.num_steps)
        ...     print(batch.forward_targets)
        [1 0] [4 2]
        [[3 4 2 1]
         [4 1 0 0]]
    """
    check_max_word_length(max_word_length)
    check_integer("batch_tokens", batch_tokens)
    return _batches(sentences, vocabulary, WordRows(max_word_length), batch_tokens)


def _batches(
    sentences: Iterable[Sequence[str]],
    vocabulary: Vocabulary,
    word_rows: WordRows,
    batch_tokens: int,
) -> Iterator[SentenceBatch]:
    for block in _blocks(sentences, _BATCHES_SORTED_TOGETHER * batch_tokens):
        # Sorting keeps the order of equal lengths: the same sentences give the same batches.
        block.sort(key=lambda numbered: -len(numbered[1]))
        start = 0
        while start < len(block):
            longest = len(block[start][1]) + 1
            end = start + max(batch_tokens // longest, 1)
            indices, together = zip(*block[start:end], strict=True)
            steps = Steps()
            for tokens in together:
                Reading(tokens, vocabulary).read(longest, steps)
            num_steps = [len(tokens) + 1 for tokens in together]
            yield SentenceBatch.of(
                steps,
                num_steps,
                vocabulary,
                word_rows,
                num_steps=np.array(num_steps, np.int32),
                indices=np.array(indices, np.int64),
            )
            start = end


def _blocks(
    sentences: Iterable[Sequence[str]], num_steps: int
) -> Iterator[list[tuple[int, Sequence[str]]]]:
    """Numbers the sentences and yields them in lists of about so many steps."""
    block: list[tuple[int, Sequence[str]]] = []
    size = 0
    for index, tokens in enumerate(sentences):
        is_list = isinstance(tokens, Sequence) and not isinstance(tokens, str | bytes)
        if not is_list or not all(isinstance(token, str) for token in tokens):
            raise ValueError(
                "`sentences` must be lists of str tokens. "
                f"Received: {reprlib.repr(tokens)} as sentence {index}"
            )
        block.append((index, tokens))
        size += len(tokens) + 1
        if size >= num_steps:
            yield block
            block, size = [], 0
    if block:
        yield block
