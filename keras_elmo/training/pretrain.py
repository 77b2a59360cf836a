"""pretrain: a biLM from text."""

import contextlib
import os
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_elmo.corpus import TrainingStream, counts_path, frequencies_fall, load_counts
from keras_elmo.models import BidirectionalLanguageModel
from keras_elmo.training.pretrain_config import PretrainConfig
from keras_elmo.training.replicas import Replicas
from keras_elmo.training.run_files import RunFiles
from keras_elmo.training.starting_model import check_same_vocabulary, model_from, new_model
from keras_elmo.training.strategies import make_strategy
from keras_elmo.training.training_corpus import TrainingCorpus
from keras_elmo.training.training_loop import Report, TrainingLoop
from keras_elmo.training.training_step import TrainingStep
from keras_elmo.vocabulary import Vocabulary

AnyPath = str | os.PathLike
Say = Callable[[str], None]

# With so large a part of the vocabulary in the sample, the full softmax costs no more and is exact.
_NEARLY_ALL = 0.9
# What is off by more than this is reported.
_TOLERANCE = 0.1


class PretrainResult(NamedTuple):
    """How a run ended.

    Attributes:
        step: Steps taken, those before it was resumed included.
        epoch: Epochs over.
        best: Step and perplexities of the best checkpoint by validation, or `None`.
        stopped_by: Number of the signal that stopped it, or `None`.
    """

    step: int
    epoch: int
    best: dict[str, Any] | None
    stopped_by: int | None


def pretrain(
    config: PretrainConfig,
    corpus: TrainingCorpus,
    vocabulary_file: AnyPath,
    output: AnyPath,
    validation: TrainingCorpus | None = None,
    start_from: AnyPath | None = None,
    new_vocabulary: bool = False,
    report: Report = lambda progress: None,
    say: Say = lambda message: None,
    strategy: str | tf.distribute.Strategy = "single",
) -> PretrainResult:
    """Trains a biLM by truncated back-propagation and keeps all of it in a folder.

    The same configuration and corpus give the same weights, bit for bit on a CPU: TensorFlow's operations are made
    deterministic and its seeds are set, for the whole process. SIGTERM and SIGINT end the run with a checkpoint.

    On several devices each has its rows of the batch, and the run is that of one device with the whole batch, but for
    the dropout and rounding. Of several processes, all call this with the same arguments; the first ("chief") writes,
    reports and says, and `output` must be a folder that all of them see, for the day when they go on with the run.

    Reference: Peters et al. (2018), "Deep contextualized word representations", section 3.1
    (https://arxiv.org/abs/1802.05365), and `bilm-tf`.

    Args:
        config: The numbers of the run.
        corpus: The text.
        vocabulary_file: The words to predict. Counts of theirs that stand beside it (`vocab.counts.tsv`) are used;
            without them, or if the run's length is given in epochs, the corpus is counted.
        output: The run's folder, which must not exist or be empty. It is a valid `source` of `load_model`.
        validation: Text on which the perplexity is measured on the way. The best model is kept.
        start_from: A model to train on, anything `load_model` reads. It brings the architecture.
        new_vocabulary: Whether the vocabulary may be another than that model's. The softmax keeps what predicts the
            words of both.
        report: Called with the `Progress` after each step.
        say: Called with sentences for people.
        strategy: The devices: a name of `make_strategy`, or a `tf.distribute.Strategy`.

    Returns:
        The `PretrainResult`.

    Raises:
        ValueError: If something does not fit, before the first step where that can be known; if the loss is no
            longer a finite number. The last checkpoint is whole in any case.
        OSError: If a checkpoint cannot be written; those before it are whole. If another process of the run is lost.
    """
    replicas = _replicas(strategy)
    report, say = _of_chief(replicas, report, say)
    with replicas.ended_with_others():
        replicas.rows(config.batch_size)
        replicas.by_chief(lambda: RunFiles.check_new(output))
        tf.config.experimental.enable_op_determinism()
        vocabulary = Vocabulary.load(vocabulary_file)
        stream = corpus.stream(config)
        if validation is not None:
            _check_has_sentences(validation)
        counts, num_predictions = _counts(config, corpus, vocabulary, vocabulary_file, say)
        # Before the model is made: each process makes its own, of the weights of the first.
        replicas.check_same(
            config.to_json(), vocabulary.sha256, stream.fingerprint, start_from is None
        )
        if new_vocabulary and start_from is None:
            raise ValueError("--new-vocabulary must come with --from MODEL.")
        with replicas.strategy.scope():
            if start_from is None:
                model = new_model(config, vocabulary, counts)
            else:
                model, config = model_from(
                    start_from, config, vocabulary, counts, new_vocabulary, say
                )
        step = TrainingStep(model, config, replicas.strategy)
        batches = TrainingStream(
            stream,
            vocabulary,
            config.batch_size,
            config.unroll_steps,
            config.max_word_length,
            config.num_epochs if config.max_steps is None else None,
        )
        batches.check()
        run = {
            "keras_elmo_version": version("keras-elmo"),
            "config": config.to_json(),
            "corpus": corpus.to_json(),
            "validation": validation and validation.to_json(),
            "vocabulary_sha256": vocabulary.sha256,
            "num_predictions": num_predictions,
            "start_from": start_from and os.path.abspath(start_from),
        }
        progress = {"step": 0, "epoch": 0, "position": batches.position, "best": None}
        arrays = step.arrays()

        def begin() -> None:
            with RunFiles.made(output, run, vocabulary, counts) as files:
                files.write_checkpoint(model, arrays, progress, _metadata(corpus))

        replicas.by_chief(begin)
        files = RunFiles(output)
        with _locked(files, replicas):
            return _run(
                config,
                files,
                step,
                batches,
                progress,
                num_predictions,
                corpus,
                validation,
                report,
                say,
            )


