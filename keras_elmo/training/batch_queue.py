"""BatchQueue: batches made in a thread of their own, so that the step never waits for them."""

import queue
import threading
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_elmo.corpus import TrainingBatch, TrainingStream, random_generator, sample_negatives
from keras_elmo.models import BidirectionalLanguageModel
from keras_elmo.training.pretrain_config import PretrainConfig

_AHEAD = 8


class QueuedBatch(NamedTuple):
    """What a step needs.

    Attributes:
        step: Its number, from 1.
        parts: For each local replica the inputs of `BidirectionalLanguageModel`, negatives included.
        dropout_seed: int32 (2,).
        epoch: Of the `TrainingBatch`.
        position: Of the `TrainingBatch`: the place in the data behind it.
    """

    step: int
    parts: list[dict[str, Any]]
    dropout_seed: np.ndarray
    epoch: int
    position: dict[str, Any]


class BatchQueue:
    """Iterates over the batches of a stream, a few of which are made ahead.

    What is random in a step depends on the run's seed and the number of the step alone. Use it in a `with`
    statement: leaving it ends the thread.

    Args:
        stream: The batches.
        model: What they are for.
        config: The numbers of the run.
        num_negatives: Words in a sample; `None` for the full softmax.
        first_step: Number of the first batch.
        rows: The rows of each local replica; `None` for all in one.
    """

    def __init__(
        self,
        stream: TrainingStream,
        model: BidirectionalLanguageModel,
        config: PretrainConfig,
        num_negatives: int | None,
        first_step: int,
        rows: Sequence[slice] | None = None,
    ):
        self._stream = stream
        self._model = model
        self._config = config
        self._num_negatives = num_negatives
        self._first_step = first_step
        self._rows = rows or [slice(0, config.batch_size)]
        self._queue: queue.Queue[QueuedBatch | BaseException | None] = queue.Queue(_AHEAD)
        self._leaving = threading.Event()
        self._thread = threading.Thread(target=self._fill, name="batches", daemon=True)

    def __enter__(self) -> "BatchQueue":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving.set()
        self._thread.join()

    def __iter__(self) -> Iterator[QueuedBatch]:
        while True:
            item = self._queue.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item

    def _fill(self) -> None:
        last: BaseException | None = None
        try:
            for step, batch in enumerate(self._stream, start=self._first_step):
                if not self._put(self._queued(step, batch)):
                    return
        except BaseException as error:  # it is raised where the batches are used
            last = error
        self._put(last)

    def _put(self, item: QueuedBatch | BaseException | None) -> bool:
        while not self._leaving.is_set():
            try:
                self._queue.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def _queued(self, step: int, batch: TrainingBatch) -> QueuedBatch:
        inputs = self._model.inputs_of(batch)
        sampled: dict[str, Any] = {}
        if self._num_negatives is not None:
            num_words = len(self._model.vocabulary)
            sampled = negatives(step, self._config, self._num_negatives, num_words)
        parts = [part_of(inputs, rows) | sampled for rows in self._rows]
        seed = random_generator("dropout", self._config.seed, step).integers(2**30, size=2)
        return QueuedBatch(step, parts, seed.astype(np.int32), batch.epoch, batch.position)


def part_of(inputs: dict[str, np.ndarray], rows: slice) -> dict[str, np.ndarray]:
    """Some rows of a batch, with the distinct words of these only.

    Example:
        >>> inputs = {"word_ids": np.array([[0], [7], [8]]), "forward_words": np.array([[1, 1], [2, 2]])}
        >>> inputs |= {"backward_words": np.array([[1, 1], [2, 2]])}
        >>> part = part_of(inputs, slice(1, 2))
        >>> part["word_ids"].tolist(), part["forward_words"].tolist()
        ([[0], [8]], [[1, 1]])
    """
    if rows == slice(0, len(inputs["forward_words"])):
        return inputs
    part = {name: value[rows] for name, value in inputs.items() if name != "word_ids"}
    read = np.stack([part["forward_words"], part["backward_words"]])
    # Word 0 stands for "no word", and stays where it is.
    words = np.union1d([0], read)
    part["forward_words"], part["backward_words"] = np.searchsorted(words, read).astype(np.int32)
    return part | {"word_ids": inputs["word_ids"][words]}


def negatives(
    step: int, config: PretrainConfig, num_negatives: int, vocabulary_size: int
) -> dict[str, Any]:
    """The negatives of a step, as `BidirectionalLanguageModel` takes them."""
    inputs: dict[str, Any] = {}
    for number, direction in enumerate(("forward", "backward")):
        if number == 0 or not config.share_negatives:
            generator = random_generator("negatives", config.seed, step, number)
            sample = sample_negatives(num_negatives, vocabulary_size, generator)
        inputs[f"{direction}_negatives"] = sample.ids
        inputs[f"{direction}_num_tries"] = np.float32(sample.num_tries)
    return inputs
