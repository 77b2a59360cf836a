"""Requests to the gRPC interface: status codes and messages are TensorFlow Serving's."""

import grpc
import numpy as np
import pytest
import tensorflow as tf
import tiny_model
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
    regression_pb2,
)

from keras_elmo.serving.server.model_version import ModelVersion


@pytest.fixture(scope="module")
def channel(server):
    with grpc.insecure_channel(server.grpc_address) as channel:
        yield channel


@pytest.fixture(scope="module")
def stub(channel):
    return prediction_service_pb2_grpc.PredictionServiceStub(channel)


def named(request, name="tiny", version=None, signature="", label=None):
    request.model_spec.name = name
    request.model_spec.signature_name = signature
    if version is not None:
        request.model_spec.version.value = version
    if label is not None:
        request.model_spec.version_label = label
    return request


def predict(inputs, outputs=(), **model):
    request = named(predict_pb2.PredictRequest(output_filter=outputs), **model)
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return request


def refused(method, request):
    with pytest.raises(grpc.RpcError) as error:
        method(request, timeout=120)
    return error.value.code().name, error.value.details()


SENTENCES = [b"The bank is near.", b"", "😀 我喜欢 é".encode(), b"\xff a"]


def test_predict(stub):
    response = stub.Predict(predict({"text": SENTENCES}), timeout=120)
    assert response.model_spec.name == "tiny"
    assert response.model_spec.version.value == 1
    assert response.model_spec.signature_name == "serving_default"
    assert sorted(response.outputs) == list(tiny_model.OUTPUTS)
    expected = [tiny_model.mean_vector(sentence.decode()) for sentence in SENTENCES[:3]]
    np.testing.assert_allclose(
        tf.make_ndarray(response.outputs["default"])[:3], expected, rtol=1e-5
    )
    assert tf.make_ndarray(response.outputs["tokens"])[3, 0] == b"\xff"


def test_some_outputs_and_values_in_their_fields(stub):
    request = predict({"text": ["ab"]}, ["default"], signature="default", version=1)
    response = stub.Predict(request, timeout=120)
    assert list(response.outputs) == ["default"]
    assert response.outputs["default"].float_val == [2, 1]
    assert response.model_spec.signature_name == "default"


def test_an_empty_batch(stub):
    request = predict({"text": np.array([], object)})
    request.inputs["text"].dtype = tf.string.as_datatype_enum
    response = stub.Predict(request, timeout=120)
    assert tf.make_ndarray(response.outputs["elmo"]).shape == (0, 0, 2)


def test_what_json_has_not(stub):
    response = stub.Predict(predict({"x": [1.0]}, signature="halves"), timeout=120)
    assert tf.make_ndarray(response.outputs["y"]).dtype == np.float16


TOKENS = np.array([["a"]], object)


@pytest.mark.parametrize(
    ("request_", "code", "message"),
    [
        (predict_pb2.PredictRequest(), "INVALID_ARGUMENT", "Missing ModelSpec"),
        (predict({}, name=""), "INVALID_ARGUMENT", "ModelSpec has no name specified."),
        (predict({}, name="other"), "NOT_FOUND", "Servable not found for request: Latest(other)"),
        (predict({}, version=7), "NOT_FOUND", "Servable not found for request: Specific(tiny, 7)"),
        (
            predict({}, label="stable"),
            "INVALID_ARGUMENT",
            "Unrecognized servable version label: stable",
        ),
        (
            predict({"text": ["a"]}, signature="none"),
            "FAILED_PRECONDITION",
            'Serving signature key "none" not found.',
        ),
        (
            predict({"text": [1.0]}),
            "INVALID_ARGUMENT",
            "Expects arg[0] to be string but float32 is provided",
        ),
        (
            predict({"tokens": TOKENS}, signature="tokens"),
            "INVALID_ARGUMENT",
            "input size does not match signature: 1!=2",
        ),
        (
            predict({"tokens": TOKENS, "sequence_len": [2]}, signature="tokens"),
            "INVALID_ARGUMENT",
            "assertion failed: [`sequence_len` is larger than the sentence.]",
        ),
        (
            predict({"text": ["a"]}, ["none"]),
            "INVALID_ARGUMENT",
            "output tensor alias not found in signature: none",
        ),
        (predict({"text": [["a"]]}), "INVALID_ARGUMENT", "Cannot feed value of shape (1, 1)"),
    ],
    ids=range(11),
)
def test_what_predict_refuses(stub, request_, code, message):
    received_code, received = refused(stub.Predict, request_)
    assert received.startswith(message)
    assert received_code == code


