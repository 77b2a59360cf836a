"""TrainingCorpus: which text a run reads, and how it is cut into tokens."""

import glob
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from keras_elmo.corpus import (
    SentenceStream,
    count_words,
    counts_of,
    expand,
    read_sentences,
)
from keras_elmo.text import tokenize_sentences
from keras_elmo.training.fields import check_choice
from keras_elmo.training.pretrain_config import PretrainConfig
from keras_elmo.vocabulary import Vocabulary

_SENTENCES_TOKENIZED_TOGETHER = 64


@dataclass(frozen=True)
class TrainingCorpus:
    """Text files.

    Args:
        patterns: File names or glob patterns.
        format: "tokens": one sentence a line, tokens parted by white space; "plain": one sentence a line.
        tokenizer: What cuts plain text: "word" or "whitespace".

    Raises:
        ValueError: If `format` or `tokenizer` is another.
    """

    patterns: tuple[str, ...]
    format: str = "tokens"
    tokenizer: str = "word"

    def __post_init__(self) -> None:
        check_choice("format", self.format, ("tokens", "plain"))
        check_choice("tokenizer", self.tokenizer, ("word", "whitespace"))

    @classmethod
    def of(
        cls,
        patterns: str | os.PathLike | Iterable[str | os.PathLike],
        format: str = "tokens",
        tokenizer: str = "word",
    ) -> "TrainingCorpus":
        """Files by name or pattern, found from any working directory later on."""
        names = [patterns] if isinstance(patterns, str | os.PathLike) else list(patterns)
        here = glob.escape(os.getcwd())
        absolute = (
            name
            if os.path.isabs(name) or name == "-"  # refused, where the text is read
            else os.path.abspath(name)
            if os.path.exists(name)
            else os.path.join(here, name)
            for name in (str(os.fspath(name)) for name in names)
        )
        return cls(tuple(absolute), format, tokenizer)

    def to_json(self) -> dict[str, Any]:
        """The fields as a JSON object."""
        return asdict(self) | {"patterns": list(self.patterns)}

    @property
    def tokenizer_of_model(self) -> str:
        """The tokenizer that suits a model trained on this: text that came cut is cut at white space."""
        return self.tokenizer if self.format == "plain" else "whitespace"

    def stream(self, config: PretrainConfig) -> SentenceStream:
        """The sentences to train on."""
        return SentenceStream(
            self.patterns,
            self.format,  # type: ignore[arg-type]
            self._tokenize,
            config.shuffle,
            config.shuffle_buffer_size,
            config.seed,
        )

    def count(self, vocabulary: Vocabulary) -> np.ndarray:
        """How often each word of the vocabulary occurs."""
        counts = count_words(self.patterns, self.format, self._tokenize)  # type: ignore[arg-type]
        return counts_of(vocabulary, counts)

    def sentences(self) -> Iterator[Sequence[str]]:
        """The sentences in their order, once."""
        files: list[Path] = expand(self.patterns)
        if self.format == "tokens":
            yield from read_sentences(files, "tokens")
            return
        block: list[str] = []
        for line in read_sentences(files, "plain"):
            block.append(line)
            if len(block) == _SENTENCES_TOKENIZED_TOGETHER:
                yield from tokenize_sentences(block, self.tokenizer)
                block = []
        if block:
            yield from tokenize_sentences(block, self.tokenizer)

    @property
    def _tokenize(self) -> partial[list[list[str]]] | None:
        if self.format == "tokens":
            return None
        return partial(tokenize_sentences, tokenizer=self.tokenizer)
