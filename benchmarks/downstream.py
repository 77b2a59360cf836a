"""What ELMo adds: tasks with word vectors of their own, with layers of the biLM, with the mix, and fine-tuned.

Every number of the table is one run of one head on one task with one seed. It lies in a file of its own, and what is
there already is not made again: the table grows row by row, and can be interrupted.

    python benchmarks/downstream.py --data FOLDER                  # all that is missing; FOLDER has the tasks' folders
    python benchmarks/downstream.py --data FOLDER --tasks roles --seeds 0
    python benchmarks/downstream.py --report --plot weights.png    # the tables of what is there, and a picture

The columns have the same head: (a) words: learned vectors of the training words in place of ELMo; (b) layer 0, the
characters alone; (c) the top layer; (d) the learned mix; (e) the biLM fine-tuned; (f) with the language model's loss.
p is the share of 10,000 samples of the test, drawn with replacement, in which (d) is not above (b), seeds averaged.
`--part 0.1` trains on a tenth of the examples, `--precision bfloat16` computes the frozen biLM's vectors as an
`Embedder` of that precision does: where there are such runs, they make tables of their own.
"""

import argparse
import json
import random
import sys
import time
from pathlib import Path

import numpy as np
from downstream_heads import FROZEN, TUNED, vectors_once

COLUMNS = [*FROZEN, *TUNED]
PRECISIONS = ["float32", "bfloat16"]
NUM_SAMPLES = 10_000


def main(argv=None):
    """Runs what is missing, and prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with a folder for each task")
    parser.add_argument("--output", type=Path, default=Path("downstream"), help="folder of results")
    parser.add_argument("--tasks", nargs="*", default=[""], help="parts of the tasks' names")
    parser.add_argument("--columns", nargs="*", choices=COLUMNS, default=COLUMNS)
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--part", type=float, default=1.0, help="part of the training examples")
    parser.add_argument(
        "--precision", choices=PRECISIONS, default="float32", help="of the frozen biLM"
    )
    parser.add_argument("--report", action="store_true", help="only the tables")
    parser.add_argument(
        "--plot", type=Path, help="picture of the layers' weights in each task's mix"
    )
    options = parser.parse_args(argv)
    options.output.mkdir(exist_ok=True)
    if not options.report:
        if options.data is None:
            parser.error("--data must be given, or --report.")
        from downstream_tasks import TASKS

        for task in TASKS:
            if any(part in task.name for part in options.tasks):
                run_task(task, options)
    found = results(options.output)
    tables = [table(found), learning_curve(found), precisions(found)]
    # A table has two lines of heads.
    print(*(t for t in tables if t.count("\n") > 1), hours(found), sep="\n\n")
    if options.plot:
        plot_weights(found, options.plot)


def run_task(task, options):
    """Makes all numbers of a task that are missing."""
    missing = [
        (column, seed)
        for column in options.columns
        for seed in options.seeds[: task.max_seeds]
        if column in task.columns and not file_of(task.name, column, seed, options).exists()
    ]
    if not missing:
        return
    import keras

    train, test = task.read(options.data / task.folder)
    with vectors_once(task.model, options.precision):
        for column, seed in missing:
            start = time.process_time()
            keras.utils.set_random_seed(seed)
            chosen = random.sample(train, min(round(options.part * len(train)), task.max_examples))
            result = task.run(task, chosen, test, column)
            if task.baseline:
                name, answer = task.baseline
                result |= {"baseline": [name, [task.count(*case, answer) for case in test]]}
            result |= {
                "task": task.name,
                "column": column,
                "seed": seed,
                "part": options.part,
                "precision": options.precision,
                "measures": task.measures,
                "num_train": len(chosen),
                "num_test": len(result["counts"]),
                "processor_seconds": round(time.process_time() - start),
                "date": time.strftime("%Y-%m-%d"),
            }
            path = file_of(task.name, column, seed, options)
            beside = path.with_suffix(".part")
            beside.write_text(json.dumps(result))
            beside.rename(path)
            score = score_of(result["counts"], task.measures[0])
            print(f"{task.name}, {column}, seed {seed}: {score:.2f}", file=sys.stderr, flush=True)


def file_of(name, column, seed, options):
    """Where a number lies."""
    more = "" if options.part == 1.0 else f"-{options.part:g}"
    more += "" if options.precision == "float32" else f"-{options.precision}"
    return options.output / f"{name}-{column}-{seed}{more}.json".replace(" ", "_").replace(",", "")


# === Measures, in percent, from sums of what was counted in each example, (.., numbers) ===


def score_of(counts, measure):
    """A measure of all examples."""
    return float(MEASURES[measure](np.sum(counts, axis=0)))


def first_of_last(sums):
    """The first number over the last, which counts the examples."""
    return 100 * sums[..., 0] / np.maximum(sums[..., -1], 1)


def second_of_last(sums):
    """The second number over the last."""
    return first_of_last(sums[..., 1:])


def f1(sums):
    """F1 of three numbers: right, answered, asked."""
    return 200 * sums[..., 0] / np.maximum(sums[..., 1] + sums[..., 2], 1)


@np.vectorize(signature="(n)->()")
def bleu(sums):
    """BLEU of ten numbers: n-grams that are right, n-grams, length and length of the reference."""
    import sacrebleu

    right, all_grams, (length, reference) = np.split(sums, [4, 8])
    return sacrebleu.BLEU.compute_bleu(list(right), list(all_grams), length, reference).score


MEASURES = {
    "accuracy": first_of_last,
    "F1": f1,
    "exact match": first_of_last,
    "F1 of answers": second_of_last,
    "BLEU": bleu,
}

# === The tables ===


def results(folder):
    """All numbers that are there."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def table(found):
    """The numbers as a table in Markdown: mean and standard deviation over seeds."""
    lines = [
        f"| task | measure | {' | '.join(COLUMNS)} | p |",
        f"|---|---|{'---|' * (len(COLUMNS) + 1)}",
    ]
    for name, measure in rows_of(found):
        cells = [cell(of(found, name, column), measure) for column in COLUMNS]
        p = not_above(of(found, name, "mix"), of(found, name, "layer 0"), measure)
        lines.append(f"| {name} | {measure} | {' | '.join([*cells, p])} |")
        baselines = [r["baseline"] for r in found if r["task"] == name and "baseline" in r]
        for baseline, counts in baselines[:1]:
            score = f"{score_of(counts, measure):.1f}"
            lines.append(f"| *{baseline}* | {measure} | {score} |{' |' * len(COLUMNS)}")
    return "\n".join(lines)


