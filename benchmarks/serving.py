"""How many requests a second the development server answers, and how soon; none may be wrong or lost.

    python benchmarks/serving.py saved_models/elmo_tiny_en

The newest version of a model is copied, and the copy served by `keras-elmo serve` in a process of
its own. First every request is asked once, alone: that is what the answer must be. Then 16 clients
ask 2,000 requests, of 1 to 8 sentences of 1 to 40 words. In the middle a new version appears, with
the same weights, and one more client is killed while it waits; the clients go on until that is
done. Once by REST, once by gRPC. The server's memory is looked at when the new version has taken
over, and at the end.
"""

import argparse
import http.client
import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import numpy as np
import tensorflow as tf
from rich.console import Console
from rich.table import Table
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

Request = list[str]
Answer = dict[str, np.ndarray]
WORDS = (
    "the",
    "bank",
    "of",
    "a",
    "river",
    "lends",
    "money",
    "unbelievably",
    "é",
    "苹果",
    "😀",
    ".",
)
SECONDS_FOR_AN_ANSWER = 300
TOLERANCE = 1e-4
# What a client does that is killed: it asks again and again.
KILLED_CLIENT = """
import sys, urllib.request
url, body = sys.argv[1:]
while True:
    urllib.request.urlopen(url, body.encode()).read()
    print("answered", flush=True)
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Measures, prints a table and writes the JSON file if asked to."""
    arguments = _parser().parse_args(argv)
    requests = mixed_requests(arguments.requests)
    report: dict = {
        "model": arguments.model_dir.name,
        "clients": arguments.clients,
        "requests": arguments.requests,
        "num_sentences": sum(map(len, requests)),
        "num_words": sum(len(sentence.split()) for request in requests for sentence in request),
        "num_cores": os.cpu_count(),
        "interfaces": measure(arguments.model_dir, requests, arguments.clients),
    }
    _print(report)
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    for interface, found in report["interfaces"].items():
        if found["wrong"] or found["lost"]:
            sys.exit(f"{interface}: {found['wrong']} answers wrong, {found['lost']} lost.")


def mixed_requests(number: int, max_sentences: int = 8, max_words: int = 40) -> list[Request]:
    """Requests of one to some sentences of one to some words."""
    choose = random.Random(1)
    return [
        [
            " ".join(choose.choices(WORDS, k=choose.randint(1, max_words)))
            for _ in range(choose.randint(1, max_sentences))
        ]
        for _ in range(number)
    ]


class RestClient:
    """One connection to the REST interface."""

    def __init__(self, address: str, name: str):
        self._path = f"/v1/models/{name}:predict"
        self._connection = http.client.HTTPConnection(address, timeout=SECONDS_FOR_AN_ANSWER)

    def ask(self, request: Request) -> Answer:
        """All outputs."""
        self._connection.request("POST", self._path, json.dumps({"inputs": request}))
        response = self._connection.getresponse()
        answer = json.load(response)
        if response.status != http.client.OK:
            raise RuntimeError(f"{response.status}: {answer}")
        outputs = answer["outputs"]
        # The only output has no name.
        named = outputs if isinstance(outputs, dict) else {"": outputs}
        arrays = {name: np.array(value) for name, value in named.items()}
        # Strings are bytes, as gRPC has them.
        return {
            name: np.char.encode(array, "utf-8").astype(object)
            if array.dtype.kind == "U"
            else array
            for name, array in arrays.items()
        }

    def close(self) -> None:
        """Closes the connection."""
        self._connection.close()


class GrpcClient:
    """One channel to the gRPC interface."""

    def __init__(self, address: str, name: str):
        # A connection of its own, and answers of any size.
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", -1)]
        self._channel = grpc.insecure_channel(address, options)
        self._stub = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)
        self._name = name

    def ask(self, request: Request) -> Answer:
        """All outputs."""
        message = predict_pb2.PredictRequest()
        message.model_spec.name = self._name
        message.inputs["text"].CopyFrom(tf.make_tensor_proto(request, tf.string))
        answer = self._stub.Predict(message, SECONDS_FOR_AN_ANSWER)
        return {name: tf.make_ndarray(value) for name, value in answer.outputs.items()}

    def close(self) -> None:
        """Closes the connection."""
        self._channel.close()


