"""One word in several sentences: how alike it is to itself, layer by layer."""

import itertools
import os
from collections.abc import Sequence

import numpy as np

from keras_elmo.plot.drawing import check_can_draw, fonts, label, missing_glyphs_told, save

# More pairs than this are no longer told apart by their colours.
MAX_SENTENCES = 6
_MARKERS = "os^Dv<>PXdph*.x"


def plot_layer_similarity(
    sentences: Sequence[str], layers: Sequence[np.ndarray], path: str | os.PathLike, word: str = ""
) -> None:
    """Draws, for every pair of sentences, the cosine similarity of a word's two vectors over the layers.

    All lines begin at 1, for layer 0 knows the word's characters alone; they part where the layers read the sentence.

    Args:
        sentences: The sentences, two to six, for the legend.
        layers: For each layer an array (num_sentences, num_sentences), as `compare(..).layers` has it.
        path: File to write; its ending says the format (.png, .svg, .pdf). A file that is there is replaced.
        word: The word that was compared, for the title.

    Raises:
        ModuleNotFoundError: if matplotlib is not installed.
        ValueError: if the ending of `path` is no format that matplotlib can write, if there are too few or too many
            sentences, or if the layers are of another size.
    """
    check_can_draw(path)
    import matplotlib
    from matplotlib.figure import Figure

    count = len(sentences)
    if not 2 <= count <= MAX_SENTENCES:
        raise ValueError(f"This picture takes 2 to {MAX_SENTENCES} sentences. Received: {count}")
    shapes = [np.shape(layer) for layer in layers]
    if not shapes or set(shapes) != {(count, count)}:
        raise ValueError(
            f"`layers` must be arrays of shape {(count, count)}. Received: shapes {shapes}"
        )
    with matplotlib.rc_context({"font.family": fonts()}), missing_glyphs_told():
        figure = Figure(figsize=(6, 4), layout="compressed")
        axis = figure.subplots()
        pairs = itertools.combinations(range(count), 2)
        for marker, (i, j) in zip(_MARKERS, pairs, strict=False):
            values = [float(layer[i, j]) for layer in layers]
            axis.plot(values, marker=marker, label=f"{i + 1} ~ {j + 1}")
            axis.annotate(
                f"{values[-1]:.2f}",
                (len(values) - 1, values[-1]),
                (8, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )
        axis.set_xticks(
            range(len(layers)), ["characters", *(f"LSTM {k}" for k in range(1, len(layers)))]
        )
        axis.set(xlabel="layer", ylabel="cosine similarity", xlim=(-0.2, len(layers) - 0.7))
        axis.set_ylim(top=1.05)
        axis.grid(color="0.9")
        axis.legend()
        title = [
            f"“{label(word, 60)}” in",
            *(f"{i}  {label(s, 70)}" for i, s in _counted(sentences)),
        ]
        axis.set_title("\n".join(title), fontsize=9, loc="left", parse_math=False)
        save(figure, path)


def _counted(sentences: Sequence[str]) -> Sequence[tuple[int, str]]:
    return list(enumerate(sentences, start=1))
