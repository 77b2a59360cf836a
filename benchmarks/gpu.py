"""How fast a GPU trains and runs a biLM: Keras on JAX, without TensorFlow, from one file of packed windows.

    python benchmarks/gpu.py pack windows.npz                      # where keras_elmo is installed in full
    python benchmarks/gpu.py measure windows.npz --json gpu.json   # where the GPU is

No GPU has run it yet: it was tried on CPUs, by `measure windows.npz --cpu`.

The machine with the GPU needs this script, the file, JAX, Keras, h5py, and the package by `pip install --no-deps`, or a
checkout on PYTHONPATH. First the rates of a large matrix product are measured, the yardstick for what follows.
Then for each size:

- training, one compiled step after the other: loss, gradients, clipping, Adam; LSTM states carried from window to
  window; negatives drawn as the steps go; each batch's distinct words padded to one number, so that nothing is compiled
  twice. Keras' Adam updates all weights: JAX has no sparse gradients for the softmax's rows.
- inference: every output of `ElmoModel`, left on the device; each row of a batch is a sentence. On JAX the character
  CNN runs for every word of the text, not for the distinct ones.

A token is a word of the text; training predicts it in both directions. FLOPs are those of matrix products and
convolutions alone, 2 for a multiplication with its addition, and 3 times as many where gradients are computed:

    word       2 * (embedding_dim * sum(width * count * (max_word_length - width + 1))
                    + 2 * num_highway_layers * num_filters ** 2 + num_filters * projection_dim)
    token      2 directions * num_layers * 2 * 9 * projection_dim * units
    softmax    2 directions * 2 * projection_dim * (num_negatives + 1)
    training   3 * (distinct words * word + tokens * (token + softmax))
    inference  (tokens and boundaries) * (word + token)

Words that only pad are not counted, nor is the first call, which compiles. Last, the loss has to fall, or the exit
status is not 0. All is in one file, because that is what travels.
"""

import argparse
import itertools
import json
import math
import os
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

SHARED = Path(__file__).resolve().parents[2] / "shared"
SIZES = ("tiny", "small", "original")
# What Keras computes in, and what JAX makes of float32 in matrix products and convolutions.
PRECISIONS = {
    "float32": ("float32", "float32"),
    "tensorfloat32": ("float32", "tensorfloat32"),
    "mixed_bfloat16": ("mixed_bfloat16", "default"),
}
TEXT = ("forward_words", "backward_words", "forward_targets", "backward_targets")
# The number of distinct words is rounded up to a multiple of this.
WORDS_MULTIPLE = 128
# Calls are timed in groups that take about so long.
GROUP_SECONDS = 0.5


def main(argv=None):
    """Writes the file of windows, or measures."""
    arguments = _parser().parse_args(argv)
    arguments.run(arguments)


