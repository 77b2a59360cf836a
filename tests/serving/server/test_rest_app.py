"""Raw requests to the REST interface: status codes and bodies are TensorFlow Serving's."""

import http.client
import json
import re
import socket

import numpy as np
import pytest
import tiny_model

from keras_elmo.serving.server.model_version import ModelVersion

PREDICT = "/v1/models/tiny:predict"


@pytest.fixture
def ask(server):
    """Sends bytes, or a document as JSON: status and body, which is read as JSON."""

    def ask(method, path, body=None, headers=()):
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        connection = http.client.HTTPConnection(server.rest_address, timeout=120)
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        content = response.read()
        connection.close()
        assert response.getheader("content-type") == "application/json"
        return response.status, json.loads(content.decode("utf-8", "surrogateescape"))

    return ask


@pytest.fixture
def post(ask):
    return lambda body, path=PREDICT: ask("POST", path, body)


SENTENCES = ["The bank is near.", "", "😀 我喜欢 é", "   ", "a " * 300]


def test_rows(post):
    status, answer = post({"instances": SENTENCES})
    assert status == 200
    assert list(answer) == ["predictions"]
    for sentence, row in zip(SENTENCES, answer["predictions"], strict=True):
        assert tuple(row) == tiny_model.OUTPUTS
        np.testing.assert_allclose(row["default"], tiny_model.mean_vector(sentence), rtol=1e-5)
        assert row["sequence_len"] == len(sentence.split())
        assert row["tokens"][: row["sequence_len"]] == sentence.split()


def test_columns(post):
    status, answer = post({"inputs": {"text": SENTENCES}})
    assert status == 200
    assert list(answer) == ["outputs"]
    assert tuple(answer["outputs"]) == tiny_model.OUTPUTS
    assert np.shape(answer["outputs"]["elmo"]) == (len(SENTENCES), 300, 2)
    assert post({"inputs": SENTENCES}) == (status, answer)


def test_one_output_has_no_name(post):
    _, answer = post({"signature_name": "echo", "instances": ["a", {"b64": "/wA="}]})
    assert answer == {"predictions": [{"b64": "YQ=="}, {"b64": "/wA="}]}
    _, answer = post({"signature_name": "echo", "inputs": ["a"]})
    assert answer == {"outputs": [{"b64": "YQ=="}]}


def test_numbers_that_are_none(post):
    _, answer = post({"signature_name": "log", "instances": [0, -1, float("inf")]})
    assert answer["predictions"][0] == -np.inf
    assert np.isnan(answer["predictions"][1])
    assert answer["predictions"][2] == np.inf


def test_every_kind_of_number(post):
    inputs = {"long": [2**62], "double": [0.1], "truth": [True], "byte": [255]}
    _, answer = post({"signature_name": "kinds", "inputs": inputs})
    assert answer["outputs"] == {
        "byte": [255],
        "double": [0.05],
        "long": [2**62 + 1],
        "truth": [False],
    }


def test_the_same_string_in_every_spelling(post):
    body = '{"signature_name": "echo_text", "instances": ["%s", "%s", {"b64": "8J+YgOaIkQ=="}]}'
    _, answer = post((body % ("😀我", "\\ud83d\\ude00\\u6211")).encode())
    assert answer == {"predictions": ["😀我"] * 3}


def test_bytes_that_are_no_utf8_pass(post):
    _, answer = post(b'{"signature_name": "echo_text", "instances": ["a\xff", {"b64": "Yf8="}]}')
    assert answer == {"predictions": ["a\udcff", "a\udcff"]}


def test_an_empty_batch(post):
    status, answer = post({"inputs": []})
    assert (status, answer["outputs"]["elmo"]) == (200, [])
    status, answer = post({"instances": []})
    assert status == 400
    assert answer["error"].endswith("No values in 'instances' array")


def test_classify(post):
    body = {"signature_name": "classify", "examples": [{"text": "a"}, {"text": "ab"}]}
    expected = {"results": [[["even", 0.0], ["odd", 1.0]], [["even", 1.0], ["odd", 0.0]]]}
    assert post(body, "/v1/models/tiny:classify") == (200, expected)
    assert post(body, "/v1/models/tiny/versions/1:classify") == (200, expected)


