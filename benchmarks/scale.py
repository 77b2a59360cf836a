"""Whether the rate holds and memory stays, from 1,000 to 100,000 sentences and for a document of a million words.

    python benchmarks/scale.py
    python benchmarks/scale.py --sizes 1000 10000 --document 100000 --sentences FILE

`keras-elmo embed --layers top` with the bundled English model, to HDF5: each size in a process of its own, with the
rate while it embeds, start-up left out, and the most memory that the process held. The sentences are those of
`inference.py`, shuffled and repeated with numbers in them, so that there are always new words; the document is one
line of so many words.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from inference import load_sentences

# Run in the process that is measured.
PROGRAM = """
import json, resource, sys, time
import keras_elmo
from keras_elmo.inference import Embedder, embed_files
embedder = Embedder("elmo_tiny_en", layers="top")
list(embedder.embed(["Made ready ."] * 2))  # graphs are traced
start = time.perf_counter()
embed_files(sys.argv[1], sys.argv[2], embedder, format="tokens")
seconds = time.perf_counter() - start
scale = 1 if sys.platform == "darwin" else 1024
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale
print(json.dumps({"words": embedder.num_words - 6, "seconds": seconds, "memory": memory}))
"""


def main(argv=None):
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 10_000, 100_000])
    parser.add_argument("--document", type=int, default=1_000_000, help="words of the document")
    parser.add_argument("--sentences", type=Path, help="one tokenized sentence a line")
    parser.add_argument("--json", type=Path, help="file to write the numbers to")
    options = parser.parse_args(argv)
    sentences = load_sentences(options.sentences, None)
    report = {}
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "in.txt")
        for size in options.sizes:
            lines = (" ".join(sentence) for sentence in many(sentences, size))
            text.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
            report[f"{size:,} sentences"] = measure(text, Path(folder, f"{size}.hdf5"))
        words = [word for sentence in many(sentences, options.document // 10) for word in sentence]
        text.write_text(" ".join(words[: options.document]) + "\n", encoding="utf-8")
        report[f"a document of {options.document:,} words"] = measure(text, Path(folder, "d.hdf5"))
    for name, found in report.items():
        rate, memory = found["words"] / found["seconds"], found["memory"] / 1e6
        print(f"{name}: {rate:,.0f} words/s, at most {memory:,.0f} MB", flush=True)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def many(sentences, size):
    """So many sentences, in which every tenth word has a number of its own behind it."""
    generator = random.Random(0)
    for _ in range(size):
        yield [
            f"{word}{generator.randrange(10**6)}" if generator.random() < 0.1 else word
            for word in generator.choice(sentences)
        ]


def measure(text, output):
    """Words, seconds and memory of a run."""
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, text, output],
        stdout=subprocess.PIPE,
        check=True,
        env={"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ},
    )
    output.unlink()
    return json.loads(found.stdout)


if __name__ == "__main__":
    main()
