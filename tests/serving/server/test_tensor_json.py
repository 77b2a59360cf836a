"""Rows and columns, to the letter of TensorFlow Serving's `json_tensor`."""

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2

from keras_elmo.serving.server.request_error import RequestError
from keras_elmo.serving.server.tensor_json import (
    from_base64,
    read_inputs,
    signature_name,
    write_columns,
    write_rows,
)


def infos(**dtypes):
    return {
        name: meta_graph_pb2.TensorInfo(dtype=dtype.as_datatype_enum)
        for name, dtype in dtypes.items()
    }


TEXT = infos(text=tf.string)
TOKENS = infos(tokens=tf.string, sequence_len=tf.int32)


def test_rows_of_one_input():
    arrays, in_rows = read_inputs({"instances": ["a", {"b64": "/w=="}, ""]}, TEXT)
    assert in_rows
    assert arrays["text"].tolist() == [b"a", b"\xff", b""]
    arrays, _ = read_inputs({"instances": [{"text": "a"}, {"text": "b"}]}, TEXT)
    assert arrays["text"].tolist() == [b"a", b"b"]


def test_rows_of_several_inputs():
    rows = [{"tokens": ["a", "b"], "sequence_len": 2}, {"sequence_len": 1, "tokens": ["c", ""]}]
    arrays, _ = read_inputs({"instances": rows}, TOKENS)
    assert arrays["tokens"].tolist() == [[b"a", b"b"], [b"c", b""]]
    assert arrays["sequence_len"].tolist() == [2, 1]
    assert arrays["sequence_len"].dtype == np.int32


def test_columns():
    for value in ([["a"], ["b"]], {"text": [["a"], ["b"]], "unknown": 1}):
        arrays, in_rows = read_inputs({"inputs": value}, TEXT)
        assert not in_rows
        assert arrays["text"].tolist() == [[b"a"], [b"b"]]
    assert read_inputs({"inputs": []}, TEXT)[0]["text"].shape == (0,)
    assert read_inputs({"inputs": [[], []]}, TEXT)[0]["text"].shape == (2, 0)
    assert read_inputs({"inputs": {"b64": "aGk="}}, TEXT)[0]["text"].item() == b"hi"


@pytest.mark.parametrize(
    ("document", "signature", "message"),
    [
        ({}, TEXT, "Missing 'inputs' or 'instances' key"),
        (
            {"instances": [], "inputs": []},
            TEXT,
            "expecting only one of 'inputs' or 'instances' keys",
        ),
        ({"instances": "a"}, TEXT, "Excepting 'instances' to be an list/array"),
        ({"instances": []}, TEXT, "No values in 'instances' array"),
        ({"instances": ["a"]}, TOKENS, "instances is a plain list, but expecting list of objects"),
        ({"inputs": ["a"]}, TOKENS, "inputs is a plain value/list, but expecting an object"),
        (
            {"inputs": {"tokens": [["a"]]}},
            TOKENS,
            "Missing named input: sequence_len in 'inputs' object.",
        ),
        ({"instances": [{"tokens": ["a"]}]}, TOKENS, "keys must be equal to: sequence_len,tokens"),
        (
            {"instances": [{"word": "a"}]},
            TEXT,
            "Failed to process element: 0 key: word of 'instances' list. Error: INVALID_ARGUMENT: "
            "JSON object: does not have named input: word",
        ),
        (
            {"instances": ["a", 1]},
            TEXT,
            "Failed to process element: 1 of 'instances' list. Error: INVALID_ARGUMENT: "
            "JSON Value: 1 Type: Number is not of expected type: string",
        ),
        (
            {"instances": ["a", {"text": "b"}]},
            TEXT,
            "Expecting value/list but got object at item 1",
        ),
        ({"instances": [{"text": "b"}, "a"]}, TEXT, "Expecting object but got list at item 1"),
        ({"instances": [["a"], ["a", "b"]]}, TEXT, "Expecting tensor size: 1 but got: 2"),
        (
            {"instances": [[["a"], ["b"]], [["a", "b"]]]},
            TEXT,
            "Expecting shape [2,1] but got: [1,2]",
        ),
        (
            {"inputs": [["a"], ["a", "b"]]},
            TEXT,
            "Encountered list at unexpected size: 2 at level: 1 expected size: 1",
        ),
        ({"inputs": ["a", ["b"]]}, TEXT, "Encountered list at unexpected level: 1 expected < 1"),
        (
            {"inputs": [["a"], "b"]},
            TEXT,
            '"b" found at incorrect level: 2 in the JSON DOM. Expected at level: 2',
        ),
        ({"inputs": [None]}, TEXT, "JSON Value: null Type: Null is not of expected type: string"),
        ({"inputs": [True]}, TEXT, "JSON Value: true Type: True is not of expected type: string"),
        ({"inputs": [{"text": "a"}]}, TEXT, "not formatted correctly for base64 data"),
        ({"inputs": [{"b64": "a?"}]}, TEXT, "Unable to base64 decode"),
        (
            {"inputs": [1.5]},
            infos(n=tf.int32),
            "JSON Value: 1.5 Type: Number is not of expected type: int32",
        ),
        ({"inputs": [2**31]}, infos(n=tf.int32), "is not of expected type: int32"),
        (
            {"inputs": [True]},
            infos(n=tf.int64),
            "JSON Value: true Type: True is not of expected type: int64",
        ),
        (
            {"inputs": [{"b64": ""}]},
            infos(n=tf.int64),
            "Type: Object is not of expected type: int64",
        ),
        (
            {"inputs": ["1"]},
            infos(x=tf.float32),
            'JSON Value: "1" Type: String is not of expected type: float',
        ),
        (
            {"inputs": [2**24]},
            infos(x=tf.float32),
            "JSON value: 16777216 to float without loss of precision.",
        ),
        ({"inputs": [1e39]}, infos(x=tf.float32), "to float without loss of precision."),
        ({"inputs": [2**53]}, infos(x=tf.float64), "to double without loss of precision."),
        (
            {"inputs": [1]},
            infos(b=tf.bool),
            "JSON Value: 1 Type: Number is not of expected type: bool",
        ),
    ],
    ids=range(30),
)
def test_what_does_not_fit(document, signature, message):
    with pytest.raises(RequestError) as error:
        read_inputs(document, signature)
    assert message in error.value.message
    assert error.value.http_status == 400


