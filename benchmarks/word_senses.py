"""Does a model know context? Whether a word's vectors tell its senses apart, layer by layer.

    python benchmarks/word_senses.py
    python benchmarks/word_senses.py --model FOLDER --json FILE --plot FILE
    python benchmarks/word_senses.py --model FOLDER --language zh

**Pairs.** `word_senses.tsv` has sentences, written for this benchmark, with words of two or three
senses. For every word, all triples: a sentence, another one with the same sense and one with a
different sense. A layer is right if the word's vectors of the same sense are closer (cosine); a tie
counts one half. The accuracy is the mean over each word's triples, then over the words. Layer 0
sees the word's characters alone, so all its triples are ties: chance. The sentences are such that
the word's place in them does not tell the senses apart, which even random weights would notice:
these are at chance as well. Intervals and p-values are of a bootstrap over the words. The p-value of
the best LSTM layer is multiplied by the number of LSTM layers, among which it was chosen
(Bonferroni).

**SemCor -> MASC** (English). Whether the nearest sense in SemCor is the right one in MASC, see
`nearest_sense.py`.
"""

import argparse
import csv
import itertools
import json
import os
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from nearest_sense import MASC, SEMCOR, TOLERANCE, nearest_sense, progress
from rich.console import Console
from rich.table import Table

SENTENCES = Path(__file__).with_name("word_senses.tsv")
DATA = "data/tasks/wsd_semcor_masc"
SHARED_SEMCOR_MASC = Path(__file__).resolve().parents[2] / "shared" / DATA

CHANCE = 0.5
NUM_RESAMPLES = 10_000
SEED = 1


class Example(NamedTuple):
    """A sentence with a word, and the word's sense in it."""

    language: str
    word: str
    sense: str
    sentence: str


def main(argv=None):
    """Measures, prints tables and writes the JSON file and the picture if asked to."""
    arguments = _parser().parse_args(argv)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import keras_elmo
    from keras_elmo.extras import require

    try:
        if arguments.plot:
            require("matplotlib", "plot")
        archives = _archives(arguments)
        embedder = keras_elmo.Embedder(arguments.model)
        report = {
            "model": arguments.model,
            "language": arguments.language,
            "pairs": compare_pairs(embedder.model, read_examples(arguments.language)),
        }
        print(f"{arguments.model}, language {arguments.language}")
        _print_pairs(report["pairs"])
        if archives:
            report["semcor_masc"] = nearest_sense(
                embedder, layer_names(embedder.model.num_layers), *archives
            )
            _print_nearest_sense(report["semcor_masc"])
        if arguments.json:
            text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
            arguments.json.write_text(text, encoding="utf-8")
        if arguments.plot:
            plot(report, arguments.plot)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        sys.exit(str(error))


def layer_names(num_layers: int) -> list[str]:
    """What the rows of all results are: every layer from 0 up, and their plain mean."""
    return ["layer 0", *(f"LSTM {k}" for k in range(1, num_layers + 1)), "mean of all"]


# --- pairs ---


def read_examples(language: str, file: Path = SENTENCES) -> list[Example]:
    """The examples of one language."""
    with file.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [Example(**row) for row in rows if row["language"] == language]


def compare_pairs(model, examples: list[Example]) -> dict:
    """Accuracy of the layers on every word's triples, with intervals and p-values."""
    words = defaultdict(list)
    for example in examples:
        words[example.word].append(example)
    accuracies = {
        word: triple_accuracy(similarities(model, found), [example.sense for example in found])
        for word, found in progress(words.items(), "pairs")
    }
    names = layer_names(model.num_layers)
    return {
        "num_words": len(words),
        "num_sentences": len(examples),
        **_statistics(np.stack(list(accuracies.values())), names),
        "words": {
            word: dict(zip(names, found.tolist(), strict=True))
            for word, found in accuracies.items()
        },
    }


