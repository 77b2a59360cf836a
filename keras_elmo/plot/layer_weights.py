"""What the mix of each task makes of the layers."""

import os
from collections.abc import Mapping, Sequence

import numpy as np

from keras_elmo.plot.drawing import check_can_draw, fonts, label, missing_glyphs_told, save


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
    check_can_draw(path)
    import matplotlib
    from matplotlib.figure import Figure

    if not weights or not all(len(row) for row in weights.values()):
        raise ValueError(
            "`weights` must hold the layers' weights of a task at least. Received: none"
        )
    num_layers = max(map(len, weights.values()))
    with matplotlib.rc_context({"font.family": fonts()}), missing_glyphs_told():
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
            range(len(weights)), [label(name, 60) for name in weights], parse_math=False
        )
        axis.xaxis.tick_top()
        axis.tick_params(length=0)
        figure.colorbar(image, ax=axis, label="weight")
        save(figure, path)