TOKENS = {"signature_name": "tokens"}


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "JSON Parse error: The document is empty"),
        (b'{"instances": ["a"', 400, "JSON Parse error: Missing a comma or ] after an array"),
        (b"\xff\xfe", 400, "JSON Parse error: Invalid value. at offset: 0"),
        (b"[]", 400, "JSON Value: [] Is not object"),
        ({}, 400, "Missing 'inputs' or 'instances' key"),
        (
            {"instances": ["a"], "signature_name": "none"},
            400,
            'Serving signature name: "none" not found in signature def',
        ),
        (
            {"instances": ["a"], "signature_name": "__saved_model_init_op"},
            400,
            "Failed to get input map for signature: __saved_model_init_op",
        ),
        (
            {"instances": ["a", 1]},
            400,
            "Failed to process element: 1 of 'instances' list. Error: INVALID_ARGUMENT: JSON Value: 1 Type: Number is "
            "not of expected type: string",
        ),
        (
            {"instances": [["a"], ["b", "c"]]},
            400,
            "Failed to process element: 1 of 'instances' list.",
        ),
        ({"inputs": [["a"], ["b", "c"]]}, 400, "Encountered list at unexpected size: 2"),
        ({"instances": [["a"]]}, 400, "Cannot feed value of shape (1, 1)"),
        (TOKENS | {"inputs": {"tokens": [["a"]]}}, 400, "Missing named input: sequence_len"),
        (
            TOKENS | {"instances": [{"tokens": ["a"]}]},
            400,
            "Failed to process element: 0 of 'instances' list. JSON object:",
        ),
        (
            TOKENS | {"instances": [{"tokens": ["a"], "sequence_len": 2}]},
            400,
            "assertion failed: [`sequence_len` is larger than the sentence.]",
        ),
        (
            {"signature_name": "halves", "instances": [1]},
            400,
            "Failed to write JSON value for tensor type: half",
        ),
    ],
    ids=range(15),
)
def test_what_predict_refuses(post, body, status, message):
    received, answer = post(body)
    assert list(answer) == ["error"]
    assert answer["error"].startswith(message)
    assert received == status


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("other:predict", 404, "Servable not found for request: Latest(other)"),
        ("a%2Fb%20c:predict", 404, "Servable not found for request: Latest(a/b c)"),
        ("tiny/versions/7:predict", 404, "Servable not found for request: Specific(tiny, 7)"),
        ("tiny/labels/stable:predict", 400, "Unrecognized servable version label: stable"),
        (
            "tiny/versions/9999999999999999999:predict",
            400,
            "Failed to convert version: 9999999999999999999 to numeric.",
        ),
        (
            "tiny/versions/x:predict",
            400,
            "Malformed request: POST /v1/models/tiny/versions/x:predict",
        ),
        ("tiny:explain", 400, "Malformed request: POST /v1/models/tiny:explain"),
        ("tiny:predict?a=b", 400, "Malformed request: POST /v1/models/tiny:predict?a=b"),
        ("tiny", 400, "Malformed request: POST /v1/models/tiny"),
        ("tiny:classify", 400, "JSON Value: "),
        ("tiny:regress", 400, "JSON Value: "),
    ],
    ids=range(11),
)
def test_addresses_that_predict_nothing(post, path, status, message):
    received, answer = post({"instances": ["a"]}, f"/v1/models/{path}")
    assert answer["error"].startswith(message)
    assert received == status


def test_regress_is_left_to_the_real_one(post):
    status, answer = post({"examples": [{"text": "a"}]}, "/v1/models/tiny:regress")
    assert status == 501
    assert answer == {
        "error": "The development server does not do regress: TensorFlow Serving does."
    }


def test_status(ask):
    state = {"version": "1", "state": "AVAILABLE"}
    state["status"] = {"error_code": "OK", "error_message": ""}
    expected = {"model_version_status": [state]}
    assert ask("GET", "/v1/models/tiny") == (200, expected)
    assert ask("GET", "/v1/models/tiny/versions/1") == (200, expected)


def test_metadata(ask):
    for path in ("/v1/models/tiny/metadata", "/V1/Models/tiny/versions/1/metadata"):
        status, answer = ask("GET", path)
        assert status == 200
        assert answer["model_spec"] == {"name": "tiny", "signature_name": "", "version": "1"}
        signatures = answer["metadata"]["signature_def"]["signature_def"]
        assert signatures["classify"]["method_name"] == "tensorflow/serving/classify"
        text = signatures["serving_default"]["inputs"]["text"]
        assert text["dtype"] == "DT_STRING"
        assert text["tensor_shape"] == {
            "dim": [{"size": "-1", "name": ""}],
            "unknown_rank": False,
        }


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("GET", "/v1/models", 400, "Missing model name in request."),
        ("GET", "/v1/models/other", 404, "Could not find any versions of model other"),
        ("GET", "/v1/models/tiny/versions/7", 404, "Could not find version 7 of model tiny"),
        ("GET", "/v1/models/other/metadata", 404, "Servable not found for request: Latest(other)"),
        (
            "GET",
            "/v1/models/tiny/versions/7/metadata",
            404,
            "Servable not found for request: Specific(tiny, 7)",
        ),
        ("GET", PREDICT, 400, f"Malformed request: GET {PREDICT}"),
        ("PUT", PREDICT, 400, f"Malformed request: PUT {PREDICT}"),
        ("DELETE", "/v1/models/tiny", 400, "Malformed request: DELETE /v1/models/tiny"),
        ("POST", "/", 404, "Not Found: /"),
        ("POST", "/v2/models/tiny", 404, "Not Found: /v2/models/tiny"),
    ],
    ids=range(10),
)
def test_what_is_not_there(ask, method, path, status, message):
    assert ask(method, path) == (status, {"error": message})


@pytest.mark.parametrize("size", [100_001, 5_000_000])
def test_a_body_that_is_too_large(post, size):
    body = b'{"instances": ["%s"]}' % (b"a" * size)
    assert post(body) == (413, {"error": "The request body is larger than 100000 bytes."})


def test_a_body_of_unknown_length(server):
    pieces = [b'{"instances": ["', *[b"a" * 1000] * 200, b'"]}']
    connection = http.client.HTTPConnection(server.rest_address, timeout=120)
    connection.request("POST", PREDICT, iter(pieces), encode_chunked=True)
    assert connection.getresponse().status == 413
    connection.close()


def test_a_body_that_just_fits(post):
    body = b'{"signature_name": "echo_text", "instances": ["%s"]}'
    sentence = b"a" * (100_000 - len(body) + 2)
    assert post(body % sentence) == (200, {"predictions": [sentence.decode()]})


def test_what_is_no_http(server):
    host, _, port = server.rest_address.rpartition(":")
    with socket.create_connection((host, int(port)), 120) as connection:
        connection.sendall(b"nonsense\r\n\r\n")
        assert re.match(rb"HTTP/1.1 400 ", connection.recv(100))


def test_a_fault_of_the_server_itself(post, monkeypatch, caplog):
    def fail(*_):
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr(ModelVersion, "predict", fail)
    assert post({"instances": ["a"]}) == (500, {"error": "Internal error: see the server's log."})
    assert "ZeroDivisionError: a fault" in caplog.text
