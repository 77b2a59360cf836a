"""Sentences as they are given, checked, in lists that are tokenized together."""

import reprlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

# So many are read ahead to be tokenized together, fewer of long ones.
SENTENCES_PER_BLOCK = 512
CHARACTERS_PER_BLOCK = 2**18

Sentence = str | Sequence[str]


def sentence_blocks(sentences: Iterable[Any]) -> Iterator[list[Sentence]]:
    """The sentences, checked, in lists to be tokenized together."""
    block: list[Sentence] = []
    size = 0
    for number, sentence in enumerate(sentences):
        if not isinstance(sentence, str):
            sentence = _checked(sentence, number)
        block.append(sentence)
        size += len(sentence)
        if len(block) == SENTENCES_PER_BLOCK or size >= CHARACTERS_PER_BLOCK:
            yield block
            block, size = [], 0
    yield block


def _checked(sentence: Any, number: int) -> list[str]:
    wrong = sentence
    place = f"sentences[{number}]"
    if isinstance(sentence, Iterable) and not isinstance(sentence, bytes):
        tokens = list(sentence)
        bad = [i for i, token in enumerate(tokens) if not isinstance(token, str)]
        if not bad:
            return tokens
        wrong = tokens[bad[0]]
        place += f"[{bad[0]}]"
    raise ValueError(
        "Every sentence must be a string or a list of tokens that are strings. "
        f"Received: {place}={reprlib.repr(wrong)} of type {type(wrong).__name__}. Decode bytes; write a missing "
        'text as "".'
    )
