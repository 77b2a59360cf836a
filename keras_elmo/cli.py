"""`keras-elmo`: the command line. It parses and calls; the work is done in the package."""

import json
import logging
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperCommand

import keras_elmo
from keras_elmo import presets
from keras_elmo.checkpoints import bilm_tf, load_checkpoint, load_model, preset
from keras_elmo.inference import Comparison, compare_words
from keras_elmo.inference import compare as compare_sentences

app = typer.Typer(
    name="keras-elmo",
    help="ELMo for Keras 3: contextual word vectors, from characters.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Model = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        help="A preset's name, or a folder, archive or file of weights (see `keras-elmo info`).",
        metavar="M",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def run() -> None:
    """Runs the command; a user's mistake is one line on standard error and exit code 2, no traceback."""
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    try:
        app()
    except (ValueError, OSError, ModuleNotFoundError) as error:
        message = " ".join(str(error).split())
        print(f"keras-elmo: {message}", file=sys.stderr)
        sys.exit(2)


class _ListOptions(TyperCommand):
    """Lets `--oov` be followed by several words: all up to the next option are its own."""

    def parse_args(self, ctx, args):
        spread, inside = [], False
        for arg in args:
            if arg.startswith("-") and len(arg) > 1:
                inside = arg == "--oov"
                spread += [] if inside else [arg]
            else:
                spread += ["--oov", arg] if inside else [arg]
        return super().parse_args(ctx, spread)


@app.command(cls=_ListOptions)
def compare(
    sentences: Annotated[
        list[str], typer.Argument(help="Two or more sentences, cut on white space.", metavar="SENTENCE...")
    ],
    word: Annotated[str, typer.Option("--word", "-w", help="The word to compare.", metavar="W")],
    oov: Annotated[
        list[str] | None,
        typer.Option(help="Words, also invented ones, to compare by characters alone.", metavar="WORD..."),
    ] = None,
    model: Model = presets.DEFAULT_PRESET,
    plot: Annotated[
        Path | None, typer.Option(help="Draw token against token per layer to this file.", metavar="OUT.png")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show that a word's vector depends on its sentence: cosine similarity of WORD between sentences, per layer."""
    elmo = load_model(model)
    result = compare_sentences(elmo, sentences, word)
    oov_similarity = compare_words(elmo, oov) if oov else None
    if plot is not None:
        from keras_elmo.plot import plot_token_similarity

        plot_token_similarity(result.sentences, result.token_layers, plot, word)
    if as_json:
        answer: dict[str, Any] = {
            "word": word,
            "layers": [
                {"layer": k, "similarity": _rounded(layer)} for k, layer in enumerate(result.layers)
            ],
        }
        if oov_similarity is not None:
            answer["oov"] = {"words": oov, "similarity": _rounded(oov_similarity)}
        print(json.dumps(answer, ensure_ascii=False))
        return
    console = Console()
    _print_comparison(console, result)
    if oov_similarity is not None:
        _print_oov(console, oov or [], oov_similarity)
    if plot is not None:
        print(f"Picture: {plot}", file=sys.stderr)


def _print_comparison(console: Console, result: Comparison) -> None:
    pairs = [(i, j) for i in range(len(result.sentences)) for j in range(i)]
    for i, tokens in enumerate(result.sentences, 1):
        start, end = result.positions[i - 1]
        marked = [*tokens[:start], "[" + " ".join(tokens[start:end]) + "]", *tokens[end:]]
        console.print(f"{i}  {' '.join(marked)}", markup=False, highlight=False)
    table = Table(title=f"Cosine similarity of '{result.word}'", title_justify="left")
    table.add_column("layer")
    for i, j in pairs:
        table.add_column(f"{j + 1} ~ {i + 1}", justify="right")
    last = len(result.layers) - 1
    for k, layer in enumerate(result.layers):
        what = "characters only" if k == 0 else "top" if k == last else ""
        table.add_row(f"{k}  {what}".rstrip(), *(f"{layer[i, j]:.3f}" for i, j in pairs))
    console.print(table)


def _print_oov(console: Console, words: list[str], similarity: np.ndarray) -> None:
    table = Table(title="Words by their characters alone (layer 0)", title_justify="left")
    table.add_column("")
    for word in words:
        table.add_column(word, justify="right")
    for word, row in zip(words, similarity, strict=True):
        table.add_row(word, *(f"{value:.3f}" for value in row))
    console.print(table)


@app.command()
def info(
    source: Annotated[
        str, typer.Argument(help="A preset's name, or a folder, archive or file of weights.", metavar="M")
    ] = presets.DEFAULT_PRESET,
    as_json: Json = False,
) -> None:
    """Say what a model is: its format, architecture, parameters, vocabulary, origin. Presets are listed, too."""
    checkpoint = load_checkpoint(source)
    model = checkpoint.model
    facts: dict[str, Any] = {
        "model": source,
        "format": checkpoint.format,
        **checkpoint.metadata,
        "parameter_count": model.count_params(),
        "architecture": {
            name: value for name, value in model.get_config().items() if name in _ARCHITECTURE
        },
        "vocabulary_size": None if checkpoint.vocabulary is None else len(checkpoint.vocabulary),
        "softmax": checkpoint.softmax is not None,
    }
    if as_json:
        print(json.dumps(facts | {"presets": presets.preset_names()}, ensure_ascii=False))
        return
    table = Table(show_header=False, box=None)
    for name, value in _flat(facts):
        table.add_row(name.replace("_", " "), str(value))
    console = Console()
    console.print(table, highlight=False)
    console.print(f"\nPresets: {', '.join(presets.preset_names())}", highlight=False)


_ARCHITECTURE = (
    "units",
    "projection_dim",
    "num_layers",
    "use_skip_connections",
    "cell_clip",
    "projection_clip",
    "max_word_length",
    "embedding_dim",
    "filters",
    "num_highway_layers",
    "activation",
)


def _flat(facts: dict[str, Any]) -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for name, value in facts.items():
        if isinstance(value, dict):
            rows += _flat(value)
        elif isinstance(value, bool):
            rows.append((name, "yes" if value else "no"))
        elif isinstance(value, int):
            rows.append((name, f"{value:,}"))
        elif value is not None:
            rows.append((name, value))
    return rows


class Format(StrEnum):
    """Formats to convert to."""

    preset = "preset"
    bilm = "bilm"


@app.command()
def convert(
    source: Annotated[str, typer.Argument(help="What to read: anything `info` knows.")],
    target: Annotated[Path, typer.Argument(help="The folder to make.")],
    to: Annotated[
        Format, typer.Option(help="Our own format, or options.json and HDF5 for bilm-tf and AllenNLP.")
    ] = Format.preset,
) -> None:
    """Write a model in another format, with its vocabulary and its language model's softmax, if it has them."""
    checkpoint = load_checkpoint(source)
    writers: dict[Format, Callable] = {Format.preset: preset.write, Format.bilm: bilm_tf.write}
    writers[to](checkpoint, target)
    print(f"Wrote {target} ({to.value}).", file=sys.stderr)


@app.callback(invoke_without_command=True)
def _global_options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    if version:
        print(keras_elmo.__version__)
        raise typer.Exit


def _rounded(similarity: np.ndarray) -> list[list[float]]:
    return [[round(float(value), 6) for value in row] for row in similarity]
