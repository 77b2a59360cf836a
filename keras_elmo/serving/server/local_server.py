"""LocalServer: a development server with TensorFlow Serving's REST and gRPC interfaces."""

import errno
import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import grpc
import tensorflow as tf
from tensorflow_serving.apis import model_pb2

from keras_elmo.extras import require
from keras_elmo.serving.server.grpc_services import add_services
from keras_elmo.serving.server.model_version import DEFAULT_SIGNATURE
from keras_elmo.serving.server.model_versions import ModelVersions
from keras_elmo.serving.server.rest_app import rest_app

# Requests in flight get this long to end.
GRACE_SECONDS = 60.0
_THREADS = 4 * (os.cpu_count() or 1)


class LocalServer:
    """Serves the newest version in a folder, within a `with` block.

    It answers as TensorFlow Serving does, for tests and for trying things out: it has no batching of requests, no
    encryption and no metrics. At `/` of the REST interface there is the live page.

    Args:
        model_dir: The folder with the version folders 1, 2, ..; its name is the model's.
        rest_port: Port of the REST interface; 0 for one that is free. Defaults to 8501.
        grpc_port: Port of the gRPC interface; 0 for one that is free. Defaults to 8500.
        host: The address to listen on. Defaults to "127.0.0.1", which other machines cannot reach.
        say: Called with a sentence about every change of versions.
        max_request_bytes: Largest request. Defaults to 16 MiB.
        max_requests: How many requests an interface takes at once; more are answered by RESOURCE_EXHAUSTED (REST:
            429). Defaults to 64.

    Attributes:
        versions: The `ModelVersions`.
        rest_address: Host and port of the REST interface.
        grpc_address: Host and port of the gRPC interface.

    Raises:
        ValueError: if the folder cannot be served, or an address cannot be listened on.
        ModuleNotFoundError: if uvicorn or Starlette is not installed, with the command to install it.
    """

    def __init__(
        self,
        model_dir: str | os.PathLike,
        rest_port: int = 8501,
        grpc_port: int = 8500,
        host: str = "127.0.0.1",
        say: Callable[[str], None] = lambda sentence: None,
        max_request_bytes: int = 16 * 1024**2,
        max_requests: int = 64,
    ):
        uvicorn = require("uvicorn", "serve")
        require("starlette", "serve")
        with _listen(host, grpc_port, "--grpc-port"):
            pass  # it is free: gRPC itself would not say why it is not
        self._socket = _listen(host, rest_port, "--rest-port")
        try:
            self.versions = ModelVersions(model_dir, say)
        except BaseException:
            self._socket.close()
            raise
        app = rest_app(self.versions, max_request_bytes, max_requests, _THREADS)
        self._rest_server = uvicorn.Server(
            uvicorn.Config(
                app,
                loop="asyncio",
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                timeout_graceful_shutdown=int(GRACE_SECONDS),
            )
        )
        self._grpc_server = grpc.server(
            ThreadPoolExecutor(_THREADS, "grpc"),
            options=[
                # Two servers on one port would share the requests.
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", max_request_bytes),
                ("grpc.max_send_message_length", -1),
            ],
            maximum_concurrent_rpcs=max_requests,
        )
        add_services(self.versions, self._grpc_server)
        try:
            port = self._grpc_server.add_insecure_port(_address(host, grpc_port))
        except RuntimeError as error:
            self._socket.close()
            self.versions.close()
            raise _in_use(host, grpc_port, "--grpc-port") from error
        self.rest_address = _address(host, self._socket.getsockname()[1])
        self.grpc_address = _address(host, port)
        self._end = threading.Event()
        self._rest_thread = threading.Thread(target=self._serve_rest, name="rest", daemon=True)

    def __enter__(self) -> "LocalServer":
        self._grpc_server.start()
        self._rest_thread.start()
        self.versions.watch()
        return self

    def __exit__(self, *_: object) -> None:
        """Finishes what was begun, and ends."""
        self._rest_server.should_exit = True
        ended = self._grpc_server.stop(GRACE_SECONDS)
        self._rest_thread.join()
        ended.wait()
        self.versions.close()

    def end(self) -> None:
        """Lets `wait` return; may be called from a signal handler."""
        self._end.set()

    def wait(self) -> None:
        """Waits until `end` is called."""
        self._end.wait()

    def example(self) -> str:
        """A command line that asks the server something it can answer."""
        with self.versions.use(model_pb2.ModelSpec(name=self.versions.name)) as (_, model):
            signature = model.signatures.get(DEFAULT_SIGNATURE)
        url = f"http://{self.rest_address}/v1/models/{quote(self.versions.name, safe='')}"
        infos = list(signature.inputs.values()) if signature is not None else []
        if len(infos) == 1 and infos[0].dtype == tf.string and len(infos[0].tensor_shape.dim) == 1:
            return f"""curl -d '{{"instances": ["The bank is near the river."]}}' {url}:predict"""
        return f"curl {url}/metadata"

    def _serve_rest(self) -> None:
        try:
            self._rest_server.run(sockets=[self._socket])
        finally:
            self._end.set()


def _listen(host: str, port: int, option: str) -> socket.socket:
    """A socket that listens."""
    if not 0 <= port <= 65535:
        raise ValueError(f"`{option}` must be between 0 and 65535. Received: {port}")
    try:
        family, *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise _in_use(host, port, option) from error
        raise ValueError(
            f"{_address(host, port)} cannot be listened on: {error.strerror}. "
            f"Give another port by `{option}`, or another address of this machine by `--host`."
        ) from error


def _in_use(host: str, port: int, option: str) -> ValueError:
    return ValueError(
        f"Port {port} of {host} is in use: stop what uses it, or give another by `{option}`."
    )


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