def test_a_dtype_that_json_has_not():
    with pytest.raises(RequestError, match="Conversion of JSON Value: 1.0 to type: half") as error:
        read_inputs({"inputs": [1.0]}, infos(x=tf.float16))
    assert error.value.http_status == 501


def test_numbers():
    arrays, _ = read_inputs(
        {"inputs": {"x": [1, 0.5, float("nan")], "b": [True], "n": [-1], "byte": [257]}},
        infos(x=tf.float32, b=tf.bool, n=tf.int64, byte=tf.uint8),
    )
    np.testing.assert_array_equal(arrays["x"], np.array([1, 0.5, np.nan], np.float32))
    assert arrays["b"].tolist() == [True]
    assert arrays["n"].dtype == np.int64
    assert arrays["byte"].tolist() == [1]


def test_base64_as_it_comes():
    assert from_base64({"b64": "aG\nk"}) == b"hi"
    assert from_base64({"b64": ""}) == b""
    for bad in ({"b64": "a=Gk"}, {"b64": "aGk_"}, {"b64": "a"}):
        with pytest.raises(RequestError, match="Unable to base64 decode"):
            from_base64(bad)
    for bad in ({"b64": 1}, {"b64": "aGk=", "more": ""}, "aGk="):
        with pytest.raises(RequestError, match="not formatted correctly for base64 data"):
            from_base64(bad)


def test_signature_names():
    assert signature_name({}) == ""
    assert signature_name({"signature_name": "tokens"}) == "tokens"
    with pytest.raises(RequestError, match="'signature_name' key must be a string value"):
        signature_name({"signature_name": 1})


VECTORS = np.array([[0.5, np.nan], [2, -np.inf]], np.float32)
STRINGS = np.array([b"a\xff", "é\n".encode()], object)


def test_rows_are_written():
    assert write_rows({"x": VECTORS}) == '{"predictions": [[0.5, NaN], [2.0, -Infinity]]}'
    assert write_rows({"n": np.array([1, 2])}) == '{"predictions": [1, 2]}'
    assert (
        write_rows({"n": np.array([1, 2]), "x": VECTORS[:, :1]})
        == '{"predictions": [{"n": 1, "x": [0.5]}, {"n": 2, "x": [2.0]}]}'
    )
    assert write_rows({"x": np.zeros((0, 3)), "y": np.zeros((0,))}) == '{"predictions": []}'
    assert write_rows({"x": np.zeros((2, 0, 3))}) == '{"predictions": [[], []]}'
    assert write_rows({"s_bytes": STRINGS}) == '{"predictions": [{"b64": "Yf8="}, {"b64": "w6kK"}]}'
    written = write_rows({"s": STRINGS}).encode("utf-8", "surrogateescape")
    assert written == b'{"predictions": ["a\xff", "\xc3\xa9\\n"]}'


def test_columns_are_written():
    assert write_columns({"x": VECTORS}) == '{"outputs": [[0.5, NaN], [2.0, -Infinity]]}'
    assert write_columns({"x": np.float32(1)[None][0:1].reshape(())}) == '{"outputs": 1.0}'
    assert (
        write_columns({"b": np.array([True]), "n": np.array(3, np.int64)})
        == '{"outputs": {"b": [true], "n": 3}}'
    )
    assert write_columns({"x": np.zeros((2, 0))}) == '{"outputs": [[], []]}'


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({"x": np.array(1.0)}, "Tensor name: x has no shape information"),
        (
            {"x": np.zeros(2), "y": np.zeros(3)},
            "Tensor name: y has inconsistent batch size: 3 expecting: 2",
        ),
        ({"x": np.zeros(2, np.float16)}, "Failed to write JSON value for tensor type: half"),
        (
            {"x": np.zeros(2, ml_dtypes.bfloat16)},
            "Failed to write JSON value for tensor type: bfloat16",
        ),
    ],
    ids=["scalar", "batch", "half", "bfloat16"],
)
def test_what_cannot_be_written_by_rows(outputs, message):
    with pytest.raises(RequestError, match=message):
        write_rows(outputs)
