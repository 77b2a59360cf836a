"""How fast `keras_elmo` embeds text, beside packages from PyPI, on the same sentences and weights.

    python benchmarks/inference.py
    python benchmarks/inference.py --architecture small --peers simple-elmo-pytorch simple-elmo

256 sentences of the test set of UD English EWT in batches of 32, from strings to NumPy arrays in
the order of the sentences: the mean of all layers, spelling included. The weights are random, in
bilm-tf's format. Every side runs in a process of its own, with its default number of threads; peers
are installed into environments of their own. First the top layers are compared. Then the sides
take turns, round after round; the first round is not counted, and one in which other processes took
much of the cores is repeated: threads that wait for each other suffer from that unevenly.

The limit is what the cores could do if all of the original-size model's work were large matrix
products: 41 MFLOP for every distinct word of the run and 151 MFLOP for every word and boundary.
"""

import argparse
import itertools
import json
import lzma
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from inference_worker import BATCH_SIZE, SIDES
from rich.console import Console
from rich.table import Table
from side import Side, environment

OURS = "keras-elmo"
WORKER = Path(__file__).with_name("inference_worker.py")
DATA = "data/tasks/pos_ud_english_ewt/en_ewt-ud-test.conllu.xz"
SHARED_SENTENCES = Path(__file__).resolve().parents[2] / "shared" / DATA

ARCHITECTURES = {
    "original": {},
    "small": {"units": 1024, "projection_dim": 128, "num_highway_layers": 1},
    "tiny": {
        "units": 512,
        "projection_dim": 128,
        "filters": [[1, 16], [2, 16], [3, 32], [4, 64], [5, 128]],
        "num_highway_layers": 1,
    },
}
# Of the original architecture: the LSTMs' work and that of the character CNN.
MFLOP_PER_TOKEN, MFLOP_PER_DISTINCT_WORD = 151, 41
TOLERANCE = 1e-4
# More than this share of the cores' time taken by others, and a round does not count.
MAX_DISTURBANCE = 0.05


def main(argv=None):
    """Measures, prints a table and writes the JSON file if asked to."""
    arguments = _parser().parse_args(argv)
    sentences = sentences_of(arguments.sentences, arguments.num_sentences)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        weights = folder / "weights"
        write_weights(weights, arguments.architecture)
        (folder / "sentences.json").write_text(json.dumps(sentences), encoding="utf-8")
        environments = arguments.environments or folder / "environments"
        sides = {OURS: VectorSide(OURS, sys.executable, folder)}
        for name in arguments.peers:
            python = environment(name, SIDES[name].requirements, environments)
            sides[name] = VectorSide(name, python, folder)
        try:
            differences = {name: _difference(sides[OURS], sides[name]) for name in arguments.peers}
            seconds, gemm_rates = _measure(sides, arguments.rounds)
        finally:
            for side in sides.values():
                side.end()
    report = _report(arguments.architecture, sentences, seconds, gemm_rates, differences)
    _print(report)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    if bad := [name for name, found in differences.items() if not found["largest"] <= TOLERANCE]:
        sys.exit(f"The vectors differ by more than {TOLERANCE:g} from those of {', '.join(bad)}.")


def write_weights(folder: Path, architecture: str) -> None:
    """Writes a model with random weights, biases too, in bilm-tf's format."""
    import keras

    import keras_elmo
    from keras_elmo.checkpoints import Checkpoint, bilm_tf

    keras.utils.set_random_seed(1)
    model = keras_elmo.ElmoModel(**ARCHITECTURES[architecture])
    random = np.random.default_rng(1)
    for weight in model.weights:
        if weight.name == "bias":
            weight.assign(random.normal(0.0, 0.1, weight.shape))
    bilm_tf.write(Checkpoint(model), folder)


class VectorSide(Side):
    """A side that embeds the sentences."""

    def __init__(self, name: str, python, folder: Path):
        self.vectors_file = folder / f"{name}.npy"
        arguments = (folder / "weights", folder / "sentences.json", self.vectors_file)
        super().__init__(name, python, WORKER, arguments, folder / f"{name}.log")

    def run(self) -> dict[str, float]:
        """Seconds that all sentences took, and the share of the cores' time that others took."""
        start, busy = time.perf_counter(), _busy_seconds()
        seconds, own = self.ask("run")
        others = _busy_seconds() - busy - own
        share = others / (os.cpu_count() or 1) / (time.perf_counter() - start)
        return {"seconds": seconds, "disturbance": max(share, 0.0)}

    def gemm_rate(self) -> float:
        """GFLOP/s of a matrix product."""
        return self.ask("gemm")[0]


def _parser() -> argparse.ArgumentParser:
    summary = __doc__.partition("\n")[0]
    parser = argparse.ArgumentParser(description=summary)
    add = parser.add_argument
    add("--architecture", choices=ARCHITECTURES, default="original")
    peers = [name for name in SIDES if name != OURS]
    add(
        "--peers",
        nargs="*",
        choices=peers,
        default=["simple-elmo-pytorch"],
        help="packages from PyPI",
    )
    add(
        "--environments",
        type=Path,
        help="folder that keeps the peers' environments (default: a temporary one)",
    )
    add(
        "--sentences",
        type=Path,
        help="one tokenized sentence a line (default: the shared UD English EWT)",
    )
    add("--num-sentences", type=int, default=256)
    add("--rounds", type=int, default=3, help="counted rounds, after one that is not")
    add("--json", type=Path, help="file to write the numbers to")
    return parser


