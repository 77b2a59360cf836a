"""A server for each transport, and clients of it."""

import contextlib
import os

import model_servers
import pytest
import served_core

from keras_elmo.serving import ElmoClient


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch):
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def core():
    return served_core.Core()


@pytest.fixture(params=["grpc", "rest"])
def transport(request):
    return request.param


@pytest.fixture
def address(core, transport):
    """The address of a server."""
    if transport == "grpc":
        with model_servers.grpc_server(core) as port:
            yield f"127.0.0.1:{port}"
    else:
        with model_servers.rest_server(core) as port:
            yield f"http://127.0.0.1:{port}"


@pytest.fixture
def connect(address):
    """Makes clients of the server, which are closed in the end."""
    with contextlib.ExitStack() as clients:
        yield lambda **options: clients.enter_context(ElmoClient(address, **options))


@pytest.fixture
def client(connect):
    return connect()
