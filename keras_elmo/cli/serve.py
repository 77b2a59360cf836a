"""`keras-elmo serve`: an exported model, on this machine."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from keras_elmo.cli.app import app, complain
from keras_elmo.serving.server import LocalServer
from keras_elmo.serving.server.real_server import binary_command, docker_command


def _port(help: str) -> Any:
    return typer.Option(min=0, max=65535, metavar="PORT", help=help)


@app.command()
def serve(
    model_dir: Annotated[
        Path,
        typer.Argument(
            help="The folder with the version folders 1, 2, ..; its name is the model's.",
            metavar="MODEL_DIR",
        ),
    ],
    rest_port: Annotated[int, _port("Port of the REST interface; 0 for a free one.")] = 8501,
    grpc_port: Annotated[int, _port("Port of the gRPC interface; 0 for a free one.")] = 8500,
    host: Annotated[
        str | None,
        typer.Option(
            help="Address to listen on; 127.0.0.1 unless told otherwise: this machine alone.",
            metavar="ADDRESS",
            show_default=False,
        ),
    ] = None,
    docker: Annotated[
        bool,
        typer.Option("--docker", help="Run TensorFlow Serving by its Docker image.", metavar=""),
    ] = False,
    binary: Annotated[
        bool,
        typer.Option("--binary", help="Run TensorFlow Serving, which is installed.", metavar=""),
    ] = False,
) -> None:
    """Serve an exported model by REST and gRPC, with a development server that answers as TensorFlow Serving does.

    Its first page shows in a browser what the model does. A new version folder is picked up while it runs. Ctrl-C ends
    it.
    """
    if docker and binary:
        raise ValueError("Give `--docker` or `--binary`, not both.")
    if docker or binary:
        if 0 in (rest_port, grpc_port):
            raise ValueError("TensorFlow Serving takes no port 0: give others than 0.")
        if binary and host is not None:
            raise ValueError(
                "`--host` has no effect with `--binary`: tensorflow_model_server listens on all addresses. Leave it "
                "out, or use `--docker`."
            )
        _become(
            binary_command(model_dir, rest_port, grpc_port)
            if binary
            else docker_command(model_dir, rest_port, grpc_port, host or "127.0.0.1")
        )
    server = LocalServer(model_dir, rest_port, grpc_port, host or "127.0.0.1", say=complain)
    with ending_by_signals(server):
        print(
            "This is keras_elmo's development server, not TensorFlow Serving.",
            f"Model {server.versions.name}, version {server.versions.current}",
            f"Page  http://{server.rest_address}/",
            f"REST  http://{server.rest_address}",
            f"gRPC  {server.grpc_address}",
            f"Try:  {server.example()}",
            "Ctrl-C ends it.",
            sep="\n",
            file=sys.stderr,
            flush=True,
        )
        server.wait()


@contextmanager
def ending_by_signals(server: LocalServer) -> Iterator[None]:
    """Serves within its block; Ctrl-C and a termination let `server.wait` return."""

    def end(number: int, frame: FrameType | None) -> None:
        # The second one: for who will not wait for the requests in flight.
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
        server.end()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    with server:
        yield


def _become(command: list[str]) -> None:
    """Runs a command in the place of this process."""
    print(*command, file=sys.stderr, flush=True)
    os.execv(command[0], command)
