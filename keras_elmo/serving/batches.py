"""Cutting a large input into requests."""

from collections.abc import Iterator, Sequence


def split(sizes: Sequence[int], batch_size: int, batch_bytes: int) -> Iterator[list[int]]:
    """Puts sentences of like size together, so that little of a request is padding.

    Args:
        sizes: The size of each sentence, in bytes.
        batch_size: Sentences in a request at most.
        batch_bytes: Sentences times the longest of them at most. A single sentence may have more: it cannot be cut.

    Yields:
        For each request, the numbers of its sentences.

    Example:
    >>> list(split([5, 50, 6, 7, 40], batch_size=2, batch_bytes=80))
    [[0, 2], [3, 4], [1]]
    """
    batch: list[int] = []
    for number in sorted(range(len(sizes)), key=sizes.__getitem__):
        if batch and (len(batch) == batch_size or (len(batch) + 1) * sizes[number] > batch_bytes):
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
