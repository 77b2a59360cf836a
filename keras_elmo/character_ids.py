"""Words spelled as character ids: the 262 numbers that every ELMo model reads.

A word is a row of ids: begin of word, its UTF-8 bytes, end of word, padding. Every id is one more
than in the weight files, because 0 says "no token here":

| id | meaning |
|---|---|
| 0 | no token here |
| 1..256 | the bytes 0..255 |
| 257, 258 | begin and end of a sentence |
| 259, 260 | begin and end of a word |
| 261 | padding inside a word |

Source: Peters et al. 2018, https://arxiv.org/abs/1802.05365, and the released `bilm-tf`, whose rows
these are.
"""

import reprlib
from collections import Counter
from collections.abc import Collection, Iterable
from itertools import chain
from numbers import Integral

import numpy as np

NUM_CHARACTERS = 262
MAX_WORD_LENGTH = 50

NO_TOKEN = 0
BEGIN_OF_SENTENCE = 257
END_OF_SENTENCE = 258
BEGIN_OF_WORD = 259
END_OF_WORD = 260
WORD_PADDING = 261

BEGIN_OF_SENTENCE_WORD = "<S>"
END_OF_SENTENCE_WORD = "</S>"

# Typed as text, these two words are the boundaries themselves and are not spelled.
_BOUNDARIES = {
    BEGIN_OF_SENTENCE_WORD.encode(): BEGIN_OF_SENTENCE,
    END_OF_SENTENCE_WORD.encode(): END_OF_SENTENCE,
}

Sentences = Iterable[str | Iterable[str]]


def character_ids(sentences: Sentences, max_word_length: int = MAX_WORD_LENGTH) -> np.ndarray:
    """Spells sentences as character ids, padded to the longest one.

    Sentence boundaries are not added: the model does that. The words `<S>` and `</S>` are the
    boundary symbols. Lone surrogates, which UTF-8 cannot write, are dropped. Words are cut at
    `max_word_length - 2` bytes, even inside a character, as the released weights were trained
    (`count_cut_words` counts them).

    Reference: Peters et al. 2018, https://arxiv.org/abs/1802.05365

    Args:
        sentences: List of sentences. Each is a str, cut on white space, or a sequence of str
            tokens, taken as they are: there, an empty token is a word without characters.
        max_word_length: Ids per word, begin and end of word included. At least 3. Defaults to 50.

    Returns:
        int32 array of shape (num_sentences, num_tokens, max_word_length). `num_tokens` is that of
        the longest sentence; the rows that shorter ones lack are 0.

    Raises:
        ValueError: If `sentences` is a single str or no list at all, if a sentence or a token is of
            another type than str (bytes, None, a number), or if `max_word_length` is no integer of
            at least 3.

    Example:
        >>> character_ids(["The cat", ["sat"]], max_word_length=6)
        array([[[259,  85, 105, 102, 260, 261],
                [259, 100,  98, 117, 260, 261]],
        <BLANKLINE>
               [[259, 116,  98, 117, 260, 261],
                [  0,   0,   0,   0,   0,   0]]], dtype=int32)
    """
    max_word_length = check_max_word_length(max_word_length)
    tokenized = sentence_tokens(sentences)
    words = dict.fromkeys(chain.from_iterable(tokenized))
    # Each distinct word is spelled once. Row 0 is "no token here", so an untouched index is
    # padding.
    spelled = _spell(words, max_word_length)
    rows = np.concatenate([np.zeros_like(spelled, shape=(1, max_word_length)), spelled])
    row_of = {word: row for row, word in enumerate(words, start=1)}
    indices = np.zeros((len(tokenized), max(map(len, tokenized), default=0)), np.intp)
    for row, tokens in zip(indices, tokenized, strict=True):
        row[: len(tokens)] = [row_of[token] for token in tokens]
    return rows[indices]


def word_character_ids(word: str, max_word_length: int = MAX_WORD_LENGTH) -> np.ndarray:
    """Spells one word; `<S>` and `</S>` give the rows of the sentence boundaries.

    Args:
        word: The word. White space in it is spelled like any other byte.
        max_word_length: Ids per word, begin and end of word included. At least 3. Defaults to 50.

    Returns:
        int32 array of shape (max_word_length,).

    Raises:
        ValueError: If `word` is not a str or `max_word_length` is no integer of at least 3.

    Example:
        >>> word_character_ids("Āt", max_word_length=6)
        array([259, 197, 129, 117, 260, 261], dtype=int32)
        >>> word_character_ids("</S>", max_word_length=6)
        array([259, 258, 260, 261, 261, 261], dtype=int32)
    """
    max_word_length = check_max_word_length(max_word_length)
    if not isinstance(word, str):
        raise ValueError(
            f"`word` must be a str. Received: word={reprlib.repr(word)} of type "
            f"{type(word).__name__}; convert it to str, bytes with `.decode('utf-8')`."
        )
    return _spell([word], max_word_length)[0]