def similarities(model, examples: list[Example]) -> np.ndarray:
    """Cosine similarities of a word's vectors in its sentences, (layers and their mean, sentences, sentences)."""
    from keras_elmo.inference.compare import compare, cosine_similarity

    found = compare(model, [example.sentence for example in examples], examples[0].word)
    # Layer 0 is as wide as one direction: in the mean of the layers, as in ELMo's mix, it stands twice.
    layer_0, *upper = found.token_vectors
    mean = np.mean([np.tile(layer_0, 2), *upper], axis=0)
    firsts = np.cumsum([0, *map(len, found.sentences[:-1])])
    vectors = [
        mean[first + start : first + end].mean(axis=0)
        for first, (start, end) in zip(firsts, found.positions, strict=True)
    ]
    return np.stack([*found.layers, cosine_similarity(np.stack(vectors))])


def triple_accuracy(similarity: np.ndarray, senses: list[str]) -> np.ndarray:
    """How often a sentence is closer to one with the same sense than to one with a different sense.

    Args:
        similarity: (layers, sentences, sentences).
        senses: The sense of each sentence.

    Returns:
        The share of all triples that each layer has right, (layers,); ties count one half.
    """
    triples = [
        (anchor, same, different)
        for anchor, same, different in itertools.permutations(range(len(senses)), 3)
        if senses[anchor] == senses[same] != senses[different]
    ]
    anchors, sames, differents = np.array(triples).T
    margin = similarity[:, anchors, sames] - similarity[:, anchors, differents]
    return np.where(np.abs(margin) < TOLERANCE, 0.5, margin > 0).mean(axis=1)


def bootstrap_means(values: np.ndarray, num_resamples: int = NUM_RESAMPLES) -> np.ndarray:
    """Means over rows that are drawn with replacement, (num_resamples, columns).

    All columns have the same rows drawn, so that they can be subtracted.
    """
    random = np.random.default_rng(SEED)
    rows = random.integers(len(values), size=(num_resamples, len(values)))
    return values[rows].mean(axis=1)


def p_value(means: np.ndarray) -> float:
    """One-sided p-value of a mean above 0: the share of its bootstrap resamples that are not above 0.

    One resample more is counted as not above, so that no p-value is 0.
    """
    return float((1 + np.sum(means <= 0)) / (1 + len(means)))


def _statistics(accuracies: np.ndarray, names: list[str]) -> dict:
    """Of accuracies (words, layers): mean, 95 % interval and p-value of every layer, and the best LSTM layer."""
    means = bootstrap_means(accuracies)
    lows, highs = np.percentile(means, [2.5, 97.5], axis=0)
    layers = {
        name: {
            "accuracy": float(accuracies[:, k].mean()),
            "interval": [float(lows[k]), float(highs[k])],
            # Above both: as unlikely as the less certain of the two.
            "p_value": max(p_value(means[:, k] - CHANCE), p_value(means[:, k] - means[:, 0])),
        }
        for k, name in enumerate(names)
    }
    upper = names[1:-1]
    best = max(upper, key=lambda name: layers[name]["accuracy"])
    corrected = min(1.0, len(upper) * layers[best]["p_value"])
    return {"layers": layers, "best_layer": best, "p_value": corrected}


# --- telling ---


def plot(report: dict, path: Path) -> None:
    """Draws the accuracy of every layer (matplotlib, extra `plot`)."""
    from matplotlib.figure import Figure

    from keras_elmo.files import written_beside

    has_semcor_masc = "semcor_masc" in report
    # No pyplot: it would choose a window system.
    figure = Figure(figsize=(9 if has_semcor_masc else 5, 4), layout="compressed")
    axes = figure.subplots(1, 1 + has_semcor_masc, squeeze=False)[0]
    _draw_pairs(axes[0], report["pairs"])
    if has_semcor_masc:
        _draw_nearest_sense(axes[1], report["semcor_masc"]["ambiguous"])
    figure.suptitle(f"Word senses: {report['model']}", fontsize=12, parse_math=False)
    with written_beside(path, overwrite=True) as beside:
        figure.savefig(beside, dpi=150, bbox_inches="tight")


