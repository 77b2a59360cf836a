"""`keras-elmo projector`: the words of a text as a cloud of points that one can turn."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from keras_elmo import presets
from keras_elmo.cli.app import Inputs, Model, TextFormat, app
from keras_elmo.cli.list_options import list_options
from keras_elmo.cli.progress import Bar
from keras_elmo.corpus import read_sentences
from keras_elmo.inference import Embedder, write_projector


@app.command(cls=list_options("--word"))
def projector(
    inputs: Inputs,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to make.", metavar="DIR")
    ],
    word: Annotated[
        list[str] | None,
        typer.Option(
            help="Only the occurrences of these words; by default every word.", metavar="W..."
        ),
    ] = None,
    max_words: Annotated[
        int, typer.Option(help="Read the text until there are so many.", min=1, metavar="N")
    ] = 10_000,
    model: Model = presets.DEFAULT_PRESET,
    format: TextFormat = "plain",
) -> None:
    """Write the words of a text and their vectors, layer by layer, for TensorBoard's Embedding Projector."""
    embedder = Embedder(model)
    with Bar() as bar:
        count = write_projector(
            read_sentences(inputs, format),
            output,
            embedder,
            word or (),
            max_words,
            lambda num_sentences, num_words: bar.show("embedding", num_sentences, None, num_words),
        )
    print(
        f"Wrote {output}: {count:,} word{'' if count == 1 else 's'}, {embedder.model.num_layers + 1} layers.",
        f"See it: tensorboard --logdir {output}, or load layer_{embedder.model.num_layers}.tsv and metadata.tsv at "
        "https://projector.tensorflow.org",
        sep="\n",
        file=sys.stderr,
    )