def test_a_message_that_is_too_large(stub):
    code, message = refused(stub.Predict, predict({"text": ["a" * 200_000]}))
    assert code == "RESOURCE_EXHAUSTED"
    assert "larger than max" in message.lower()


def test_a_long_error_is_cut(stub):
    _, message = refused(stub.Predict, predict({"text": ["a"]}, ["a" * 5000]))
    assert len(message) == 1024 + len("...TRUNCATED")
    assert message.endswith("...TRUNCATED")


def classify(*texts, signature="classify"):
    request = named(classification_pb2.ClassificationRequest(), signature=signature)
    for text in texts:
        example = request.input.example_list.examples.add()
        example.features.feature["text"].bytes_list.value.append(text.encode())
    return request


def test_classify(stub):
    response = stub.Classify(classify("a", "ab"), timeout=120)
    found = [[(c.label, c.score) for c in row.classes] for row in response.result.classifications]
    assert found == [[("even", 0), ("odd", 1)], [("even", 1), ("odd", 0)]]
    assert response.model_spec.signature_name == "classify"
    assert response.model_spec.version.value == 1


def test_what_classify_refuses(stub):
    assert refused(stub.Classify, classify()) == ("INVALID_ARGUMENT", "Input is empty.")
    code, message = refused(stub.Classify, classify("a", signature=""))
    assert code == "INVALID_ARGUMENT"
    assert message.startswith("Expected classification signature method_name to be")


def test_metadata(stub):
    request = named(get_model_metadata_pb2.GetModelMetadataRequest())
    message = "GetModelMetadataRequest must specify at least one metadata_field"
    assert refused(stub.GetModelMetadata, request) == ("INVALID_ARGUMENT", message)
    request.metadata_field.append("signature_def")
    response = stub.GetModelMetadata(request, timeout=120)
    assert response.model_spec.version.value == 1
    found = get_model_metadata_pb2.SignatureDefMap()
    assert response.metadata["signature_def"].Unpack(found)
    assert "text" in found.signature_def["serving_default"].inputs
    request.metadata_field.append("more")
    message = "Metadata field more is not supported"
    assert refused(stub.GetModelMetadata, request) == ("INVALID_ARGUMENT", message)


def test_status(channel):
    stub = model_service_pb2_grpc.ModelServiceStub(channel)
    request = named(get_model_status_pb2.GetModelStatusRequest())
    (found,) = stub.GetModelStatus(request, timeout=120).model_version_status
    assert (found.version, found.state, found.status.error_code) == (1, 30, 0)
    request.model_spec.version.value = 7
    message = "Could not find version 7 of model tiny"
    assert refused(stub.GetModelStatus, request) == ("NOT_FOUND", message)
    empty = get_model_status_pb2.GetModelStatusRequest()
    assert refused(stub.GetModelStatus, empty) == ("INVALID_ARGUMENT", "Missing ModelSpec")


def test_what_is_left_to_the_real_one(stub, channel):
    assert refused(stub.Regress, regression_pb2.RegressionRequest())[0] == "UNIMPLEMENTED"
    reload_ = model_service_pb2_grpc.ModelServiceStub(channel).HandleReloadConfigRequest
    assert refused(reload_, model_management_pb2.ReloadConfigRequest())[0] == "UNIMPLEMENTED"


def test_a_fault_of_the_server_itself(stub, monkeypatch, caplog):
    def fail(*_):
        raise ZeroDivisionError("a fault")

    monkeypatch.setattr(ModelVersion, "predict", fail)
    assert refused(stub.Predict, predict({"text": ["a"]})) == (
        "INTERNAL",
        "Internal error: see the server's log.",
    )
    assert "ZeroDivisionError: a fault" in caplog.text