def _draw_pairs(axis, pairs: dict) -> None:
    names = list(pairs["layers"])
    for word in pairs["words"].values():
        [line] = axis.plot(names, list(word.values()), color="0.85", linewidth=0.8)
    line.set_label("a word")
    accuracies = np.array([layer["accuracy"] for layer in pairs["layers"].values()])
    intervals = np.array([layer["interval"] for layer in pairs["layers"].values()])
    axis.errorbar(
        names,
        accuracies,
        np.abs(intervals.T - accuracies),
        fmt="o",
        color="tab:blue",
        capsize=4,
        label=f"mean of {pairs['num_words']} words, 95 %",
        zorder=3,  # above the lines
    )
    axis.axhline(CHANCE, color="black", linestyle="--", linewidth=0.8, label="chance")
    axis.set(title="Same sense closer", ylabel="accuracy", ylim=(0, 1.02))
    axis.margins(x=0.15)
    axis.legend(loc="lower right", fontsize=8)


def _draw_nearest_sense(axis, found: dict) -> None:
    bars = axis.bar(list(found["layers"]), list(found["layers"].values()), color="tab:blue")
    axis.bar_label(bars, fmt="%.3f", fontsize=8)
    axis.axhline(
        found["most_frequent_sense"],
        color="black",
        linestyle="--",
        linewidth=0.8,
        label="most frequent sense",
    )
    axis.set(title="SemCor -> MASC, ambiguous words", ylabel="accuracy", ylim=(0, 1.02))
    axis.legend(loc="upper right", fontsize=8)


def _print_pairs(pairs: dict) -> None:
    table = Table("", "accuracy", "95 % interval", "p", title="Same sense closer")
    for name, layer in pairs["layers"].items():
        low, high = layer["interval"]
        table.add_row(
            name, f"{layer['accuracy']:.3f}", f"{low:.3f} .. {high:.3f}", f"{layer['p_value']:.4f}"
        )
    console = Console()
    console.print(table)
    console.print(
        f"{pairs['num_words']} words in {pairs['num_sentences']} sentences. Best LSTM layer: "
        f"{pairs['best_layer']}; that it is above layer 0 and chance has p = "
        f"{pairs['p_value']:.4f}, corrected for the choice."
    )


def _print_nearest_sense(found: dict) -> None:
    table = Table("", "known", "ambiguous", title="Nearest sense, SemCor -> MASC")
    parts = [found["known"], found["ambiguous"]]
    for name in parts[0]["layers"]:
        table.add_row(name, *(f"{part['layers'][name]:.3f}" for part in parts))
    table.add_row("most frequent sense", *(f"{part['most_frequent_sense']:.3f}" for part in parts))
    table.add_row("words", *(f"{part['num_words']:,}" for part in parts))
    console = Console()
    console.print(table)
    console.print(f"Of {found['num_test_words']:,} words, {found['coverage']:.1%} are known.")


def _archives(arguments) -> list[Path] | None:
    """SemCor and MASC, or `None` where they are not to be used."""
    folder = arguments.semcor_masc
    if arguments.language != "en" or folder is None:
        return None
    archives = [folder / name for name in (SEMCOR, MASC)]
    if all(archive.is_file() for archive in archives):
        return archives
    if folder != SHARED_SEMCOR_MASC:
        sys.exit(
            f"{folder} must have {SEMCOR} and {MASC}: give `--semcor-masc` the folder that has "
            "both, or `--no-semcor-masc`."
        )
    print(
        f"There is no {DATA} in the folder `shared` beside this checkout, so SemCor -> MASC is left "
        "out; `--semcor-masc FOLDER` takes another folder.",
        file=sys.stderr,
    )
    return None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--model", default="elmo_tiny_en", help="anything that `keras_elmo.load_model` reads")
    add("--language", choices=("en", "zh"), default="en")
    add(
        "--semcor-masc",
        type=Path,
        default=SHARED_SEMCOR_MASC,
        help=f"folder with {SEMCOR} and {MASC} (default: the shared one, if it is there)",
    )
    add(
        "--no-semcor-masc",
        dest="semcor_masc",
        action="store_const",
        const=None,
        help="leave SemCor -> MASC out",
    )
    add("--json", type=Path, help="file to write the numbers to")
    add("--plot", type=Path, help="picture to draw")
    return parser


if __name__ == "__main__":
    main()
