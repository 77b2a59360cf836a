"""Labels: the names of classes, and their ids."""

import reprlib
from collections.abc import Iterable, Sequence
from typing import Any


def check_labels(labels: list[Any]) -> None:
    """Raises `ValueError` unless there are two or more different names."""
    if len(set(labels)) < max(2, len(labels)) or not all(
        isinstance(label, str) and label for label in labels
    ):
        raise ValueError(
            f"`labels` must be two or more different names. Received: labels={labels!r}"
        )


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
        self.names: list[str] = [names] if isinstance(names, str) else list(names)
        check_labels(self.names)
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
        unknown = next((name for name in names if name not in self._ids), None)
        if unknown is not None:
            raise ValueError(
                f"{place} must hold labels that the model was made with: {reprlib.repr(self.names)}. "
                f"Received: {unknown!r}. Make the model with all labels that occur."
            )
        return [self._ids[name] for name in names]
