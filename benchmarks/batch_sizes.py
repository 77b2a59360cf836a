"""Sentences a second that an exported model answers, by the size of the batch: what `batching.config` is set by.

    python benchmarks/batch_sizes.py saved_models/elmo/1

Sentences of 20 words, of which most are frequent ones as in real text. Sizes take turns in every
round, and the median over the rounds counts.
"""

import argparse
import os
import random
import statistics
import time

SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
NUM_WORDS = 20
NUM_ROUNDS = 7
WORDS = 5000


def main(argv=None):
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("version", help="folder of a version")
    version = parser.parse_args(argv).version
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf
    from rich.console import Console
    from rich.table import Table

    served = tf.saved_model.load(version).signatures["serving_default"]
    generator = random.Random(1)
    batches = {size: tf.constant(sentences(generator, size)) for size in SIZES}
    seconds = {size: [] for size in SIZES}
    for number in range(NUM_ROUNDS + 1):
        for size, batch in batches.items():
            start = time.perf_counter()
            served(batch)
            # The first round warms up.
            if number:
                seconds[size].append(time.perf_counter() - start)
    table = Table("sentences", "milliseconds", "sentences/s")
    for size, found in seconds.items():
        median = statistics.median(found)
        table.add_row(str(size), f"{1000 * median:.1f}", f"{size / median:,.0f}")
    Console().print(table)


def sentences(generator, count):
    """Sentences of words whose frequency falls as one over their rank."""
    weights = [1 / rank for rank in range(1, WORDS + 1)]
    return [
        " ".join(f"w{k}" for k in generator.choices(range(WORDS), weights, k=NUM_WORDS))
        for _ in range(count)
    ]


if __name__ == "__main__":
    main()
