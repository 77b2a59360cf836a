"""Updates of weights, with the state they need in the open.

What happens to gradients between the batch and the weights is a row of separate functions: average over replicas
(`mean_of_replicas`), merge duplicate rows, clip by the norm of all together, update. Keras' optimizers do other things
in other orders: they clip before replicas are summed, and their Adagrad takes rows that stand twice for two gradients.
"""

from collections.abc import Sequence
from typing import TypeAlias

import tensorflow as tf

from keras_elmo.training.optimizer_config import OptimizerConfig

Gradient: TypeAlias = "tf.Tensor | tf.IndexedSlices"
Slots = dict[str, tf.Variable]

_SLOTS = {
    "adam": ("first_moment", "second_moment"),
    "adagrad": ("accumulator",),
    "rowwise_adagrad": ("accumulator",),
    "sgd": (),
}


def make_slots(optimizer: OptimizerConfig, variable: tf.Variable) -> Slots:
    """Makes the state that an optimizer keeps for a variable, as it is before the first step."""
    rowwise = optimizer.name == "rowwise_adagrad"
    shape = variable.shape[:1] if rowwise else variable.shape
    start = 0.0 if optimizer.name == "adam" else optimizer.initial_accumulator
    return {
        name: tf.Variable(tf.fill(shape, tf.cast(start, variable.dtype)), trainable=False)
        for name in _SLOTS[optimizer.name]
    }


def merge_duplicate_rows(gradient: Gradient) -> Gradient:
    """A sparse gradient with the sum of its rows of the same index in one row; a dense one as it is.

    Example:
        >>> rows = tf.IndexedSlices(tf.constant([[1.0], [5.0], [2.0]]), tf.constant([0, 3, 0]))
        >>> merged = merge_duplicate_rows(rows)
        >>> merged.indices.numpy().tolist(), merged.values.numpy().tolist()
        ([0, 3], [[3.0], [5.0]])
    """
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    indices, places = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, places, tf.size(indices))
    return tf.IndexedSlices(values, indices, gradient.dense_shape)


def clip_by_global_norm(
    gradients: Sequence[Gradient], limit: float | None
) -> tuple[list[Gradient], tf.Tensor]:
    """Scales gradients so that the norm of all together is at most `limit`; returns the norm before that, too.

    Rows of sparse gradients must have been merged.
    """
    squares = [tf.nn.l2_loss(_values(gradient)) for gradient in gradients]
    norm = tf.sqrt(2.0 * tf.add_n(squares))
    if limit is None:
        return list(gradients), norm
    scale = limit / tf.maximum(norm, limit)
    return [_with_values(gradient, _values(gradient) * scale) for gradient in gradients], norm


def update(
    optimizer: OptimizerConfig,
    variable: tf.Variable,
    gradient: Gradient,
    slots: Slots,
    learning_rate: tf.Tensor,
    step: tf.Tensor,
) -> None:
    """Changes a variable and its slots.

    A sparse gradient, of distinct rows, changes its rows only: also in Adam, where the moments of other rows do
    not decay meanwhile.

    Args:
        optimizer: Which, and its numbers but for the rate.
        variable: The variable.
        gradient: Its gradient.
        slots: Its slots, of `make_slots`.
        learning_rate: float32 scalar, the rate at this step.
        step: float32 scalar, the number of the step, from 1.
    """
    if optimizer.name == "sgd":
        _move(variable, gradient, learning_rate * _values(gradient))
    elif optimizer.name == "adam":
        _adam(optimizer, variable, gradient, slots, learning_rate, step)
    else:
        _adagrad(optimizer, variable, gradient, slots, learning_rate)


def _adam(optimizer, variable, gradient, slots, learning_rate, step) -> None:
    first, second = slots["first_moment"], slots["second_moment"]
    beta_1, beta_2 = optimizer.beta_1, optimizer.beta_2
    if not isinstance(gradient, tf.IndexedSlices):
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=first.handle,
            v=second.handle,
            beta1_power=tf.pow(beta_1, step),
            beta2_power=tf.pow(beta_2, step),
            lr=learning_rate,
            beta1=beta_1,
            beta2=beta_2,
            epsilon=optimizer.epsilon,
            grad=gradient,
        )
        return
    values, indices = gradient.values, gradient.indices
    m = beta_1 * tf.gather(first, indices) + (1.0 - beta_1) * values
    v = beta_2 * tf.gather(second, indices) + (1.0 - beta_2) * tf.square(values)
    first.scatter_update(tf.IndexedSlices(m, indices))
    second.scatter_update(tf.IndexedSlices(v, indices))
    rate = learning_rate * tf.sqrt(1.0 - tf.pow(beta_2, step)) / (1.0 - tf.pow(beta_1, step))
    _move(variable, gradient, rate * m / (tf.sqrt(v) + optimizer.epsilon))


def _adagrad(optimizer, variable, gradient, slots, learning_rate) -> None:
    accumulator, values = slots["accumulator"], _values(gradient)
    rowwise = optimizer.name == "rowwise_adagrad"
    never_zero = optimizer.initial_accumulator > 0 or optimizer.epsilon > 0
    if never_zero and not rowwise and not isinstance(gradient, tf.IndexedSlices):
        tf.raw_ops.ResourceApplyAdagradV2(
            var=variable.handle,
            accum=accumulator.handle,
            lr=learning_rate,
            epsilon=optimizer.epsilon,
            grad=gradient,
        )
        return
    squares = tf.square(values)
    if rowwise and values.shape.rank > 1:
        squares = tf.reduce_mean(squares, axis=list(range(1, values.shape.rank)))
    if isinstance(gradient, tf.IndexedSlices):
        sums = tf.gather(accumulator, gradient.indices) + squares
        accumulator.scatter_update(tf.IndexedSlices(sums, gradient.indices))
    else:
        sums = accumulator.assign_add(squares)
    # Where nothing has ever come and nothing was there at the start, 0 / 0 must be no move.
    factors = tf.math.divide_no_nan(learning_rate, tf.sqrt(sums) + optimizer.epsilon)
    if rowwise:
        factors = tf.reshape(factors, [-1, *[1] * (values.shape.rank - 1)])
    _move(variable, gradient, factors * values)


def _move(variable: tf.Variable, gradient: Gradient, step: tf.Tensor) -> None:
    if isinstance(gradient, tf.IndexedSlices):
        variable.scatter_sub(tf.IndexedSlices(step, gradient.indices))
    else:
        variable.assign_sub(step)


def _values(gradient: Gradient) -> tf.Tensor:
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient


def _with_values(gradient: Gradient, values: tf.Tensor) -> Gradient:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return values
