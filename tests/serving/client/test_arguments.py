"""What ElmoClient is made with, and refuses."""

import re

import pytest
import trustme

from keras_elmo.serving import ElmoClient
from keras_elmo.serving.address import parse_address
from keras_elmo.serving.batches import split


@pytest.mark.parametrize(
    ("address", "target", "is_rest", "is_encrypted"),
    [
        ("localhost:8500", "localhost:8500", False, False),
        ("grpc://10.0.0.1:8500/", "10.0.0.1:8500", False, False),
        ("grpcs://models.example.org:443", "models.example.org:443", False, True),
        ("[::1]:8500", "[::1]:8500", False, False),
        ("http://localhost", "http://localhost", True, False),
        ("http://localhost:8501/", "http://localhost:8501", True, False),
        ("https://example.org/a/b", "https://example.org/a/b", True, True),
    ],
)
def test_address(address, target, is_rest, is_encrypted):
    parsed = parse_address(address)
    assert (parsed.target, parsed.is_rest, parsed.is_encrypted) == (target, is_rest, is_encrypted)


OTHER = '`address` must be "host:port" for gRPC or "http://host:port" for REST'
NO_PORT = "`address` must name a host and a port for gRPC, such as localhost:8500."


@pytest.mark.parametrize(
    ("address", "message"),
    [
        (8500, "`address` must be a string. Received: 8500"),
        ("", OTHER),
        ("ftp://localhost:8500", OTHER),
        ("http://", OTHER),
        ("http://localhost:8501?a=b", OTHER),
        ("localhost", NO_PORT),
        ("localhost:8500/v1", NO_PORT),
        ("localhost:port", "The port of `address` must be a number. Received: 'localhost:port'"),
        ("localhost:99999", "The port of `address` must be a number"),
    ],
)
def test_address_that_is_none(address, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        ElmoClient(address)


def test_address_with_a_password_is_not_shown():
    with pytest.raises(ValueError, match="`address` must not hold a user or a password") as error:
        ElmoClient("http://me:s3cret@localhost:8501")
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": ""}, '`model` must be a name, without "/" and ":". Received: model=\'\''),
        ({"model": "a/b"}, "`model` must be a name"),
        ({"label": "a:b"}, "`label` must be a name"),
        ({"signature": None}, "`signature` must be a name"),
        ({"version": -1}, "`version` must be an integer of 0 or more. Received: version=-1"),
        ({"version": "1"}, "`version` must be an integer"),
        ({"version": True}, "`version` must be an integer"),
        (
            {"version": 1, "label": "stable"},
            "`version` and `label` both name a version: give one of them.",
        ),
        (
            {"timeout": 0},
            "`timeout` must be a positive number of seconds, or None for no limit. Received: timeout=0",
        ),
        ({"timeout": "1"}, "`timeout` must be a positive number"),
        ({"timeout": float("nan")}, "`timeout` must be a positive number"),
        ({"timeout": float("inf")}, "`timeout` must be a positive number"),
        ({"retries": -1}, "`retries` must be an integer of 0 or more"),
        ({"batch_size": 0}, "`batch_size` must be an integer of 1 or more"),
        ({"batch_bytes": 0.5}, "`batch_bytes` must be an integer of 1 or more"),
        (
            {"headers": {"a b": "c"}},
            "The names in `headers` must be of letters, digits, - _ and . only, and not end in -bin. Received: 'a b'",
        ),
        ({"headers": {1: "c"}}, "The names in `headers` must be"),
        ({"headers": {"": "c"}}, "The names in `headers` must be"),
        ({"headers": {"trace-bin": "c"}}, "The names in `headers` must be"),
        (
            {"headers": {"a": "s3cret\n"}},
            "The value of the header 'a' must be a string of printable ASCII characters.",
        ),
        ({"headers": {"a": 1}}, "The value of the header 'a' must be a string"),
        ({"headers": {"a": "ü"}}, "The value of the header 'a' must be a string"),
        ({"client_key": "key.pem"}, "`client_key` needs `client_certificate` beside it."),
        ({"client_certificate": "cert.pem"}, "`client_certificate` needs `client_key` beside it."),
        (
            {"root_certificates": "nowhere.pem"},
            "`root_certificates` must be a file of certificates in PEM format. nowhere.pem: No such file or directory.",
        ),
        (
            {"client_certificate": "cert.pem", "client_key": "key.pem"},
            "belong together, the key without a password. cert.pem, key.pem: No such file or directory.",
        ),
    ],
)
def test_option_that_is_out_of_range(options, message):
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        ElmoClient("https://localhost:8501", **options)
    assert "s3cret" not in str(error.value)


def test_certificates_that_are_none(tmp_path):
    authority = trustme.CA()
    one, other = (authority.issue_cert(name) for name in ("one", "other"))
    (tmp_path / "text").write_text("no certificate")
    one.cert_chain_pems[0].write_to_path(tmp_path / "cert")
    other.private_key_pem.write_to_path(tmp_path / "key")
    with pytest.raises(
        ValueError, match="`root_certificates` must be a file of certificates in PEM format"
    ):
        ElmoClient("https://localhost", root_certificates=tmp_path / "text")
    with pytest.raises(ValueError, match="must be files in PEM format that belong together"):
        ElmoClient(
            "https://localhost", client_certificate=tmp_path / "cert", client_key=tmp_path / "key"
        )


@pytest.mark.parametrize("address", ["localhost:8500", "http://localhost:8501"])
def test_certificates_without_tls(address, tmp_path):
    trustme.CA().cert_pem.write_to_path(tmp_path / "root")
    with pytest.raises(
        ValueError, match="Certificates are for TLS: write the address with grpcs:// or https://."
    ):
        ElmoClient(address, root_certificates=tmp_path / "root")


def test_repr():
    headers = {"authorization": "s3cret"}
    for options, shown in (
        ({"headers": headers}, "ElmoClient('http://localhost', model='elmo')"),
        ({"version": 0}, "ElmoClient('http://localhost', model='elmo', version=0)"),
        (
            {"model": "m", "label": "stable"},
            "ElmoClient('http://localhost', model='m', label='stable')",
        ),
    ):
        with ElmoClient("http://localhost", **options) as client:
            assert repr(client) == shown


def test_split_loses_nothing():
    sizes = [number * 37 % 101 for number in range(500)]
    batches = list(split(sizes, 7, 300))
    assert sorted(number for batch in batches for number in batch) == list(range(500))
    assert all(len(batch) <= 7 for batch in batches)
    assert all(len(batch) * max(sizes[n] for n in batch) <= 300 for batch in batches)
