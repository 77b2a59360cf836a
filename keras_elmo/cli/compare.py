"""`keras-elmo compare`: a word's vector depends on its sentence."""

import itertools
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Column, Table

from keras_elmo import presets
from keras_elmo.checkpoints import load_checkpoint
from keras_elmo.cli.app import PLAIN, Json, Model, app, draw_if_asked, picture, print_json
from keras_elmo.cli.list_options import list_options
from keras_elmo.extras import require
from keras_elmo.inference import Comparison, compare_words
from keras_elmo.inference import compare as compare_sentences


@app.command(cls=list_options("--oov"))
def compare(
    sentences: Annotated[
        list[str],
        typer.Argument(
            help="Two or more sentences, cut as the model's training text was.", metavar="SENTENCE"
        ),
    ],
    word: Annotated[str, typer.Option("--word", "-w", help="The word to compare.", metavar="W")],
    oov: Annotated[
        list[str] | None,
        typer.Option(
            help="Words, also invented ones, to compare by characters alone.", metavar="WORD..."
        ),
    ] = None,
    model: Model = presets.DEFAULT_PRESET,
    plot: Annotated[
        Path | None, picture("Draw token against token per layer to this file.")
    ] = None,
    plot_layers: Annotated[
        Path | None, picture("Draw the word's similarity over the layers to this file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show that a word's vector depends on its sentence: cosine similarity of WORD between sentences, per layer."""
    for name, values in (("SENTENCE", sentences), ("--oov", oov)):
        if values and len(values) < 2:
            raise typer.BadParameter("must be two or more", param_hint=f"'{name}'")
    if plot is not None or plot_layers is not None:
        # Before the work, not after it.
        require("matplotlib", "plot")
    checkpoint = load_checkpoint(model)
    result = compare_sentences(
        checkpoint.model, sentences, word, checkpoint.metadata.get("tokenizer") or "word"
    )
    oov_similarity = compare_words(checkpoint.model, oov) if oov else None
    draw_if_asked(plot, lambda path: _plot_tokens(result, path), as_json)
    draw_if_asked(plot_layers, lambda path: _plot_layers(result, sentences, path), as_json)
    if as_json:
        answer: dict[str, Any] = {
            "word": word,
            "layers": [
                {"layer": k, "similarity": _rounded(layer)} for k, layer in enumerate(result.layers)
            ],
        }
        if oov_similarity is not None:
            answer["oov"] = {"words": oov, "similarity": _rounded(oov_similarity)}
        print_json(answer)
        return
    console = Console(**PLAIN)
    _print_comparison(console, result)
    if oov_similarity is not None:
        _print_oov(console, oov or [], oov_similarity)


def _plot_tokens(result: Comparison, path: Path) -> None:
    from keras_elmo.plot import plot_token_similarity

    plot_token_similarity(result.sentences, result.token_layers, path, result.word)


def _plot_layers(result: Comparison, sentences: list[str], path: Path) -> None:
    from keras_elmo.plot import plot_layer_similarity

    plot_layer_similarity(sentences, result.layers, path, result.word)


def _print_comparison(console: Console, result: Comparison) -> None:
    for i, tokens in enumerate(result.sentences, 1):
        start, end = result.positions[i - 1]
        tokens = [_cut(token) for token in tokens]
        marked = [*tokens[:start], "[" + " ".join(tokens[start:end]) + "]", *tokens[end:]]
        console.print(f"{i}  {' '.join(marked)}")
    pairs = list(itertools.combinations(range(len(result.sentences)), 2))
    last = len(result.layers) - 1
    names = {0: "0  characters only", last: f"{last}  top"}
    rows = [
        [names.get(k, str(k)), *(f"{layer[pair]:.3f}" for pair in pairs)]
        for k, layer in enumerate(result.layers)
    ]
    heads = ["layer", *(f"{i + 1} ~ {j + 1}" for i, j in pairs)]
    table = _table(heads, rows)
    if _too_wide(console, table):
        # Many sentences make many pairs: they go down the page.
        heads, *rows = map(list, zip(heads, *rows, strict=True))
        table = _table(heads, rows)
    console.print(f"Cosine similarity of '{_cut(' '.join(result.word.split()))}'")
    console.print(table)


def _print_oov(console: Console, words: list[str], similarity: np.ndarray) -> None:
    words = [_cut(word) for word in words]
    rows = [
        [word, *(f"{value:.3f}" for value in row)]
        for word, row in zip(words, similarity, strict=True)
    ]
    table = _table(["", *words], rows)
    if _too_wide(console, table):
        pairs = itertools.combinations(range(len(words)), 2)
        rows = [[f"{words[i]} ~ {words[j]}", f"{similarity[i, j]:.3f}"] for i, j in pairs]
        table = _table(["words", "layer 0"], rows)
    console.print("Words by their characters alone (layer 0)")
    console.print(table)


def _table(heads: list[str], rows: list[list[str]]) -> Table:
    """A table of numbers, each row of which begins with what it is about."""
    table = Table(heads[0], *(Column(head, justify="right") for head in heads[1:]))
    for row in rows:
        table.add_row(*row)
    return table


def _too_wide(console: Console, table: Table) -> bool:
    """Whether the terminal is so narrow that words or numbers would be cut."""
    return (
        console.measure(table, options=console.options.update(max_width=10_000)).minimum
        > console.width
    )


def _cut(word: str) -> str:
    return word if len(word) <= 24 else word[:23] + "…"


def _rounded(similarity: np.ndarray) -> list[list[float]]:
    return [[round(float(value), 6) for value in row] for row in similarity]
