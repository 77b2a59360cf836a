"""ElmoClient's other methods: predict, classify, metadata, status; and which version they ask."""

import re

import numpy as np
import pytest

from keras_elmo.serving import ServingError
from keras_elmo.serving.model_signature import TensorSpec
from keras_elmo.serving.transport import VersionStatus

KINDS = {
    "long": [2**40, -1],
    "double": [1 / 3, float("nan"), float("-inf")],
    "truth": [[True], [False]],
    "raw_bytes": [b"\xff\0", b"a"],
}


# --- predict ---


def test_all_outputs_with_their_padding(client):
    answer = client.predict({"text": ["a b", "c"]})
    assert set(answer) == {"elmo", "word_emb", "default", "sequence_len", "tokens"}
    assert answer["elmo"].shape == (2, 2, 3)
    assert answer["elmo"].dtype == answer["default"].dtype == np.float32
    assert answer["sequence_len"].dtype == np.int32
    assert answer["tokens"].tolist() == [["a", "b"], ["c", ""]]


def test_some_outputs(client):
    answer = client.predict({"text": ["a b"]}, outputs=["default", "tokens"])
    assert set(answer) == {"default", "tokens"}


def test_single_output_has_its_name(client):
    assert list(client.predict({"text": ["a"]}, "single")) == ["default"]


def test_classifier(client):
    answer = client.predict({"text": np.array(["good", "bad"])}, "label")
    assert answer["labels"].tolist() == [["odd", "über"]] * 2
    assert answer["probabilities"].dtype == np.float32
    best = answer["probabilities"].argmax(1)
    assert answer["label"].tolist() == [["odd", "über"][number] for number in best]


def test_types(client):
    answer = client.predict(KINDS, "kinds")
    assert answer["long"].dtype == np.int64
    assert answer["long"].tolist() == [2**40 + 1, 0]
    np.testing.assert_array_equal(answer["double"], [1 / 6, np.nan, -np.inf])
    assert answer["double"].dtype == np.float64
    assert answer["truth"].tolist() == [[True], [False]]
    assert answer["raw_bytes"].tolist() == [b"\xff\0", b"a"]


def test_empty_arrays(client):
    answer = client.predict({name: [] for name in KINDS}, "kinds")
    assert {name: (array.shape, array.dtype.name) for name, array in answer.items()} == {
        "long": ((0,), "int64"),
        "double": ((0,), "float64"),
        "truth": ((0,), "bool"),
        "raw_bytes": ((0,), "object"),
    }


