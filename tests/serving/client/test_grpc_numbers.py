"""The numbers of a gRPC answer, as TensorFlow reads them, whichever way a server wrote them."""

import numpy as np
import pytest
import tensorflow as tf

from keras_elmo.serving.grpc_transport import _array


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,), (2,), (40, 50), (3, 1, 2)], ids=str)
def test_every_shape(shape):
    array = np.random.default_rng(0).normal(size=shape).astype("float32")
    listed = tf.make_tensor_proto(0.0, shape=shape)
    del listed.float_val[:]
    listed.float_val.extend(array.ravel().tolist())
    for proto in (listed, tf.make_tensor_proto(array), tf.make_tensor_proto(array.astype("f8"))):
        found, expected = _array(proto), tf.make_ndarray(proto)
        np.testing.assert_array_equal(found, expected)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)


def test_one_value_for_all():
    proto = tf.make_tensor_proto(1.5, shape=(3, 2))
    np.testing.assert_array_equal(_array(proto), np.full((3, 2), 1.5))


def test_the_array_is_the_callers_own():
    proto = tf.make_tensor_proto(np.ones(3, "f4"))
    proto.tensor_content = b""
    proto.float_val.extend([1, 2, 3])
    _array(proto)[0] = 9
    assert proto.float_val == [1, 2, 3]
