"""Options: the JSON file that says what the weights beside it are."""

from pathlib import Path
from typing import Any

from keras_elmo import presets


class Options:
    """The options file, read with errors that name file and key."""

    def __init__(self, path: Path, values: dict[str, Any] | None = None):
        self.path = path
        self.values = presets.read_json(path) if values is None else values

    def get(self, key: str, kind: type | tuple[type, ...], default: Any = ...) -> Any:
        """The value at a dotted key; `default` if it is missing or null and a default is given."""
        value: Any = self.values
        *parents, _ = parts = key.split(".")
        for i, part in enumerate(parts, 1):
            value = value.get(part)
            if value is None:
                break
            if i <= len(parents):
                self._check(".".join(parts[:i]), value, dict)
        if value is not None:
            return self._check(key, value, kind)
        if default is ...:
            raise ValueError(
                f"{self.path}: the key `{key}` is missing. Use the options that came with the weights."
            )
        return default

    def _check(self, key: str, value: Any, kind: type | tuple[type, ...]) -> Any:
        right_kind = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
        if not right_kind:
            kinds = kind if isinstance(kind, tuple) else (kind,)
            names = " or ".join(one.__name__ for one in kinds)
            raise ValueError(f"{self.path}: `{key}` must be of type {names}. Received: {value!r}")
        return value
