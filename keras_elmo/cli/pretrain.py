"""`keras-elmo pretrain`: a biLM from text."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TextColumn,
)
from rich.progress import Progress as Bars
from rich.text import Text

from keras_elmo import presets
from keras_elmo.checkpoints import run_folder
from keras_elmo.cli.app import PLAIN, app
from keras_elmo.training import PretrainConfig, PretrainResult, Progress, TrainingCorpus
from keras_elmo.training.pretrain import pretrain as start
from keras_elmo.training.pretrain import read_config, read_corpus, resume
from keras_elmo.training.recipes import ARCHITECTURES, RECIPES, from_options
from keras_elmo.training.replicas import Replicas
from keras_elmo.training.run_files import RunFiles
from keras_elmo.training.strategies import make_strategy
from keras_elmo.vocabulary import Vocabulary


def _count(help: str, minimum: int = 1) -> Any:
    return typer.Option(min=minimum, metavar="N", show_default=False, help=help)


@app.command()
def pretrain(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The run's folder.", metavar="RUN_DIR"),
    ],
    corpus: Annotated[
        list[str] | None,
        typer.Option(
            help="Text to train on: a file or a pattern in quotes; may be given several times.",
            metavar="GLOB",
        ),
    ] = None,
    vocabulary: Annotated[
        Path | None,
        typer.Option(help="Words to predict, of `keras-elmo vocabulary`.", metavar="vocab.txt"),
    ] = None,
    validation: Annotated[
        list[str] | None,
        typer.Option(help="Text to measure the perplexity on.", metavar="GLOB"),
    ] = None,
    architecture: Annotated[
        Literal["tiny", "small", "original"] | None,
        typer.Option(help="Size of the model; tiny by default.", show_default=False),
    ] = None,
    options: Annotated[
        Path | None,
        typer.Option(help="Take architecture and settings from bilm-tf's.", metavar="options.json"),
    ] = None,
    format: Annotated[
        Literal["tokens", "plain"] | None,
        typer.Option(
            help="tokens (default): a sentence a line, tokens parted by white space; plain: tokenized here.",
            show_default=False,
        ),
    ] = None,
    from_model: Annotated[
        str | None, typer.Option("--from", help="Go on training a model.", metavar="MODEL")
    ] = None,
    new_vocabulary: Annotated[
        bool,
        typer.Option("--new-vocabulary", help="With another vocabulary than it has.", metavar=""),
    ] = False,
    max_steps: Annotated[int | None, _count("Steps of the run.")] = None,
    epochs: Annotated[
        int | None, _count("Or passes over the corpus; 1 if neither is given.")
    ] = None,
    batch_size: Annotated[int | None, _count("Rows of a batch; 128.")] = None,
    unroll_steps: Annotated[int | None, _count("Tokens of a row in a batch; 20.")] = None,
    seed: Annotated[
        int | None, _count("Of weights, order of sentences, negatives, dropout; 0.", minimum=0)
    ] = None,
    recipe: Annotated[
        Literal["default", "bilm-tf"] | None,
        typer.Option(
            help="Where all numbers come from that nothing else sets.", show_default=False
        ),
    ] = None,
    strategy: Annotated[
        Literal["single", "mirrored", "multiworker"],
        typer.Option(
            help="single: one device; mirrored: all GPUs of this machine; multiworker: of all processes that TF_CONFIG "
            "or Slurm tells of.",
        ),
    ] = "single",
    config: Annotated[
        Path | None,
        typer.Option(
            help="JSON file with fields of keras_elmo.training.PretrainConfig, such as learning rates.",
            metavar="F",
        ),
    ] = None,
    resume_run: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with the run in RUN_DIR, exactly. Its length and its output may be changed.",
            metavar="",
        ),
    ] = False,
    or_resume: Annotated[
        bool,
        typer.Option(
            "--or-resume",
            help="Begin the run, or go on with it if it has begun: for jobs that are started again.",
            metavar="",
        ),
    ] = False,
    validate_every: Annotated[int | None, _count("Steps between validations; 1000.")] = None,
    save_every: Annotated[int | None, _count("Steps between checkpoints; 1000.")] = None,
    keep: Annotated[int | None, _count("Last checkpoints kept, and the best; 2.")] = None,
) -> None:
    """Train a biLM on any corpus, in any language.

    Flags override --config, which overrides the recipe. The run's folder can be given as --model everywhere. SIGINT
    (Ctrl-C) and SIGTERM write a checkpoint; go on with --resume.
    """
    if max_steps is not None and epochs is not None:
        raise ValueError("Give `--max-steps` or `--epochs`, not both.")
    files = RunFiles(output)
    flags: dict[str, Any] = {
        "max_steps": max_steps,
        "num_epochs": epochs,
        "batch_size": batch_size,
        "unroll_steps": unroll_steps,
        "seed": seed,
        "validate_every": validate_every,
        "save_every": save_every,
        "keep_checkpoints": keep,
    }
    if resume_run and (from_model is not None or new_vocabulary):
        raise ValueError(
            "`--from` and `--new-vocabulary` begin a run: leave them out with `--resume`."
        )
    if not resume_run and (not corpus or vocabulary is None):
        raise ValueError("`--corpus` and `--vocabulary` must be given to begin a run.")
    if from_model is not None and (architecture or options):
        raise ValueError(
            "`--from` brings the architecture: leave out `--architecture` and `--options`."
        )
    if strategy == "multiworker":
        print("Waiting for all other processes of the run.", file=sys.stderr)
    # The first thing that TensorFlow does: it will not join other processes later.
    replicas = Replicas(make_strategy(strategy))
    if or_resume:
        # What the chief sees counts: it may be about to begin the run.
        resume_run = bool(
            replicas.maximum(int(replicas.is_chief and run_folder.recognizes(output)))
        )
    begun = read_config(files) if resume_run else None
    settings = _settings(begun, recipe, architecture, options, vocabulary, config)
    settings = settings.changed(
        **{name: value for name, value in flags.items() if value is not None},
        **({"max_steps": None} if epochs is not None else {}),
    )
    with _Screen(replicas.is_chief) as screen:
        if begun is None:
            kind: str = format or "tokens"
            text = TrainingCorpus.of(corpus or [], kind)
            held_out = TrainingCorpus.of(validation, kind) if validation else None
            screen.say(_header(settings, recipe or "default", replicas))
            result = start(
                settings,
                text,
                vocabulary or "",
                output,
                held_out,
                from_model,
                new_vocabulary,
                screen.show,
                screen.say,
                replicas.strategy,
            )
        else:
            before = read_corpus(files.read_run()["corpus"])
            kind = format or before.format
            text = TrainingCorpus.of(corpus or before.patterns, kind, before.tokenizer)
            held_out = TrainingCorpus.of(validation, kind, before.tokenizer) if validation else None
            result = resume(
                output,
                settings,
                text,
                vocabulary,
                held_out,
                screen.show,
                screen.say,
                replicas.strategy,
            )
    if replicas.is_chief:
        _report(result, output)
    if result.stopped_by is not None:
        raise typer.Exit(128 + result.stopped_by)


def _settings(
    begun: PretrainConfig | None,
    recipe: str | None,
    architecture: str | None,
    options: Path | None,
    vocabulary: Path | None,
    config: Path | None,
) -> PretrainConfig:
    """What a run begins with, or with what it began; a recipe, options or file given then fill in their fields."""
    settings = begun or RECIPES["default"](PretrainConfig())
    if recipe is not None:
        settings = RECIPES[recipe](settings)
    if architecture is not None:
        settings = settings.changed(**ARCHITECTURES[architecture])
    if options is not None:
        size = None if vocabulary is None else len(Vocabulary.load(vocabulary))
        settings = from_options(settings, options, size)
    if config is not None:
        values = presets.read_json(config)
        try:
            # A whole run.json is as good as the configuration in it.
            settings = PretrainConfig.from_json(values.get("config", values), settings)
        except ValueError as error:
            raise ValueError(f"{config}: {error}") from error
    return settings


def _header(config: PretrainConfig, recipe: str, replicas: Replicas) -> str:
    network, softmax = config.network_optimizer, config.softmax_optimizer
    devices = "" if replicas.count == 1 else f" on {replicas.count} devices"
    return (
        f"Recipe {recipe}: {config.batch_size} rows of {config.unroll_steps}{devices}, "
        f"{config.num_negative_samples or 'all'} negatives, dropout {config.dropout:g}, clip {config.clip_norm}; "
        f"network by {_optimizer(network)}, softmax by {_optimizer(softmax)}."
    )


def _optimizer(optimizer: Any) -> str:
    start = (
        f", accumulator {optimizer.initial_accumulator:g}" if "adagrad" in optimizer.name else ""
    )
    return f"{optimizer.name} {optimizer.learning_rate:g}{start}"


def _report(result: PretrainResult, output: Path) -> None:
    if result.stopped_by is not None:
        print(
            f"Stopped at step {result.step:,}, with a checkpoint. Go on with: "
            f"keras-elmo pretrain --resume --output {output}",
            file=sys.stderr,
        )
        return
    best = ""
    if result.best is not None:
        best = f" Best: step {result.best['step']:,}, perplexity {result.best['perplexity']:,.1f}."
    print(
        f"Trained to step {result.step:,}, {result.epoch:,} whole epochs.{best} Use it as: --model {output}",
        file=sys.stderr,
    )


class _TimeLeft(ProgressColumn):
    """The time left as the run itself reckons it."""

    def render(self, task: Task) -> Text:
        seconds = task.fields["seconds_left"]
        if seconds is None:
            return Text("-:--:--", style="progress.remaining")
        minutes, seconds = divmod(int(seconds), 60)
        return Text(f"{minutes // 60}:{minutes % 60:02}:{seconds:02}", style="progress.remaining")


class _Screen:
    """A bar on standard error with steps, tokens per second, the loss and the time left; sentences above it.

    Of several processes the chief's alone has anything to show.
    """

    def __init__(self, is_chief: bool) -> None:
        self._console = Console(stderr=True, soft_wrap=True, quiet=not is_chief)
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            _TimeLeft(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._bars.add_task("preparing", total=None, numbers="", seconds_left=None)

    def __enter__(self) -> "_Screen":
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def say(self, message: str) -> None:
        """Prints a sentence."""
        self._console.print(message, **PLAIN)

    def show(self, progress: Progress) -> None:
        """Moves the bar."""
        name = progress.loss_name.replace("_", " ")
        self._bars.update(
            self._task,
            description=progress.stage,
            completed=progress.step,
            total=progress.total_steps,
            numbers=f"{progress.tokens_per_second:,.0f} tokens/s, {name} {progress.loss:.3f}",
            seconds_left=progress.seconds_left,
        )
