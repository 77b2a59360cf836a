"""Replicas: the devices that train together, as the training needs them."""

import contextlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from keras_elmo.training.optimizers import Gradient, merge_duplicate_rows

# What TensorFlow raises when it waits for a process that is no more.
_LOST = (
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.InternalError,
    tf.errors.UnavailableError,
)


class Replicas:
    """The devices of a strategy, of which those of this process are "local".

    Args:
        strategy: The strategy.

    Attributes:
        strategy: The strategy.
        count: How many devices train together.
        num_workers: How many processes.
        is_chief: Whether this process is the one that writes files.
    """

    def __init__(self, strategy: tf.distribute.Strategy):
        self.strategy = strategy
        self.count = strategy.num_replicas_in_sync
        numbers = strategy.experimental_distribute_values_from_function(
            lambda context: context.replica_id_in_sync_group
        )
        self._local = list(strategy.experimental_local_results(numbers))
        self.num_workers = self.count // len(self._local)
        self.is_chief = self._local[0] == 0
        self._gather = tf.function(self._gathered)

    def rows(self, batch_size: int) -> list[slice]:
        """The rows of a batch that each local device has: device k of n the k-th part of n.

        Raises:
            ValueError: If the parts are not of the same size.
        """
        size, rest = divmod(batch_size, self.count)
        if rest:
            raise ValueError(
                f"`batch_size`, of all devices together, must be divisible by their number, {self.count}. "
                f"Received: batch_size={batch_size}"
            )
        return [slice(number * size, (number + 1) * size) for number in self._local]

    def run(self, function: Callable[..., Any], parts: Sequence[Any], *args: Any) -> Any:
        """Calls `function(part, *args)` on each local device; what it returns is for `local_results`."""
        part = self.strategy.experimental_distribute_values_from_function(
            lambda context: parts[context.replica_id_in_sync_group - self._local[0]]
        )
        return self.strategy.run(function, args=(part, *args))

    def local_results(self, values: Any) -> list[Any]:
        """What each local device returned."""
        flat = [self.strategy.experimental_local_results(v) for v in tf.nest.flatten(values)]
        return [tf.nest.pack_sequence_as(values, part) for part in zip(*flat, strict=True)]

    def gather(self, parts: Sequence[Any]) -> Any:
        """The rows of all devices, in their order, from those of the local ones; all processes must ask at once."""
        return parts[0] if self.count == 1 else self._gather(list(parts))

    def _gathered(self, parts):
        def gather(values):
            context = tf.distribute.get_replica_context()
            # As what the replica has made: collectives want to know where a tensor is.
            return tf.nest.map_structure(
                lambda value: context.all_gather(tf.identity(value), axis=0), values
            )

        return self.local_results(self.run(gather, parts))[0]

    def maximum(self, value: int) -> int:
        """The largest of the numbers of all processes, which must ask at once."""
        if self.num_workers == 1:
            return value
        # As many as there are local devices, for each of them tells something.
        return int(tf.reduce_max(self.gather([tf.constant([value])] * len(self._local))))

    def by_chief(self, function: Callable[[], Any]) -> None:
        """Calls a function in the chief alone, while all wait; if it fails there, it fails everywhere."""
        error = None
        if self.is_chief:
            try:
                function()
            except (ValueError, OSError) as caught:
                error = caught
        if self.maximum(int(error is not None)):
            raise error or OSError("The first process of the run failed: it says why.")

    def check_same(self, *what: Any) -> None:
        """Raises a ValueError, in all processes, unless all say the same of what they are about to train."""
        digest = zlib.crc32(repr(what).encode()) >> 1
        if self.maximum(digest) != -self.maximum(-digest):
            raise ValueError(
                "All processes of a run must have the same configuration, vocabulary and text (files of the same names "
                "and sizes), and begin at the same checkpoint. Received: different ones."
            )

    @contextlib.contextmanager
    def ended_with_others(self) -> Iterator[None]:
        """Turns what TensorFlow raises when it has lost a process into one sentence.

        Raises:
            ConnectionError: If another process has ended, or is out of reach.
        """
        try:
            yield
        except _LOST as error:
            if self.num_workers == 1:
                raise
            raise ConnectionError(
                "Another process of the run has ended, or cannot be reached any more; if it could, it said why. The "
                "last checkpoint is whole: start all processes again, with --resume."
            ) from error


def mean_of_replicas(gradients: Sequence[Gradient]) -> list[Gradient]:
    """On one of several devices: the mean of all devices' gradients; rows of sparse ones stand side by side."""
    context: Any = tf.distribute.get_replica_context()
    count = context.num_replicas_in_sync
    if count == 1:
        return list(gradients)
    # Merged first, for less to send.
    gradients = [merge_duplicate_rows(gradient) for gradient in gradients]
    dense = [g for g in gradients if not isinstance(g, tf.IndexedSlices)]
    means = iter(context.all_reduce(tf.distribute.ReduceOp.MEAN, dense) if dense else ())
    return [
        tf.IndexedSlices(
            context.all_gather(gradient.values, axis=0) / count,
            context.all_gather(gradient.indices, axis=0),
            gradient.dense_shape,
        )
        if isinstance(gradient, tf.IndexedSlices)
        else next(means)
        for gradient in gradients
    ]
