"""Batch: what a biLM reads and predicts, with each distinct word once."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import numpy as np

from keras_elmo.corpus.reading import Steps
from keras_elmo.corpus.word_rows import WordRows
from keras_elmo.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class Batch:
    """Words to read and words to predict, in both directions, each in its own reading order.

    Text brings the same words many times: they are given once, as rows, and the text as places in
    these. Row 0 stands for "no word": its character ids are 0 and its vocabulary id is -1, so that
    `word_vocabulary_ids + 1` is what a biLM without characters reads. `<S>` and `</S>` are words like
    others; `<S>` is never predicted forwards, nor `</S>` backwards.

    Attributes:
        word_character_ids: The distinct words that are read, int32 (num_words + 1, max_word_length).
        word_vocabulary_ids: Their ids in the vocabulary, int32 (num_words + 1,).
        forward_words: The words read from left to right, as rows of the above, int32
            (num_rows, num_steps); 0 for padding.
        backward_words: The words read from right to left, likewise.
        forward_targets: Vocabulary id of the word that follows each of `forward_words`, int32
            (num_rows, num_steps); 0 for padding too, which only `forward_words` tells apart.
        backward_targets: Vocabulary id of the word before each of `backward_words`, likewise.
    """

    word_character_ids: np.ndarray
    word_vocabulary_ids: np.ndarray
    forward_words: np.ndarray
    backward_words: np.ndarray
    forward_targets: np.ndarray
    backward_targets: np.ndarray

    @classmethod
    def of(
        cls,
        steps: Steps,
        row_lengths: Sequence[int],
        vocabulary: Vocabulary,
        word_rows: WordRows,
        **more: Any,
    ) -> Self:
        """Makes a batch.

        Args:
            steps: What is read and predicted, row after row.
            row_lengths: How many of the steps are in each row.
            vocabulary: What gives the words their ids.
            word_rows: What spells them.
            **more: Further fields of a subclass.
        """
        words = list(dict.fromkeys(chain(steps.forward_words, steps.backward_words)))
        row_of = {word: row for row, word in enumerate(words, start=1)}
        no_word = np.zeros((1, word_rows.max_word_length), np.int32)
        is_step = np.arange(max(row_lengths)) < np.asarray(row_lengths)[:, np.newaxis]

        def in_rows(flat: Sequence[int]) -> np.ndarray:
            rows = np.zeros(is_step.shape, np.int32)
            rows[is_step] = flat
            return rows

        return cls(
            word_character_ids=np.concatenate([no_word, word_rows(words)]),
            word_vocabulary_ids=np.array([-1, *vocabulary.ids(words)], np.int32),
            forward_words=in_rows([row_of[word] for word in steps.forward_words]),
            backward_words=in_rows([row_of[word] for word in steps.backward_words]),
            forward_targets=in_rows(steps.forward_targets),
            backward_targets=in_rows(steps.backward_targets),
            **more,
        )
