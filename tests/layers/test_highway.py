"""Highway: the harness, and the oracle's formula."""

import harness
import numpy as np
import pytest
import reference

from keras_elmo.layers import Highway


def test_harness():
    x = np.random.default_rng(0).normal(size=(3, 4, 6)).astype("float32")
    harness.check_layer(Highway, {}, x, num_weights=4)


@pytest.mark.parametrize("seed", range(3))
def test_oracle(seed):
    random = np.random.default_rng(seed)
    dim = 7
    weights = {
        "CNN_high_0/W_carry": random.normal(size=(dim, dim)),
        "CNN_high_0/b_carry": random.normal(size=dim),
        "CNN_high_0/W_transform": random.normal(size=(dim, dim)),
        "CNN_high_0/b_transform": random.normal(size=dim),
    }
    x = random.normal(size=(5, dim))
    gate = reference.sigmoid(x @ weights["CNN_high_0/W_carry"] + weights["CNN_high_0/b_carry"])
    transformed = reference.relu(
        x @ weights["CNN_high_0/W_transform"] + weights["CNN_high_0/b_transform"]
    )
    highway = Highway()
    highway.build((None, dim))
    harness.set_highway(highway, weights)
    for shape in ((5, dim), (1, 5, dim)):
        expected = gate * transformed + (1 - gate) * x
        harness.close(highway(x.reshape(shape).astype("float32")), expected.reshape(shape))


def test_first_weights_mostly_copy():
    highway = Highway()
    x = np.ones((1, 3), "float32")
    highway(x)
    harness.close(highway.carry_bias, np.full(3, -2.0))
    harness.close(highway.transform_bias, np.zeros(3))


def test_mask_is_passed_on():
    x = np.ones((2, 3, 4), "float32")
    x[1, 1:] = 0
    output = Highway()(harness.masked(x))
    np.testing.assert_array_equal(harness.mask_of(output), [[1, 1, 1], [1, 0, 0]])
