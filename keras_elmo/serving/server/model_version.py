"""ModelVersion: one SavedModel, loaded as TensorFlow Serving loads it, into a session."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (its operations, which TensorFlow Serving has built in)
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import classification_pb2, prediction_log_pb2

from keras_elmo.serving.server.request_error import RequestError, invalid
from keras_elmo.serving.server.tensor_protos import serialized_examples, to_arrays

WARMUP_FILE = "assets.extra/tf_serving_warmup_requests"
DESCRIPTION_FILE = "assets.extra/keras_elmo.json"
DEFAULT_SIGNATURE = "serving_default"
CLASSIFY = "tensorflow/serving/classify"
_METHODS = ("tensorflow/serving/predict", CLASSIFY, "tensorflow/serving/regress")
_STATUS_CODES = {code.value[0]: code for code in grpc.StatusCode}


class ModelVersion:
    """A loaded SavedModel that has answered its warm-up requests.

    It is a session of its own: closing it frees its memory, and it answers from any thread.

    Args:
        folder: A version folder.

    Attributes:
        signatures: `SignatureDef` by name.
        description: What `export_saved_model` wrote of the model; {} if the SavedModel was made by another.

    Raises:
        Exception: anything that TensorFlow raises if the folder holds no whole SavedModel; `RequestError` if a
            warm-up request fails.
    """

    def __init__(self, folder: Path):
        graph = tf.Graph()
        self._session = tf.compat.v1.Session(graph=graph)
        try:
            with graph.as_default():
                meta_graph = tf.compat.v1.saved_model.load(self._session, ["serve"], str(folder))
            self.signatures: dict[str, meta_graph_pb2.SignatureDef] = dict(meta_graph.signature_def)
            self.description = _description(folder / DESCRIPTION_FILE)
            self._warm_up(folder / WARMUP_FILE)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Frees the memory. No request may be running."""
        self._session.close()

    def predict(
        self, signature_name: str, inputs: Mapping[str, np.ndarray], outputs: Iterable[str] = ()
    ) -> dict[str, np.ndarray]:
        """Runs a signature.

        Args:
            signature_name: Its name; "" for the default one.
            inputs: Array by name; strings are bytes in object arrays.
            outputs: Names of the wanted outputs; none for all of them. Only these are computed.

        Returns:
            Array by name.

        Raises:
            RequestError: if there is no such signature, input or output, if a dtype is wrong, or if the model
                refuses the values.
        """
        name = signature_name or DEFAULT_SIGNATURE
        if name not in self.signatures:
            raise RequestError(
                grpc.StatusCode.FAILED_PRECONDITION, f'Serving signature key "{name}" not found.'
            )
        signature = self.signatures[name]
        if signature.method_name not in _METHODS:
            raise RequestError(
                grpc.StatusCode.INTERNAL,
                f"Expected prediction signature method_name to be one of {{{', '.join(_METHODS)}}}. "
                f"Was: {signature.method_name}",
            )
        feeds = _feeds(signature, inputs)
        wanted = _wanted(signature, list(outputs))
        values = self._run([signature.outputs[output].name for output in wanted], feeds)
        return dict(zip(wanted, values, strict=True))

    def classify(
        self, signature_name: str, examples: Sequence[bytes]
    ) -> classification_pb2.ClassificationResult:
        """Runs a classification signature.

        Args:
            signature_name: Its name; "" for the default one.
            examples: Serialized `tf.train.Example` messages.

        Raises:
            RequestError: if there is no such signature, it does not classify, or the model refuses the examples.
        """
        name = signature_name or DEFAULT_SIGNATURE
        if name not in self.signatures:
            raise invalid(f"No signature was found with the name: {name}")
        signature = self.signatures[name]
        if signature.method_name != CLASSIFY:
            raise invalid(
                f"Expected classification signature method_name to be {CLASSIFY}. "
                f"Was: {signature.method_name}"
            )
        wanted = [key for key in ("classes", "scores") if key in signature.outputs]
        if "inputs" not in signature.inputs or not wanted:
            raise RequestError(
                grpc.StatusCode.FAILED_PRECONDITION,
                "A classification signature has an input `inputs` and outputs `classes` or `scores`. "
                f"Inputs: {', '.join(signature.inputs)}. Outputs: {', '.join(signature.outputs)}.",
            )
        feeds = {signature.inputs["inputs"].name: np.array(examples, dtype=object)}
        found = dict(
            zip(
                wanted,
                self._run([signature.outputs[key].name for key in wanted], feeds),
                strict=True,
            )
        )
        for key, values in found.items():
            if values.ndim != 2 or len(values) != len(examples):
                raise invalid(
                    f"Expected {key} of shape: [{len(examples)} num_classes] but got "
                    f"{list(values.shape)}"
                )
        rows = {key: values.tolist() for key, values in found.items()}
        result = classification_pb2.ClassificationResult()
        for row in range(len(examples)):
            classes = result.classifications.add().classes
            for column in range(found[wanted[0]].shape[1]):
                entry = classes.add()
                if "classes" in rows:
                    entry.label = rows["classes"][row][column].decode("utf-8", "replace")
                if "scores" in rows:
                    entry.score = rows["scores"][row][column]
        return result

    def _run(self, fetches: list[str], feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
        try:
            values = self._session.run(fetches, feeds)
        except tf.errors.OpError as error:
            # The one that it was raised from has the runtime's message, without the graph's history.
            cause = error.__context__
            message = (cause if isinstance(cause, tf.errors.OpError) else error).message
            raise RequestError(_STATUS_CODES[error.error_code], message) from error
        except (ValueError, TypeError) as error:
            raise invalid(str(error)) from error
        # A single string comes as bytes.
        return [value if isinstance(value, np.ndarray) else _array(value) for value in values]

    def _warm_up(self, file: Path) -> None:
        if not file.is_file():
            return
        for log in _prediction_logs(file):
            kind = log.WhichOneof("log_type")
            if kind == "predict_log":
                request = log.predict_log.request
                self.predict(
                    request.model_spec.signature_name,
                    to_arrays(request.inputs),
                    request.output_filter,
                )
            elif kind == "classify_log":
                request = log.classify_log.request
                self.classify(request.model_spec.signature_name, serialized_examples(request.input))
            else:
                raise RequestError(
                    grpc.StatusCode.UNIMPLEMENTED, f"Unsupported log_type for warmup: {kind}"
                )


def _description(file: Path) -> dict[str, Any]:
    try:
        description = json.loads(file.read_bytes())
    except (OSError, ValueError):
        # It is for people: a model without it is served all the same.
        return {}
    return description if isinstance(description, dict) else {}


def _array(value: object) -> np.ndarray:
    return np.array(value, dtype=object if isinstance(value, bytes | str) else None)


def _prediction_logs(file: Path) -> Iterator[prediction_log_pb2.PredictionLog]:
    for record in tf.data.TFRecordDataset(str(file)).as_numpy_iterator():
        yield prediction_log_pb2.PredictionLog.FromString(record)


def _names(names: Iterable[str]) -> str:
    return "{" + ",".join(sorted(names)) + "}"


def _feeds(
    signature: meta_graph_pb2.SignatureDef, inputs: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Array by the name that it has in the graph, checked as TensorFlow Serving checks it."""
    extra, missing = set(inputs) - set(signature.inputs), set(signature.inputs) - set(inputs)
    if len(inputs) != len(signature.inputs):
        raise invalid(
            f"input size does not match signature: {len(inputs)}!={len(signature.inputs)} "
            f"len({_names(inputs)}) != len({_names(signature.inputs)}). "
            f"Sent extra: {_names(extra)}. Missing but required: {_names(missing)}."
        )
    if missing:
        name = min(missing)
        raise invalid(
            f"Signature input alias: {name}(feed name: {signature.inputs[name].name}) not found in request and no "
            f"default value provided. Inputs expected to be in the request {_names(inputs)}, or default input alias "
            "set: "
        )
    feeds = {}
    by_feed = sorted(inputs, key=lambda name: signature.inputs[name].name)
    for position, name in enumerate(by_feed):
        expected = tf.as_dtype(signature.inputs[name].dtype)
        received = tf.as_dtype(inputs[name].dtype)
        if received != expected:
            raise invalid(
                f"Expects arg[{position}] to be {expected.name} but {received.name} is provided"
            )
        feeds[signature.inputs[name].name] = inputs[name]
    return feeds


def _wanted(signature: meta_graph_pb2.SignatureDef, outputs: list[str]) -> list[str]:
    for output in outputs:
        if output not in signature.outputs:
            raise invalid(
                f"output tensor alias not found in signature: {output} Outputs expected to be in the set "
                f"{_names(signature.outputs)}."
            )
        if outputs.count(output) > 1:
            raise invalid(f"duplicate output tensor alias: {output}")
    # Sorted: the session keeps a plan for every order that it is asked in.
    return sorted(outputs or signature.outputs)
