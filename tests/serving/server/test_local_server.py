import http.client
import json
import os
import shlex
import shutil
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
import tensorflow as tf
import tiny_model
from serving import GrpcClient, RestClient, install_version, kill_a_client, mixed_requests, run_load
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from keras_elmo.serving.server import LocalServer
from keras_elmo.serving.server.model_version import ModelVersion

PREDICT = "/v1/models/tiny:predict"


class Gate:
    """Holds every prediction until it is opened."""

    def __init__(self, monkeypatch):
        self.waiting = threading.Semaphore(0)
        self._open = threading.Event()
        predict = ModelVersion.predict

        def held(*arguments):
            self.waiting.release()
            assert self._open.wait(120)
            return predict(*arguments)

        monkeypatch.setattr(ModelVersion, "predict", held)

    def open(self):
        self._open.set()


def post(server):
    connection = http.client.HTTPConnection(server.rest_address, timeout=120)
    connection.request("POST", PREDICT, json.dumps({"instances": ["a"]}))
    response = connection.getresponse()
    content = json.load(response)
    connection.close()
    return response.status, content


def call(server):
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "tiny"
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(["a"]))
    with grpc.insecure_channel(server.grpc_address) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        try:
            return stub.Predict(request, timeout=120).model_spec.version.value
        except grpc.RpcError as error:
            return error.code().name


def test_what_is_in_flight_ends_well(model_dir, monkeypatch):
    with ThreadPoolExecutor() as pool:
        with LocalServer(model_dir, 0, 0) as server:
            gate = Gate(monkeypatch)
            answers = [pool.submit(post, server), pool.submit(call, server)]
            for _ in answers:
                assert gate.waiting.acquire(timeout=120)
            # Long after the server has begun to end; the answers come in any case.
            threading.Timer(1, gate.open).start()
        status, _ = answers[0].result()
        assert (status, answers[1].result()) == (200, 1)
    for address in (server.rest_address, server.grpc_address):
        host, _, port = address.rpartition(":")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)))


@pytest.mark.parametrize(
    ("ask", "refusal"),
    [
        (post, (429, {"error": "More than 2 requests at once. Try again later."})),
        (call, "RESOURCE_EXHAUSTED"),
    ],
    ids=["rest", "grpc"],
)
def test_more_requests_than_it_takes(model_dir, monkeypatch, ask, refusal):
    with ThreadPoolExecutor() as pool, LocalServer(model_dir, 0, 0, max_requests=2) as server:
        expected = ask(server)
        assert expected != refusal
        gate = Gate(monkeypatch)
        answers = [pool.submit(until_taken, ask, server, refusal) for _ in range(2)]
        for _ in answers:
            assert gate.waiting.acquire(timeout=120)
        assert ask(server) == refusal
        gate.open()
        assert [answer.result() for answer in answers] == [expected] * 2
        assert until_taken(ask, server, refusal) == expected


def until_taken(ask, server, refusal):
    """Asks until there is an answer: gRPC counts a request for a moment after it is answered."""
    while (answer := ask(server)) == refusal:
        pass
    return answer


def test_ports_in_use(model_dir):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(
            ValueError, match=f"^Port {port} of 127.0.0.1 is in use: .* `--rest-port`"
        ):
            LocalServer(model_dir, port, 0)
        with pytest.raises(
            ValueError, match=f"^Port {port} of 127.0.0.1 is in use: .* `--grpc-port`"
        ):
            LocalServer(model_dir, 0, port)


def test_one_port_for_both(model_dir):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    with pytest.raises(ValueError, match=f"^Port {port} of 127.0.0.1 is in use: .* `--grpc-port`"):
        LocalServer(model_dir, port, port)


def test_two_servers_on_the_same_ports(model_dir):
    with LocalServer(model_dir, 0, 0) as server:
        port = int(server.grpc_address.rpartition(":")[2])
        with pytest.raises(ValueError, match="in use"):
            LocalServer(model_dir, 0, port)


def test_addresses_that_are_none(model_dir):
    with pytest.raises(ValueError, match="192.0.2.1:0 cannot be listened on: .* `--host`"):
        LocalServer(model_dir, 0, 0, host="192.0.2.1")
    with pytest.raises(ValueError, match="cannot be listened on: .* `--host`"):
        LocalServer(model_dir, 0, 0, host="no such host")
    with pytest.raises(
        ValueError, match="`--grpc-port` must be between 0 and 65535. Received: 70000"
    ):
        LocalServer(model_dir, 0, 70000)


def test_a_folder_that_cannot_be_served_leaves_no_port_taken(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    with pytest.raises(ValueError, match="has no version folders"):
        LocalServer(tmp_path, port, 0)
    socket.create_server(("127.0.0.1", port)).close()


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_ipv6(model_dir):
    with LocalServer(model_dir, 0, 0, host="::1") as server:
        assert server.rest_address.startswith("[::1]:")
        assert post(server)[0] == 200
        assert call(server) == 1


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_the_example_works(tmp_path, saved_model):
    shutil.copytree(saved_model, tmp_path / "my model é" / "1")
    environment = {**os.environ, "no_proxy": "127.0.0.1"}
    with LocalServer(tmp_path / "my model é", 0, 0) as server:
        answer = subprocess.check_output([*shlex.split(server.example()), "-s"], env=environment)
    assert json.loads(answer)["predictions"][0]["sequence_len"] == 6


def test_the_example_for_another_model(tmp_path):
    class Numbers(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec((None, 2), tf.float32, "x")])
        def add(self, x):
            return {"y": x + 1}

    module = Numbers()
    tf.saved_model.save(module, str(tmp_path / "numbers" / "1"), {"serving_default": module.add})
    with LocalServer(tmp_path / "numbers", 0, 0) as server:
        assert server.example() == f"curl http://{server.rest_address}/v1/models/numbers/metadata"


@pytest.mark.parametrize("connect", [RestClient, GrpcClient])
def test_load(model_dir, other_model, connect):
    """16 clients, a new version in the middle, a client killed: none wrong, none lost."""
    requests = mixed_requests(300, max_sentences=4, max_words=20)
    right = [[tiny_model.answer(request, scale) for request in requests] for scale in (1.0, 2.0)]
    with LocalServer(model_dir, 0, 0) as server:
        address = server.rest_address if connect is RestClient else server.grpc_address

        def in_the_middle():
            install_version(other_model, model_dir / "2")
            kill_a_client(f"http://{server.rest_address}{PREDICT}", requests[0])
            while server.versions.current != 2:
                call(server)

        load = run_load(lambda: connect(address, "tiny"), requests, right, 16, in_the_middle)
        last = connect(address, "tiny")
        # Which of the two it is: the new one.
        assert last.ask(["a"])["default"].tolist() == [[2, 2]]
        last.close()
    assert load.lost == []
    assert load.wrong == 0
    assert len(load.latencies) >= len(requests)
