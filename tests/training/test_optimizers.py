"""Updates against numbers worked out by hand."""

import numpy as np
import pytest
import tensorflow as tf

from keras_elmo.training import OptimizerConfig
from keras_elmo.training.optimizers import (
    clip_by_global_norm,
    make_slots,
    merge_duplicate_rows,
    update,
)

ONE = tf.constant(1.0)


def rows(values, indices, num_rows=4):
    values = tf.constant(values, tf.float32)
    return tf.IndexedSlices(values, tf.constant(indices), tf.constant([num_rows, 1]))


def stepped(optimizer, start, gradient, num_steps=1):
    variable = tf.Variable(start, dtype=tf.float32)
    slots = make_slots(optimizer, variable)
    for step in range(1, num_steps + 1):
        rate = tf.constant(optimizer.learning_rate)
        update(optimizer, variable, gradient, slots, rate, tf.constant(float(step)))
    return variable.numpy(), {name: slot.numpy() for name, slot in slots.items()}


def test_rows_that_stand_twice_are_one_gradient_to_adagrad():
    gradient = merge_duplicate_rows(rows([[1.0], [2.0]], [0, 0]))
    optimizer = OptimizerConfig("adagrad", 0.2, initial_accumulator=1.0)
    weights, slots = stepped(optimizer, np.zeros((4, 1)), gradient)
    assert slots["accumulator"][:, 0].tolist() == [10, 1, 1, 1]
    np.testing.assert_allclose(weights[:, 0], [-0.18974, 0, 0, 0], atol=5e-6)


def test_the_norm_is_that_of_all_together_after_merging():
    sparse = merge_duplicate_rows(rows([[1.0], [2.0]], [0, 0]))
    (dense, clipped), norm = clip_by_global_norm([tf.constant([4.0]), sparse], 2.5)
    assert norm == 5
    assert dense.numpy().tolist() == [2]
    assert clipped.values.numpy().tolist() == [[1.5]]


def test_gradients_below_the_limit_stay_as_they_are():
    (gradient,), norm = clip_by_global_norm([tf.constant([3.0, 4.0])], 10.0)
    assert gradient.numpy().tolist() == [3, 4]
    assert norm == 5
    assert clip_by_global_norm([tf.constant([3.0])], None)[0][0].numpy().tolist() == [3]


@pytest.mark.parametrize("name", ["adam", "adagrad", "rowwise_adagrad", "sgd"])
def test_sparse_and_dense_updates_agree_where_every_row_has_a_gradient(name):
    optimizer = OptimizerConfig(name, 0.3, beta_2=0.9, epsilon=1e-3, initial_accumulator=0.1)
    values = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
    start = np.ones((4, 3))
    shuffled = [2, 0, 3, 1]
    sparse = tf.IndexedSlices(tf.constant(values[shuffled]), tf.constant(shuffled))
    dense, dense_slots = stepped(optimizer, start, tf.constant(values), 3)
    found, slots = stepped(optimizer, start, sparse, 3)
    np.testing.assert_allclose(found, dense, rtol=1e-5)
    for slot, array in slots.items():
        np.testing.assert_allclose(array, dense_slots[slot], rtol=1e-5)


def test_adam_moves_by_its_rate_at_first():
    weights, _ = stepped(OptimizerConfig("adam", 0.01), np.zeros(2), tf.constant([5.0, -0.1]))
    np.testing.assert_allclose(weights, [-0.01, 0.01], rtol=1e-4)


def test_adagrad_has_no_epsilon_unless_it_is_given():
    optimizer = OptimizerConfig("adagrad", 0.2, initial_accumulator=0.0)
    weights, _ = stepped(optimizer, np.zeros(2), tf.constant([1e-6, 0.0]))
    np.testing.assert_allclose(weights, [-0.2, 0.0], rtol=1e-5)


def test_rowwise_adagrad_keeps_the_mean_square_of_each_row():
    optimizer = OptimizerConfig("rowwise_adagrad", 0.1, initial_accumulator=1.0)
    weights, slots = stepped(optimizer, np.zeros((2, 2)), tf.constant([[1.0, 7.0], [0.0, 0.0]]))
    assert slots["accumulator"].tolist() == [26, 1]
    np.testing.assert_allclose(weights[0], np.array([-0.1, -0.7]) / np.sqrt(26), rtol=1e-6)
    assert weights[1].tolist() == [0, 0]
