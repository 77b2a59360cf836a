"""Lexicon: the characters and words that an ELMoForManyLangs model knows, and their ids."""

import reprlib
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from keras_elmo.character_ids import (
    MAX_WORD_LENGTH,
    Sentences,
    check_max_word_length,
    sentence_tokens,
)

BEGIN_OF_SENTENCE = "<bos>"
END_OF_SENTENCE = "<eos>"
UNKNOWN = "<oov>"
PADDING = "<pad>"
BEGIN_OF_WORD = "<bow>"
END_OF_WORD = "<eow>"

_BOUNDARIES = (BEGIN_OF_SENTENCE, END_OF_SENTENCE)
_WORD_SPECIALS = (UNKNOWN, PADDING)
_CHARACTER_SPECIALS = (*_BOUNDARIES, UNKNOWN, PADDING, BEGIN_OF_WORD, END_OF_WORD)


class Lexicon:
    """Maps words to the ids of an ELMoForManyLangs model: of their Unicode characters and of themselves.

    An id is the place in the list plus 1: 0 says "no token here". A word is a row of ids: begin of word, its
    characters, end of word, padding. A character or word that is not in the list has the id of `<oov>`; upper and
    lower case differ, digits are digits, nothing is normalized. A word of more than `max_word_length - 2` characters
    is cut before it is looked up. The words `<bos>` and `<eos>` are the boundaries of a sentence.

    The published models were trained with the marks at the ends of a word swapped: `<eow>` stands before it and
    `<bow>` behind it. So they do here.

    Args:
        characters: The characters in the order of their ids, with `<bos>`, `<eos>`, `<oov>`, `<pad>`, `<bow>` and
            `<eow>` somewhere among them; `None` for a model that reads whole words only.
        words: The words in the order of their ids, with `<oov>` and `<pad>` among them; `None` (default) for a model
            that reads characters only.

    Attributes:
        characters: The characters, a tuple, or `None`.
        words: The words, a tuple, or `None`.

    Raises:
        ValueError: If both are `None`, or if one is no list of distinct str or lacks a special entry.

    Example:
        >>> special = ["<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>"]
        >>> lexicon = Lexicon([*"abc", *special], ["cab", "<oov>", "<pad>"])
        >>> ids = lexicon.ids([["cab", "ABC"], []], max_word_length=6)
        >>> ids["word_ids"].tolist()
        [[1, 2], [0, 0]]
        >>> ids["character_ids"][0].tolist()
        [[9, 3, 1, 2, 8, 7], [9, 6, 6, 6, 8, 7]]
    """

    def __init__(self, characters: Iterable[str] | None, words: Iterable[str] | None = None):
        if characters is None and words is None:
            raise ValueError("A Lexicon must have `characters` or `words`. Received: None for both")
        self.characters = _entries("characters", characters, _CHARACTER_SPECIALS)
        self.words = _entries("words", words, _WORD_SPECIALS)
        self._character_ids = _ids(self.characters)
        self._word_ids = _ids(self.words)

    @property
    def word_padding(self) -> int:
        """The id that stands behind a word's end."""
        return self._character_ids[PADDING]

    def ids(
        self, sentences: Sentences, max_word_length: int = MAX_WORD_LENGTH
    ) -> dict[str, np.ndarray]:
        """Maps sentences to what the model reads, padded to the longest one.

        Sentence boundaries are not added: the model does that.

        Args:
            sentences: List of sentences. Each is a str, cut on white space, or a sequence of str tokens, taken as
                they are.
            max_word_length: The model's `max_word_length`, at least 3. Defaults to 50.

        Returns:
            Of `character_ids`, int32 (num_sentences, num_tokens, max_word_length), and `word_ids`, int32
            (num_sentences, num_tokens), those that the lexicon has; zero where a shorter sentence has no token.

        Raises:
            ValueError: If `sentences` is a single str or no list at all, if a token is no str, or if
                `max_word_length` is no integer of at least 3.
        """
        max_word_length = check_max_word_length(max_word_length)
        rows = sentence_tokens(sentences)
        distinct = dict.fromkeys(chain.from_iterable(rows))
        # Each distinct word is mapped once. Place 0 is "no token here".
        place_of = {word: place for place, word in enumerate(distinct, start=1)}
        places = np.zeros((len(rows), max(map(len, rows), default=0)), np.intp)
        for row, tokens in zip(places, rows, strict=True):
            row[: len(tokens)] = [place_of[token] for token in tokens]
        cut = [word if word in _BOUNDARIES else word[: max_word_length - 2] for word in distinct]
        found = {}
        if self.characters is not None:
            spelled = np.zeros((len(cut) + 1, max_word_length), np.int32)
            for row, word in zip(spelled[1:], cut, strict=True):
                row[:] = self._spell(word, max_word_length)
            found["character_ids"] = spelled[places]
        if self.words is not None:
            looked_up = [self._word_ids.get(word, self._word_ids[UNKNOWN]) for word in cut]
            found["word_ids"] = np.array([0, *looked_up], np.int32)[places]
        return found

    def _spell(self, word: str, max_word_length: int) -> list[int]:
        ids = self._character_ids
        # A boundary is one symbol, not five characters.
        symbols: Sequence[str] = [word] if word in _BOUNDARIES else word
        characters = [ids.get(symbol, ids[UNKNOWN]) for symbol in symbols]
        # Begin and end in this order, as the models were trained.
        row = [ids[END_OF_WORD], *characters, ids[BEGIN_OF_WORD]]
        return row + [ids[PADDING]] * (max_word_length - len(row))

    def get_config(self) -> dict[str, Any]:
        """The arguments as JSON types."""
        return {
            "characters": None if self.characters is None else list(self.characters),
            "words": None if self.words is None else list(self.words),
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Lexicon):
            return NotImplemented
        return (self.characters, self.words) == (other.characters, other.words)

    def __hash__(self) -> int:
        return hash((self.characters, self.words))

    def __repr__(self) -> str:
        return f"<Lexicon of {len(self.characters or ())} characters and {len(self.words or ())} words>"


def _entries(
    name: str, entries: Iterable[str] | None, specials: Sequence[str]
) -> tuple[str, ...] | None:
    if entries is None:
        return None
    entries = (entries,) if isinstance(entries, str) else tuple(entries)
    for place, entry in enumerate(entries):
        if not isinstance(entry, str):
            raise ValueError(
                f"`{name}` must be a list of str. Received: {name}[{place}]={reprlib.repr(entry)}"
            )
    distinct = Counter(entries)
    if len(distinct) != len(entries):
        twice, _ = distinct.most_common(1)[0]
        raise ValueError(f"`{name}` must hold every entry once. Received twice: {twice!r}")
    if missing := [special for special in specials if special not in distinct]:
        raise ValueError(
            f"`{name}` must hold {', '.join(specials)}. Received: {len(entries)} entries without "
            f"{', '.join(missing)}"
        )
    return entries


def _ids(entries: tuple[str, ...] | None) -> dict[str, int]:
    return {entry: place for place, entry in enumerate(entries or (), start=1)}
