"""Table: the examples of a task as columns of arrays, and batches of them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf

LAYER_OUTPUTS = "layer_outputs"
# Training batches are put together from so many batches' worth of examples of about the same length.
_BATCHES_SORTED_TOGETHER = 16


class Table:
    """Columns by name, each with a value for every example: a number, or an array of any length.

    Args:
        columns: The columns, all of the same length, of NumPy scalars, bytes, or arrays, which
            hold strings as bytes and objects.
        sizes: How large each example is, for putting those of about the same size into a batch.
    """

    def __init__(self, columns: Mapping[str, Any], sizes: np.ndarray):
        self.columns = dict(columns)
        self.sizes = sizes

    def __len__(self) -> int:
        return len(self.sizes)

    def batch(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Some of the examples, padded to the longest of them."""
        return {
            name: _padded([column[row] for row in rows], name)
            for name, column in self.columns.items()
        }

    def signature(self) -> dict[str, tf.TensorSpec]:
        """What batches look like, whatever their sizes."""
        specs = {}
        for name, column in self.columns.items():
            value = np.asarray(column[0])
            dtype = tf.string if value.dtype == object else tf.as_dtype(value.dtype)
            shape = [None] * (value.ndim + 1)
            if name.endswith(LAYER_OUTPUTS):
                shape[-1] = value.shape[-1]
            specs[name] = tf.TensorSpec(shape, dtype)
        return specs


def padding_of(name: str) -> int:
    """What stands where a row of numbers is shorter than the longest of its batch."""
    return -1 if name.endswith("token_words") else 0


def by_size(sizes: np.ndarray, batch_size: int) -> Iterator[np.ndarray]:
    """Rows in batches, the largest first: padding costs nothing, and what does not fit fails at once."""
    order = np.argsort(-sizes, kind="stable")
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]


def shuffled(sizes: np.ndarray, batch_size: int) -> Iterator[np.ndarray]:
    """Rows in batches, at random but for rows of about the same size being together."""
    order = np.random.permutation(len(sizes))
    batches = []
    for start in range(0, len(order), _BATCHES_SORTED_TOGETHER * batch_size):
        window = order[start : start + _BATCHES_SORTED_TOGETHER * batch_size]
        window = window[np.argsort(sizes[window], kind="stable")]
        batches += [window[i : i + batch_size] for i in range(0, len(window), batch_size)]
    for place in np.random.permutation(len(batches)):
        yield batches[place]


@contextmanager
def dataset(
    inputs: Table,
    targets: Table,
    weights: np.ndarray | None,
    batch_size: int,
    shuffle: bool,
) -> Iterator[tf.data.Dataset]:
    """Batches of (inputs, targets) or (inputs, targets, weights) for Keras; every epoch is shuffled anew."""
    # TensorFlow keeps the generator as long as the process lives: behind the block it has no data any more.
    source = [(inputs, targets, weights)]
    sizes = inputs.sizes

    def batch(rows):
        [(inputs, targets, weights)] = source
        made = (inputs.batch(rows), targets.batch(rows))
        return made if weights is None else (*made, weights[rows])

    def batches():
        for rows in (shuffled if shuffle else by_size)(sizes, batch_size):
            if not source:
                return
            yield batch(rows)

    signature: tuple[Any, ...] = (inputs.signature(), targets.signature())
    if weights is not None:
        signature = (*signature, tf.TensorSpec([None], tf.float32))
    found = tf.data.Dataset.from_generator(batches, output_signature=signature)
    num_batches = -(-len(inputs) // batch_size)
    try:
        yield found.apply(tf.data.experimental.assert_cardinality(num_batches)).prefetch(2)
    finally:
        source.clear()


def _padded(values: list[Any], name: str) -> np.ndarray:
    first = np.asarray(values[0])
    if first.ndim == 0:
        # NumPy's own type of bytes would cut all to the length of the first.
        return np.asarray(values, object if first.dtype.kind == "S" else first.dtype)
    # One column at least: Keras' LSTM takes no sentences without any.
    longest = max(1, *map(len, values))
    if name.endswith(LAYER_OUTPUTS):
        return _padded_layer_outputs(values)
    padding = b"" if first.dtype == object else padding_of(name)
    batch = np.full((len(values), longest), padding, first.dtype)
    for row, value in zip(batch, values, strict=True):
        row[: len(value)] = value
    return batch


def _padded_layer_outputs(values: list[np.ndarray]) -> np.ndarray:
    """As `ElmoModel.bilm` has them: `</S>` in the last column of the batch, behind the padding."""
    longest = max(3, *map(len, values))
    batch = np.zeros((len(values), longest, values[0].shape[1]), values[0].dtype)
    for row, value in zip(batch, values, strict=True):
        row[: len(value) - 1] = value[:-1]
        row[-1] = value[-1]
    return batch
