"""Arrays <-> the tensors of gRPC requests and responses."""

from collections.abc import Mapping

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2
from tensorflow_serving.apis import input_pb2

from keras_elmo.serving.server.request_error import invalid

# The field that holds the values of a dtype. TensorFlow Serving fills these and leaves `tensor_content` empty: there
# are clients that read `float_val`.
_FIELDS = {
    tf.float32: "float_val",
    tf.float64: "double_val",
    tf.int64: "int64_val",
    tf.int32: "int_val",
    tf.int16: "int_val",
    tf.int8: "int_val",
    tf.uint8: "int_val",
    tf.uint16: "int_val",
    tf.uint32: "uint32_val",
    tf.uint64: "uint64_val",
    tf.bool: "bool_val",
    tf.string: "string_val",
}


def to_arrays(tensors: Mapping[str, tensor_pb2.TensorProto]) -> dict[str, np.ndarray]:
    """Reads the inputs of a request.

    Raises:
        RequestError: if a tensor's values do not fit its shape or dtype.
    """
    arrays = {}
    for name, tensor in tensors.items():
        try:
            arrays[name] = tf.make_ndarray(tensor)
        except (ValueError, TypeError, MemoryError) as error:
            raise invalid(f"tensor parsing error: {name}") from error
    return arrays


def to_proto(array: np.ndarray) -> tensor_pb2.TensorProto:
    """Writes one output.

    Example:
    >>> to_proto(np.array([0.5, 2.0], np.float32)).float_val
    [0.5, 2.0]
    """
    dtype = tf.as_dtype(array.dtype)
    if dtype not in _FIELDS:
        return tf.make_tensor_proto(array)
    proto = tensor_pb2.TensorProto(
        dtype=dtype.as_datatype_enum, tensor_shape=tf.TensorShape(array.shape).as_proto()
    )
    getattr(proto, _FIELDS[dtype]).extend(array.ravel().tolist())
    return proto


def serialized_examples(examples: input_pb2.Input) -> list[bytes]:
    """The examples of a Classify request, each with the features that all share.

    Raises:
        RequestError: if there are none.
    """
    context = b""
    found = examples.example_list.examples
    if examples.WhichOneof("kind") == "example_list_with_context":
        # A serialized message behind another is their union.
        context = examples.example_list_with_context.context.SerializeToString()
        found = examples.example_list_with_context.examples
    if not found:
        raise invalid("Input is empty.")
    return [context + example.SerializeToString() for example in found]
