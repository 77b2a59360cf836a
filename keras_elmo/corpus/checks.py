"""Checks of arguments that several modules of the corpus share."""

from numbers import Integral


def check_integer(name: str, value: object, minimum: int = 1, note: str = "") -> int:
    """Returns `value` as an int, or raises a ValueError if it is none or below `minimum`.

    Args:
        name: The argument's name.
        value: What it was given.
        minimum: The smallest value allowed. Defaults to 1.
        note: What to add to the sentence. Defaults to nothing.
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < minimum:
        raise ValueError(
            f"`{name}` must be an integer of at least {minimum}{note}. Received: {name}={value!r}"
        )
    return int(value)
