"""A map of a word's occurrences."""

import os
from collections.abc import Sequence

import numpy as np

from keras_elmo.plot.drawing import check_can_draw, fonts, label, missing_glyphs_told, save

_MARKERS = "os^Dv<>PXd"
MAX_SENSES = len(_MARKERS)


def plot_occurrences(
    vectors: np.ndarray | Sequence[Sequence[float]],
    senses: Sequence[str],
    path: str | os.PathLike,
    word: str = "",
    texts: Sequence[str] | None = None,
) -> None:
    """Draws the vectors of a word's occurrences as points of a plane; colour and form tell the sense.

    The plane is that of the first two principal components, in which the vectors, made as long as each other, differ
    most (the angle between them is what their similarity is about).

    Args:
        vectors: Float array (num_occurrences, dim), two occurrences or more.
        senses: For each occurrence its sense, or whatever the points are to be coloured by; ten different ones at
            most.
        path: File to write; its ending says the format (.png, .svg, .pdf). A file that is there is replaced.
        word: The word, for the title.
        texts: For each occurrence a text that is written beside it. `None` (default): none.

    Raises:
        ModuleNotFoundError: if matplotlib is not installed.
        ValueError: if the ending of `path` is no format that matplotlib can write, if there are too few vectors or
            too many senses, or if there is not one sense (and text) for each vector.
    """
    check_can_draw(path)
    import matplotlib
    from matplotlib.figure import Figure

    vectors = np.asarray(vectors, np.float64)
    if vectors.ndim != 2 or len(vectors) < 2:
        raise ValueError(
            "`vectors` must be an array (num_occurrences, dim) of two occurrences or more. "
            f"Received: shape {vectors.shape}"
        )
    for name, values in (("senses", senses), ("texts", texts)):
        if values is not None and len(values) != len(vectors):
            raise ValueError(
                f"`{name}` must have one entry for each of the {len(vectors)} vectors. Received: {len(values)}"
            )
    names = list(dict.fromkeys(senses))
    if len(names) > MAX_SENSES:
        raise ValueError(
            f"A map tells up to {MAX_SENSES} senses apart. Received: {len(names)}; leave out the rarest."
        )
    points, shares = _plane(vectors)
    with matplotlib.rc_context({"font.family": fonts()}), missing_glyphs_told():
        figure = Figure(figsize=(7, 5), layout="compressed")
        axis = figure.subplots()
        for marker, name in zip(_MARKERS, names, strict=False):
            chosen = points[[sense == name for sense in senses]]
            x, y = chosen.T
            axis.scatter(x, y, s=30, marker=marker, alpha=0.7, label=label(name, 40))
        for point, text in zip(points, texts or (), strict=False):
            axis.annotate(
                label(text, 40),
                point,
                (5, 3),
                textcoords="offset points",
                fontsize=7,
                parse_math=False,
            )
        for number, (name, share) in enumerate(zip("xy", shares, strict=True), start=1):
            axis.set(**{f"{name}label": f"component {number}: {share:.0%} of the variance"})
        axis.set_xticks([])
        axis.set_yticks([])
        legend = axis.legend(fontsize=8)
        for entry in legend.get_texts():
            entry.set_parse_math(False)
        count = f"{len(points):,} occurrences"
        title = f"“{label(word, 60)}”, {count}" if word else count
        axis.set_title(title, parse_math=False)
        save(figure, path)


def _plane(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first two principal components (num_occurrences, 2), and their shares of the variance."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(lengths == 0, 1.0, lengths)
    left, singular, _ = np.linalg.svd(unit - unit.mean(axis=0), full_matrices=False)
    variance = singular**2
    shares = variance / max(variance.sum(), np.finfo(float).tiny)
    # A single component, as of vectors of one value, lies on a line.
    points = np.zeros((len(vectors), 2))
    points[:, : min(2, len(singular))] = (left * singular)[:, :2]
    return points, np.resize(np.append(shares, 0.0)[:2], 2)
