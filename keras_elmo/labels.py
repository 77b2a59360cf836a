"""Labels: the names of classes, and their ids."""

import reprlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any


def check_labels(labels: Any) -> list[str]:
    """Returns the names as a list; raises `ValueError` unless there are two or more different ones."""
    is_list = isinstance(labels, Iterable) and not isinstance(labels, str | bytes)
    names = list(labels) if is_list else [labels]
    strange = next((name for name in names if not isinstance(name, str) or not name), None)
    counts = Counter(names) if strange is None else {}
    twice = next((name for name, count in counts.items() if count > 1), None)
    if not is_list or len(names) < 2 or strange is not None or twice is not None:
        found = f"{twice!r} twice in " if twice is not None else ""
        if strange is not None and is_list:
            found = f"{reprlib.repr(strange)} in "
        raise ValueError(
            "`labels` must be two or more different names, all that occur: give them by name, `labels=[..]`. "
            f"Received: {found}labels={reprlib.repr(labels)}"
        )
    return names


class Labels:
    """Names of classes in the order of their ids, as a model's outputs have them.

    Args:
        names: The names, two or more, each once.

    Raises:
        ValueError: If there are fewer, one stands twice, or one is no name.

    Example:
        >>> labels = Labels(["negative", "positive"])
        >>> labels.ids(["positive", "negative"]), labels.names[1]
        ([1, 0], 'positive')
    """

    def __init__(self, names: Iterable[str]):
        self.names = check_labels(names)
        self._ids = {name: index for index, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def ids(self, names: Sequence[str], place: str = "`y`") -> list[int]:
        """The ids of names.

        Args:
            names: The names.
            place: What holds the names, for the error.

        Raises:
            ValueError: If one is not among the labels.
        """
        for unknown in names:
            if isinstance(unknown, str) and unknown in self._ids:
                continue
            raise ValueError(
                f"{place} must hold labels that the model was made with: {reprlib.repr(self.names)}. "
                f"Received: {reprlib.repr(unknown)}. Make the model with all labels that occur."
            )
        return [self._ids[name] for name in names]
