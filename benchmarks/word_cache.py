"""What the word cache of an exported model is worth: milliseconds a request, with it and without it.

    python benchmarks/word_cache.py
    python benchmarks/word_cache.py --architectures original --words 10000 40000

The bundled English model, and models of other sizes with random weights, are exported without a cache and with one of
the first words of the bundled model's vocabulary. The requests are sentences of the test set of UD English EWT, one
or 32 together, from strings to `elmo`; some of their words are in no cache. First the answers are compared. Then the
sides take turns, round after round, each with the same requests, and the median over the requests counts.
`others` are the words of the requests that are not stored, which go through the character CNN.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from inference import ARCHITECTURES, load_sentences
from rich.console import Console
from rich.table import Table

BUNDLED = "elmo_tiny_en"
# Sentences of a request: how many requests are in a round.
REQUESTS = {1: 12, 32: 2}
TOLERANCE = 1e-5


def main(argv=None):
    """Measures and prints a table for each model."""
    arguments = _parser().parse_args(argv)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    sentences = load_sentences(arguments.sentences, arguments.num_sentences)
    sizes = [size for size in REQUESTS if size <= len(sentences)]
    for name in arguments.architectures:
        table = Table("words", "batch", "others", title=name)
        for heading in ("ms without", "ms with", "faster", "MB more"):
            table.add_column(heading, justify="right")
        with tempfile.TemporaryDirectory() as folder:
            versions, vocabulary = _export(name, arguments.words, Path(folder))
            for size in sizes:
                requests = _requests(sentences, size)
                seconds = _measure(versions, requests, arguments.rounds)
                for count in arguments.words:
                    known = set(vocabulary[:count])
                    words = [word for request in requests for text in request for word in text]
                    share = sum(word not in known for word in words) / len(words)
                    plain, cached = (statistics.median(seconds[c]) for c in (0, count))
                    larger = (_bytes(versions[count]) - _bytes(versions[0])) / 1e6
                    row = (f"{share:.0%}", f"{1000 * plain:.1f}", f"{1000 * cached:.1f}")
                    row += (f"{plain / cached:.2f}", f"{larger:.1f}")
                    table.add_row(f"{count:,}", str(size), *row)
        Console().print(table)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    models = [BUNDLED, *ARCHITECTURES]
    add("--architectures", nargs="+", choices=models, default=[BUNDLED, "small", "original"])
    add("--words", nargs="+", type=int, default=[10_000], help="words stored")
    add("--sentences", type=Path, help="one tokenized sentence a line")
    add("--num-sentences", type=int, default=256)
    add("--rounds", type=int, default=5, help="counted rounds, after one that is not")
    return parser


def _export(name: str, counts: list[int], folder: Path) -> tuple[dict[int, Path], list[str]]:
    """The versions by the number of words that they store, 0 for none; and the words."""
    import keras

    import keras_elmo
    from keras_elmo.checkpoints import load_checkpoint
    from keras_elmo.export import export_saved_model

    checkpoint = load_checkpoint(BUNDLED)
    model = checkpoint.model
    if name != BUNDLED:
        keras.utils.set_random_seed(1)
        model = keras_elmo.ElmoModel(**ARCHITECTURES[name])
    # The benchmark's sentences are cut already.
    layer = keras_elmo.ElmoEmbedding(model, tokenizer="whitespace")
    versions = {0: export_saved_model(layer, folder / "elmo", ["elmo"])}
    for count in counts:
        cache = {"word_cache": count, "vocabulary": checkpoint.vocabulary}
        versions[count] = export_saved_model(layer, folder / "elmo", ["elmo"], **cache)
    specials = ("<S>", "</S>", "<UNK>")
    return versions, [word for word in checkpoint.vocabulary if word not in specials]


def _requests(sentences: list[list[str]], size: int) -> list[list[list[str]]]:
    """Requests of so many sentences each, from all over the text."""
    count = min(REQUESTS[size], len(sentences) // size)
    return [sentences[k::count][:size] for k in range(count)]


def _measure(versions, requests, rounds) -> dict[int, list[float]]:
    """Seconds of the requests of all counted rounds, by the number of words stored."""
    import tensorflow as tf

    loaded = {count: tf.saved_model.load(path) for count, path in versions.items()}
    served = {count: model.signatures["serving_default"] for count, model in loaded.items()}
    seconds: dict[int, list[float]] = {count: [] for count in versions}
    for number in range(rounds + 1):
        for request in requests:
            text = tf.constant([" ".join(tokens) for tokens in request])
            answers = {}
            for count in list(served)[:: -1 if number % 2 else 1]:
                start = time.perf_counter()
                answers[count] = served[count](text)["elmo"].numpy()
                seconds[count].append(time.perf_counter() - start)
            if not number:
                for answer in answers.values():
                    np.testing.assert_allclose(answer, answers[0], atol=TOLERANCE)
    # The first round warms up.
    return {count: found[len(requests) :] for count, found in seconds.items()}


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


if __name__ == "__main__":
    main()
