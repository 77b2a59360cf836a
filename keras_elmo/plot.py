"""Pictures of what a model does, and of how it was trained (matplotlib, extra `plot`)."""

import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from keras_elmo.extras import require
from keras_elmo.files import written_beside

MAX_TOKENS = 200

# Matplotlib's own font has Latin, Greek, Cyrillic, Arabic and Hebrew. Of these, those that are installed help out.
_MORE_FONTS = (
    *(f"Noto Sans CJK {place}" for place in ("SC", "JP", "TC", "KR")),
    *(
        "Source Han Sans SC",
        "Noto Sans SC",
        "Droid Sans Fallback",
        "WenQuanYi Micro Hei",
        "WenQuanYi Zen Hei",
    ),
    *(
        "PingFang SC",
        "Hiragino Sans",
        "Heiti TC",
        "Apple SD Gothic Neo",
        "Microsoft YaHei",
        "SimHei",
    ),
    *("Arial Unicode MS", "Noto Sans Devanagari", "Noto Sans Thai", "Noto Emoji"),
)
_DOTS_PER_INCH = 150
_LONGEST_LABEL = 20


def plot_token_similarity(
    tokens: Sequence[Sequence[str]],
    layers: Sequence[np.ndarray],
    path: str | os.PathLike,
    word: str | None = None,
) -> None:
    """Draws token against token for every layer: the colour is the cosine similarity of their vectors.

    Warns if no installed font has some character: its place is taken by an empty box.

    Args:
        tokens: The tokens of each sentence, at most 200 altogether.
        layers: For each layer an array (all tokens, all tokens), as `compare(..).token_layers` has it.
        path: File to write; its ending says the format (.png, .svg, .pdf). A file that is there is replaced.
        word: The word that was compared, for the title.

    Raises:
        ModuleNotFoundError: if matplotlib is not installed.
        ValueError: if the ending of `path` is no format that matplotlib can write, if there are too many tokens,
            or if the layers are of another size.
    """
    _check_can_draw(path)
    import matplotlib
    from matplotlib.figure import Figure

    labels = [_label(token, _LONGEST_LABEL) for sentence in tokens for token in sentence]
    count = len(labels)
    if not 1 <= count <= MAX_TOKENS:
        raise ValueError(
            f"A picture takes 1 to {MAX_TOKENS} tokens altogether. Received: {count}; draw shorter or fewer sentences."
        )
    shapes = [np.shape(layer) for layer in layers]
    if not shapes or set(shapes) != {(count, count)}:
        raise ValueError(
            f"`layers` must be arrays of shape {(count, count)}. Received: shapes {shapes}"
        )

    # A token has a quarter of an inch; where there are many, less, but still a line of legible print.
    step = min(max(9 / count, 0.14), 0.25)
    font_size = min(10.0, 0.65 * 72 * step)
    side = max(step * count, 1.8)
    with (
        matplotlib.rc_context({"font.family": _fonts(), "font.size": font_size}),
        _missing_glyphs_told(),
    ):
        # No pyplot: it would choose a window system and keep every figure in memory.
        figure = Figure(figsize=((side + 0.3) * len(layers) + 2, side + 2), layout="compressed")
        axes = figure.subplots(1, len(layers), sharey=True, squeeze=False)[0]
        ends = np.cumsum([len(sentence) for sentence in tokens])[:-1]
        for k, (axis, similarity) in enumerate(zip(axes, layers, strict=True)):
            image = axis.imshow(similarity, vmin=-1, vmax=1, cmap="RdBu_r")
            axis.set_title(f"layer {k}" + (": characters only" if k == 0 else ""), fontsize=10)
            # A dollar sign is a dollar sign, not the beginning of a formula.
            axis.set_xticks(range(count), labels, rotation=90, parse_math=False)
            axis.set_yticks(range(count), labels, parse_math=False)
            for end in ends:
                axis.axhline(end - 0.5, color="black", linewidth=0.8)
                axis.axvline(end - 0.5, color="black", linewidth=0.8)
        bar = figure.colorbar(image, ax=axes, shrink=0.8)
        bar.set_label("cosine similarity", fontsize=10)
        bar.ax.tick_params(labelsize=10)
        title = "Token against token" + (f", compared: {_label(word, 60)}" if word else "")
        figure.suptitle(title, fontsize=12, parse_math=False)
        _save(figure, path)