CLIENTS = {"REST": RestClient, "gRPC": GrpcClient}


@dataclass
class Load:
    """What came of many requests: seconds of every answer and of them all, wrong answers, errors."""

    latencies: list[float] = field(default_factory=list)
    seconds: float = 0.0
    wrong: int = 0
    lost: list[str] = field(default_factory=list)


def run_load(
    connect: Callable[[], RestClient | GrpcClient],
    requests: Sequence[Request],
    right: Sequence[Sequence[Answer]],
    num_clients: int,
    in_the_middle: Callable[[], None],
) -> Load:
    """Lets clients ask all requests, and compares each answer with the right ones of every version.

    `in_the_middle` is called when half of them are asked, while the clients go on.
    """
    load = Load()
    lock = threading.Lock()
    numbers = itertools.count()
    half, middle_is_over = threading.Event(), threading.Event()

    def work() -> None:
        client = connect()
        # Nobody stops before what is done in the middle is done.
        while (number := next(numbers)) < len(requests) or not middle_is_over.is_set():
            request = number % len(requests)
            start = time.perf_counter()
            try:
                answer = client.ask(requests[request])
            except Exception as error:  # whatever it is, the request has no answer
                with lock:
                    load.lost.append(repr(error))
                client.close()
                client = connect()
                continue
            finally:
                if number >= len(requests) // 2:
                    half.set()
            seconds = time.perf_counter() - start
            is_right = any(same(answer, answers[request]) for answers in right)
            with lock:
                load.latencies.append(seconds)
                load.wrong += not is_right
        client.close()

    threads = [threading.Thread(target=work) for _ in range(num_clients)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    half.wait()
    try:
        in_the_middle()
    finally:
        middle_is_over.set()
        for thread in threads:
            thread.join()
    load.seconds = time.perf_counter() - start
    return load


def same(answer: Answer, right: Answer) -> bool:
    """Whether two answers say the same."""
    return answer.keys() == right.keys() and all(
        answer[name].shape == value.shape
        and (
            np.allclose(answer[name], value, atol=TOLERANCE)
            if np.issubdtype(value.dtype, np.number)
            else (answer[name] == value).all()
        )
        for name, value in right.items()
    )


def kill_a_client(url: str, request: Request) -> None:
    """Starts a client that asks without end, and kills it behind its first answer."""
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED_CLIENT, url, json.dumps({"inputs": request})],
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        if process.stdout.readline() != "answered\n":
            sys.exit("The client that was to be killed has no answer.")
        process.kill()


def install_version(source: Path, target: Path) -> None:
    """Copies a version folder so that nobody sees half of it."""
    beside = target.with_name(f".{target.name}.part")
    shutil.copytree(source, beside)
    beside.rename(target)


class ServerProcess:
    """`keras-elmo serve` in a process of its own."""

    def __init__(self, model_dir: Path):
        command = [sys.executable, "-m", "_keras_elmo_command", "serve", str(model_dir)]
        self._process = subprocess.Popen(
            [*command, "--rest-port", "0", "--grpc-port", "0"], stderr=subprocess.PIPE, text=True
        )
        self.addresses: dict[str, str] = {}
        for line in self._process.stderr:
            kind, _, address = line.strip().partition("  ")
            self.addresses[kind] = address.removeprefix("http://")
            if kind == "gRPC":
                break
        else:
            sys.exit("The server did not start.")
        # Read on, or the server would wait for a reader in the end.
        self._reader = threading.Thread(target=self._process.stderr.read)
        self._reader.start()

    def megabytes(self) -> float:
        """Its memory."""
        command = ["ps", "-o", "rss=", "-p", str(self._process.pid)]
        return int(subprocess.check_output(command)) / 1024

    def end(self) -> int:
        """Ends it as SIGTERM does: its exit code."""
        self._process.terminate()
        return self._process.wait()

    def __enter__(self) -> "ServerProcess":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        self._process.stderr.close()


