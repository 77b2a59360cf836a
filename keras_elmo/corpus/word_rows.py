"""WordRows: the character ids of words, each spelled once."""

from collections.abc import Sequence

import numpy as np

from keras_elmo.character_ids import MAX_WORD_LENGTH, character_ids, check_max_word_length
from keras_elmo.corpus.checks import check_integer


class WordRows:
    """Spells words and remembers them, in bounded memory.

    Batches of text bring mostly the same words. When the memory is full it is emptied: the words
    that matter are back in it within a few batches.

    Args:
        max_word_length: Ids per word. At least 3. Defaults to 50.
        capacity: How many words to remember. Defaults to 200,000, at 2 * `max_word_length` bytes each.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> WordRows(max_word_length=5)(["a", "</S>"])
        array([[259,  98, 260, 261, 261],
               [259, 258, 260, 261, 261]], dtype=int32)
    """

    def __init__(self, max_word_length: int = MAX_WORD_LENGTH, capacity: int = 200_000):
        self.max_word_length = check_max_word_length(max_word_length)
        capacity = check_integer("capacity", capacity)
        self._rows = np.empty((capacity, self.max_word_length), np.uint16)
        self._places: dict[str, int] = {}

    def __call__(self, words: Sequence[str]) -> np.ndarray:
        """Returns the character ids of distinct words.

        Args:
            words: The words, each once. `<S>` and `</S>` give the rows of the sentence boundaries.

        Returns:
            int32 array of shape (num_words, max_word_length).
        """
        new = [word for word in words if word not in self._places]
        start, end = len(self._places), len(self._places) + len(new)
        if end > len(self._rows):
            if len(words) > len(self._rows):
                return character_ids([words], self.max_word_length)[0]
            self._places.clear()
            return self(words)
        if new:
            self._rows[start:end] = character_ids([new], self.max_word_length)[0]
            self._places.update(zip(new, range(start, end), strict=True))
        return self._rows[[self._places[word] for word in words]].astype(np.int32)
