"""Text of JSON as TensorFlow Serving reads and writes it.

Bytes that are no UTF-8 pass in both directions: they are surrogates in Python's strings ("surrogateescape").
"""

import json
import math
import re
from typing import Any

import numpy as np

from keras_elmo.serving.server.request_error import RequestError, invalid

# Python's words for what is wrong, and those of TensorFlow Serving's parser.
_PARSE_ERRORS = {
    "Expecting value": "Invalid value.",
    "Illegal trailing comma before end of array": "Invalid value.",
    "Expecting property name enclosed in double quotes": "Missing a name for object member.",
    "Illegal trailing comma before end of object": "Missing a name for object member.",
    "Expecting ':' delimiter": "Missing a colon after a name of object member.",
    "Unterminated string starting at": "Missing a closing quotation mark in string.",
    "Invalid control character at": "Invalid encoding in string.",
    "Invalid \\escape": "Invalid escape character in string.",
    "Invalid \\uXXXX escape": "Incorrect hex digit after \\u escape in string.",
    "Extra data": "The document root must not be followed by other values.",
}
_SURROGATE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair: fine
    r"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    r"|\\.",
    re.DOTALL,
)
_STRINGS_AND_BRACKETS = re.compile(r'"(?:\\.|[^"\\])*"|[\[\]{}]', re.DOTALL)
_MAX_SHOWN = 1024


def parse_object(body: bytes) -> dict[str, Any]:
    r"""Reads a JSON object; `NaN`, `Infinity` and `-Infinity` are numbers.

    Args:
        body: The text.

    Raises:
        RequestError: if it is no JSON, or no object.

    Example:
    >>> parse_object(b'{"instances": ["\\u03b1"]}')
    {'instances': ['α']}
    """
    text = body.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    if not text.strip(" \t\r\n"):
        raise invalid("JSON Parse error: The document is empty")
    try:
        document = json.loads(text, parse_int=_integer, parse_float=_decimal)
    except json.JSONDecodeError as error:
        raise _parse_error(_what_is_wrong(error, text), text, error.pos) from error
    except RecursionError as error:
        raise invalid("JSON Parse error: The document is nested too deeply.") from error
    for match in _SURROGATE.finditer(text) if "\\u" in text else ():
        if match["lone"]:
            raise _parse_error("The surrogate pair in string is invalid.", text, match.start())
    if not isinstance(document, dict):
        raise invalid(f"JSON Value: {shown(document)} Is not object")
    return document


def shown(value: Any) -> str:
    """A value in an error."""
    text = json.dumps(value, indent=4, ensure_ascii=False)
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "..."


def string(value: bytes) -> str:
    r"""A JSON string.

    Example:
    >>> string(b'say "hi"')
    '"say \\"hi\\""'
    """
    return json.dumps(value.decode("utf-8", "surrogateescape"), ensure_ascii=False)


def text_of(document: dict[str, Any]) -> str:
    """The text of a JSON object."""
    return json.dumps(document, indent=1, ensure_ascii=False)


def encode(text: str) -> bytes:
    """The bytes of a JSON text."""
    return text.encode("utf-8", "surrogateescape")


def decimals(values: np.ndarray) -> list[str]:
    """Numbers with six digits if these say it all, else with as many as the type has; never without a point.

    Args:
        values: float32 or float64 array (num_values,).

    Example:
    >>> decimals(np.array([0.2, 1 / 3, 3, -np.inf], np.float32))
    ['0.2', '0.333333343', '3.0', '-Infinity']
    """
    numbers = values.tolist()
    if values.dtype == np.float32:
        exact = values.astype(np.float64)
        with np.errstate(all="ignore"):
            scale = 10.0 ** (5 - np.floor(np.log10(np.abs(exact))))
            short = (np.rint(exact * scale) / scale).astype(np.float32) == values
        # One call formats them all, for there may be a million.
        formats = np.where(short, "%.6g", "%.9g").tolist()
        texts = (" ".join(formats) % tuple(numbers)).split()
    else:
        six = [f"{number:.6g}" for number in numbers]
        texts = [
            text if float(text) == number else f"{number:.17g}"
            for text, number in zip(six, numbers, strict=True)
        ]
    texts = [text if "." in text or "e" in text else text + ".0" for text in texts]
    for place in np.flatnonzero(~np.isfinite(values)).tolist():
        number = numbers[place]
        texts[place] = "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    return texts


def _integer(text: str) -> int | float:
    # What 64 bits cannot hold is a decimal.
    number = int(text) if len(text) <= 20 else _decimal(text)
    return number if -(2**63) <= number < 2**64 else _decimal(text)


def _decimal(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise invalid("JSON Parse error: Number too big to be stored in double.")
    return number


def _parse_error(what: str, text: str, position: int) -> RequestError:
    offset = len(encode(text[:position]))
    return invalid(f"JSON Parse error: {what} at offset: {offset}")


def _what_is_wrong(error: json.JSONDecodeError, text: str) -> str:
    if error.msg != "Expecting ',' delimiter":
        return _PARSE_ERRORS.get(error.msg, "Invalid value.")
    open_brackets: list[str] = []
    for match in _STRINGS_AND_BRACKETS.finditer(text, 0, error.pos):
        if match[0] in "[{":
            open_brackets.append(match[0])
        elif match[0] in "]}":
            open_brackets.pop()
    if open_brackets[-1:] == ["["]:
        return "Missing a comma or ] after an array element."
    return "Missing a comma or } after an object member."
