"""Requests and responses of TensorFlow Serving's `:classify` <-> messages."""

from typing import Any

import numpy as np
from tensorflow.core.example import example_pb2, feature_pb2
from tensorflow_serving.apis import classification_pb2, input_pb2

from keras_elmo.serving.server.json_text import decimals, shown, string
from keras_elmo.serving.server.request_error import invalid
from keras_elmo.serving.server.tensor_json import Document, from_base64, is_base64, json_type

_LARGEST_INT64 = 2**63 - 1
_LARGEST_FLOAT = float(np.finfo(np.float32).max)


def read_examples(document: Document) -> input_pb2.Input:
    """Reads the examples of a classify request.

    Args:
        document: The request: `{"examples": [{"feature": value or list}, ..]}`, and perhaps a `context` with
            features that all examples share.

    Raises:
        RequestError: if there are no examples, or a feature is of no kind that an example can hold.
    """
    examples = input_pb2.Input()
    found = examples.example_list.examples
    if "context" in document:
        both = examples.example_list_with_context
        both.context.CopyFrom(_example(document["context"]))
        found = both.examples
    if "examples" not in document:
        raise invalid(
            f"JSON Value: {shown(document)} When method is classify, key 'examples' is expected and was not found"
        )
    values = document["examples"]
    if not isinstance(values, list):
        raise invalid(
            f"JSON Value: {shown(document)} Expecting 'examples' value to be an list/array"
        )
    if not values:
        raise invalid(f"JSON Value: {shown(document)} 'examples' value is an empty array")
    found.extend(map(_example, values))
    return examples


def write_classes(result: classification_pb2.ClassificationResult) -> str:
    """Writes the answer to a classify request: for each example, pairs of label and score.

    Args:
        result: The answer.
    """
    rows = []
    for classifications in result.classifications:
        labels = [string(entry.label.encode()) for entry in classifications.classes]
        scores = decimals(np.array([entry.score for entry in classifications.classes], np.float32))
        pairs = (f"[{label}, {score}]" for label, score in zip(labels, scores, strict=True))
        rows.append(f"[{', '.join(pairs)}]")
    return f'{{"results": [{", ".join(rows)}]}}'


def _example(value: Any) -> example_pb2.Example:
    if not isinstance(value, dict):
        raise invalid(f"Example must be JSON object but got JSON {json_type(value)}")
    example = example_pb2.Example()
    for name, content in value.items():
        feature = example.features.feature[name]
        for entry in content if isinstance(content, list) else [content]:
            _add(entry, name, feature)
    return example


def _add(value: Any, name: str, feature: feature_pb2.Feature) -> None:
    """Adds a value to a feature, whose first value says of what kind they all are."""
    kind: str
    if isinstance(value, str):
        kind, value = "bytes_list", value.encode("utf-8", "surrogateescape")
    elif is_base64(value):
        kind, value = "bytes_list", from_base64(value)
    elif isinstance(value, float):
        kind = "float_list"
        if np.isfinite(value) and abs(value) > _LARGEST_FLOAT:
            raise invalid(
                f"Cannot convert JSON value: {shown(value)} to float without loss of precision."
            )
    elif isinstance(value, int):
        kind, value = "int64_list", int(value)
        if value > _LARGEST_INT64:
            raise invalid(f"Feature: {name} has uint64 element. Only int64 is supported.")
    else:
        raise invalid(f"Feature: {name} has element with unexpected JSON type: {json_type(value)}")
    before = feature.WhichOneof("kind")
    if before not in (None, kind):
        raise invalid(
            f"Unexpected element type in feature: {name} expecting type: {before.removesuffix('_list')}"
        )
    getattr(feature, kind).value.append(value)