def measure(model_dir: Path, requests: list[Request], num_clients: int) -> dict[str, dict]:
    """The numbers of both interfaces of one server, one after the other."""
    newest = max(
        (path for path in model_dir.iterdir() if path.name.isdigit()),
        key=lambda path: int(path.name),
    )
    found = {}
    with tempfile.TemporaryDirectory() as temporary:
        served = Path(temporary) / model_dir.name
        served.mkdir()
        install_version(newest, served / "1")
        with ServerProcess(served) as server:
            for version, interface in enumerate(CLIENTS, start=2):
                found[interface] = _measure(
                    server, interface, newest, served / str(version), requests, num_clients
                )
            if server.end() != 0:
                sys.exit("The server did not end well.")
    return found


def _measure(
    server: ServerProcess,
    interface: str,
    source: Path,
    version: Path,
    requests: list[Request],
    num_clients: int,
) -> dict:
    name = version.parent.name
    rest_address = server.addresses["REST"]
    megabytes = []

    def client() -> RestClient | GrpcClient:
        return CLIENTS[interface](server.addresses[interface], name)

    def in_the_middle() -> None:
        install_version(source, version)
        kill_a_client(f"http://{rest_address}/v1/models/{name}:predict", requests[0])
        wait_for_version(rest_address, name, int(version.name))
        megabytes.append(server.megabytes())

    alone = client()
    right = [alone.ask(request) for request in requests]
    alone.close()
    load = run_load(client, requests, [right], num_clients, in_the_middle)
    megabytes.append(server.megabytes())
    centiles = statistics.quantiles(load.latencies, n=100)
    return {
        "answered": len(load.latencies),
        "requests_per_second": len(load.latencies) / load.seconds,
        "p50_ms": 1000 * centiles[49],
        "p99_ms": 1000 * centiles[98],
        "wrong": load.wrong,
        "lost": len(load.lost),
        "megabytes_in_the_middle": megabytes[0],
        "megabytes_in_the_end": megabytes[1],
    }


def wait_for_version(rest_address: str, name: str, number: int) -> None:
    """Waits until a version is served."""
    while True:
        connection = http.client.HTTPConnection(rest_address, timeout=SECONDS_FOR_AN_ANSWER)
        connection.request("GET", f"/v1/models/{name}/versions/{number}")
        answer = json.load(connection.getresponse())
        connection.close()
        states = [entry["state"] for entry in answer.get("model_version_status", [])]
        if states == ["AVAILABLE"]:
            return
        if states == ["END"]:
            sys.exit(f"Version {number} does not load: {answer}")
        time.sleep(0.1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("model_dir", type=Path, help="a folder with version folders, of `keras-elmo export`")
    add("--clients", type=int, default=16)
    add("--requests", type=int, default=2000)
    add("--json", type=Path, help="file to write the numbers to")
    return parser


def _print(report: dict) -> None:
    table = Table(
        title=f"{report['model']}: {report['requests']} requests of {report['clients']} clients, "
        f"{report['num_words']} words, {report['num_cores']} cores"
    )
    headings = ("", "requests/s", "p50", "p99", "wrong", "lost", "memory, middle -> end")
    for heading in headings:
        table.add_column(heading, justify="right" if heading else "left")
    for interface, found in report["interfaces"].items():
        table.add_row(
            interface,
            f"{found['requests_per_second']:,.1f}",
            f"{found['p50_ms']:,.0f} ms",
            f"{found['p99_ms']:,.0f} ms",
            str(found["wrong"]),
            str(found["lost"]),
            f"{found['megabytes_in_the_middle']:,.0f} -> {found['megabytes_in_the_end']:,.0f} MB",
        )
    Console().print(table)


if __name__ == "__main__":
    main()
