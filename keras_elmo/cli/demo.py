"""`keras-elmo demo`: the live page, with a model."""

import os
import re
import shutil
import signal
import sys
import webbrowser
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Annotated, Any

import typer

from keras_elmo import presets
from keras_elmo.checkpoints import load_checkpoint
from keras_elmo.cli.app import app, complain
from keras_elmo.cli.export import elmo, keras_model
from keras_elmo.cli.serve import ending_by_signals
from keras_elmo.export import export_saved_model
from keras_elmo.extras import require
from keras_elmo.serving.server import LocalServer


@app.command()
def demo(
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            help="A preset's name, or a folder, archive or file of weights (see `keras-elmo info`); or the .keras file "
            "of a model of yours.",
            metavar="M",
        ),
    ] = presets.DEFAULT_PRESET,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Only print the page's address.", metavar="")
    ] = False,
) -> None:
    """Open a page in the browser that shows what a sentence does to its words' vectors, on sentences of yours.

    The page talks to a server on this machine alone. Ctrl-C ends it.
    """
    # Before the work, not after it.
    require("uvicorn", "serve")
    served, metadata = _served(model)
    with TemporaryDirectory(prefix="keras_elmo_") as folder:

        def leave(number: int, frame: FrameType | None) -> None:
            # No exception: in the middle of a graph TensorFlow would make another one of it.
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(128 + number)

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, leave)
        print(f"Preparing {model}: half a minute for a small model ..", file=sys.stderr, flush=True)
        path = Path(folder) / _name(model)
        export_saved_model(served, path, metadata=metadata)
        server = LocalServer(path, 0, 0, say=complain)
    # The server has the model in memory: however it ends, no folder stays behind.
    address = f"http://{server.rest_address}/"
    with ending_by_signals(server):
        print(f"Page  {address}", "Ctrl-C ends it.", sep="\n", file=sys.stderr, flush=True)
        if not no_browser and not webbrowser.open(address):
            complain(f"no browser was found here: open {address} in one on this machine.")
        server.wait()


def _served(source: str) -> tuple[Any, dict[str, Any]]:
    """A model with all that it can serve, and what is known of it."""
    if Path(source).suffix == ".keras":
        return keras_model(source), {}
    checkpoint = load_checkpoint(source)
    is_language_model = checkpoint.softmax is not None and checkpoint.vocabulary is not None
    return elmo(checkpoint, source, None, substitutes=is_language_model)


def _name(source: str) -> str:
    """A name for the served model: that of its file or folder, without what a server's addresses cannot have."""
    name = re.sub(r"[^\w.-]+", "_", Path(source).absolute().name.removesuffix(".keras"))
    return f"model_{name}" if name.isdigit() else name
