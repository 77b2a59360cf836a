"""What all examples share: their options, where progress goes, and the result as JSON."""

import argparse
import contextlib
import json
import sys
from pathlib import Path

import keras
from rich.console import Console
from rich.progress import track

# Beside the checkout, where it is there; `--data` names another place.
_DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "tasks"


def parse(doc, argv, data, epochs=5, model="elmo_tiny_en", max_examples=20_000):
    """The options of an example whose data lie in the folder `data`; sets the seed.

    Args:
        doc: The example's docstring, which `--help` shows.
        argv: The arguments, or `None` for those of the command line.
        data: Name of the folder of the data.
        epochs: How often the training data are gone through; `None` where nothing is trained.
        model: The preset.
        max_examples: How many training examples are taken at most; `None` for all of them.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=_DATA / data, help="folder of the data")
    parser.add_argument("--model", default=model, help="name of a preset, or a folder of weights")
    if epochs is not None:
        parser.add_argument("--epochs", type=_positive, default=epochs)
    parser.add_argument("--max-examples", type=_positive, default=max_examples, help="for training")
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


def _positive(text):
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 up")
    return int(text)


def progress_on_stderr():
    """Sends what Keras prints while it trains to standard error: standard output is for the result."""
    return contextlib.redirect_stdout(sys.stderr)


def progress(items, description, total=None):
    """The items, with a bar on standard error; `total` is their number where they have no `len`."""
    return track(items, description, total, console=Console(stderr=True))


@contextlib.contextmanager
def errors_as_one_sentence():
    """Ends the example with the error's own sentence if a file or the model that was given is wrong."""
    try:
        yield
    except KeyboardInterrupt:
        sys.exit(130)
    except (OSError, ValueError) as error:
        sys.exit(f"error: {error}")


def report(**result):
    """Prints the result as one JSON object, and returns it."""
    print(json.dumps(result, ensure_ascii=False))
    return result
