import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_elmo.serving.server.json_text import decimals, encode, parse_object, shown, string
from keras_elmo.serving.server.request_error import RequestError


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "The document is empty"),
        (b" \n", "The document is empty"),
        (b"{", "Missing a name for object member. at offset: 1"),
        (b"{1: 2}", "Missing a name for object member. at offset: 1"),
        (b'{"a" 1}', "Missing a colon after a name of object member. at offset: 5"),
        (b'{"a": 1', "Missing a comma or } after an object member. at offset: 7"),
        (b'{"a[": [1 2]}', "Missing a comma or ] after an array element. at offset: 10"),
        (b'{"a": [[1], 2}', "Missing a comma or ] after an array element. at offset: 13"),
        (b'{"a": ]', "Invalid value. at offset: 6"),
        (b'{"a": nul}', "Invalid value. at offset: 6"),
        (b'{"a": "\xc3\xa9', "Missing a closing quotation mark in string. at offset: 6"),
        (b'{"a": "\\x"}', "Invalid escape character in string. at offset: 7"),
        (b'{"a": "\\u00g0"}', "Incorrect hex digit after \\u escape in string. at offset: "),
        (b'{"a": "\n"}', "Invalid encoding in string. at offset: 7"),
        (b'{"a": 1} x', "The document root must not be followed by other values. at offset: 9"),
        (b'{"a": 1e999}', "Number too big to be stored in double."),
        (b'{"\xc3\xa9": "\\ud83d"}', "The surrogate pair in string is invalid. at offset: 8"),
        (b'{"a": "\\ude00\\ud83d"}', "The surrogate pair in string is invalid. at offset: 7"),
        (b'{"a": ' + b"[" * 100_000, "The document is nested too deeply."),
    ],
    ids=range(19),
)
def test_what_is_no_json(body, message):
    with pytest.raises(RequestError) as error:
        parse_object(body)
    assert error.value.message.startswith(f"JSON Parse error: {message}")
    assert error.value.http_status == 400


@pytest.mark.parametrize("body", [b"[]", b'"a"', b"1", b"null"])
def test_what_is_no_object(body):
    with pytest.raises(RequestError) as error:
        parse_object(body)
    assert error.value.message == f"JSON Value: {body.decode()} Is not object"


def test_what_is_read():
    body = (
        '\ufeff{"a": ["\\ud83d\\ude00", "😀", "\\\\ud83d", NaN, -Infinity, 18446744073709551616]}'
    )
    (values,) = parse_object(body.encode()).values()
    assert values[:3] == ["😀", "😀", "\\ud83d"]
    assert np.isnan(values[3])
    assert values[4] == -np.inf
    # What 64 bits do not hold is a decimal, and so is what Python would not even read.
    assert isinstance(values[5], float)
    assert parse_object(b'{"a": %s}' % (b"1" * 300))["a"] == float("1" * 300)
    with pytest.raises(RequestError, match="Number too big"):
        parse_object(b'{"a": %s}' % (b"1" * 5000))


@given(st.binary())
def test_any_bytes_of_a_string_pass(value):
    text = string(value)
    assert parse_object(encode(f'{{"a": {text}}}'))["a"].encode("utf-8", "surrogateescape") == value


@given(st.lists(st.floats(width=32)))
def test_float32_says_it_all_and_no_more(values):
    array = np.array(values, np.float32)
    for number, text in zip(array, decimals(array), strict=True):
        if np.isfinite(number):
            assert np.float32(text) == number
            short = f"{float(number):.6g}"
            expected = short if np.float32(short) == number else f"{float(number):.9g}"
            assert text.removesuffix(".0") == expected
            assert "." in text or "e" in text
        else:
            assert text == {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(number)]


@given(st.lists(st.floats()))
def test_float64_says_it_all(values):
    array = np.array(values, np.float64)
    again = [float(text.replace("Infinity", "inf")) for text in decimals(array)]
    np.testing.assert_array_equal(again, array)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (3, "3.0"),
        (0.1, "0.1"),
        (1 / 3, "0.333333343"),
        (123456789, "123456792.0"),
        (9e6, "9e+06"),
        (3e-5, "3e-05"),
    ],
)
def test_float32_as_tensorflow_serving_prints_it(number, text):
    assert decimals(np.array([number], np.float32)) == [text]


def test_a_long_value_is_cut_in_an_error():
    assert shown("a" * 10) == '"aaaaaaaaaa"'
    assert len(shown("a" * 10_000)) < 1100
