"""What all examples share: their options, where progress goes, and the result as JSON."""

import argparse
import contextlib
import json
import sys
from pathlib import Path

import keras

# Beside the checkout, where it is there; `--data` names another place.
_DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "tasks"


def parse(doc, argv, data, epochs=5, model="elmo_tiny_en", max_examples=20_000):
    """The options of an example whose data lie in the folder `data`; sets the seed.

    Args:
        doc: The example's docstring, which `--help` shows.
        argv: The arguments, or `None` for those of the command line.
        data: Name of the folder of the data.
        epochs: How often the training data are gone through.
        model: The preset.
        max_examples: How many training examples are taken at most.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=_DATA / data, help="folder of the data")
    parser.add_argument("--model", default=model, help="name of a preset, or a folder of weights")
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--max-examples", type=int, default=max_examples, help="for training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--smoke", action="store_true", help="seconds, on a few sentences of its own"
    )
    options = parser.parse_args(argv)
    if not options.smoke and not options.data.is_dir():
        parser.error(
            f"there is no folder {options.data}. Get the data (--help says where) and give --data, or try --smoke"
        )
    keras.utils.set_random_seed(options.seed)
    return options


def progress_on_stderr():
    """Sends what Keras prints while it trains to standard error: standard output is for the result."""
    return contextlib.redirect_stdout(sys.stderr)


def report(**result):
    """Prints the result as one JSON object, and returns it."""
    print(json.dumps(result, ensure_ascii=False))
    return result
