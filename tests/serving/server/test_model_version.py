import shutil

import numpy as np
import pytest
import tensorflow as tf
import tiny_model
from tensorflow_serving.apis import prediction_log_pb2

from keras_elmo.serving.server.model_version import ModelVersion
from keras_elmo.serving.server.request_error import RequestError


@pytest.fixture(scope="module")
def model(saved_model):
    model = ModelVersion(saved_model)
    yield model
    model.close()


def strings(*values):
    return np.array([value.encode() for value in values], object)


def refused(call, *arguments):
    with pytest.raises(RequestError) as error:
        call(*arguments)
    return error.value.code.name, error.value.message


def test_all_outputs(model):
    outputs = model.predict("", {"text": strings("a bcd", "", "é")})
    assert tuple(outputs) == tiny_model.OUTPUTS
    np.testing.assert_array_equal(outputs["default"], [[2, 1], [0, 0], [2, 1]])
    assert outputs["tokens"].tolist() == [[b"a", b"bcd"], [b"", b""], ["é".encode(), b""]]
    assert outputs["sequence_len"].dtype == np.int32


def test_some_outputs(model):
    assert list(model.predict("default", {"text": strings("a")}, ["elmo"])) == ["elmo"]


def test_an_empty_batch(model):
    outputs = model.predict("", {"text": strings()})
    assert outputs["elmo"].shape == (0, 0, 2)


def test_bytes_pass(model):
    value = np.array([b"\x00\xff\x00"], object)
    assert model.predict("echo", {"text": value})["raw_bytes"].tolist() == [b"\x00\xff\x00"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("none", {}), "FAILED_PRECONDITION", 'Serving signature key "none" not found.'),
        (
            ("__saved_model_init_op", {}),
            "INTERNAL",
            "Expected prediction signature method_name to be one of {tensorflow/serving/predict, "
            "tensorflow/serving/classify, tensorflow/serving/regress}. Was: ",
        ),
        (
            ("tokens", {"tokens": strings("a")[None]}),
            "INVALID_ARGUMENT",
            "input size does not match signature: 1!=2 len({tokens}) != len({sequence_len,tokens}). "
            "Sent extra: {}. Missing but required: {sequence_len}.",
        ),
        (
            ("", {"text": strings("a"), "more": strings("a")}),
            "INVALID_ARGUMENT",
            "input size does not match signature: 2!=1 len({more,text}) != len({text}). "
            "Sent extra: {more}. Missing but required: {}.",
        ),
        (
            ("", {"word": strings("a")}),
            "INVALID_ARGUMENT",
            "Signature input alias: text(feed name: ",
        ),
        (
            ("", {"text": np.zeros(1, np.float32)}),
            "INVALID_ARGUMENT",
            "Expects arg[0] to be string but float32 is provided",
        ),
        (
            ("", {"text": strings("a")[None]}),
            "INVALID_ARGUMENT",
            "Cannot feed value of shape (1, 1)",
        ),
        (
            ("", {"text": strings("a")}, ["elmo", "word"]),
            "INVALID_ARGUMENT",
            "output tensor alias not found in signature: word Outputs expected to be in the set "
            "{default,elmo,sequence_len,tokens}.",
        ),
        (
            ("", {"text": strings("a")}, ["elmo", "elmo"]),
            "INVALID_ARGUMENT",
            "duplicate output tensor alias: elmo",
        ),
        (
            ("tokens", {"tokens": strings("a")[None], "sequence_len": np.array([2], np.int32)}),
            "INVALID_ARGUMENT",
            "assertion failed: [`sequence_len` is larger than the sentence.]",
        ),
    ],
    ids=range(10),
)
def test_what_it_refuses(model, arguments, code, message):
    received_code, received = refused(model.predict, *arguments)
    assert received_code == code
    assert received.startswith(message)
    # The runtime's own words, not the history of the graph.
    assert "Defined at" not in received


