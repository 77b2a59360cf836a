"""What ELMo adds: tasks with word vectors of their own, with layers of the biLM, with the mix, and fine-tuned.

Every number of the table is one run of one head on one task with one seed. It lies in a file of its own, and what is
there already is not made again: the table grows row by row, and can be interrupted.

    python benchmarks/downstream.py --data FOLDER                  # all that is missing; FOLDER has the tasks' folders
    python benchmarks/downstream.py --data FOLDER --tasks roles --seeds 0
    python benchmarks/downstream.py --report                       # the table of what is there, and the picture

The columns have the same head: (a) words: learned vectors of the training words in place of ELMo; (b) layer 0, the
characters alone; (c) the top layer; (d) the learned mix; (e) the biLM fine-tuned; (f) with the language model's loss.
p is the share of 10,000 samples of the test, drawn with replacement, in which (d) is not above (b), seeds averaged.
"""

import argparse
import collections
import json
import random
import sys
import time
from pathlib import Path

import numpy as np

COLUMNS = ["words", "layer 0", "top", "mix", "tuned", "tuned with LM loss"]
FROZEN = COLUMNS[:4]
MAX_EXAMPLES = 20_000
# Fine-tuning runs the biLM anew in every epoch.
MAX_TUNED_EXAMPLES = 4_000
NUM_SAMPLES = 10_000


def main(argv=None):
    """Runs what is missing, and prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with a folder for each task")
    parser.add_argument("--output", type=Path, default=Path("downstream"), help="folder of results")
    parser.add_argument("--tasks", nargs="*", default=[""], help="parts of the tasks' names")
    parser.add_argument("--columns", nargs="*", choices=COLUMNS, default=COLUMNS)
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--part", type=float, default=1.0, help="part of the training examples")
    parser.add_argument("--report", action="store_true", help="only the table")
    options = parser.parse_args(argv)
    options.output.mkdir(exist_ok=True)
    if not options.report:
        if options.data is None:
            parser.error("--data must be given, or --report.")
        from downstream_tasks import TASKS

        for task in TASKS:
            if any(part in task.name for part in options.tasks):
                run_task(task, options)
    print(table(results(options.output)))


def run_task(task, options):
    """Makes all numbers of a task that are missing."""
    missing = [
        (column, seed)
        for column in options.columns
        for seed in options.seeds
        if (column in FROZEN or task.tuned)
        and not file_of(task.name, column, seed, options).exists()
    ]
    if not missing:
        return
    train, test = task.read(options.data / task.folder)
    with vectors_once():
        for column, seed in missing:
            start = time.monotonic()
            result = run(task, train, test, column, seed, options.part)
            result |= {
                "task": task.name,
                "column": column,
                "seed": seed,
                "part": options.part,
                "measure": task.measure,
                "seconds": round(time.monotonic() - start),
                "date": time.strftime("%Y-%m-%d"),
            }
            path = file_of(task.name, column, seed, options)
            beside = path.with_suffix(".part")
            beside.write_text(json.dumps(result))
            beside.rename(path)
            print(f"{task.name}, {column}, seed {seed}: {result['score']:.4f}", file=sys.stderr)


def file_of(name, column, seed, options):
    """Where a number lies."""
    part = "" if options.part == 1.0 else f"-{options.part:g}"
    return options.output / f"{name}-{column}-{seed}{part}.json".replace(" ", "_").replace(",", "")


def run(task, train, test, column, seed, part):
    """Trains a head and counts its answers."""
    import keras

    keras.utils.set_random_seed(seed)
    limit = MAX_EXAMPLES if column in FROZEN else MAX_TUNED_EXAMPLES
    train = random.sample(train, min(round(part * len(train)), limit))
    x, y = zip(*train, strict=True)
    head = make_head(task, column, x, [right for _, right in [*train, *test]])
    head.fit(x, y, epochs=task.epochs, verbose=2)
    given, right = zip(*test, strict=True)
    answers = answers_of(head, given, column in FROZEN)
    counts = [list(task.count(*case)) for case in zip(given, right, answers, strict=True)]
    mix = head.encoder.input_mix
    return {
        "score": task.score(np.sum(counts, axis=0)),
        "counts": counts,
        "layer_weights": keras.ops.softmax(mix.scalar_weights).numpy().tolist(),
        "gamma": float(mix.gamma),
        "num_train": len(train),
        "num_test": len(test),
    }


def answers_of(head, given, is_frozen):
    """What `predict` gives, by vectors that are there already where the biLM is frozen."""
    if not is_frozen:
        return head.predict(given, verbose=0)
    data = head._cached(head._inputs(list(given)), None, 0)
    return head._decoded(head._predict(data, 32, 0))


def make_head(task, column, x, right):
    """The task's head, of which a column says what it reads."""
    import keras

    arguments = dict(task.arguments)
    if task.head.__name__ != "SpanSelector":
        rows = right if isinstance(right[0], list | tuple) else [right]
        arguments["labels"] = sorted({label for row in rows for label in row})
    if column == "words":
        counts = collections.Counter(words_of(x))
        arguments |= {"word_vocabulary": [w for w, n in counts.items() if n > 1], "word_dim": 256}
    if column not in FROZEN:
        arguments |= {"trainable_bilm": True, "update_multipliers": [0.25, 0.5, 1.0]}
    if column == "tuned with LM loss":
        arguments["language_model_loss_weight"] = 0.1
    head = task.head(task.model, **arguments)
    mix = head.encoder.input_mix
    num_layers = mix.scalar_weights.shape[0]
    if column == "words":
        mix.gamma.assign(0.0)
        mix.trainable = False
    elif column in ("layer 0", "top"):
        # A softmax of these is 1 for one layer and 0 for all others.
        place = 0 if column == "layer 0" else num_layers - 1
        mix.scalar_weights.assign(np.where(np.arange(num_layers) == place, 0.0, -1e4))
        mix.scalar_weights.trainable = False
    head.compile(keras.optimizers.Adam(0.001 if column in FROZEN else 0.0005))
    return head


