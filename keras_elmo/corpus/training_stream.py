"""TrainingStream: sentences joined into rows without end, and the rows cut into windows to train on."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from keras_elmo.character_ids import MAX_WORD_LENGTH
from keras_elmo.corpus.batch import Batch
from keras_elmo.corpus.checks import check_integer
from keras_elmo.corpus.reading import Reading, Steps
from keras_elmo.corpus.sentence_stream import SentenceStream
from keras_elmo.corpus.word_rows import WordRows
from keras_elmo.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class TrainingBatch(Batch):
    """A window of every row: a `Batch` of shape (batch_size, unroll_steps), without padding.

    Attributes:
        epoch: How many epochs are over: their last sentence was drawn, in this batch or before.
        position: The place in the data behind this batch, for `TrainingStream(position=...)`.
    """

    epoch: int
    position: dict[str, Any]


class TrainingStream:
    r"""Batches to train a biLM on by truncated back-propagation, packed as in bilm-tf.

    Each row is a stream of its own. A row takes the next sentence when it has none left, row by row,
    so row 1 begins with the second sentence although row 0 may not be through with the first. A
    window is exactly `unroll_steps` wide, and a sentence that is longer goes on in the same row of the
    next batch, where the model has its LSTM state from this one. Rows run on from one epoch into the
    next: an epoch is over when its last sentence is drawn. Unlike in bilm-tf, both directions see
    the same sentences in the same rows.

    At the end of the run, when a row cannot be filled any more, what is left in the rows makes no
    batch: `num_dropped` counts it.

    The place in the data is `position`: a small dict for JSON, with the sentences drawn in the epoch
    and for each row file, line and offset of the sentence in it. A stream that is made with it goes on
    exactly: it reads up to the place again, but cuts and spells nothing twice. Take it from the batch
    that was last trained on: the stream itself may have been asked for more ahead of that.

    For training on several devices, `batch_size` is that of all together: device k takes rows
    [k * n, (k + 1) * n), always the same, because they belong to its LSTM states.

    Reference: Peters et al. 2018, https://arxiv.org/abs/1802.05365, and `bilm-tf`.

    Args:
        sentences: The corpus.
        vocabulary: What gives words their ids; others are `<UNK>`.
        batch_size: Number of rows.
        unroll_steps: Steps in a window. Defaults to 20.
        max_word_length: Character ids per word. At least 3. Defaults to 50.
        num_epochs: When to stop. Defaults to `None`, never.
        position: Where to go on. Defaults to `None`, the beginning.

    Raises:
        ValueError: If an argument is out of range; if `position` is none, or one of another corpus, of
            other settings of `sentences` or of another number of rows. On the way, as `SentenceStream`;
            if the whole run is shorter than one batch.

    Example:
        >>> import os, tempfile
        >>> vocabulary = Vocabulary(["<S>", "</S>", "<UNK>", "the", "cat"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     name = os.path.join(folder, "two.txt")
        ...     with open(name, "w") as file:
        ...         _ = file.write("the cat sat on the cat\nthe cat\n")
        ...     sentences = SentenceStream(name, shuffle=False)
        ...     stream = TrainingStream(sentences, vocabulary, 2, unroll_steps=3, num_epochs=1)
        ...     for batch in stream:
        ...         print(batch.forward_targets, batch.position["rows"])
        [[3 4 2]
         [3 4 1]] [[0, 1, 3], None]
        >>> stream.num_dropped
        4
    """

    def __init__(
        self,
        sentences: SentenceStream,
        vocabulary: Vocabulary,
        batch_size: int,
        unroll_steps: int = 20,
        max_word_length: int = MAX_WORD_LENGTH,
        num_epochs: int | None = None,
        position: Mapping[str, Any] | None = None,
    ):
        self.sentences = sentences
        self.vocabulary = vocabulary
        self.batch_size = check_integer("batch_size", batch_size)
        self.unroll_steps = check_integer("unroll_steps", unroll_steps)
        self.num_epochs = None if num_epochs is None else check_integer("num_epochs", num_epochs)
        self._word_rows = WordRows(max_word_length)
        # Epochs over, and sentences drawn in the one that is not.
        self._epoch = self._num_drawn = 0
        self._rows: list[Reading | None] = [None] * self.batch_size
        # Steps drawn that are in no batch yet.
        self._num_pending = 0
        self._is_over = False
        self._ahead: TrainingBatch | None = None
        self._may_be_short = position is not None and bool(
            position.get("epoch") or position.get("sentence")
        )
        if position is not None:
            self._go_to(position)
        self._readings = self._draw()
        self._position = self._here()

    @property
    def position(self) -> dict[str, Any]:
        """The place in the data behind the last batch, at the end of the run as well."""
        return self._position

    @property
    def num_dropped(self) -> int:
        """At the end of the run: the predictions, in each direction, that made no whole batch. Before: 0."""
        return self._num_pending if self._is_over else 0

    def __iter__(self) -> Iterator[TrainingBatch]:
        return self

    def check(self) -> None:
        """Draws the first batch ahead: what is wrong with the text's beginning, or its length, is known then.

        Raises:
            ValueError: As the iteration.
        """
        place = self._position
        self._ahead = next(self, None)
        self._position = place

    def __next__(self) -> TrainingBatch:
        if self._ahead is not None:
            batch, self._ahead = self._ahead, None
            self._position = batch.position
            return batch
        steps = Steps()
        for row in range(self.batch_size):
            if self._is_over or not self._fill(row, steps):
                self._end()
                raise StopIteration
        self._num_pending -= self.batch_size * self.unroll_steps
        self._may_be_short = True
        self._position = self._here()
        return TrainingBatch.of(
            steps,
            [self.unroll_steps] * self.batch_size,
            self.vocabulary,
            self._word_rows,
            epoch=self._epoch,
            position=self._position,
        )

    def _fill(self, row: int, steps: Steps) -> bool:
        """Appends a row's window to `steps`; false if the run is over before it is full."""
        end = len(steps.forward_words) + self.unroll_steps
        while room := end - len(steps.forward_words):
            reading = self._rows[row] or next(self._readings, None)
            if reading is None:
                return False
            reading.read(room, steps)
            self._rows[row] = reading if reading.num_steps_left else None
        return True

    def _draw(self) -> Iterator[Reading]:
        while self.num_epochs is None or self._epoch < self.num_epochs:
            sentence = None
            for sentence in self.sentences.epoch(self._epoch, self._num_drawn):
                self._num_drawn += 1
                if sentence.is_last:
                    self._epoch += 1
                    self._num_drawn = 0
                reading = Reading(sentence.tokens, self.vocabulary, sentence[:2])
                self._num_pending += reading.num_steps_left
                yield reading
            if sentence is None:
                raise ValueError(
                    f"The corpus must have more than {self._num_drawn} sentences, as it had before, "
                    "but ends there. Has it changed?"
                )

    def _end(self) -> None:
        self._is_over = True
        if not self._may_be_short:
            raise ValueError(
                f"The run is shorter than one batch of {self.batch_size} rows of {self.unroll_steps} "
                f"steps: {self._num_pending} predictions in all (`num_epochs`: {self.num_epochs}). "
                "Take a smaller batch, fewer steps in a row, or more epochs."
            )

    def _here(self) -> dict[str, Any]:
        return {
            "corpus": self.sentences.fingerprint,
            "epoch": self._epoch,
            "sentence": self._num_drawn,
            "rows": [row and [*row.place, row.offset] for row in self._rows],
        }

    def _go_to(self, position: Mapping[str, Any]) -> None:
        corpus, rows = position.get("corpus"), position.get("rows", ())
        if corpus != self.sentences.fingerprint:
            raise ValueError(
                "The corpus must be the one that the position is in: the same files (name, size), format, shuffling "
                f"and seed. Received: corpus {self.sentences.fingerprint!r}, but the position is in {corpus!r}"
            )
        if len(rows) != self.batch_size:
            raise ValueError(
                "`position` must have as many rows as the batch. "
                f"Received: {len(rows)} rows and batch_size={self.batch_size}"
            )
        self._epoch = check_integer("position['epoch']", position.get("epoch"), minimum=0)
        self._num_drawn = check_integer("position['sentence']", position.get("sentence"), minimum=0)
        tokens = self.sentences.tokens_at(tuple(row[:2]) for row in rows if row)
        for number, row in enumerate(rows):
            if row:
                file, line, offset = row
                reading = Reading(tokens[file, line], self.vocabulary, (file, line), offset)
                if reading.num_steps_left <= 0:
                    raise ValueError(
                        f"{self.sentences.files[file]}, line {line}: must have {offset} tokens or more, "
                        f"as it had before, but has {offset + reading.num_steps_left - 1}. Has the "
                        "corpus changed?"
                    )
                self._rows[number] = reading
                self._num_pending += reading.num_steps_left