def sentences_of(file: Path | None, number: int) -> list[list[str]]:
    """The first sentences of a file, by default the shared one, as lists of tokens."""
    if file is not None:
        lines = file.read_text(encoding="utf-8").splitlines()
        found = [line.split() for line in lines if line.split()]
    elif SHARED_SENTENCES.is_file():
        found = _conllu_sentences(SHARED_SENTENCES)
    else:
        sys.exit(
            f"There is no {DATA} in the folder `shared` beside this checkout: give "
            "`--sentences FILE`, a text file with one tokenized sentence a line."
        )
    if not found:
        sys.exit(
            f"{file} has no sentence: it must have one a line, its tokens parted by white space."
        )
    return found[:number]


def _conllu_sentences(file: Path) -> list[list[str]]:
    sentences: list[list[str]] = [[]]
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            fields = line.split("\t")
            if fields[0].isdigit():  # neither a range of words nor an empty node
                sentences[-1].append(fields[1])
            elif not line.strip():
                sentences.append([])
    return [sentence for sentence in sentences if sentence]


def _busy_seconds() -> float:
    """Seconds that the cores have worked for anyone, as Linux counts them; elsewhere 0."""
    try:
        total = Path("/proc/stat").read_text(encoding="ascii").split("\n")[0].split()[1:9]
    except OSError:
        return 0.0
    user, nice, system, _idle, _waiting, *interrupts_and_stolen = map(int, total)
    ticks = user + nice + system + sum(interrupts_and_stolen)
    return ticks / os.sysconf("SC_CLK_TCK")


def _difference(ours: VectorSide, peer: VectorSide) -> dict[str, float]:
    """How far the top layers of the first sentences are apart, and how large their values are."""
    a, b = np.load(ours.vectors_file), np.load(peer.vectors_file)
    if a.shape != b.shape:
        sys.exit(f"{peer.name} gives vectors of shape {b.shape}, {ours.name} of {a.shape}.")
    return {"largest": float(np.abs(a - b).max()), "standard_deviation": float(b[b != 0].std())}


def _measure(
    sides: dict[str, VectorSide], rounds: int
) -> tuple[dict[str, list[float]], list[float]]:
    """Seconds of every side's undisturbed rounds, and the GFLOP/s of a matrix product in between."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    gemm_rates: list[float] = []
    tries = 0
    while len(gemm_rates) < rounds:
        measured = {name: side.run() for name, side in sides.items()}
        rate = sides[OURS].gemm_rate()
        disturbance = max(value["disturbance"] for value in measured.values())
        told = ", ".join(f"{name} {value['seconds']:.2f} s" for name, value in measured.items())
        print(f"{told}; others took {disturbance:.0%} of the cores", file=sys.stderr)
        if tries > 0 and disturbance <= MAX_DISTURBANCE:
            gemm_rates.append(rate)
            for name, value in measured.items():
                seconds[name].append(value["seconds"])
        tries += 1
        if tries > 5 * rounds:
            sys.exit("Other processes leave no quiet round: try again when they have ended.")
    return seconds, gemm_rates


def _report(architecture, sentences, seconds, gemm_rates, differences) -> dict:
    num_words = sum(map(len, sentences))
    rates = {name: num_words / statistics.median(values) for name, values in seconds.items()}
    gemm_rate = statistics.median(gemm_rates)
    report = {
        "architecture": architecture,
        "num_sentences": len(sentences),
        "num_words": num_words,
        "num_distinct_words": len(set(itertools.chain.from_iterable(sentences))),
        "batch_size": BATCH_SIZE,
        "num_cores": os.cpu_count(),
        "load_average": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "words_per_second": rates,
        "times_as_fast": {name: rates[OURS] / rate for name, rate in rates.items() if name != OURS},
        "seconds": seconds,
        "top_layer_differences": differences,
        "gemm_gflop_per_second": gemm_rate,
    }
    if architecture == "original":
        tokens = num_words + 2 * len(sentences)
        mflop = MFLOP_PER_TOKEN * tokens + MFLOP_PER_DISTINCT_WORD * report["num_distinct_words"]
        report["limit_words_per_second"] = num_words / (mflop / 1e3 / gemm_rate)
        report["percent_of_limit"] = 100 * rates[OURS] / report["limit_words_per_second"]
    return report


def _print(report: dict) -> None:
    table = Table(
        title=f"{report['architecture']} size, {report['num_sentences']} sentences, "
        f"{report['num_words']} words, {report['num_cores']} cores"
    )
    for heading in ("", "words/s", f"{OURS} is", "largest difference (values' deviation)"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, rate in report["words_per_second"].items():
        row = [name, f"{rate:,.0f}"]
        if name != OURS:
            found = report["top_layer_differences"][name]
            row.append(f"{report['times_as_fast'][name]:.2f} times as fast")
            row.append(f"{found['largest']:.1e} ({found['standard_deviation']:.2g})")
        table.add_row(*row)
    console = Console()
    console.print(table)
    print(f"Matrix product: {report['gemm_gflop_per_second']:,.0f} GFLOP/s in float32.")
    if "limit_words_per_second" in report:
        print(
            f"Limit at that rate: {report['limit_words_per_second']:,.0f} words/s; "
            f"{OURS} reaches {report['percent_of_limit']:.0f} %."
        )


if __name__ == "__main__":
    main()
