"""as_strings: every way to hold text becomes a string tensor, and all else one sentence."""

import doctest

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("strings need the TensorFlow backend", allow_module_level=True)

import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_elmo.text import as_strings
from keras_elmo.text import strings as module

TEXT = ["The bank", "", "naïve 🙂", "a\0b"]
BYTES = [text.encode() for text in TEXT]
ROWS = [["The", "bank"], [], ["naïve"]]
PADDED = [[b"The", b"bank"], [b"", b""], ["naïve".encode(), b""]]


def objects(values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


class Column:
    """What a column of a data frame has."""

    def __init__(self, array):
        self.array = array

    def to_numpy(self):
        return self.array


SENTENCES = {
    "list": TEXT,
    "tuple": tuple(TEXT),
    "bytes": BYTES,
    "str and bytes": [TEXT[0], *BYTES[1:]],
    "<U": np.array(TEXT),
    "S": np.array(BYTES),
    "StringDType": np.array(TEXT, np.dtypes.StringDType()),
    "object": np.array(TEXT, object),
    "object bytes": np.array(BYTES, object),
    "list of NumPy strings": list(np.array(TEXT)),
    "column": Column(np.array(TEXT, object)),
}


@pytest.mark.parametrize("kind", SENTENCES)
def test_sentences(kind):
    strings = as_strings(SENTENCES[kind])
    assert strings.dtype == tf.string
    assert strings.shape == (4,)
    assert strings.numpy().tolist() == BYTES


@pytest.mark.parametrize("kind", ["list", "tuple", "<U", "S", "object", "StringDType"])
def test_columns_of_sentences_keep_their_axis(kind):
    value = SENTENCES[kind]
    column = value[:, None] if isinstance(value, np.ndarray) else [[text] for text in value]
    assert as_strings(column).numpy().tolist() == [[text] for text in BYTES]


TOKENS = {
    "lists": ROWS,
    "tuples": tuple(map(tuple, ROWS)),
    "bytes": [[token.encode() for token in row] for row in ROWS],
    "arrays": [np.array(row, "<U9") for row in ROWS],
    "arrays and lists": [np.array(ROWS[0]), *ROWS[1:]],
    "object array of lists": objects(ROWS),
    "object array of arrays": objects([np.array(row, object) for row in ROWS]),
    "column of lists": Column(objects(ROWS)),
    "<U": np.array([["The", "bank"], ["", ""], ["naïve", ""]]),
    "S": np.array(PADDED),
    "object": np.array(PADDED, object),
    "object str": np.array([["The", "bank"], ["", ""], ["naïve", ""]], object),
    "transposed": np.array(PADDED, object).T.copy().T,
}


@pytest.mark.parametrize("kind", TOKENS)
def test_tokens(kind):
    strings = as_strings(TOKENS[kind])
    assert strings.dtype == tf.string
    assert strings.numpy().tolist() == PADDED


def test_tensors_stay_what_they_are():
    ragged = tf.ragged.constant(ROWS, dtype=tf.string)
    for tensor in (tf.constant(TEXT), tf.constant(PADDED), ragged, tf.Variable(TEXT)):
        assert as_strings(tensor) is tensor


@pytest.mark.parametrize(
    ("empty", "shape"),
    [
        ([], (0,)),
        ((), (0,)),
        ([[]], (1, 0)),
        ([[], []], (2, 0)),
        (np.array([]), (0,)),
        (np.array([], object), (0,)),
        (np.empty((0, 3), object), (0, 3)),
        (np.empty((2, 0), "<U1"), (2, 0)),
    ],
)
def test_nothing_keeps_its_shape(empty, shape):
    strings = as_strings(empty)
    assert strings.dtype == tf.string
    assert strings.shape == shape


def test_lone_surrogates_are_dropped_and_nul_stays():
    assert as_strings(["a\ud800b", "\udfff", "a\0"]).numpy().tolist() == [b"ab", b"", b"a\0"]
    assert as_strings([["\ud800"]]).numpy().tolist() == [[b""]]
    assert as_strings([b"\xff\xfe"]).numpy().tolist() == [b"\xff\xfe"]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(), max_size=5))