def test_inputs_are_turned_into_the_types_of_the_model(client):
    tokens = {"tokens": [["a", "b"]], "sequence_len": np.array([2], np.int64)}
    assert client.predict(tokens, "tokens", ["sequence_len"])["sequence_len"].tolist() == [2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"long": [0.5]}, "The input `long` must be of type int64. Received: float64"),
        ({"long": [2**63]}, "The input `long` holds numbers that int64 cannot"),
        ({"double": ["a"]}, "The input `double` must be of type float64. Received: <U1"),
        ({"double": [[1], [1, 2]]}, "The input `double` must be a full array, not a ragged one"),
        (
            {"raw_bytes": [["a"], ["a", "b"]]},
            "The input `raw_bytes` must be a full array of strings. Received: ['a']",
        ),
        ({"raw_bytes": [1]}, "must be a full array of strings. Received: 1 of type int"),
        (
            {"other": [1]},
            "`inputs` of the signature `kinds` must be `double`, `long`, `raw_bytes`, `truth`. Received: "
            "`double`, `long`, `other`, `raw_bytes`, `truth`",
        ),
    ],
    ids=["float", "large", "string", "ragged", "ragged strings", "number", "name"],
)
def test_inputs_of_another_type(client, core, change, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        client.predict({**KINDS, **change}, "kinds")
    assert core.sizes() == []


def test_type_that_numpy_does_not_have(client, core):
    core.signatures["odd"] = ({"x": ("DT_RESOURCE", [])}, {}, "")
    with pytest.raises(
        ValueError, match="NumPy has no type resource: export the model with another one"
    ):
        client.predict({"x": 1}, "odd")


def test_outputs_that_are_not_there(client):
    with pytest.raises(
        ServingError, match="does not have the output `elmoo`; it has `default`, `elmo`"
    ):
        client.predict({"text": ["a"]}, outputs=["elmoo"])


def test_what_the_model_refuses(client):
    with pytest.raises(ServingError, match="sequence_len is larger than the sentence") as error:
        client.predict({"tokens": [["a"]], "sequence_len": [2]}, "tokens")
    assert error.value.code == "INVALID_ARGUMENT"


# --- classify ---


def test_classify(client, core):
    texts = ["good", "", "ärger"]
    results = client.classify(texts)
    for text, pairs in zip(texts, results, strict=True):
        scores = dict(zip(("odd", "über"), core.scores(text.encode()), strict=True))
        assert pairs == sorted(
            ((label, float(np.float32(score))) for label, score in scores.items()),
            key=lambda pair: -pair[1],
        )


def test_classify_many(connect, core):
    results = connect(batch_size=8).classify([f"text {number}" for number in range(20)])
    assert results == connect().classify([f"text {number}" for number in range(20)])
    assert core.sizes("classify") == [8, 8, 4, 20]


def test_classify_nothing(client, core):
    assert client.classify([]) == []
    assert core.requests == []


def test_classify_tokens(client):
    with pytest.raises(
        ValueError, match="`texts` must be strings. Received lists of tokens: join them"
    ):
        client.classify([["a"]])


def test_classify_without_the_signature(client, core):
    del core.signatures["classify"]
    with pytest.raises(
        ServingError, match="the model `elmo` has no signature `classify`; it has `kinds`"
    ):
        client.classify(["a"])


def test_classify_by_another_signature(client):
    with pytest.raises(ServingError, match="INVALID_ARGUMENT: Expected classification signature"):
        client.classify(["a"], signature="label")


def test_classify_with_too_few_results(client, core):
    core.answer = lambda results: results[1:]
    with pytest.raises(ServingError, match="INTERNAL: the server answered 1 results to 2 texts"):
        client.classify(["a", "b"])


# --- metadata and status ---


def test_metadata(client):
    signatures = client.metadata()
    assert set(signatures) == {"classify", "kinds", "label", "serving_default", "single", "tokens"}
    tokens = signatures["tokens"]
    assert tokens.method_name == "tensorflow/serving/predict"
    assert tokens.inputs == {
        "tokens": TensorSpec("string", (None, None)),
        "sequence_len": TensorSpec("int32", (None,)),
    }
    assert tokens.outputs["elmo"] == TensorSpec("float32", (None, None, 3))
    assert signatures["kinds"].inputs["double"] == TensorSpec("float64", None)


def test_status(client):
    assert client.status() == [
        VersionStatus(2, "AVAILABLE", "OK", ""),
        VersionStatus(1, "END", "INVALID_ARGUMENT", "no such op"),
    ]


def test_status_of_one_version(connect):
    assert connect(version=2).status() == [VersionStatus(2, "AVAILABLE", "OK", "")]
    assert len(connect(label="stable").status()) == 2


@pytest.mark.parametrize(
    ("options", "asked"),
    [({"version": 1}, (1, None)), ({"label": "stable"}, (None, "stable")), ({}, (None, None))],
    ids=["version", "label", "newest"],
)
def test_version(connect, core, options, asked):
    client = connect(**options)
    client.embed(["a"])
    client.classify(["a"])
    client.metadata()
    assert core.asked == {asked}


@pytest.mark.parametrize("options", [{"version": 9}, {"model": "müll"}], ids=["version", "model"])
def test_version_that_is_not_there(connect, options):
    with pytest.raises(ServingError, match="Servable not found for request: Latest") as error:
        connect(**options).embed(["a"])
    assert error.value.code == "NOT_FOUND"
    assert not error.value.is_transient


def test_label_that_is_not_there(connect):
    with pytest.raises(
        ServingError, match="INVALID_ARGUMENT: Unrecognized servable version label: beta"
    ):
        connect(label="beta").embed(["a"])


def test_status_of_a_version_that_is_not_there(connect):
    with pytest.raises(ServingError, match="NOT_FOUND: Could not find version 9 of model elmo"):
        connect(version=9).status()
