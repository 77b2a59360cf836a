"""Token against token."""

import os
from collections.abc import Sequence

import numpy as np

from keras_elmo.plot.drawing import check_can_draw, fonts, label, missing_glyphs_told, save

MAX_TOKENS = 200
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
    check_can_draw(path)
    import matplotlib
    from matplotlib.figure import Figure

    labels = [label(token, _LONGEST_LABEL) for sentence in tokens for token in sentence]
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
        matplotlib.rc_context({"font.family": fonts(), "font.size": font_size}),
        missing_glyphs_told(),
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
        title = "Token against token" + (f", compared: {label(word, 60)}" if word else "")
        figure.suptitle(title, fontsize=12, parse_math=False)
        save(figure, path)