def test_round_trip_of_sentences(text):
    for value in (text, tuple(text), np.array(text, object)):
        assert [each.decode() for each in as_strings(value).numpy()] == text


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.text(min_size=1), max_size=4), max_size=4))
def test_round_trip_of_tokens(rows):
    strings = as_strings(rows).numpy()
    if rows:
        kept = [[token.decode() for token in row if token] for row in strings]
        assert kept == rows
        assert strings.shape == (len(rows), max(map(len, rows)))


KINDS = "must be a list or an array of strings"
HOLDS = "`text` must hold strings. Received: "
MISSING = '.* Write a missing value as "" and a number as `str\\(number\\)`'
REFUSED = {
    "str": ("a b", KINDS + ". Received one string, 'a b': put it into a list"),
    "bytes": (b"a b", KINDS + ". Received one string, b'a b'"),
    "NumPy str": (np.str_("a"), KINDS + ". Received one string"),
    "generator": ((text for text in TEXT), KINDS + ".*Received: generator"),
    "set": ({"a"}, KINDS + ".*Received: set"),
    "dict": ({"tokens": ROWS}, KINDS + ".*Received: dict"),
    "None": (None, KINDS + ".*Received: NoneType"),
    "number": (3, KINDS + ".*Received: int"),
    "no axis": (np.array("a"), KINDS + r".*Received: ndarray of shape \(\)"),
    "three axes": (np.array([[["a"]]]), KINDS + r".*Received: ndarray of shape \(1, 1, 1\)"),
    "Keras input": (
        keras.Input((), dtype="string"),
        KINDS + r".*Received: KerasTensor of shape \(None,\)",
    ),
    "None inside": (["a", None], HOLDS + "None of type NoneType" + MISSING),
    "None among tokens": ([["a"], None], HOLDS + "None of type NoneType" + MISSING),
    "None in tokens": ([["a", None]], HOLDS + "None of type NoneType" + MISSING),
    "only None": ([None], HOLDS + "None"),
    "NaN": (["a", float("nan")], HOLDS + "nan of type float" + MISSING),
    "NaN in an array": (np.array(["a", np.nan], object), HOLDS + "nan of type float"),
    "NaN in 2-D": (np.array([["a", np.nan]], object), HOLDS + "nan of type float"),
    "NaN in a column": (Column(np.array(["a", np.nan], object)), HOLDS + "nan of type float"),
    "numbers": ([1, 2], HOLDS + "1 of type int" + MISSING),
    "numbers in rows": ([[1], [2]], HOLDS + "1 of type int"),
    "array of numbers": (np.arange(2), HOLDS + r"np.int64\(0\) of type int64"),
    "float array": (np.zeros((2, 2)), HOLDS + r"np.float64\(0.0\) of type float64"),
    "tensors in a list": ([tf.constant("a")], HOLDS + "<tf.Tensor.* of type EagerTensor"),
    "lists in 2-D": ([[["a"]]], HOLDS + r"\['a'\] of type list"),
    "set inside": ([{"a"}], HOLDS + r"\{'a'\} of type set"),
    "sentence and tokens": (
        ["a b", ["c"]],
        "all sentences .* or all lists of tokens. Received a list of both",
    ),
    "tokens and sentence": ([["c"], b"a b"], "Received a list of both"),
    "2-D rows": ([np.array([["a"]])], HOLDS),
    "tensor": (tf.constant([1]), "`text` must hold strings. Received a tensor of int32"),
    "ragged": (
        tf.ragged.constant([[1.0]]),
        "`text` must hold strings. Received a tensor of float32",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_all_else_is_one_sentence(kind):
    value, match = REFUSED[kind]
    with pytest.raises(ValueError, match=match) as error:
        as_strings(value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 250


def test_long_values_are_cut_in_the_message():
    for value in ("x" * 10_000, [["x" * 10_000], [3]], [3, "x" * 10_000], [range(10_000)]):
        with pytest.raises(ValueError, match="`text` must") as error:
            as_strings(value)
        assert len(str(error.value)) < 250


def test_docstring_example():
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0
