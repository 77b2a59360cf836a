import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import input_pb2

from keras_elmo.serving.server.request_error import RequestError
from keras_elmo.serving.server.tensor_protos import serialized_examples, to_arrays, to_proto


@pytest.mark.parametrize(
    "dtype", ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", "f2", "bfloat16"]
)
def test_numbers_there_and_back(dtype):
    dtype = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    array = np.array([[0, 1, 1], [1, 0, 0]], dtype)
    again = to_arrays({"x": to_proto(array)})["x"]
    assert again.dtype == array.dtype
    np.testing.assert_array_equal(again, array)


def test_strings_and_empty_ones():
    array = np.array([[b"a\x00", b""]], object)
    assert to_arrays({"x": to_proto(array)})["x"].tolist() == [[b"a\x00", b""]]
    assert to_arrays({"x": to_proto(np.zeros((2, 0), np.float32))})["x"].shape == (2, 0)


def test_the_values_are_where_clients_look_for_them():
    assert to_proto(np.array([1.5], np.float32)).float_val == [1.5]
    assert to_proto(np.array([b"a"], object)).string_val == [b"a"]
    # More than the 127 bytes whose count takes one byte, and than 16,383, whose count takes two.
    for dtype, field in (("f4", "float_val"), ("f8", "double_val")):
        for count in (0, 1, 15, 16, 40, 5000):
            array = np.random.default_rng(0).normal(size=(count, 2)).astype(dtype)
            proto = to_proto(array)
            assert not proto.tensor_content
            assert list(getattr(proto, field)) == array.ravel().tolist()
            # As other libraries read it.
            np.testing.assert_array_equal(tf.make_ndarray(proto), array)


def test_a_tensor_whose_values_do_not_fit():
    bad = tf.make_tensor_proto(np.zeros(3, np.float32))
    bad.tensor_content = bad.tensor_content[:-1]
    with pytest.raises(RequestError, match="tensor parsing error: x"):
        to_arrays({"x": bad})
    bad = tf.make_tensor_proto(["a"])
    bad.dtype = 0
    with pytest.raises(RequestError, match="tensor parsing error: x"):
        to_arrays({"x": bad})


def test_examples_with_what_they_share():
    examples = input_pb2.Input()
    both = examples.example_list_with_context
    both.context.features.feature["a"].int64_list.value.append(1)
    both.examples.add().features.feature["b"].int64_list.value.append(2)
    (example,) = map(tf.train.Example.FromString, serialized_examples(examples))
    assert set(example.features.feature) == {"a", "b"}
    with pytest.raises(RequestError, match="Input is empty."):
        serialized_examples(input_pb2.Input())
