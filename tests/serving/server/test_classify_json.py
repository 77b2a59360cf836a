import pytest
from tensorflow_serving.apis import classification_pb2

from keras_elmo.serving.server.classify_json import read_examples, write_classes
from keras_elmo.serving.server.request_error import RequestError


def test_examples():
    found = read_examples(
        {"examples": [{"text": "é", "raw": {"b64": "/w=="}, "n": [1, True], "x": 0.5}, {}]}
    )
    first, second = found.example_list.examples
    feature = first.features.feature
    assert feature["text"].bytes_list.value == ["é".encode()]
    assert feature["raw"].bytes_list.value == [b"\xff"]
    assert feature["n"].int64_list.value == [1, 1]
    assert feature["x"].float_list.value == [0.5]
    assert not second.features.feature


def test_context():
    found = read_examples({"context": {"text": "a"}, "examples": [{}]})
    shared = found.example_list_with_context
    assert shared.context.features.feature["text"].bytes_list.value == [b"a"]
    assert len(shared.examples) == 1


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "When method is classify, key 'examples' is expected and was not found"),
        ({"examples": {}}, "Expecting 'examples' value to be an list/array"),
        ({"examples": []}, "'examples' value is an empty array"),
        ({"examples": ["a"]}, "Example must be JSON object but got JSON String"),
        (
            {"examples": [{"text": None}]},
            "Feature: text has element with unexpected JSON type: Null",
        ),
        (
            {"examples": [{"text": {}}]},
            "Feature: text has element with unexpected JSON type: Object",
        ),
        ({"examples": [{"text": [["a"]]}]}, "has element with unexpected JSON type: Array"),
        (
            {"examples": [{"text": ["a", 1]}]},
            "Unexpected element type in feature: text expecting type: bytes",
        ),
        ({"examples": [{"n": 2**63}]}, "Feature: n has uint64 element. Only int64 is supported."),
        ({"examples": [{"x": 1e39}]}, "to float without loss of precision."),
    ],
    ids=range(10),
)
def test_what_is_no_example(document, message):
    with pytest.raises(RequestError) as error:
        read_examples(document)
    assert message in error.value.message


def test_classes_are_written():
    result = classification_pb2.ClassificationResult()
    for _ in range(2):
        result.classifications.add().classes.add(label='"é"', score=0.5)
    assert write_classes(result) == '{"results": [[["\\"é\\"", 0.5]], [["\\"é\\"", 0.5]]]}'
