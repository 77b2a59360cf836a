"""Checks of ElmoClient's arguments: one sentence that names the argument, what was expected and what came."""

import math
import re
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
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value < math.inf:
        raise ValueError(
            f"`timeout` must be a positive number of seconds, or None for no limit. Received: timeout={value!r}"
        )


def check_headers(headers: Mapping[Any, Any]) -> None:
    """Raises `ValueError` unless names and values can be sent. Values are not shown: they are passwords."""
    for name, value in headers.items():
        # gRPC keeps -bin for bytes, which REST cannot send.
        if (
            not isinstance(name, str)
            or not re.fullmatch(r"[A-Za-z0-9._-]+", name)
            or name.lower().endswith("-bin")
        ):
            raise ValueError(
                "The names in `headers` must be of letters, digits, - _ and . only, and not end in -bin. "
                f"Received: {name!r}"
            )
        if not isinstance(value, str) or not value.isascii() or not value.isprintable():
            raise ValueError(
                f"The value of the header {name!r} must be a string of printable ASCII characters."
            )
