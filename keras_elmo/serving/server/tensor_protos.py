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
# The numbers of these fields in the message; their values are packed as they lie in memory.
_PACKED = {tf.float32: 5, tf.float64: 6}


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
    if dtype in _PACKED:
        # As a list of Python's numbers it would take longer than many a model takes to compute them.
        proto.MergeFromString(_packed(_PACKED[dtype], array))
    else:
        getattr(proto, _FIELDS[dtype]).extend(array.ravel().tolist())
    return proto


def _packed(field: int, array: np.ndarray) -> bytes:
    """A repeated field on the wire: its number and kind, the count of bytes, seven bits at a time, and the values."""
    values = array.astype(array.dtype.newbyteorder("<")).tobytes()
    rest, length = len(values), bytearray()
    while rest > 127:
        length.append(rest & 127 | 128)
        rest >>= 7
    length.append(rest)
    return bytes([field << 3 | 2]) + length + values


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
