"""ScalarWriter: curves for TensorBoard."""

import os
from collections.abc import Mapping

import tensorflow as tf


class ScalarWriter:
    """Writes numbers over steps to an event file, which TensorBoard shows as curves.

    `tf.summary.scalar` needs TensorBoard to be installed; the operations below are TensorFlow's own.

    Args:
        folder: Where the event file is made.
    """

    def __init__(self, folder: str | os.PathLike):
        self._writer = tf.raw_ops.SummaryWriter(shared_name="", container="")
        tf.raw_ops.CreateSummaryFileWriter(
            writer=self._writer,
            logdir=os.fspath(folder),
            max_queue=100,
            flush_millis=10_000,
            filename_suffix="",
        )

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Writes the values of a step."""
        for tag, value in values.items():
            tf.raw_ops.WriteScalarSummary(
                writer=self._writer, step=step, tag=tag, value=tf.constant(value, tf.float32)
            )

    def flush(self) -> None:
        """Brings everything to disk."""
        tf.raw_ops.FlushSummaryWriter(writer=self._writer)

    def close(self) -> None:
        """Ends the file."""
        tf.raw_ops.CloseSummaryWriter(writer=self._writer)
