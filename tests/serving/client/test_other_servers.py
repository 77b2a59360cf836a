"""What ElmoClient says to servers that are none of TensorFlow Serving, and to answers that come in odd ways."""

import contextlib
import gzip
import json
import time

import model_servers
import pytest
from model_servers import page

from keras_elmo.serving import ElmoClient, ServingError

HTML = b"<html><h1>Bad gateway</h1></html>"


@pytest.mark.parametrize(
    ("status", "content", "code", "message"),
    [
        (502, HTML, "UNAVAILABLE", "HTTP 502 Bad Gateway: '<html><h1>Bad gateway</h1></html>'"),
        (404, HTML, "NOT_FOUND", "HTTP 404 Not Found: '<html>"),
        (418, HTML, "INTERNAL", "HTTP 418 I'm a Teapot: '<html>"),
        (500, b'{"error": "it\\\'s bad"}', "INTERNAL", "HTTP 500 Internal Server Error: '{"),
        (500, b'["error"]', "INTERNAL", "HTTP 500 Internal Server Error: '[\"error\"]'"),
        (200, HTML, "INTERNAL", "the answer is not JSON: '<html>"),
        (200, b'{"outputs": [', "INTERNAL", "the answer is not JSON"),
        (200, b"\xff\xfe\xfd", "INTERNAL", "the answer is not JSON"),
        (200, b"", "INTERNAL", "the answer is not JSON: ''"),
        (
            200,
            b'{"status": "ok"}',
            "INTERNAL",
            'the answer is not one of TensorFlow Serving: \'{"status": "ok"}\'',
        ),
        (200, b"[1]", "INTERNAL", "the answer is not one of TensorFlow Serving"),
        (200, b"null", "INTERNAL", "the answer is not one of TensorFlow Serving"),
        (400, "ungültig".encode(), "INVALID_ARGUMENT", "HTTP 400 Bad Request: 'ungültig'"),
    ],
    ids=[
        "502",
        "404",
        "418",
        "escape",
        "list",
        "html",
        "cut",
        "binary",
        "empty",
        "json",
        "array",
        "null",
        "text",
    ],
)
def test_page_of_something_else(status, content, code, message):
    with page(status, content) as address, ElmoClient(address, retries=0) as client:
        for call in (client.status, client.metadata, lambda: client.embed(["a"])):
            with pytest.raises(ServingError) as error:
                call()
            assert error.value.code == code
            assert message in str(error.value)


@pytest.mark.parametrize(
    "value", ["[1]", '[["a"]]', "{}", '{"default": [[1], [1, 2]]}', "null"], ids=range(5)
)
def test_outputs_that_are_no_arrays(value, core, monkeypatch):
    monkeypatch.setattr(
        model_servers.RestHandler,
        "post",
        lambda self, match, body: json.loads(f'{{"outputs": {value}}}'),
    )
    with (
        model_servers.rest_server(core) as port,
        ElmoClient(f"http://127.0.0.1:{port}", signature="single") as client,
    ):
        with pytest.raises(ServingError, match="INTERNAL"):
            client.embed(["a"], "default")


def test_strings_that_are_none(core, monkeypatch):
    monkeypatch.setattr(model_servers, "as_json", lambda name, array: [[1.5]])
    with model_servers.rest_server(core) as port, ElmoClient(f"http://127.0.0.1:{port}") as client:
        with pytest.raises(
            ServingError, match="`tokens` is no full array of string: one of its strings is 1.5"
        ):
            client.predict({"text": ["a"]}, outputs=["tokens"])


def test_redirects_are_not_followed():
    with (
        page(302, b"", headers=[("Location", "/login")]) as address,
        ElmoClient(address, retries=0) as client,
    ):
        with pytest.raises(ServingError, match="INTERNAL: HTTP 302 Found"):
            client.status()


STATUS = (
    b'{"model_version_status": [{"version": "3", "state": "AVAILABLE", '
    b'"status": {"error_code": "OK", "error_message": ""}}]}'
)


def test_answer_in_chunks():
    content = (
        b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (STATUS[:9], STATUS[9:]))
        + b"0\r\n\r\n"
    )
    with (
        page(200, content, headers=[("Transfer-Encoding", "chunked")]) as address,
        ElmoClient(address, retries=0) as client,
    ):
        assert client.status()[0].version == 3


def test_compressed_answer():
    content = gzip.compress(STATUS)
    with (
        page(200, content, headers=[("Content-Encoding", "gzip")]) as address,
        ElmoClient(address, retries=0) as client,
    ):
        assert client.status()[0].version == 3


def test_answer_that_breaks_off():
    with (
        page(200, STATUS[:50], headers=[("Content-Length", str(len(STATUS)))]) as address,
        ElmoClient(address, retries=0) as client,
    ):
        with pytest.raises(ServingError, match="UNAVAILABLE: IncompleteRead") as error:
            client.status()
    assert error.value.is_transient


def test_answer_that_never_ends(core):
    class Handler(model_servers.RestHandler):
        def handle_request(self, pattern, answer):
            self.send_response(200)
            self.send_header("Content-Length", str(10**9))
            self.end_headers()
            with contextlib.suppress(OSError):
                while True:
                    self.wfile.write(b" ")
                    time.sleep(0.05)

    with model_servers.http_server(Handler) as port:
        with ElmoClient(f"http://127.0.0.1:{port}", timeout=0.5) as client:
            with pytest.raises(
                ServingError, match="DEADLINE_EXCEEDED: there was no complete answer within 0.5 s"
            ):
                client.status()


def test_rest_at_the_port_of_grpc(core):
    with (
        model_servers.grpc_server(core) as port,
        ElmoClient(f"http://127.0.0.1:{port}", retries=0) as client,
    ):
        with pytest.raises(ServingError, match="UNAVAILABLE"):
            client.status()


def test_grpc_at_the_port_of_rest(core):
    with (
        model_servers.rest_server(core) as port,
        ElmoClient(f"127.0.0.1:{port}", retries=0) as client,
    ):
        with pytest.raises(ServingError, match="UNAVAILABLE|INTERNAL"):
            client.status()
