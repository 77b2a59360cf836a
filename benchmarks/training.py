"""How fast `keras_elmo` trains a biLM, beside bilm-tf's training graph (in simple-elmo, PyPI), on the same batches.

    python benchmarks/training.py --architecture tiny
    python benchmarks/training.py --architecture small

Rows of 20 tokens, 8192 negatives per direction, dropout, clipping and Adagrad as in bilm-tf (`--recipe bilm-tf`). The
batches are made before. Each side runs in a process of its own, with its default number of threads; the peer is
installed into an environment of its own. The sides take turns, round after round; the first round is not counted. Then
our pipeline is measured alone: from text to batches with their negatives.
"""

import argparse
import itertools
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from side import Side, environment
from training_worker import SIDES, UNROLL_STEPS, VOCABULARY_FILE

OURS, PEER = "keras-elmo", "bilm-tf"
WORKER = Path(__file__).with_name("training_worker.py")
SHARED = Path(__file__).resolve().parents[2] / "shared"
# Rows, and words of the vocabulary.
SIZES = {"tiny": (128, 40_000), "small": (64, 50_000)}


def main(argv=None):
    """Measures, prints a table and writes the JSON file if asked to."""
    arguments = _parser().parse_args(argv)
    batch_size, vocabulary_size = SIZES[arguments.architecture]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        pipeline_rate = write_batches(arguments, folder, batch_size, vocabulary_size)
        pythons = {OURS: sys.executable}
        if not arguments.alone:
            environments = arguments.environments or folder / "environments"
            pythons[PEER] = arguments.peer_python or environment(
                PEER, SIDES[PEER].requirements, environments
            )
        files = (folder / "architecture.json", folder / "batches.npz")
        sides = {
            name: Side(name, python, WORKER, files, folder / f"{name}.log")
            for name, python in pythons.items()
        }
        try:
            rounds = _measure(sides, arguments.rounds)
        finally:
            for side in sides.values():
                side.end()
    tokens = batch_size * UNROLL_STEPS * arguments.num_batches
    rates = {
        name: statistics.median(tokens / seconds for seconds, _ in found)
        for name, found in rounds.items()
    }
    report = {
        "architecture": arguments.architecture,
        "recipe": arguments.recipe,
        "tokens_per_second": rates,
        "tokens_per_core_second": {
            name: statistics.median(tokens / busy for _, busy in found)
            for name, found in rounds.items()
        },
        "rounds": rounds,
        "pipeline_tokens_per_second": pipeline_rate,
        "cores": os.cpu_count(),
    }
    _print(report)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def write_batches(arguments, folder: Path, batch_size: int, vocabulary_size: int) -> float:
    """Writes vocabulary, batches and architecture for the workers; returns the pipeline's tokens per second."""
    from keras_elmo.corpus import SentenceStream, TrainingStream, build_vocabulary, count_words
    from keras_elmo.training import ARCHITECTURES, RECIPES, PretrainConfig
    from keras_elmo.training.batch_queue import negatives

    vocabulary, _ = build_vocabulary(count_words(arguments.corpus), vocabulary_size)
    vocabulary.save(folder / VOCABULARY_FILE)
    config = RECIPES[arguments.recipe](PretrainConfig())
    stream = TrainingStream(SentenceStream(arguments.corpus), vocabulary, batch_size, UNROLL_STEPS)
    batches = (
        _inputs(batch) | negatives(step, config, config.num_negative_samples, len(vocabulary))
        for step, batch in enumerate(stream, start=1)
    )
    found = list(itertools.islice(batches, arguments.num_batches))
    start = time.perf_counter()
    num_measured = sum(1 for _ in itertools.islice(batches, 100))
    rate = batch_size * UNROLL_STEPS * num_measured / (time.perf_counter() - start)
    np.savez(
        folder / "batches.npz",
        **{f"{n}/{name}": array for n, batch in enumerate(found) for name, array in batch.items()},
    )
    architecture = {
        "recipe": arguments.recipe,
        "batch_size": batch_size,
        "vocabulary_size": len(vocabulary),
        "arguments": ARCHITECTURES[arguments.architecture],
    }
    (folder / "architecture.json").write_text(json.dumps(architecture), encoding="utf-8")
    return rate


def _inputs(batch) -> dict[str, np.ndarray]:
    """What `BidirectionalLanguageModel.inputs_of` gives for a model that reads characters."""
    names = ("forward_words", "backward_words", "forward_targets", "backward_targets")
    arrays = {name: getattr(batch, name) for name in names}
    return {"word_ids": batch.word_character_ids} | arrays


def _measure(sides: dict[str, Side], num_rounds: int) -> dict[str, list[tuple[float, float]]]:
    rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
    for number in range(num_rounds + 1):
        for name, side in sides.items():
            seconds, busy, _loss = side.ask("run")
            if number:
                rounds[name].append((seconds, busy))
    return rounds


def _print(report: dict) -> None:
    table = Table("", "tokens/s", "tokens per second of a core")
    for name, rate in report["tokens_per_second"].items():
        table.add_row(name, f"{rate:,.0f}", f"{report['tokens_per_core_second'][name]:,.0f}")
    console = Console()
    console.print(f"{report['architecture']}, recipe {report['recipe']}, {report['cores']} cores")
    console.print(table)
    rates = report["tokens_per_second"]
    if PEER in rates:
        console.print(f"{rates[OURS] / rates[PEER]:.2f} times as fast as bilm-tf's graph")
    console.print(f"Pipeline alone: {report['pipeline_tokens_per_second']:,.0f} tokens/s")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--architecture", choices=SIZES, default="tiny")
    add("--recipe", choices=("bilm-tf", "default"), default="bilm-tf", help="of our side")
    add("--alone", action="store_true", help="measure our side only")
    corpus = SHARED / "data" / "lm" / "train-00.txt.xz"
    add("--corpus", default=str(corpus), help="tokenized text, one sentence a line")
    add("--num-batches", type=int, default=10)
    add("--rounds", type=int, default=5, help="counted rounds, after one that is not")
    add(
        "--environments",
        type=Path,
        help="folder that keeps the peer's environment (default: a temporary one)",
    )
    add("--peer-python", help="Python of an environment that has the peer already")
    add("--json", type=Path, help="file to write the numbers to")
    return parser


if __name__ == "__main__":
    main()