def count_cut_words(
    sentences: Sentences, max_word_length: int = MAX_WORD_LENGTH
) -> tuple[int, int]:
    """Counts the words that are too long to be spelled whole.

    Words that agree in their first `max_word_length - 2` bytes get the same vectors. In scripts
    with three bytes a character, or in long compounds, that may happen often enough to matter.

    Args:
        sentences: As for `character_ids`.
        max_word_length: Ids per word, begin and end of word included. At least 3. Defaults to 50.

    Returns:
        The number of words that are cut and the number of all words, repeated ones counted each
        time.

    Raises:
        ValueError: As `character_ids`.

    Example:
        >>> count_cut_words(["中华人民共和国 中国"], max_word_length=20)
        (1, 2)
    """
    max_num_bytes = check_max_word_length(max_word_length) - 2
    counts = Counter(chain.from_iterable(sentence_tokens(sentences)))
    cut = 0
    for word, count in counts.items():
        encoded = _encode(word)
        if len(encoded) > max_num_bytes and encoded not in _BOUNDARIES:
            cut += count
    return cut, counts.total()


def check_max_word_length(max_word_length: int) -> int:
    """Returns `max_word_length` as an int, or raises a ValueError that says what it must be."""
    is_integer = isinstance(max_word_length, Integral) and not isinstance(max_word_length, bool)
    if not is_integer or max_word_length < 3:
        raise ValueError(
            "`max_word_length` must be an integer of at least 3: "
            "begin of word, one byte, end of word. "
            f"Received: max_word_length={max_word_length!r}; the released models use 50."
        )
    return int(max_word_length)


def sentence_tokens(sentences: Sentences) -> list[list[str]]:
    """The tokens of each sentence, or a ValueError that says what a sentence must be."""
    if isinstance(sentences, str | bytes) or not isinstance(sentences, Iterable):
        raise ValueError(
            "`sentences` must be a list of sentences, each a str or a list of str tokens. "
            f"Received: sentences={reprlib.repr(sentences)}; for one sentence pass [sentence]."
        )
    return [_tokens(sentence, position) for position, sentence in enumerate(sentences)]


def _tokens(sentence: str | Iterable[str], position: int) -> list[str]:
    if isinstance(sentence, str):
        return sentence.split()
    if isinstance(sentence, bytes) or not isinstance(sentence, Iterable):
        raise _not_text(f"sentences[{position}]", sentence)
    tokens = list(sentence)
    for index, token in enumerate(tokens):
        if not isinstance(token, str):
            raise _not_text(f"sentences[{position}][{index}]", token)
    return tokens


def _not_text(place: str, value: object) -> ValueError:
    return ValueError(
        "`sentences` must be a list of sentences, each a str or a list of str tokens. "
        f"Received: {place}={reprlib.repr(value)} of type {type(value).__name__}; "
        "convert it to str, bytes with `.decode('utf-8')`."
    )


def _encode(word: str) -> bytes:
    return word.encode("utf-8", "ignore")


def _spell(words: Collection[str], max_word_length: int) -> np.ndarray:
    """Returns one row of character ids per word, int32 (num_words, max_word_length)."""
    encoded = [_encode(word) for word in words]
    num_characters = np.fromiter(map(len, encoded), np.intp, len(encoded))
    np.minimum(num_characters, max_word_length - 2, out=num_characters)
    # The places after begin of word. A NumPy bytes array cuts and pads every word to that width.
    places = np.arange(max_word_length - 1)
    raw = np.array(encoded, dtype=f"S{len(places)}").view(np.uint8).reshape(-1, len(places))
    characters = raw.astype(np.int32) + 1
    for index, word in enumerate(encoded):
        if word in _BOUNDARIES:  # a word of one character, which stands for no byte
            characters[index, 0], num_characters[index] = _BOUNDARIES[word], 1

    end = num_characters[:, np.newaxis]
    rows = np.full((len(encoded), max_word_length), BEGIN_OF_WORD, np.int32)
    rows[:, 1:] = np.where(
        places < end, characters, np.where(places == end, END_OF_WORD, WORD_PADDING)
    )
    return rows
