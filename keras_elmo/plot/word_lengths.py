"""How long words are, and which of them a model cuts."""

import os
from collections.abc import Mapping

import numpy as np

from keras_elmo.plot.drawing import check_can_draw, save

# All words longer than this stand in the last bar.
_LONGEST = 100


def plot_word_lengths(
    lengths: Mapping[int, int],
    max_word_length: int,
    path: str | os.PathLike,
    unit: str = "bytes",
) -> None:
    """Draws how many words there are of each length, those that the model cuts in another colour.

    A model reads `max_word_length - 2` bytes or characters of a word: words alike so far have one vector. The axis of
    the counts is logarithmic, for long words are rare.

    Args:
        lengths: Number of words of each length, as `Embedder.word_lengths` has it.
        max_word_length: Of the model.
        path: File to write; its ending says the format (.png, .svg, .pdf). A file that is there is replaced.
        unit: What a length counts, as `Embedder.length_unit` says it. Defaults to "bytes".

    Raises:
        ModuleNotFoundError: if matplotlib is not installed.
        ValueError: if the ending of `path` is no format that matplotlib can write, or if there is no word.
    """
    check_can_draw(path)
    from matplotlib.figure import Figure

    total = sum(lengths.values())
    if not total:
        raise ValueError("`lengths` must count a word at least. Received: none")
    room = max_word_length - 2
    counts = np.zeros(max(_LONGEST, room + 1) + 1, int)
    for length, count in lengths.items():
        counts[min(length, len(counts) - 1)] += count
    cut = counts[room + 1 :].sum()
    figure = Figure(figsize=(7, 3.5), layout="compressed")
    axis = figure.subplots()
    whole = slice(0, room + 1)
    places = np.arange(len(counts))
    axis.bar(places[whole], counts[whole], color="tab:blue", label=f"read whole: {total - cut:,}")
    axis.bar(
        places[room + 1 :],
        counts[room + 1 :],
        color="tab:red",
        hatch="//",
        label=f"cut: {cut:,} ({cut / total:.2%})",
    )
    axis.axvline(room + 0.5, color="black", linewidth=0.8)
    last = int(np.max(np.nonzero(counts)[0]))
    axis.set_xlim(-1, max(last, room) + 2)
    if last == len(counts) - 1:
        axis.set_xticks([*range(0, last, 20), last], [*range(0, last, 20), f"≥{last}"])
    axis.set(
        xlabel="bytes of a word (UTF-8)" if unit == "bytes" else f"{unit} of a word",
        ylabel="words",
        yscale="log",
        title=f"The model reads {room} {unit} of a word",
    )
    axis.set_ylim(bottom=0.5)
    axis.legend()
    save(figure, path)
