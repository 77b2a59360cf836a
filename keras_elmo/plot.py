"""Pictures of what a model does (matplotlib, extra `plot`)."""

import os
from collections.abc import Sequence

import numpy as np

from keras_elmo.extras import require
from keras_elmo.files import written_beside


def plot_token_similarity(
    tokens: Sequence[Sequence[str]],
    layers: Sequence[np.ndarray],
    path: str | os.PathLike,
    word: str | None = None,
) -> None:
    """Draws token against token for every layer: the colour is the cosine similarity of their vectors.

    Args:
        tokens: The tokens of each sentence.
        layers: For each layer an array (all tokens, all tokens), as `compare(..).token_layers` has it.
        path: File to write; its ending says the format (.png, .svg, .pdf). A file that is there is replaced.
        word: The word that was compared, for the title.

    Raises:
        ModuleNotFoundError: if matplotlib is not installed.
        ValueError: if the ending of `path` is no format that matplotlib can write.
    """
    require("matplotlib", "plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    labels = [token for sentence in tokens for token in sentence]
    ends = np.cumsum([len(sentence) for sentence in tokens])[:-1]
    side = max(2.6, 0.26 * len(labels))
    # No pyplot: it would choose a window system and keep every figure in memory.
    figure = Figure(figsize=(side * len(layers) + 2.2, side + 1.6), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    ending = os.path.splitext(path)[1].lstrip(".").lower()
    if ending not in canvas.get_supported_filetypes():
        raise ValueError(
            f"The picture {str(path)!r} must end in one of "
            f"{', '.join('.' + kind for kind in sorted(canvas.get_supported_filetypes()))}."
        )
    axes = figure.subplots(1, len(layers), sharey=True, squeeze=False)[0]
    for k, (axis, similarity) in enumerate(zip(axes, layers, strict=True)):
        image = axis.imshow(similarity, vmin=-1, vmax=1, cmap="RdBu_r")
        axis.set_title(f"layer {k}" + (": characters only" if k == 0 else ""))
        axis.set_xticks(range(len(labels)), labels, rotation=90)
        axis.set_yticks(range(len(labels)), labels)
        for end in ends:
            axis.axhline(end - 0.5, color="black", linewidth=0.8)
            axis.axvline(end - 0.5, color="black", linewidth=0.8)
    figure.colorbar(image, ax=axes, label="cosine similarity", shrink=0.8)
    figure.suptitle("Token against token" + (f", compared: {word}" if word else ""))
    with written_beside(path, overwrite=True) as beside:
        figure.savefig(beside, dpi=150)
