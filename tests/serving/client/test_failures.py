"""What fails on the way: tried again where that is safe, and told in the same way over both transports."""

import contextlib
import pickle
import socket
import struct
import threading
import time
from types import SimpleNamespace

import model_servers
import pytest

from keras_elmo.serving import ElmoClient, ServingError, retries

# --- what a server refuses ---


@pytest.mark.parametrize("code", ["UNAVAILABLE", "RESOURCE_EXHAUSTED"])
def test_passing_failures_are_tried_again(client, core, code):
    core.failures.extend([(code, "busy")] * 2)
    assert len(client.embed(["a b"])[0]) == 2
    assert core.sizes() == [1, 1, 1]


def test_passing_failures_of_classify(client, core):
    core.failures.append(("UNAVAILABLE", "busy"))
    assert len(client.classify(["a"])) == 1


def test_each_request_of_many_is_tried_again_alone(connect, core):
    core.failures.append(("UNAVAILABLE", "busy"))
    assert [len(array) for array in connect(batch_size=1).embed(["a", "a b"])] == [1, 2]
    assert core.sizes() == [1, 1, 1]


def test_failures_that_do_not_pass(connect, core):
    core.failures.extend([("UNAVAILABLE", "busy")] * 3)
    with pytest.raises(ServingError, match="UNAVAILABLE: busy") as error:
        connect(retries=2).embed(["a"])
    assert error.value.is_transient
    assert core.sizes() == [1, 1, 1]


def test_no_retries(connect, core):
    core.failures.append(("UNAVAILABLE", "busy"))
    with pytest.raises(ServingError, match="UNAVAILABLE: busy"):
        connect(retries=0).embed(["a"])
    assert core.sizes() == [1]


ALWAYS = {
    "CANCELLED": "CANCELLED",
    "UNKNOWN": "INTERNAL",
    "INVALID_ARGUMENT": "INVALID_ARGUMENT",
    "NOT_FOUND": "NOT_FOUND",
    "ALREADY_EXISTS": "ABORTED",
    "PERMISSION_DENIED": "PERMISSION_DENIED",
    "FAILED_PRECONDITION": "INVALID_ARGUMENT",
    "ABORTED": "ABORTED",
    "OUT_OF_RANGE": "INVALID_ARGUMENT",
    "UNIMPLEMENTED": "UNIMPLEMENTED",
    "INTERNAL": "INTERNAL",
    "DATA_LOSS": "INTERNAL",
    "UNAUTHENTICATED": "UNAUTHENTICATED",
    "DEADLINE_EXCEEDED": "DEADLINE_EXCEEDED",
}


@pytest.mark.parametrize("code", ALWAYS)
def test_other_failures_are_not_tried_again(client, core, code):
    core.failures.append((code, 'no, "never" öder'))
    with pytest.raises(ServingError) as error:
        client.embed(["a"])
    assert error.value.code == ALWAYS[code]
    assert error.value.message.startswith('no, "never" öder (')
    assert "127.0.0.1" in error.value.message
    assert not error.value.is_transient
    assert core.sizes() == [1]


def test_message_that_is_too_large_is_not_tried_again(client, core, transport):
    if transport == "grpc":
        message = "Received message larger than max (5000000 vs. 4194304)"
        core.failures.append(("RESOURCE_EXHAUSTED", message))
        with pytest.raises(
            ServingError, match="RESOURCE_EXHAUSTED: Received message larger"
        ) as error:
            client.embed(["a"])
    else:
        with (
            model_servers.page(413, b"too large") as address,
            ElmoClient(address) as client,
            pytest.raises(ServingError, match="RESOURCE_EXHAUSTED: HTTP 413") as error,
        ):
            client.embed(["a"])
    assert not error.value.is_transient


def test_errors_can_be_pickled():
    error = pickle.loads(pickle.dumps(ServingError("ABORTED", "why", True)))
    assert (error.code, error.message, error.is_transient, str(error)) == (
        "ABORTED",
        "why",
        True,
        "ABORTED: why",
    )


# --- time ---