def resume(
    output: AnyPath,
    config: PretrainConfig | None = None,
    corpus: TrainingCorpus | None = None,
    vocabulary_file: AnyPath | None = None,
    validation: TrainingCorpus | None = None,
    report: Report = lambda progress: None,
    say: Say = lambda message: None,
    strategy: str | tf.distribute.Strategy = "single",
) -> PretrainResult:
    """Goes on with a run from its last checkpoint, as if it had never been interrupted.

    Args:
        output: The run's folder.
        config: What may be another now: how long the run is and what it writes. Where the rates fall to the end of
            the run, another end changes them from here on. Defaults to what it was.
        corpus: Where the text is now, if it was moved.
        vocabulary_file: Only looked at: it must be the run's.
        validation: Other text to validate on, if any.
        report: As in `pretrain`.
        say: As in `pretrain`.
        strategy: As in `pretrain`. There may be more or fewer devices now.

    Returns:
        The `PretrainResult`.

    Raises:
        ValueError: As `pretrain`; if anything is not what it was in the run.
        OSError: As `pretrain`.
    """
    replicas = _replicas(strategy)
    report, say = _of_chief(replicas, report, say)
    with replicas.ended_with_others():
        files = RunFiles(output)
        run = files.read_run()
        with _locked(files, replicas):
            before = read_config(files)
            config = config or before
            config.check_resumable(before)
            replicas.rows(config.batch_size)
            vocabulary, counts = files.read_vocabulary()
            if vocabulary_file is not None:
                check_same_vocabulary(
                    Vocabulary.load(vocabulary_file), vocabulary, f"the run {output}"
                )
            tf.config.experimental.enable_op_determinism()
            corpus = corpus or read_corpus(run["corpus"])
            if validation is None and run.get("validation"):
                validation = read_corpus(run["validation"])
            if validation is not None:
                _check_has_sentences(validation)
            last = files.last_step()
            progress = files.read_progress(last)
            replicas.check_same(config.to_json(), vocabulary.sha256, last, progress["position"])
            batches = TrainingStream(
                corpus.stream(config),
                vocabulary,
                config.batch_size,
                config.unroll_steps,
                config.max_word_length,
                config.num_epochs if config.max_steps is None else None,
                progress["position"],
            )
            num_predictions = run.get("num_predictions")
            if config.max_steps is None and num_predictions is None:
                num_predictions = int(_num_predictions(corpus.count(vocabulary), vocabulary))
            with replicas.strategy.scope():
                model = BidirectionalLanguageModel.from_preset(
                    files.checkpoint(last), dropout=config.dropout, dtype=config.precision
                )
            _check_architecture(model, config, files.checkpoint(last))
            step = TrainingStep(model, config, replicas.strategy)
            try:
                step.set_arrays(files.read_arrays(last))
            except ValueError as error:
                raise ValueError(
                    f"{files.checkpoint(last)} does not fit the run's configuration: {error}"
                ) from error
            run |= {
                "config": config.to_json(),
                "corpus": corpus.to_json(),
                "validation": validation and validation.to_json(),
                "num_predictions": num_predictions,
            }

            def begin() -> None:
                files.go_back_to(last)
                files.write_run(run)

            replicas.by_chief(begin)
            if config.max_steps is not None and last >= config.max_steps:
                say(f"The run is at step {last:,} already: {config.max_steps:,} steps are no more.")
            else:
                say(f"Going on from step {last:,}.")
            return _run(
                config,
                files,
                step,
                batches,
                progress,
                num_predictions,
                corpus,
                validation,
                report,
                say,
            )