def rows_of(found):
    """Name and measure of each row, in the order of the names."""
    return dict.fromkeys((r["task"], measure) for r in found for measure in r["measures"])


def cell(runs, measure):
    """Mean and standard deviation over the seeds."""
    scores = [score_of(run["counts"], measure) for run in runs]
    if len(scores) < 2:
        return f"{scores[0]:.1f}" if scores else ""
    return f"{np.mean(scores):.1f} ± {np.std(scores, ddof=1):.1f}"


def of(found, name, column, part=1.0, precision="float32"):
    """The runs of a cell, one for each seed."""
    cell = {"task": name, "column": column, "part": part, "precision": precision}
    return [result for result in found if cell.items() <= result.items()]


def not_above(ours, others, measure, seed=0):
    """Share of samples of the test in which the mean of `ours` is not above that of `others`, as text."""
    if not ours or not others:
        return ""
    generator = np.random.default_rng(seed)
    ours, others = (np.mean([r["counts"] for r in side], axis=0) for side in (ours, others))
    times = generator.multinomial(len(ours), np.full(len(ours), 1 / len(ours)), size=NUM_SAMPLES)
    differences = MEASURES[measure](times @ ours) - MEASURES[measure](times @ others)
    return f"{np.mean(differences <= 0):.4f}"


def learning_curve(found):
    """The tasks that were trained on a part of the examples, too."""
    parts = sorted({r["part"] for r in found} - {1.0})
    lines = [
        f"| task | measure | examples | {' | '.join(FROZEN)} |",
        f"|---|---|{'---|' * (len(FROZEN) + 1)}",
    ]
    for name, measure in rows_of([r for r in found if r["part"] in parts]):
        for part in [*parts, 1.0]:
            cells = [cell(of(found, name, column, part), measure) for column in FROZEN]
            count = max(
                (r["num_train"] for c in FROZEN for r in of(found, name, c, part)), default=0
            )
            lines.append(f"| {name} | {measure} | {count:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def precisions(found):
    """What it costs to compute the vectors in bfloat16: the mix of the tasks where both are there."""
    lines = [
        f"| task | measure | {' | '.join(PRECISIONS)} | difference |",
        f"|---|---|{'---|' * (len(PRECISIONS) + 1)}",
    ]
    for name, measure in rows_of([r for r in found if r["precision"] != "float32"]):
        sides = [of(found, name, "mix", precision=precision) for precision in PRECISIONS]
        exact, ours = (np.mean([score_of(r["counts"], measure) for r in side]) for side in sides)
        cells = [cell(side, measure) for side in sides]
        lines.append(f"| {name} | {measure} | {' | '.join(cells)} | {ours - exact:+.2f} |")
    return "\n".join(lines)


def hours(found):
    """How long all of it took one processor, and when."""
    dates = sorted({r["date"] for r in found})
    took = sum(r["processor_seconds"] for r in found) / 3600
    days = " to ".join(dict.fromkeys([*dates[:1], *dates[-1:]]))
    return f"{len(found)} runs, {took:.1f} processor hours, {days}"


def plot_weights(found, path):
    """Draws the weights that each task's mix learned, seeds averaged."""
    from keras_elmo.plot import plot_layer_weights

    names = dict.fromkeys(r["task"] for r in found)
    weights = {
        name: np.mean([r["layer_weights"] for r in runs], axis=0)
        for name in names
        if (runs := [r for r in of(found, name, "mix") if "layer_weights" in r])
    }
    plot_layer_weights(weights, path)


if __name__ == "__main__":
    main()
