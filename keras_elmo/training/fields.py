"""Checks of the fields of configurations, and configurations from JSON."""

import math
from collections.abc import Sequence
from dataclasses import MISSING, fields
from numbers import Integral, Real
from typing import Any, TypeVar

_Config = TypeVar("_Config")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raises a ValueError if `value` is not one of `choices`."""
    if value not in choices:
        known = ", ".join(f'"{choice}"' for choice in choices)
        raise ValueError(f"`{name}` must be one of {known}. Received: {name}={value!r}")


def check_number(
    name: str,
    value: object,
    at_least: float | None = None,
    above: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    optional: bool = False,
) -> None:
    """Raises a ValueError if `value` is no finite number in the range; `None` passes if `optional`."""
    if value is None and optional:
        return
    number = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    bounds = [
        (f"{word} {bound:g}", holds)
        for word, bound, holds in (
            ("at least", at_least, lambda x: x >= at_least),
            ("above", above, lambda x: x > above),
            ("at most", at_most, lambda x: x <= at_most),
            ("below", below, lambda x: x < below),
        )
        if bound is not None
    ]
    if not number or not all(holds(value) for _, holds in bounds):
        wanted = " and ".join(text for text, _ in bounds)
        none = " or null" if optional else ""
        raise ValueError(f"`{name}` must be a number {wanted}{none}. Received: {name}={value!r}")


def check_count(name: str, value: object, minimum: int = 1, optional: bool = False) -> None:
    """Raises a ValueError if `value` is no integer of at least `minimum`; `None` passes if `optional`."""
    if value is None and optional:
        return
    if not isinstance(value, Integral) or isinstance(value, bool) or value < minimum:
        none = " or null" if optional else ""
        raise ValueError(
            f"`{name}` must be an integer of at least {minimum}{none}. Received: {name}={value!r}"
        )


def check_bool(name: str, value: object) -> None:
    """Raises a ValueError if `value` is neither `True` nor `False`."""
    if not isinstance(value, bool):
        raise ValueError(f"`{name}` must be true or false. Received: {name}={value!r}")


def from_json(cls: type[_Config], values: Any) -> _Config:
    """A dataclass from the JSON object of its fields.

    Raises:
        ValueError: If it is no object, or has an unknown field, or lacks one that has no default.
    """
    if not isinstance(values, dict):
        raise ValueError(f"A {cls.__name__} must be a JSON object. Received: {values!r}")
    known = {field.name: field for field in fields(cls)}  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            raise ValueError(
                f"A {cls.__name__} has no field `{name}`. It has: {', '.join(sorted(known))}"
            )
    for name, field in known.items():
        if name not in values and field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"A {cls.__name__} must have the field `{name}`.")
    return cls(**values)
