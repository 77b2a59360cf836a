"""WordVectors: layer 0 of words, which depends on nothing else, computed once and kept within bounds."""

import itertools
import threading
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from keras_elmo import lexicon
from keras_elmo.character_ids import BEGIN_OF_SENTENCE_WORD, END_OF_SENTENCE_WORD
from keras_elmo.layers.shortcuts import without_shortcuts
from keras_elmo.models import ElmoModel

# 64 MiB: 32,768 words of the original size, 131,072 of the bundled models.
MAX_VALUES = 2**24
# So many words of about the same length are encoded together.
WORDS_PER_BATCH = 512
BOUNDARIES = (BEGIN_OF_SENTENCE_WORD, END_OF_SENTENCE_WORD)
LEXICON_BOUNDARIES = (lexicon.BEGIN_OF_SENTENCE, lexicon.END_OF_SENTENCE)


class WordVectors:
    """A table of word vectors, and the places of words in it.

    When it is full it starts anew with the words at hand; of these, all have a place, however many they are.

    Args:
        model: The `ElmoModel`.
        without: Exact shortcuts that are not taken, see `keras_elmo.layers.without_shortcuts`.
    """

    def __init__(self, model: ElmoModel, without: Sequence[str] = ()):
        self._ids = model.ids
        self._boundaries = BOUNDARIES if model.lexicon is None else LEXICON_BOUNDARIES
        self._is_kept = "word_cache" not in without
        self._capacity = MAX_VALUES // model.projection_dim
        self._places: dict[str, int] = {}
        # Row 0 stands where there is no word.
        self._table = np.zeros((1, model.projection_dim), np.float32)
        self._lock = threading.Lock()

        signature = tf.nest.map_structure(
            lambda ids: tf.TensorSpec((1, *ids.shape[1:]), tf.int32), model.input
        )

        @tf.function(input_signature=[signature])
        def encode(ids):
            # The words are distinct as they are.
            with without_shortcuts({"distinct_words", *without}):
                return tf.cast(model.encoder(ids), tf.float32)

        self._encode = encode

    def look_up(self, sentences: Sequence[Sequence[str]]) -> tuple[np.ndarray, list[np.ndarray]]:
        """The table (num_words, dim) float32, and for each sentence the places of its begin, words and end in it."""
        words = dict.fromkeys(itertools.chain(self._boundaries, *sentences))
        with self._lock:
            new = [word for word in words if word not in self._places]
            if not self._is_kept or len(self._table) + len(new) > self._capacity:
                self.forget()
                new = list(words)
            if new:
                self._add(new)
            table, places = self._table, self._places
            begin, end = (places[word] for word in self._boundaries)
            return table, [
                np.array([begin, *map(places.__getitem__, sentence), end], np.int32)
                for sentence in sentences
            ]

    def forget(self) -> None:
        """Starts anew; whoever has looked words up keeps what it has."""
        self._places, self._table = {}, self._table[:1]

    def _add(self, words: list[str]) -> None:
        # Columns beyond the longest word of a batch are left out: of words of one length, most.
        words.sort(key=lambda word: len(word.encode("utf-8", "ignore")))
        vectors = [self._table]
        for start in range(0, len(words), WORDS_PER_BATCH):
            ids = self._ids([words[start : start + WORDS_PER_BATCH]])
            vectors.append(self._encode(ids).numpy()[0])
        self._places.update(zip(words, itertools.count(len(self._table))))
        # A new array: whoever has the old one goes on with it.
        self._table = np.concatenate(vectors)