def read_config(files: RunFiles) -> PretrainConfig:
    """The configuration of a run; a ValueError names the file if it is damaged."""
    run = files.read_run()
    try:
        return PretrainConfig.from_json(run.get("config"))
    except ValueError as error:
        raise ValueError(f"{files.folder}: {error}") from error


def read_corpus(values: Mapping[str, Any]) -> TrainingCorpus:
    """A corpus from what `to_json` gave."""
    return TrainingCorpus(tuple(values["patterns"]), values["format"], values["tokenizer"])


def _run(
    config: PretrainConfig,
    files: RunFiles,
    step: TrainingStep,
    batches: TrainingStream,
    progress: dict[str, Any],
    num_predictions: int | None,
    corpus: TrainingCorpus,
    validation: TrainingCorpus | None,
    report: Report,
    say: Say,
) -> PretrainResult:
    total_steps = config.max_steps
    if total_steps is None and num_predictions is not None:
        total_steps = (
            num_predictions * config.num_epochs // (config.batch_size * config.unroll_steps)
        )
    loop = TrainingLoop(
        config,
        files,
        step,
        batches,
        progress,
        total_steps,
        _num_negatives(config, len(step.model.vocabulary), say),
        validation,
        _metadata(corpus),
        report,
        say,
    )
    stopped_by = loop.run()
    return PretrainResult(
        loop.progress["step"], loop.progress["epoch"], loop.progress["best"], stopped_by
    )


def _replicas(strategy: str | tf.distribute.Strategy) -> Replicas:
    return Replicas(make_strategy(strategy) if isinstance(strategy, str) else strategy)


def _of_chief(replicas: Replicas, report: Report, say: Say) -> tuple[Report, Say]:
    """What tells people, in the chief; in other processes nothing."""
    return (report, say) if replicas.is_chief else (lambda progress: None, lambda message: None)


def _locked(files: RunFiles, replicas: Replicas) -> contextlib.AbstractContextManager:
    return files.locked() if replicas.is_chief else contextlib.nullcontext()


def _counts(
    config: PretrainConfig,
    corpus: TrainingCorpus,
    vocabulary: Vocabulary,
    vocabulary_file: AnyPath,
    say: Say,
) -> tuple[np.ndarray, int | None]:
    """How often each word occurs, and the predictions per direction of an epoch, if the corpus was counted."""
    path = counts_path(vocabulary_file)
    num_predictions = None
    if config.max_steps is not None and path.is_file():
        counts = load_counts(path, vocabulary)
    else:
        say("Counting the words of the corpus.")
        counts = corpus.count(vocabulary)
        num_predictions = _num_predictions(counts, vocabulary)
        declared = config.num_train_tokens
        if declared and abs(declared - num_predictions) > _TOLERANCE * num_predictions:
            say(
                f"The corpus has {num_predictions:,} predictions per direction, not {declared:,} "
                "(`num_train_tokens`): an epoch is as long as the corpus."
            )
    if not frequencies_fall(vocabulary, counts):
        say(
            "The vocabulary is not in the order of falling frequency, as the sampled softmax takes for granted: "
            "it will learn little. Make it by `keras-elmo vocabulary`."
        )
    return counts, num_predictions


def _num_predictions(counts: np.ndarray, vocabulary: Vocabulary) -> int:
    return int(counts.sum() - counts[vocabulary.begin_id])


def _num_negatives(config: PretrainConfig, vocabulary_size: int, say: Say) -> int | None:
    wanted = config.num_negative_samples
    if wanted is not None and wanted >= _NEARLY_ALL * vocabulary_size:
        say(
            f"The softmax is computed in full: {wanted:,} negatives would be (nearly) all of the "
            f"{vocabulary_size:,} words."
        )
        return None
    return wanted


def _check_has_sentences(validation: TrainingCorpus) -> None:
    if next(validation.sentences(), None) is None:
        raise ValueError(
            "The validation text must have at least one line. "
            f"Received: {', '.join(validation.patterns)}, which is empty"
        )


def _check_architecture(
    model: BidirectionalLanguageModel, config: PretrainConfig, folder: Path
) -> None:
    found = model.elmo_model.get_config()
    for name, value in config.architecture.items():
        if found[name] != value:
            raise ValueError(
                f"{folder} must be a checkpoint of the run's configuration, in which `{name}` is {value!r}. "
                f"Received: {found[name]!r}"
            )


def _metadata(corpus: TrainingCorpus) -> dict[str, Any]:
    return {"tokenizer": corpus.tokenizer_of_model, "text_format": corpus.format}