@dataclass(frozen=True)
class Windows:
    """Batches of one shape to train on, and what is to be trained.

    Attributes:
        header: `architectures`, the arguments of `ElmoModel` by name; `vocabulary_size`; `num_negatives`.
        arrays: `word_ids`, the character ids of each batch's distinct words, padded with rows of zeros; and the other
            inputs of `BidirectionalLanguageModel`. The first axis is that of the batches.
    """

    header: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @classmethod
    def of(cls, batches: Iterable[Any], header: dict[str, Any]) -> "Windows":
        """Packs batches of a `TrainingStream`."""
        batches = list(batches)
        words = [batch.word_character_ids for batch in batches]
        num_words = WORDS_MULTIPLE * math.ceil(max(map(len, words)) / WORDS_MULTIPLE)
        padded = [np.pad(rows, [(0, num_words - len(rows)), (0, 0)]) for rows in words]
        text = {name: [getattr(batch, name) for batch in batches] for name in TEXT}
        arrays = {name: np.stack(found) for name, found in ({"word_ids": padded} | text).items()}
        return cls(header, arrays)

    def save(self, file: Path) -> None:
        """Writes the file, in the smallest types that hold the numbers."""
        small = {
            name: array.astype(np.min_scalar_type(array.max()))
            for name, array in self.arrays.items()
        }
        with file.open("wb") as stream:
            np.savez_compressed(stream, header=np.array(json.dumps(self.header)), **small)

    @classmethod
    def load(cls, file: Path) -> "Windows":
        """Reads what `save` wrote."""
        try:
            with file.open("rb") as stream, np.load(stream) as found:
                arrays = {name: found[name].astype(np.int32) for name in ("word_ids", *TEXT)}
                return cls(json.loads(str(found["header"])), arrays)
        except Exception:  # zip, zlib, NumPy and JSON have each their own
            sys.exit(
                f"{file} must be a whole file that `gpu.py pack` wrote: write or copy it anew."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Batches, rows of a batch, tokens of a row."""
        return self.arrays["forward_words"].shape

    @property
    def tokens_per_batch(self) -> int:
        """Predictions of a batch, in each direction."""
        return math.prod(self.shape[1:])

    @property
    def words_per_batch(self) -> float:
        """Distinct words of a batch, in the mean, without padding."""
        return float(self.arrays["word_ids"].any(axis=-1).sum() / len(self.arrays["word_ids"]))

    def training_inputs(self, step: int) -> dict[str, np.ndarray]:
        """The inputs of a step, counted from 0, with negatives that both directions share."""
        from keras_elmo.corpus import random_generator, sample_negatives

        sample = sample_negatives(
            self.header["num_negatives"],
            self.header["vocabulary_size"],
            random_generator("negatives", 0, step),
        )
        inputs = {name: array[step % len(array)] for name, array in self.arrays.items()}
        for direction in ("forward", "backward"):
            inputs[f"{direction}_negatives"] = sample.ids
            inputs[f"{direction}_num_tries"] = np.float32(sample.num_tries)
        return inputs

    def sentences(self, step: int) -> np.ndarray:
        """The character ids of the rows of a batch."""
        batch = step % len(self.arrays["word_ids"])
        return self.arrays["word_ids"][batch][self.arrays["forward_words"][batch]]


def pack(arguments) -> None:
    """Writes the file: from text to batches by the package's own pipeline."""
    from keras_elmo.corpus import SentenceStream, TrainingStream, build_vocabulary, count_words

    # This room needs TensorFlow: that is why the architectures go into the file.
    from keras_elmo.training import ARCHITECTURES, PretrainConfig

    config = PretrainConfig()
    vocabulary, _ = build_vocabulary(count_words(arguments.corpus), arguments.vocabulary_size)
    sentences = SentenceStream(arguments.corpus)
    stream = TrainingStream(sentences, vocabulary, arguments.batch_size, config.unroll_steps)
    header = {
        "architectures": {
            name: PretrainConfig(**ARCHITECTURES[name]).architecture for name in SIZES
        },
        "vocabulary_size": len(vocabulary),
        "num_negatives": config.num_negative_samples,
    }
    windows = Windows.of(itertools.islice(stream, arguments.num_batches), header)
    windows.save(arguments.file)
    print(
        f"{arguments.file}, {arguments.file.stat().st_size / 1e6:.1f} MB: {windows.shape} batches, rows and tokens; "
        f"{windows.words_per_batch:,.0f} distinct words in a batch, padded to "
        f"{windows.arrays['word_ids'].shape[1]:,}; vocabulary of {len(vocabulary):,} words"
    )


def flop_per_word(architecture: dict[str, Any]) -> int:
    """Of the character CNN, for one word."""
    filters, length = architecture["filters"], architecture["max_word_length"]
    num_filters = sum(count for _, count in filters)
    convolutions = sum(width * count * (length - width + 1) for width, count in filters)
    highways = 2 * architecture["num_highway_layers"] * num_filters**2
    projection = num_filters * architecture["projection_dim"]
    return 2 * (architecture["embedding_dim"] * convolutions + highways + projection)


def flop_per_token(architecture: dict[str, Any]) -> int:
    """Of the LSTMs: four gates from the input, four from the output before, and the projection."""
    cell = (4 + 4 + 1) * architecture["projection_dim"] * architecture["units"]
    return 2 * architecture["num_layers"] * 2 * cell


def training_flop(windows: Windows, architecture: dict[str, Any]) -> float:
    """Of a step."""
    softmax = 2 * 2 * architecture["projection_dim"] * (windows.header["num_negatives"] + 1)
    words = windows.words_per_batch * flop_per_word(architecture)
    return 3 * (words + windows.tokens_per_batch * (flop_per_token(architecture) + softmax))


def inference_flop(windows: Windows, architecture: dict[str, Any]) -> int:
    """Of a batch, `<S>` and `</S>` of every row included."""
    _, num_rows, num_tokens = windows.shape
    per_token = flop_per_word(architecture) + flop_per_token(architecture)
    return num_rows * (num_tokens + 2) * per_token


def training(windows: Windows, architecture: dict[str, Any], policy: str) -> Callable[[], Any]:
    """Makes a function that takes a training step, on the next batch, and gives its loss."""
    import jax
    import keras

    from keras_elmo import BidirectionalLanguageModel

    elmo_model = _elmo_model(architecture, policy)
    # How the words are spelled does not matter here.
    words = map(str, range(windows.header["vocabulary_size"] - 3))
    model = BidirectionalLanguageModel(elmo_model, ["<S>", "</S>", "<UNK>", *words])
    optimizer = keras.optimizers.Adam(0.001, beta_2=0.99, global_clipnorm=1.0)
    optimizer.build(model.trainable_variables)
    fixed = _values(model.non_trainable_variables)

    def loss_of(weights, states, inputs):
        (losses, states), _ = model.stateless_call(
            weights, fixed, inputs, initial_state=states, return_state=True, training=True
        )
        return model.compute_loss(x=inputs, y_pred=losses), states

    def one_step(weights, slots, states, inputs):
        gradient = jax.value_and_grad(loss_of, has_aux=True)
        (loss, states), gradients = gradient(weights, states, inputs)
        weights, slots = optimizer.stateless_apply(slots, gradients, weights)
        return loss, (weights, slots, states)

    compiled = jax.jit(one_step, donate_argnums=(0, 1, 2))
    states = _zero_states(elmo_model.bilm, windows.shape[1])
    changing = (_values(model.trainable_variables), _values(optimizer.variables), states)
    steps = itertools.count()

    def step():
        nonlocal changing
        loss, changing = compiled(*changing, windows.training_inputs(next(steps)))
        return loss

    return step


def inference(windows: Windows, architecture: dict[str, Any], policy: str) -> Callable[[], Any]:
    """Makes a function that gives all outputs of `ElmoModel` for the next batch."""
    import jax

    model = _elmo_model(architecture, policy)
    weights = (_values(model.trainable_variables), _values(model.non_trainable_variables))
    compiled = jax.jit(lambda weights, ids: model.stateless_call(*weights, ids)[0])
    steps = itertools.count()
    return lambda: compiled(weights, windows.sentences(next(steps)))


def matrix_product(size: int, dtype: str) -> Callable[[], Any]:
    """Makes a function that multiplies two square matrices."""
    import jax

    keys = jax.random.split(jax.random.key(0))
    a, b = (jax.random.normal(key, (size, size)).astype(dtype) for key in keys)
    compiled = jax.jit(jax.numpy.matmul)
    return lambda: compiled(a, b)


def _elmo_model(architecture: dict[str, Any], policy: str):
    from keras_elmo import ElmoModel

    # Keras seeds its weights from here; its own `set_random_seed` imports TensorFlow where it is installed.
    random.seed(0)
    return ElmoModel(**architecture, trainable_bilm=True, dtype=policy)


def _values(variables) -> list[Any]:
    return [variable.value for variable in variables]


def _zero_states(bilm, num_rows: int):
    from keras import ops

    return tuple(
        [
            [ops.zeros((num_rows, size), stack.compute_dtype) for size in cell.state_size]
            for cell in stack.cells
        ]
        for stack in (bilm.forward_stack, bilm.backward_stack)
    )


def calls_per_second(call: Callable[[], Any], seconds: float) -> tuple[float, float]:
    """The median over groups of calls, and the seconds that the first call of all took."""
    compiling = _seconds_of(call, 1)
    num_calls = max(1, round(GROUP_SECONDS / _seconds_of(call, 1)))
    end = time.perf_counter() + seconds
    rates = [num_calls / _seconds_of(call, num_calls)]
    while time.perf_counter() < end:
        rates.append(num_calls / _seconds_of(call, num_calls))
    return statistics.median(rates), compiling


def _seconds_of(call: Callable[[], Any], num_calls: int) -> float:
    import jax

    start, before = time.perf_counter(), None
    for _ in range(num_calls):
        # One runs while the next one is prepared: the device does not wait, and memory stays bounded.
        result = call()
        jax.block_until_ready(before)
        before = result
    jax.block_until_ready(before)
    return time.perf_counter() - start


class Report:
    """Results, each printed and written at once: a run that is cut off has told what it found."""

    def __init__(self, about: dict[str, Any], file: Path | None):
        self._content = about | {"results": []}
        self._file = file
        self._table = Table("", "size", "precision", "speed", "", "of the matrix product's rate")

    def add(self, cells: tuple[str, ...], **numbers: Any) -> None:
        """Adds a result: what people read of it, and its numbers."""
        print(*filter(None, cells), sep=", ", flush=True)
        self._table.add_row(*cells)
        self._content["results"].append(numbers)
        if self._file:
            self._file.write_text(json.dumps(self._content, indent=2) + "\n", encoding="utf-8")

    def print_table(self) -> None:
        """Prints all results."""
        Console(width=120).print(self._table)


def measure(arguments) -> None:
    """Measures what was asked for, as far as the time goes."""
    end = time.monotonic() + arguments.seconds
    end_of_speeds = end - 60 * arguments.minutes
    if arguments.seconds <= 60 * arguments.minutes:
        sys.exit("`--seconds`, for everything, must be more than the `--minutes` of the loss.")
    windows = Windows.load(arguments.file)
    about = start_jax(arguments.cpu)
    if arguments.device_check:
        return
    sizes = arguments.architecture or (["tiny"] if arguments.cpu else ["small", "original"])
    precisions = arguments.precision or ["float32" if arguments.cpu else "tensorfloat32"]
    report = Report(about, arguments.json)
    matrix_size = arguments.matrix_size or (1024 if arguments.cpu else 8192)
    limits = {name: _measure_matrix_product(report, matrix_size, name) for name in PRECISIONS}
    for precision, size, make in itertools.product(precisions, sizes, (training, inference)):
        if time.monotonic() < end_of_speeds:
            seconds = arguments.measure_seconds
            _measure_speed(report, windows, make, size, precision, limits[precision], seconds)
        else:
            print(f"{make.__name__}, {size}, {precision}: no time is left", flush=True)
    falls = True
    if arguments.minutes:
        seconds = 60 * arguments.minutes
        falls = _measure_loss(report, windows, sizes[0], precisions[0], seconds, end)
    report.print_table()
    refuse_tensorflow()
    if not falls:
        sys.exit(
            "The loss must fall, but in the last tenth of the steps it is not below the first."
        )


def start_jax(cpu: bool) -> dict[str, Any]:
    """Imports JAX, and Keras and the package on it; says what there is, and ends if something is missing."""
    os.environ["KERAS_BACKEND"] = "jax"
    if cpu:
        os.environ["JAX_PLATFORMS"] = "cpu"
    try:
        import jax
        import keras

        import keras_elmo  # noqa: F401 (only whether it is there, before the work begins)
    except ImportError as error:
        sys.exit(f"JAX, Keras, and keras_elmo by `pip install --no-deps`, must be there: {error}")
    refuse_tensorflow()
    devices = jax.devices()
    print(f"JAX {jax.__version__}, Keras {keras.__version__}: {devices}", flush=True)
    if devices[0].platform != "gpu" and not cpu:
        sys.exit("JAX sees no GPU here: run this where it does, or try it on the CPU by `--cpu`.")
    device = devices[0].device_kind
    return {"device": device, "jax": jax.__version__, "keras": keras.__version__}


def refuse_tensorflow() -> None:
    """Ends if TensorFlow was imported: it would take the GPU's memory for itself."""
    if "tensorflow" in sys.modules:
        sys.exit("`measure` must run without TensorFlow, but something has imported it.")


def _measure_matrix_product(report: Report, size: int, precision: str) -> float:
    import jax

    policy, float32 = PRECISIONS[precision]
    with jax.default_matmul_precision(float32):
        product = matrix_product(size, policy.removeprefix("mixed_"))
        flop_per_second = 2 * size**3 * calls_per_second(product, 2)[0]
    report.add(
        ("matrix product", str(size), precision, "", f"{flop_per_second / 1e12:.3g} TFLOP/s", ""),
        what="matrix_product",
        size=size,
        precision=precision,
        flop_per_second=flop_per_second,
    )
    return flop_per_second


def _measure_speed(report: Report, windows, make, size, precision, limit, seconds) -> None:
    import jax

    architecture = windows.header["architectures"][size]
    policy, float32 = PRECISIONS[precision]
    with jax.default_matmul_precision(float32):
        rate, compiling = calls_per_second(make(windows, architecture, policy), seconds)
    flop = {training: training_flop, inference: inference_flop}[make](windows, architecture)
    tokens_per_second, share = windows.tokens_per_batch * rate, flop * rate / limit
    cells = (f"{tokens_per_second:,.0f} tokens/s", f"{flop * rate / 1e12:.3g} TFLOP/s")
    report.add(
        (make.__name__, size, precision, *cells, f"{share:.1%}"),
        what=make.__name__,
        size=size,
        precision=precision,
        tokens_per_second=tokens_per_second,
        flop_per_token=flop / windows.tokens_per_batch,
        share_of_matrix_rate=share,
        first_call_seconds=compiling,
    )


def _measure_loss(report: Report, windows, size, precision, seconds, end) -> bool:
    """Trains anew, and says whether the loss falls."""
    import jax

    policy, float32 = PRECISIONS[precision]
    with jax.default_matmul_precision(float32):
        step = training(windows, windows.header["architectures"][size], policy)
        losses = [float(step())]
        start = told = time.monotonic()
        # Ten of them, for a tenth to be one.
        while len(losses) < 10 or time.monotonic() < min(start + seconds, end):
            losses.append(float(step()))
            if time.monotonic() - told > seconds / 20:
                told = time.monotonic()
                print(f"step {len(losses):,}: loss {losses[-1]:.3f}", flush=True)
    first, last = tenths(losses)
    cells = (f"{len(losses):,} steps", f"{first:.3f}, then {last:.3f}", "")
    report.add(
        ("loss", size, precision, *cells),
        what="loss",
        size=size,
        precision=precision,
        num_steps=len(losses),
        first_tenth=first,
        last_tenth=last,
        curve=[float(part.mean()) for part in np.array_split(losses, min(len(losses), 50))],
    )
    return last < first


def tenths(losses: list[float]) -> tuple[float, float]:
    """The means of the first tenth and of the last."""
    size = len(losses) // 10
    return statistics.fmean(losses[:size]), statistics.fmean(losses[-size:])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("pack", help="write the file of windows")
    command.set_defaults(run=pack)
    add = command.add_argument
    add("file", type=Path, help="file to write")
    corpus = SHARED / "data" / "lm" / "train-00.txt.xz"
    add("--corpus", default=str(corpus), help="tokenized text, one sentence a line")
    add("--num-batches", type=int, default=200)
    add("--batch-size", type=int, default=128, help="rows of a batch")
    add("--vocabulary-size", type=int, default=50_000)
    command = commands.add_parser("measure", help="measure, on JAX")
    command.set_defaults(run=measure)
    add = command.add_argument
    add("file", type=Path, help="file that `pack` wrote")
    sizes = "default: small original; with `--cpu`: tiny"
    add("--architecture", nargs="+", choices=SIZES, help=f"{sizes}; the loss is that of the first")
    precision = "default: tensorfloat32, which JAX takes on a GPU unless told otherwise"
    add("--precision", nargs="+", choices=PRECISIONS, help=f"{precision}; with `--cpu`: float32")
    add("--minutes", type=float, default=3, help="of training to see the loss fall; 0 for none")
    add("--seconds", type=float, default=480, help="for everything, the loss included")
    add("--measure-seconds", type=float, default=10, help="for each speed, once it is compiled")
    add("--matrix-size", type=int, help="rows of the matrices; default: 8192, with `--cpu`: 1024")
    add("--cpu", action="store_true", help="try it on the CPU")
    add("--device-check", action="store_true", help="show the devices and end")
    add("--json", type=Path, help="file to write the numbers to")
    return parser


if __name__ == "__main__":
    main()
