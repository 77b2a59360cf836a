"""`keras-elmo embed`: the vectors of a whole file."""

import sys
import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from keras_elmo import presets
from keras_elmo.cli.app import Inputs, Model, TextFormat, app, complain, draw_if_asked, picture
from keras_elmo.cli.progress import Bar
from keras_elmo.extras import require
from keras_elmo.inference import Embedder, Progress, embed_files, unfinished_run


@app.command()
def embed(
    inputs: Inputs,
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
    format: TextFormat = "plain",
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
    plot: Annotated[
        Path | None, picture("Draw how long the words are and which are cut to this file.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted run.", metavar="")
    ] = False,
) -> None:
    """Write the vectors of every sentence of text files to one file.

    HDF5 has the layout of bilm-tf and AllenNLP: a dataset for each line, named by its number from 0, and
    `sentence_to_index`. A run that is interrupted goes on with --resume.
    """
    if plot is not None:
        # Before the work, not after it.
        require("matplotlib", "plot")
    embedder = Embedder(model, layers, tokenizer, batch_tokens, precision)
    started = time.monotonic()

    def show(progress: Progress) -> None:
        bar.show(
            progress.stage, progress.num_sentences, progress.total_sentences, progress.num_words
        )

    with Bar() as bar:
        try:
            count = embed_files(inputs, output, embedder, format, resume, show)
        except KeyboardInterrupt:
            bar.stop()
            if unfinished_run(output).exists():
                complain("interrupted. What is done is kept: go on with --resume.")
            raise
    _report(embedder, count, output, time.monotonic() - started)
    draw_if_asked(plot, lambda path: _plot_word_lengths(embedder, path))


def _report(embedder: Embedder, count: int, output: Path, seconds: float) -> None:
    print(
        f"Wrote {output}: {count:,} sentence{'' if count == 1 else 's'}, {embedder.num_words:,} words embedded in "
        f"{seconds:,.0f} s.",
        file=sys.stderr,
    )
    if embedder.num_cut_words:
        share = embedder.num_cut_words / embedder.num_words
        examples = ", ".join(word[:40] + "…" * (len(word) > 40) for word in embedder.cut_words)
        print(
            f"Words cut: {embedder.num_cut_words:,} ({share:.2%}), for the model reads "
            f"{embedder.model.max_word_length - 2} {embedder.length_unit} of a word. Such as: {examples}",
            file=sys.stderr,
        )


def _plot_word_lengths(embedder: Embedder, path: Path) -> None:
    from keras_elmo.plot import plot_word_lengths

    plot_word_lengths(
        embedder.word_lengths, embedder.model.max_word_length, path, embedder.length_unit
    )