def test_deadline(connect, core):
    core.gate.clear()
    with pytest.raises(ServingError) as error:
        connect(timeout=0.5).embed(["a"])
    assert str(error.value) == (
        "DEADLINE_EXCEEDED: there was no complete answer within 0.5 s. Give a longer `timeout`, or less at once."
    )


def test_deadline_is_for_all_requests_of_a_call(connect, core):
    def answer(outputs):
        time.sleep(0.05)
        return outputs

    core.answer = answer
    with pytest.raises(ServingError, match="DEADLINE_EXCEEDED"):
        connect(timeout=1.0, batch_size=1).embed(["a"] * 1000)
    assert 0 < len(core.sizes()) < 1000


def test_no_pause_is_longer_than_the_time_left(connect, core, monkeypatch):
    monkeypatch.setattr(retries, "FIRST_PAUSE", 1e6)
    monkeypatch.setattr(retries, "LONGEST_PAUSE", 1e6)
    core.failures.append(("UNAVAILABLE", "busy"))
    with pytest.raises(ServingError, match="UNAVAILABLE: busy"):
        connect().embed(["a"])


def test_pauses_double_up_to_a_limit_and_vary(monkeypatch):
    pauses = []
    monkeypatch.setattr(
        retries, "time", SimpleNamespace(monotonic=time.monotonic, sleep=pauses.append)
    )

    def attempt(timeout):
        assert timeout is None
        raise ServingError("UNAVAILABLE", "busy", is_transient=True)

    with pytest.raises(ServingError):
        retries.with_retries(attempt, retries.Deadline(None), 9)
    longest = [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5]
    assert all(most / 2 <= pause <= most for pause, most in zip(pauses, longest, strict=True))
    assert len({pause / most for pause, most in zip(pauses, longest, strict=True)}) == 9


def test_no_limit(connect):
    assert len(connect(timeout=None).embed(["a b"])[0]) == 2


# --- connections ---


def unused_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def url(transport, port):
    return f"127.0.0.1:{port}" if transport == "grpc" else f"http://127.0.0.1:{port}"


class Gateway:
    """Hands connections on to a server, but for the first ones, which it resets."""

    def __init__(self, target, resets):
        self.target, self.resets = target, resets
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.threads = []
        self.connections = []

    def listen(self):
        self.socket.listen()
        self.start(self.accept)

    def start(self, function, *args):
        self.threads.append(threading.Thread(target=function, args=args))
        self.threads[-1].start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.socket.accept()
                self.connections.append(connection)
                if self.resets:
                    self.resets -= 1
                    connection.recv(1)
                    connection.setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                    )
                    connection.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self.target))
                self.connections.append(server)
                self.start(self.pump, connection, server)
                self.start(self.pump, server, connection)

    def pump(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def close(self):
        # A thread in `accept` is woken by shutdown alone.
        for connection in (self.socket, *self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        for thread in self.threads:
            thread.join()


@pytest.fixture
def gateway(address):
    gateway = Gateway(int(address.rpartition(":")[2]), resets=2)
    yield gateway
    gateway.close()


def test_connections_that_are_reset(gateway, transport):
    gateway.listen()
    with ElmoClient(url(transport, gateway.port)) as client:
        assert len(client.embed(["a b"])[0]) == 2
    assert gateway.resets == 0


def test_server_that_starts_later(gateway, transport, monkeypatch):
    gateway.resets = 0
    pauses = []

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 1:
            gateway.listen()
        time.sleep(seconds)

    monkeypatch.setattr(retries, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    with ElmoClient(url(transport, gateway.port), retries=20) as client:
        assert len(client.embed(["a b"])[0]) == 2
    assert pauses


def test_no_server(transport):
    address = url(transport, unused_port())
    with ElmoClient(address, retries=1) as client, pytest.raises(ServingError) as error:
        client.embed(["a"])
    assert error.value.code == "UNAVAILABLE"
    assert error.value.is_transient
    assert "refused" in error.value.message
    assert address in str(error.value)


def test_host_that_does_not_exist(transport):
    address = "nowhere.invalid:8500" if transport == "grpc" else "http://nowhere.invalid:8501"
    with ElmoClient(address, retries=0) as client, pytest.raises(ServingError) as error:
        client.status()
    assert error.value.code == "UNAVAILABLE"
