"""Checks of ElmoClient's arguments: one sentence that names the argument, what was expected and what came."""

from collections.abc import Mapping
from typing import Any


def check_name(name: str, value: Any) -> None:
    """Raises `ValueError` unless `value` can be a name on a server."""
    if not isinstance(value, str) or not value or "/" in value or ":" in value:
        raise ValueError(
            f'`{name}` must be a name, without "/" and ":". Received: {name}={value!r}'
        )


def check_integer(name: str, value: Any, least: int) -> None:
    """Raises `ValueError` unless `value` is an integer, `least` or more."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(
            f"`{name}` must be an integer of {least} or more. Received: {name}={value!r}"
        )


def check_timeout(value: Any) -> None:
    """Raises `ValueError` unless `value` is `None` or a number above zero."""
    if value is None:
        return
    if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
        raise ValueError(
            f"`timeout` must be a positive number of seconds, or None for no limit. Received: timeout={value!r}"
        )


def check_headers(headers: Mapping[Any, Any]) -> None:
    """Raises `ValueError` unless names and values can be sent. Values are not shown: they are passwords."""
    for name, value in headers.items():
        if not isinstance(name, str) or not all(
            c.isascii() and (c.isalnum() or c in "-_.") for c in name
        ):
            raise ValueError(
                f"The names in `headers` must be letters, digits, - _ and . only. Received: {name!r}"
            )
        if not isinstance(value, str) or not value.isascii() or not value.isprintable():
            raise ValueError(
                f"The value of the header {name!r} must be a string of printable ASCII characters."
            )
