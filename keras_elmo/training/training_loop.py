"""TrainingLoop: steps, and what happens between them: log, validation, checkpoints, an end in good order."""

import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from keras_elmo.corpus import TrainingStream
from keras_elmo.models import BidirectionalLanguageModel
from keras_elmo.training.batch_queue import BatchQueue, QueuedBatch
from keras_elmo.training.evaluate import Evaluation, evaluate
from keras_elmo.training.pretrain_config import PretrainConfig
from keras_elmo.training.run_files import RunFiles
from keras_elmo.training.scalar_writer import ScalarWriter
from keras_elmo.training.stop_signals import StopSignals
from keras_elmo.training.training_corpus import TrainingCorpus
from keras_elmo.training.training_step import Losses, TrainingStep


class Progress(NamedTuple):
    """Where a run stands.

    Attributes:
        stage: "training" or "validating".
        step: Steps taken.
        total_steps: Steps of the run, as far as is known before its end.
        epoch: Epochs over.
        loss_name: "sampled_loss", or "loss" if the softmax is computed in full.
        loss: Mean of both directions, of the last step. Sampled, it is no measure of how good the model is.
        tokens_per_second: Predictions per second and direction, over the last steps.
        seconds_left: Until the end of the run, if that is known.
    """

    stage: str
    step: int
    total_steps: int | None
    epoch: int
    loss_name: str
    loss: float
    tokens_per_second: float
    seconds_left: float | None


Report = Callable[[Progress], None]