def plot_perplexity(log_file: str | os.PathLike, path: str | os.PathLike) -> None:
    """Draws the perplexity on the validation text over the steps of a pre-training run, on a logarithmic scale.

    Args:
        log_file: The run's `log.jsonl`.
        path: File to write; its ending says the format (.png, .svg, .pdf). A file that is there is replaced.

    Raises:
        ModuleNotFoundError: if matplotlib is not installed.
        ValueError: if the ending of `path` is no format that matplotlib can write, or if the log has no validation.
        OSError: if there is no such log.
    """
    _check_can_draw(path)
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, ScalarFormatter

    found = dict(_validations(log_file))
    if not found:
        raise ValueError(
            f"{log_file} has no line with a validation. Train with `--validation FILE` to have some."
        )
    steps = list(found)
    figure = Figure(figsize=(6, 4), layout="compressed")
    axis = figure.subplots()
    for name, colour in (("forward", "tab:blue"), ("backward", "tab:orange")):
        values = [validation[f"{name}_perplexity"] for validation in found.values()]
        axis.plot(steps, values, color=colour, linewidth=0.8, label=name)
    both = [validation["perplexity"] for validation in found.values()]
    axis.plot(steps, both, color="black", marker="o", markersize=3, label="both")
    best = min(range(len(steps)), key=both.__getitem__)
    axis.annotate(
        f"{both[best]:.1f}",
        (steps[best], both[best]),
        (0, 8),
        textcoords="offset points",
        ha="right",
    )
    axis.set(xlabel="step", ylabel="perplexity on the validation text", yscale="log")
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    axis.yaxis.set_major_formatter(ScalarFormatter())
    axis.minorticks_off()
    axis.grid(color="0.9")
    axis.legend()
    _save(figure, path)


def plot_layer_weights(weights: Mapping[str, Sequence[float]], path: str | os.PathLike) -> None:
    """Draws what the mix of each task makes of the layers, as in Peters et al., 2018, figure 2.

    Args:
        weights: For each task the weights of the layers, which sum up to 1: the softmax of a `ScalarMix`'s
            `scalar_weights`. Tasks may have another number of layers.
        path: File to write; its ending says the format (.png, .svg, .pdf). A file that is there is replaced.

    Raises:
        ModuleNotFoundError: if matplotlib is not installed.
        ValueError: if the ending of `path` is no format that matplotlib can write, or if there are no weights.
    """
    _check_can_draw(path)
    import matplotlib
    from matplotlib.figure import Figure

    if not weights or not all(len(row) for row in weights.values()):
        raise ValueError(
            "`weights` must hold the layers' weights of a task at least. Received: none"
        )
    num_layers = max(map(len, weights.values()))
    with matplotlib.rc_context({"font.family": _fonts()}), _missing_glyphs_told():
        figure = Figure(figsize=(2.4 + num_layers, 1.2 + 0.34 * len(weights)), layout="compressed")
        axis = figure.subplots()
        table = np.full((len(weights), num_layers), np.nan)
        for row, values in zip(table, weights.values(), strict=True):
            row[: len(values)] = values
        # Equal weights are pale; from there each colour says more or less.
        limit = max(0.1, float(np.nanmax(np.abs(table - 1 / num_layers))))
        image = axis.imshow(
            table,
            vmin=1 / num_layers - limit,
            vmax=1 / num_layers + limit,
            cmap="RdBu_r",
            aspect="auto",
        )
        for (row, column), value in np.ndenumerate(table):
            if not np.isnan(value):
                is_dark = abs(value - 1 / num_layers) > 0.6 * limit
                colour = "white" if is_dark else "black"
                axis.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour)
        axis.set_xticks(
            range(num_layers), ["characters", *(f"LSTM {k}" for k in range(1, num_layers))]
        )
        axis.set_yticks(
            range(len(weights)), [_label(name, 60) for name in weights], parse_math=False
        )
        axis.xaxis.tick_top()
        axis.tick_params(length=0)
        figure.colorbar(image, ax=axis, label="weight")
        _save(figure, path)


def _validations(log_file: str | os.PathLike) -> Iterator[tuple[int, dict[str, float]]]:
    with open(log_file, encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            if "validation" in entry:
                yield entry["step"], entry["validation"]


def _check_can_draw(path: str | os.PathLike) -> None:
    require("matplotlib", "plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    kinds = FigureCanvasAgg.get_supported_filetypes()
    if os.path.splitext(path)[1].lstrip(".").lower() not in kinds:
        raise ValueError(
            f"The picture {str(path)!r} must end in one of {', '.join('.' + kind for kind in sorted(kinds))}."
        )


def _save(figure: Any, path: str | os.PathLike) -> None:
    with written_beside(path, overwrite=True) as beside:
        figure.savefig(beside, dpi=_DOTS_PER_INCH, bbox_inches="tight")


def _label(text: str, length: int) -> str:
    """A text of one line that can be drawn, cut to a length; of lone surrogates, question marks."""
    text = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    return text if len(text) <= length else text[: length - 1] + "…"


def _fonts() -> list[str]:
    import matplotlib
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return [
        *matplotlib.rcParams["font.family"],
        *(font for font in _MORE_FONTS if font in installed),
    ]


@contextmanager
def _missing_glyphs_told() -> Iterator[None]:
    """Makes one warning, with the characters, of matplotlib's one for each missing glyph and each drawing."""
    missing = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", r"Glyph \d+ .*missing from")
        yield
    for warning in caught:
        glyph = re.match(r"Glyph (\d+) .*missing from", str(warning.message))
        if glyph:
            missing[chr(int(glyph[1]))] = True
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    if missing:
        warnings.warn(
            f"No installed font has the characters {''.join(missing)}: the picture shows boxes in their place. "
            "Install a font that has them, such as Noto Sans CJK for Chinese, Japanese and Korean.",
            stacklevel=4,
        )
