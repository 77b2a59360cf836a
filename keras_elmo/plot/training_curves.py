"""How a pre-training run went."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from keras_elmo.plot.drawing import check_can_draw, save

LOG_FILE = "log.jsonl"
# The mean over this share of the steps is drawn over the single ones.
_SMOOTHED = 0.02


def plot_training(run_folder: str | os.PathLike, path: str | os.PathLike) -> None:
    """Draws the curves of a pre-training run: loss, perplexity on the validation text, gradient norm, learning rate.

    Of steps that were made twice, because the run went on from a checkpoint, the last ones count. A run without
    validation has no curve of perplexity.

    Args:
        run_folder: The folder that `pretrain` writes, also while it does; its `log.jsonl` is read.
        path: File to write; its ending says the format (.png, .svg, .pdf). A file that is there is replaced.

    Raises:
        ModuleNotFoundError: if matplotlib is not installed.
        ValueError: if the ending of `path` is no format that matplotlib can write, or if no step was logged yet.
        OSError: if there is no such log.
    """
    check_can_draw(path)
    from matplotlib.figure import Figure

    log_file = Path(run_folder) / LOG_FILE
    steps: dict[int, dict[str, Any]] = {}
    validations: dict[int, dict[str, Any]] = {}
    for entry in _entries(log_file):
        if "validation" in entry:
            validations[entry["step"]] = entry
        elif "gradient_norm" in entry:
            steps[entry["step"]] = entry
    if not steps:
        raise ValueError(f"{log_file} has no training step yet. Draw it after the first ones.")
    names = ["loss", "perplexity", "gradient_norm", "learning_rate"]
    if not validations:
        names.remove("perplexity")
    figure = Figure(figsize=(4.2 * len(names), 3.4), layout="compressed")
    for name, axis in zip(names, figure.subplots(1, len(names), squeeze=False)[0], strict=True):
        axis.set_xlabel("step")
        axis.grid(color="0.9")
        if name == "perplexity":
            _draw_perplexity(
                axis, {step: validations[step]["validation"] for step in sorted(validations)}
            )
        else:
            _draw_steps(axis, name, [steps[step] for step in sorted(steps)])
    save(figure, path)


def _entries(log_file: Path) -> Iterator[dict[str, Any]]:
    with open(log_file, encoding="utf-8") as lines:
        for line in lines:
            # Of a run that writes just now the last line may be half there.
            if line.endswith("\n"):
                yield json.loads(line)


def _draw_steps(axis: Any, name: str, entries: list[dict[str, Any]]) -> None:
    if name == "loss" and "loss" not in entries[0]:
        name = "sampled_loss"
    steps = np.array([entry["step"] for entry in entries])
    values = np.array([entry[name] for entry in entries], float)
    axis.set_title(name.replace("_", " ") + " in training" * name.endswith("loss"), fontsize=10)
    if name == "learning_rate":
        axis.plot(steps, values, color="black", linewidth=1)
        return
    axis.plot(steps, values, color="tab:blue", linewidth=0.6, alpha=0.4)
    width = max(1, round(_SMOOTHED * len(values)))
    means = np.convolve(values, np.full(width, 1 / width), "valid")
    axis.plot(steps[width - 1 :], means, color="tab:blue", linewidth=1.2)


def _draw_perplexity(axis: Any, validations: dict[int, dict[str, float]]) -> None:
    from matplotlib.ticker import LogLocator, ScalarFormatter

    steps = list(validations)
    for name, colour in (("forward", "tab:blue"), ("backward", "tab:orange")):
        values = [validation[f"{name}_perplexity"] for validation in validations.values()]
        axis.plot(steps, values, color=colour, linewidth=0.8, label=name)
    both = [validation["perplexity"] for validation in validations.values()]
    axis.plot(steps, both, color="black", marker="o", markersize=3, label="both")
    best = min(range(len(steps)), key=both.__getitem__)
    axis.annotate(
        f"{both[best]:.1f}",
        (steps[best], both[best]),
        (0, 8),
        textcoords="offset points",
        ha="right",
    )
    axis.set_title("perplexity on the validation text", fontsize=10)
    axis.set_yscale("log")
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
    axis.yaxis.set_major_formatter(ScalarFormatter())
    axis.minorticks_off()
    axis.legend()