class TrainingLoop:
    """Runs a run.

    Args:
        config: The numbers of the run.
        files: Its folder.
        step: What a step does, with weights and state as they are at the place where the run begins.
        stream: The batches, from that place on.
        progress: Of the checkpoint at that place.
        total_steps: Steps of the run, as far as is known.
        num_negatives: Words in a sample; `None` for the full softmax.
        validation: Sentences to validate on.
        metadata: For the presets of the checkpoints.
        report: Called after each step.
        say: Gets sentences for people.

    With several processes each runs a loop. They stop, validate and save at the same steps; the chief alone measures,
    writes and tells.
    """

    def __init__(
        self,
        config: PretrainConfig,
        files: RunFiles,
        step: TrainingStep,
        stream: TrainingStream,
        progress: dict[str, Any],
        total_steps: int | None,
        num_negatives: int | None,
        validation: TrainingCorpus | None,
        metadata: dict[str, Any],
        report: Report,
        say: Callable[[str], None],
    ):
        self._config = config
        self._files = files
        self._step = step
        self._stream = stream
        self.progress = dict(progress)
        self._total_steps = total_steps
        self._num_negatives = num_negatives
        self._validation = validation
        self._metadata = metadata
        self._report = report
        self._say = say
        self._replicas = step.replicas
        self._writer: ScalarWriter | None = None
        self._loss_name = "loss" if num_negatives is None else "sampled_loss"
        self._saved = self.progress["step"]
        self._clock = _Clock(config.batch_size * config.unroll_steps)

    @property
    def model(self) -> BidirectionalLanguageModel:
        """The model that is trained."""
        return self._step.model

    def run(self) -> int | None:
        """Trains to the end, or until a signal comes; returns its number, or `None`."""
        batches = BatchQueue(
            self._stream,
            self.model,
            self._config,
            self._num_negatives,
            first_step=self.progress["step"] + 1,
            rows=self._step.rows,
        )
        if self._replicas.is_chief:
            self._writer = ScalarWriter(self._files.tensorboard_folder)
        with StopSignals() as stop:
            try:
                with batches:
                    self._train(iter(batches), stop)
                self._end(stop)
            except _Stopped:
                self._say(f"Stopping: writing the checkpoint of step {self.progress['step']:,}.")
            finally:
                if self._writer is not None:
                    self._writer.close()
            self._save()
        return stop.received

    def _train(self, batches: Iterator[QueuedBatch], stop: StopSignals) -> None:
        config = self._config
        # A run that was stopped amid its validation catches up on it.
        self._validate_if_due(stop)
        while config.max_steps is None or self.progress["step"] < config.max_steps:
            batch = self._next(batches, stop)
            if batch is None:
                return
            losses = self._take(batch)
            step = batch.step
            if step % config.log_every == 0:
                self._log(losses)
            self._show("training", losses)
            self._validate_if_due(stop)
            if step % config.save_every == 0:
                self._save()

    def _next(self, batches: Iterator[QueuedBatch], stop: StopSignals) -> QueuedBatch | None:
        """The next batch; `None` at the end of the text. What ends the run in one process ends it in all."""
        batch, error = None, None
        try:
            batch = next(batches, None)
        except (ValueError, OSError) as caught:
            error = caught
        worst = self._replicas.maximum(
            3 if error else 2 if stop.received is not None else 1 if batch is None else 0
        )
        if worst == 3:
            # A file of the corpus: what was learned until then is kept.
            self._save()
            raise error or ValueError(
                "Another process could not read its text: it says what is wrong."
            )
        if worst == 2:
            self._stop(stop)
        return None if worst == 1 else batch

    def _stop(self, stop: StopSignals) -> None:
        # It may have come to another process.
        stop.received = stop.received or signal.SIGTERM
        raise _Stopped

    def _take(self, batch: QueuedBatch) -> Losses:
        self._clock.start()
        rate = self._config.rate(batch.step, self._total_steps)
        losses = self._step(batch.parts, batch.dropout_seed, batch.step, rate)
        if not math.isfinite(sum(losses)):
            raise self._not_finite(
                f"at step {batch.step} the loss is {losses.forward:g} forward and {losses.backward:g} backward, "
                f"and the gradient's norm {losses.gradient_norm:g}"
            )
        self._clock.tick()
        self.progress |= {
            "step": batch.step,
            "epoch": batch.epoch,
            "position": batch.position,
        }
        return losses

    def _log(self, losses: Losses) -> None:
        step, name = self.progress["step"], self._loss_name
        rate = self._config.rate(step, self._total_steps)
        values = {
            name: (losses.forward + losses.backward) / 2,
            f"forward_{name}": losses.forward,
            f"backward_{name}": losses.backward,
            "gradient_norm": losses.gradient_norm,
            "learning_rate": rate * self._config.network_optimizer.learning_rate,
            "tokens_per_second": self._clock.rate(),
        }
        self._record({"epoch": self.progress["epoch"]} | values, values)

    def _show(self, stage: str, losses: Losses) -> None:
        rate = self._clock.rate()
        left = None
        if self._total_steps is not None and rate:
            steps_left = max(self._total_steps - self.progress["step"], 0)
            left = steps_left * self._clock.tokens_per_step / rate
        self._report(
            Progress(
                stage,
                self.progress["step"],
                self._total_steps,
                self.progress["epoch"],
                self._loss_name,
                (losses.forward + losses.backward) / 2,
                rate,
                left,
            )
        )

    def _record(self, entry: Mapping[str, Any], curves: Mapping[str, float]) -> None:
        """Appends to the log and the curves."""
        if self._writer is not None:
            step = self.progress["step"]
            self._files.log({"step": step, **entry})
            self._writer.write(step, curves)

    def _end(self, stop: StopSignals) -> None:
        if self._validation is not None:
            self._validate(stop)
        if self._stream.num_dropped:
            self._say(
                f"The last {self._stream.num_dropped:,} predictions per direction fill no whole batch: dropped."
            )
        self._record({"event": "end", "num_dropped": self._stream.num_dropped}, {})

    def _validate_if_due(self, stop: StopSignals) -> None:
        step, every = self.progress["step"], self._config.validate_every
        if self._validation is not None and every is not None and step and step % every == 0:
            self._validate(stop)

    def _validate(self, stop: StopSignals) -> None:
        step = self.progress["step"]
        if self._validation is None or self.progress.get("validated") == step:
            return
        self._clock.pause()
        result = None
        if self._replicas.is_chief:
            result = self._evaluation(self._validation, stop)
        # The others have waited here.
        if self._replicas.maximum(int(self._replicas.is_chief and result is None)):
            self._stop(stop)
        self.progress["validated"] = step
        if result is not None:
            self._tell(result)
        self._save(anew=True)

    def _evaluation(self, validation: TrainingCorpus, stop: StopSignals) -> Evaluation | None:
        """The perplexity of the model; `None` if a signal came amid it."""
        try:
            return evaluate(self._step.model_on_one_device(), _until(stop, validation.sentences()))
        except _Stopped:
            return None

    def _tell(self, result: Evaluation) -> None:
        step, best = self.progress["step"], self.progress["best"]
        curves = _curves(result)
        self._record(
            {"validation": result._asdict()},
            {f"validation_{name}": float(value) for name, value in curves.items()},
        )
        if self._writer is not None:
            self._writer.flush()
        is_best = best is None or result.perplexity < best["perplexity"]
        self._say(
            f"Step {step:,}: perplexity on validation text {result.perplexity:,.1f} "
            f"(forward {result.forward_perplexity:,.1f}, backward {result.backward_perplexity:,.1f})"
            + (", the best so far" if is_best and best is not None else "")
        )
        if is_best:
            self.progress["best"] = {"step": step} | curves

    def _save(self, anew: bool = False) -> None:
        """Writes a checkpoint, unless there is one of this step and nothing is new in it."""
        step = self.progress["step"]
        if self._saved == step and not anew:
            return
        self._clock.pause()
        # The loss of a step is that of the weights before it.
        if not self._step.is_finite():
            raise self._not_finite(f"some weights are not after step {step}")
        arrays = self._step.arrays()
        self._replicas.by_chief(lambda: self._write(arrays))
        self._saved = step

    def _write(self, arrays: Mapping[str, Any]) -> None:
        metadata = self._metadata | {"step": self.progress["step"]}
        self._files.write_checkpoint(self.model, arrays, self.progress, metadata)
        best = self.progress["best"]
        self._files.remove_old_checkpoints(self._config.keep_checkpoints, best and best["step"])

    def _not_finite(self, what: str) -> ValueError:
        return ValueError(
            f"Training must stay within finite numbers, but {what}. The checkpoint of step {self._saved} is intact. "
            "A smaller `learning_rate` or `clip_norm`, or a longer warm-up, may help."
        )


