"""How ElmoClient connects: TLS, headers, threads, closing, and what it does not import."""

import contextlib
import os
import ssl
import subprocess
import sys
import threading
from types import SimpleNamespace

import grpc
import model_servers
import numpy as np
import pytest
import served_core
import trustme
from served_core import sentence_vectors

from keras_elmo.serving import ElmoClient, ServingError
from keras_elmo.serving.address import Address
from keras_elmo.serving.certificates import Certificates
from keras_elmo.serving.grpc_transport import GrpcTransport
from keras_elmo.serving.transport import ServedModel


@pytest.fixture(scope="module")
def pem(tmp_path_factory):
    """Files: an authority's certificate, a server's and a client's with their keys, and another authority."""
    folder = tmp_path_factory.mktemp("pem")
    authority, other = trustme.CA(), trustme.CA()
    server, client = authority.issue_cert("127.0.0.1", "localhost"), authority.issue_cert("client")
    files = SimpleNamespace(
        **{
            name: folder / f"{name}.pem"
            for name in ("root", "other", "cert", "key", "client", "client_key")
        }
    )
    authority.cert_pem.write_to_path(files.root)
    other.cert_pem.write_to_path(files.other)
    server.cert_chain_pems[0].write_to_path(files.cert)
    server.private_key_pem.write_to_path(files.key)
    client.cert_chain_pems[0].write_to_path(files.client)
    client.private_key_pem.write_to_path(files.client_key)
    return files


@contextlib.contextmanager
def encrypted(core, transport, pem, asks_clients=False):
    """The address of a server with TLS."""
    if transport == "grpc":
        credentials = grpc.ssl_server_credentials(
            [(pem.key.read_bytes(), pem.cert.read_bytes())], pem.root.read_bytes(), asks_clients
        )
        with model_servers.grpc_server(core, credentials) as port:
            yield f"grpcs://localhost:{port}"
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem.cert, pem.key)
        if asks_clients:
            context.load_verify_locations(pem.root)
            context.verify_mode = ssl.CERT_REQUIRED
        with model_servers.rest_server(core, context) as port:
            yield f"https://localhost:{port}"


def test_tls(core, transport, pem):
    with encrypted(core, transport, pem) as address:
        with ElmoClient(address, root_certificates=pem.root) as client:
            assert len(client.embed(["a b"])[0]) == 2


@pytest.mark.parametrize("root", [None, "other"], ids=["public", "other"])
def test_server_that_is_not_trusted(core, transport, pem, root):
    with encrypted(core, transport, pem) as address:
        certificates = {} if root is None else {"root_certificates": getattr(pem, root)}
        with ElmoClient(address, retries=0, **certificates) as client:
            with pytest.raises(ServingError) as error:
                client.embed(["a"])
    assert error.value.code == "UNAVAILABLE"
    assert core.requests == []


def test_certificates_of_the_environment_do_not_go_before(core, pem, monkeypatch):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(pem.other))
    with encrypted(core, "rest", pem) as address:
        with ElmoClient(address, root_certificates=pem.root) as client:
            assert len(client.status()) == 2


def test_client_certificate(core, transport, pem):
    with encrypted(core, transport, pem, asks_clients=True) as address:
        with ElmoClient(
            address,
            root_certificates=pem.root,
            client_certificate=pem.client,
            client_key=str(pem.client_key),
        ) as client:
            assert len(client.embed(["a b"])[0]) == 2
        with ElmoClient(address, root_certificates=pem.root, retries=0) as client:
            with pytest.raises(ServingError, match="UNAVAILABLE"):
                client.embed(["a"])


def test_no_tls_where_the_server_wants_it(core, transport, pem):
    with encrypted(core, transport, pem) as address:
        plain = address.replace("grpcs", "grpc").replace("https", "http")
        with (
            ElmoClient(plain, retries=0) as client,
            pytest.raises(ServingError, match="UNAVAILABLE"),
        ):
            client.status()


# --- headers ---


def test_headers_go_with_every_request(connect, core):
    client = connect(headers={"Authorization": "Bearer s3cret", "X-Team": "nlp"})
    client.embed(["a"])
    client.classify(["a"])
    assert {kind for kind, _, _ in core.requests} == {"metadata", "predict", "classify"}
    for _, headers, _ in core.requests:
        assert headers["authorization"] == "Bearer s3cret"
        assert headers["x-team"] == "nlp"


def test_headers_go_before_netrc(connect, core, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    connect(headers={"authorization": "Bearer s3cret"}).metadata()
    assert core.requests[0][1]["authorization"] == "Bearer s3cret"


def test_cookies_are_not_kept(core, monkeypatch):
    end_headers = model_servers.RestHandler.end_headers

    def with_cookie(self):
        self.send_header("Set-Cookie", "who=me; Path=/")
        end_headers(self)

    monkeypatch.setattr(model_servers.RestHandler, "end_headers", with_cookie)
    with model_servers.rest_server(core) as port, ElmoClient(f"http://127.0.0.1:{port}") as client:
        client.metadata()
        client.metadata()
    assert not any("cookie" in headers for _, headers, _ in core.requests)


def test_gateway_with_a_path(core):
    class Handler(model_servers.RestHandler):
        def handle_request(self, pattern, answer):
            assert self.path.startswith("/nlp/v1/")
            self.path = self.path.removeprefix("/nlp")
            super().handle_request(pattern, answer)

    with model_servers.rest_server(core, handler=Handler) as port:
        with ElmoClient(f"http://127.0.0.1:{port}/nlp/") as client:
            assert len(client.embed(["a b"])[0]) == 2


def test_several_servers_are_asked_in_turn(core):
    other = served_core.Core()
    with model_servers.grpc_server(core) as one, model_servers.grpc_server(other) as two:
        # What a name that stands for both resolves to.
        several = Address("grpc", f"ipv4:127.0.0.1:{one},127.0.0.1:{two}")
        transport = GrpcTransport(several, ServedModel("elmo"), {}, Certificates())
        while not (core.requests and other.requests):
            transport.signatures(60)
        transport.close()


# --- threads, closing ---


def test_threads(client):
    results = {}

    def work(number):
        sentences = [f"thread {number}" + " word" * (n % 5) for n in range(40)]
        results[number] = sentences, client.embed(sentences)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    for sentences, vectors in results.values():
        for sentence, array in zip(sentences, vectors, strict=True):
            np.testing.assert_array_equal(array, sentence_vectors(sentence.encode().split()))


def test_closed_client(client, address):
    with client as same:
        assert same is client
        client.embed(["a"])
    client.close()
    with pytest.raises(ValueError, match="is closed. Make a new client"):
        client.embed(["a"])


# --- what is imported ---

BARE = """
import importlib.machinery, json, sys, types
# The packages without what their __init__ imports for other purposes: Keras, and the server.
for name in ("keras_elmo", "keras_elmo.serving"):
    module = types.ModuleType(name)
    module.__path__ = [sys.argv[1] + "/" + name.replace(".", "/")]
    sys.modules[name] = module
from keras_elmo.serving.client import ElmoClient
ElmoClient("http://localhost:8501").close()
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_rest_needs_neither_keras_nor_tensorflow():
    folder = os.path.dirname(
        os.path.dirname(os.path.dirname(sys.modules["keras_elmo.serving"].__file__))
    )
    process = subprocess.run(
        [sys.executable, "-c", BARE, folder], capture_output=True, text=True, check=True
    )
    assert '"requests"' in process.stdout
    assert not any(
        f'"{name}"' in process.stdout for name in ("keras", "tensorflow", "grpc", "h5py")
    )