def example(**texts):
    features = {
        name: tf.train.Feature(bytes_list=tf.train.BytesList(value=[value.encode()]))
        for name, value in texts.items()
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def test_classify(model):
    result = model.classify("classify", [example(text="a"), example(text="ab")])
    found = [[(c.label, c.score) for c in row.classes] for row in result.classifications]
    assert found == [[("even", 0), ("odd", 1)], [("even", 1), ("odd", 0)]]


def test_what_classify_refuses(model):
    assert refused(model.classify, "none", [b""]) == (
        "INVALID_ARGUMENT",
        "No signature was found with the name: none",
    )
    assert refused(model.classify, "", [b""]) == (
        "INVALID_ARGUMENT",
        "Expected classification signature method_name to be tensorflow/serving/classify. "
        "Was: tensorflow/serving/predict",
    )
    code, message = refused(model.classify, "classify", [example(word="a")])
    assert code == "INVALID_ARGUMENT"
    assert "text" in message


def test_a_classify_signature_that_is_none(tmp_path, saved_model):
    folder = shutil.copytree(saved_model, tmp_path / "1")
    for name in ("log", "echo"):
        tiny_model.set_method(folder, name, "tensorflow/serving/classify")
    model = ModelVersion(folder)
    code, message = refused(model.classify, "log", [b""])
    assert code == "FAILED_PRECONDITION"
    assert message.startswith("A classification signature has an input `inputs`")
    model.close()


def test_classes_of_the_wrong_shape(tmp_path):
    class Flat(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec((None,), tf.string, "inputs")])
        def classify(self, inputs):
            return {"scores": tf.zeros(tf.shape(inputs))}

    module = Flat()
    tf.saved_model.save(module, str(tmp_path), {"classify": module.classify})
    tiny_model.set_method(tmp_path, "classify", "tensorflow/serving/classify")
    model = ModelVersion(tmp_path)
    code, message = refused(model.classify, "classify", [b"", b""])
    assert code == "INVALID_ARGUMENT"
    assert message == "Expected scores of shape: [2 num_classes] but got [2]"
    model.close()


def warmup_log(kind, signature="", **inputs):
    log = prediction_log_pb2.PredictionLog()
    request = getattr(log, kind).request
    request.model_spec.signature_name = signature
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return log


def test_warm_up_requests_are_asked(tmp_path, saved_model, monkeypatch):
    folder = shutil.copytree(saved_model, tmp_path / "1")
    classify = warmup_log("classify_log", "classify")
    classify.classify_log.request.input.example_list.examples.add().MergeFromString(
        example(text="a")
    )
    tiny_model.write_warmup(folder, warmup_log("predict_log", "echo", text=["a"]), classify)
    asked = []
    run = ModelVersion._run
    monkeypatch.setattr(
        ModelVersion, "_run", lambda self, *rest: asked.append(rest[1]) or run(self, *rest)
    )
    ModelVersion(folder).close()
    assert [list(next(iter(feeds.values()))) for feeds in asked] == [[b"a"], [example(text="a")]]


def test_a_warm_up_request_that_fails(tmp_path, saved_model):
    folder = shutil.copytree(saved_model, tmp_path / "1")
    tiny_model.write_warmup(folder, warmup_log("predict_log", "none", text=["a"]))
    assert refused(ModelVersion, folder)[0] == "FAILED_PRECONDITION"
    tiny_model.write_warmup(folder, _regress_log())
    assert refused(ModelVersion, folder) == (
        "UNIMPLEMENTED",
        "Unsupported log_type for warmup: regress_log",
    )


def _regress_log():
    log = prediction_log_pb2.PredictionLog()
    log.regress_log.request.model_spec.name = "tiny"
    return log


def test_a_closed_model_answers_no_more(saved_model):
    model = ModelVersion(saved_model)
    model.close()
    with pytest.raises(RuntimeError, match="closed Session"):
        model.predict("", {"text": strings("a")})