class _Stopped(Exception):
    """A signal came, to this process or to another."""


def _until(stop: StopSignals, sentences: Iterator[Sequence[str]]) -> Iterator[Sequence[str]]:
    for sentence in sentences:
        if stop.received is not None:
            raise _Stopped
        yield sentence


def _curves(result: Evaluation) -> dict[str, float]:
    return {name: value for name, value in result._asdict().items() if name.endswith("perplexity")}


class _Clock:
    """How fast steps go, over the last ones; what lies between steps does not count."""

    _SMOOTHING = 0.9

    def __init__(self, tokens_per_step: int):
        self.tokens_per_step = tokens_per_step
        self._last: float | None = None
        self._seconds: float | None = None

    def start(self) -> None:
        """Before a step."""
        if self._last is None:
            self._last = time.monotonic()

    def tick(self) -> None:
        """After a step; the first one, in which TensorFlow compiles, does not count."""
        now = time.monotonic()
        if self._seconds is None:
            self._seconds = 0.0
        elif self._last is not None:
            seconds = now - self._last
            old = self._seconds or seconds
            self._seconds = self._SMOOTHING * old + (1 - self._SMOOTHING) * seconds
        self._last = now

    def pause(self) -> None:
        """Before something else than a step."""
        self._last = None

    def rate(self) -> float:
        """Tokens per second; 0 as long as it is not known."""
        return self.tokens_per_step / self._seconds if self._seconds else 0.0
