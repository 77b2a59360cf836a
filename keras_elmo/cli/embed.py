"""`keras-elmo embed`: the vectors of a whole file."""

import sys
import time
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from keras_elmo import presets
from keras_elmo.cli.app import Model, app, complain
from keras_elmo.inference import Embedder, embed_files
from keras_elmo.inference import Progress as EmbeddingProgress


@app.command()
def embed(
    inputs: Annotated[
        list[str],
        typer.Argument(help="Text files, also .gz and .xz; - is standard input.", metavar="INPUT"),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="File to make: .hdf5, .npz or .jsonl.", metavar="OUT.hdf5"
        ),
    ],
    model: Model = presets.DEFAULT_PRESET,
    layers: Annotated[
        Literal["all", "average", "top", "mix", "word"],
        typer.Option(help="Every layer, their average, the top one, the learned mix, or layer 0."),
    ] = "all",
    format: Annotated[
        Literal["plain", "tokens", "conllu"],
        typer.Option(
            help="plain: a sentence a line, tokenized here; tokens: a sentence a line, tokens parted by white "
            "space; conllu: CoNLL-U."
        ),
    ] = "plain",
    tokenizer: Annotated[
        Literal["word", "whitespace"] | None,
        typer.Option(help="How plain text is cut; by default as the model's training text was."),
    ] = None,
    batch_tokens: Annotated[
        int, typer.Option(help="Tokens per batch at most, padding included.", min=1, metavar="N")
    ] = 2048,
    precision: Annotated[
        Literal["float32", "bfloat16"],
        typer.Option(help="bfloat16 is faster where the processor has it, and rougher."),
    ] = "float32",
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted run.", metavar="")
    ] = False,
) -> None:
    """Write the vectors of every sentence of text files to one file.

    HDF5 has the layout of bilm-tf and AllenNLP: a dataset for each line, named by its number from 0, and
    `sentence_to_index`. A run that is interrupted goes on with --resume.
    """
    embedder = Embedder(
        model,
        layers,
        tokenizer,
        batch_tokens,
        precision,
    )
    started = time.monotonic()
    with _Bar() as bar:
        try:
            count = embed_files(inputs, output, embedder, format, resume, bar.show)
        except KeyboardInterrupt:
            bar.stop()
            complain("interrupted. What is done is kept: go on with --resume.")
            raise
        except OSError as error:
            bar.stop()
            raise OSError(
                f"{error}. What is done is kept: mend that and go on with --resume."
            ) from error
    _report(embedder, count, output, time.monotonic() - started)


class _Bar:
    """A bar on standard error with sentences, words per second and the time left."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task("", total=None, speed="")
        self._started: float | None = None

    def __enter__(self) -> "_Bar":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._progress.stop()

    def show(self, progress: EmbeddingProgress) -> None:
        if self._started is None and progress.stage == "embedding":
            self._started = time.monotonic()
        speed = ""
        if self._started is not None and progress.num_words:
            rate = progress.num_words / max(time.monotonic() - self._started, 1e-9)
            speed = f"{rate:,.0f} words/s"
        self._progress.update(
            self._task,
            description=progress.stage,
            completed=progress.num_sentences,
            total=progress.total_sentences,
            speed=speed,
        )


def _report(embedder: Embedder, count: int, output: Path, seconds: float) -> None:
    print(
        f"Wrote {output}: {count:,} sentences; {embedder.num_words:,} words embedded in {seconds:,.0f} s.",
        file=sys.stderr,
    )
    if embedder.num_cut_words:
        share = embedder.num_cut_words / embedder.num_words
        examples = ", ".join(word[:40] + "…" * (len(word) > 40) for word in embedder.cut_words)
        print(
            f"{embedder.num_cut_words:,} words ({share:.2%}) were cut: the model reads "
            f"{embedder.model.max_word_length - 2} bytes of a word. Such as: {examples}",
            file=sys.stderr,
        )
