"""`keras-elmo info` and `convert`: what a model is, and in another format."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from keras_elmo import presets
from keras_elmo.checkpoints import bilm_tf, load_checkpoint, preset, run_folder, word2vec
from keras_elmo.cli.app import PLAIN, Json, app, draw_if_asked, picture, print_json
from keras_elmo.models import ElmoModel
from keras_elmo.models.elmo_model import ARCHITECTURE


@app.command()
def info(
    source: Annotated[
        str,
        typer.Argument(
            help="A preset's name, or a folder, archive or file of weights.", metavar="M"
        ),
    ] = presets.DEFAULT_PRESET,
    as_json: Json = False,
    plot: Annotated[
        Path | None, picture("Of the folder of a pre-training run: draw its curves to this file.")
    ] = None,
) -> None:
    """Say what a model is: its format, architecture, parameters, vocabulary, origin. Presets are listed, too."""
    # Also of a run that has no checkpoint yet.
    draw_if_asked(plot, lambda path: _plot_training(source, path), as_json)
    checkpoint = load_checkpoint(source)
    model = checkpoint.model
    facts: dict[str, Any] = {
        "model": source,
        "format": checkpoint.format,
        **checkpoint.metadata,
        "parameter_count": model.count_params(),
        "architecture": {name: getattr(model, name) for name in ARCHITECTURE}
        | _lexicon_facts(model),
        "vocabulary_size": None if checkpoint.vocabulary is None else len(checkpoint.vocabulary),
        "softmax": checkpoint.softmax is not None,
    }
    if as_json:
        print_json(facts | {"presets": presets.preset_names()})
        return
    table = Table(show_header=False, box=None)
    for name, value in _flat(facts):
        table.add_row(name.replace("_", " "), str(value))
    console = Console(**PLAIN)
    console.print(table)
    console.print(f"\nPresets: {', '.join(presets.preset_names())}")


def _lexicon_facts(model: ElmoModel) -> dict[str, Any]:
    """Of a model that reads one."""
    if model.lexicon is None:
        return {}
    sizes = {
        "num_characters": model.lexicon.characters and len(model.lexicon.characters),
        "num_words": model.lexicon.words and len(model.lexicon.words),
    }
    return {"word_dim": model.word_dim} | sizes


def _plot_training(source: str, path: Path) -> None:
    from keras_elmo.plot import plot_training

    if not run_folder.recognizes(Path(source)):
        raise ValueError(
            f"`--plot` draws the curves of a pre-training run, and {source} is no folder of one."
        )
    plot_training(source, path)


def _flat(facts: dict[str, Any]) -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for name, value in facts.items():
        if name == "architecture":
            rows += _flat(value)
        elif isinstance(value, dict):
            rows.append((name, ", ".join(f"{part} {number}" for part, number in value.items())))
        elif isinstance(value, bool):
            rows.append((name, "yes" if value else "no"))
        elif isinstance(value, int):
            rows.append((name, f"{value:,}"))
        elif value is not None:
            rows.append((name, value))
    return rows


@app.command()
def convert(
    source: Annotated[
        str, typer.Argument(help="What to read: anything `info` knows.", metavar="SOURCE")
    ],
    target: Annotated[
        Path,
        typer.Argument(help="The folder to make, or the file for word2vec.", metavar="TARGET"),
    ],
    to: Annotated[
        Literal["preset", "bilm", "safetensors", "word2vec", "word2vec-binary"],
        typer.Option(
            help="Our own format; options.json and HDF5 for bilm-tf and AllenNLP, or the same arrays as safetensors; "
            "or layer 0 of a vocabulary's words in word2vec's formats."
        ),
    ] = "preset",
    softmax: Annotated[
        bool,
        typer.Option(
            "--softmax/--no-softmax",
            help="For bilm and safetensors: with the language model's softmax or without.",
        ),
    ] = True,
    vocabulary: Annotated[
        Path | None,
        typer.Option(
            help="For word2vec: a file with a word a line; by default the model's own words.",
            metavar="FILE",
        ),
    ] = None,
) -> None:
    """Write a model in another format, with its vocabulary and its language model's softmax, if it has them."""
    for option, given, formats in (
        ("--no-softmax", not softmax, ("bilm", "safetensors")),
        ("--vocabulary", vocabulary is not None, ("word2vec", "word2vec-binary")),
    ):
        if given and to not in formats:
            raise ValueError(f"`{option}` is for `--to {' or '.join(formats)}`. Leave it out.")
    checkpoint = load_checkpoint(source)
    if to == "preset":
        preset.write(checkpoint, target)
    elif to in ("bilm", "safetensors"):
        bilm_tf.write(checkpoint, target, softmax, safetensors=to == "safetensors")
    else:
        word2vec.write(checkpoint, target, vocabulary, binary=to == "word2vec-binary")
    print(f"Wrote {target} ({to}).", file=sys.stderr)
