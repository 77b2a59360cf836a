"""Exact shortcuts: what is left out, for it cannot change a number. Each can be switched off, to see that it is so."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

SHORTCUTS = {
    "distinct_words": "each distinct word of a batch is encoded once",
    "trimmed_words": "words are as wide as the longest among them, not as the model's limit",
    "gates_first": "the inputs' part of the LSTMs' gates is one product over all steps",
    "tokens_first": "each row's padding is put behind its tokens, so that no step looks at a mask",
    "sorted_sentences": "an Embedder's batches are of sentences of about the same length",
    "word_cache": "an Embedder keeps the vectors of words for later batches",
}

_without: ContextVar[frozenset[str]] = ContextVar("without_shortcuts", default=frozenset())


@contextmanager
def without_shortcuts(names: Collection[str] = tuple(SHORTCUTS)) -> Iterator[None]:
    """Inside, models are called, and made into graphs, without shortcuts: the numbers stay the same, the time does not.

    Args:
        names: Of `SHORTCUTS`. Defaults to all.

    Raises:
        ValueError: if there is no such shortcut.

    Example:
    >>> import keras_elmo
    >>> encoder = keras_elmo.CharCNNEncoder(projection_dim=8, filters=[[1, 4], [3, 8]])
    >>> ids = keras_elmo.character_ids(["the bank", "the river bank"])
    >>> with without_shortcuts(["distinct_words", "trimmed_words"]):
    ...     plain = encoder(ids)
    >>> float(abs(plain - encoder(ids)).numpy().max()) < 1e-6
    True
    """
    check_shortcuts(names)
    token = _without.set(_without.get().union(names))
    try:
        yield
    finally:
        _without.reset(token)


def check_shortcuts(names: Collection[str]) -> None:
    """Raises `ValueError` if a name is none of a shortcut."""
    if unknown := [name for name in names if name not in SHORTCUTS]:
        raise ValueError(
            f"The shortcuts are {', '.join(SHORTCUTS)}; give a list of their names. Received: {unknown[0]!r}"
        )


def takes_shortcut(name: str) -> bool:
    """Whether the shortcut is to be taken here."""
    return name not in _without.get()
