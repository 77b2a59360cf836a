"""Checks of layer arguments: one sentence that names the argument, what was expected and what came."""

from typing import Any


def is_integer(value: Any) -> bool:
    """True for a Python integer that is not a bool (`True` is an `int` in Python)."""
    return isinstance(value, int) and not isinstance(value, bool)


def check_positive_integer(name: str, value: Any) -> None:
    """Raises `ValueError` unless `value` is an integer above zero."""
    if not is_integer(value) or value <= 0:
        raise ValueError(f"`{name}` must be a positive integer. Received: {name}={value!r}")


def check_not_negative_integer(name: str, value: Any) -> None:
    """Raises `ValueError` unless `value` is an integer of zero or more."""
    if not is_integer(value) or value < 0:
        raise ValueError(f"`{name}` must be zero or a positive integer. Received: {name}={value!r}")


def check_clip(name: str, value: Any) -> None:
    """Raises `ValueError` unless `value` is `None` (no clipping) or a number above zero."""
    if value is None:
        return
    if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
        raise ValueError(
            f"`{name}` must be a positive number, or None for no clipping. Received: {name}={value!r}"
        )


def check_rate(name: str, value: Any) -> None:
    """Raises `ValueError` unless `value` is a rate of dropout."""
    if not isinstance(value, int | float) or not 0 <= value < 1:
        raise ValueError(
            f"`{name}` must be a rate, 0 or more and less than 1. Received: {name}={value!r}"
        )


def check_choice(name: str, value: Any, choices: tuple) -> None:
    """Raises `ValueError` unless `value` is one of `choices`."""
    if not any(value is choice or value == choice for choice in choices):
        options = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"`{name}` must be one of {options}. Received: {name}={value!r}")


def check_rank(what: str, shape: Any, rank: int, layout: str) -> None:
    """Raises `ValueError` unless `shape` has `rank` axes."""
    if len(shape) != rank:
        raise ValueError(
            f"{what} must have {rank} axes, {layout}. Received a tensor of shape {tuple(shape)}"
        )