def words_of(x):
    """All words of what a task gives, as its head sees them."""
    from keras_elmo import tokenize_sentences

    for given in x:
        if isinstance(given, str):
            yield from tokenize_sentences([given])[0]
        elif isinstance(given[0], str) and isinstance(given, list):
            yield from given
        else:
            for part in given:
                if isinstance(part, list):
                    yield from part
                elif isinstance(part, str):
                    yield from words_of([part])


class vectors_once:
    """Within it a sentence's vectors are computed once for all runs of frozen biLMs, which are the same model."""

    def __enter__(self):
        from keras_elmo.tasks import cached_vectors

        self._module, self._rows, self._kept = cached_vectors, cached_vectors._rows, {}

        def rows(texts, encoder, verbose):
            keys = [tuple(text) for text in texts]
            new = [key for key in dict.fromkeys(keys) if key not in self._kept]
            if new:
                arrays = [np.array(key, object) for key in new]
                self._kept.update(zip(new, self._rows(arrays, encoder, verbose), strict=True))
            return [self._kept[key] for key in keys]

        cached_vectors._rows = rows
        return self

    def __exit__(self, *_):
        self._module._rows = self._rows
        self._kept.clear()


# === The table ===


def results(folder):
    """All numbers that are there."""
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def table(found):
    """The numbers as a table in Markdown: mean and standard deviation over seeds."""
    names = list(dict.fromkeys(result["task"] for result in found))
    lines = [f"| task | {' | '.join(COLUMNS)} | p |", f"|---|{'---|' * (len(COLUMNS) + 1)}"]
    for name in names:
        cells = []
        for column in COLUMNS:
            scores = [100 * r["score"] for r in of(found, name, column)]
            cells.append(f"{np.mean(scores):.1f} ± {np.std(scores):.1f}" if scores else "")
        p = not_above(of(found, name, "mix"), of(found, name, "layer 0"))
        measure = next(r["measure"] for r in found if r["task"] == name)
        lines.append(
            f"| {name} ({measure}) | {' | '.join(cells)} | {'' if p is None else f'{p:.4f}'} |"
        )
    return "\n".join(lines)


def of(found, name, column):
    """The numbers of a cell, one for each seed."""
    return [
        result
        for result in found
        if (result["task"], result["column"], result["part"]) == (name, column, 1.0)
    ]


def not_above(ours, others, seed=0):
    """Share of samples of the test in which the mean of `ours` is not above that of `others`; `None`: none there."""
    if not ours or not others:
        return None
    generator = np.random.default_rng(seed)
    ours, others = (np.mean([r["counts"] for r in side], axis=0) for side in (ours, others))
    times = generator.multinomial(len(ours), np.full(len(ours), 1 / len(ours)), size=NUM_SAMPLES)
    differences = score_of(times @ ours) - score_of(times @ others)
    return float(np.mean(differences <= 0))


def score_of(sums):
    """The measure from sums of counts: a ratio of two, F1 of three, the first of four over the last."""
    if sums.shape[1] == 3:
        return 2 * sums[:, 0] / np.maximum(sums[:, 1] + sums[:, 2], 1)
    return sums[:, 0] / np.maximum(sums[:, -1], 1)


if __name__ == "__main__":
    main()
