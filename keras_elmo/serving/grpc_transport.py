"""TensorFlow Serving over gRPC.

The messages are those of tensorflow-serving-api, and these import TensorFlow, whatever part of it one asks for. So this
file is imported only when a client with a gRPC address is made.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import grpc
import numpy as np
import tensorflow as tf
from google.protobuf.message import Message
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.core.protobuf.meta_graph_pb2 import TensorInfo
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)
from tensorflow_serving.apis.model_pb2 import ModelSpec

from keras_elmo.serving.address import Address
from keras_elmo.serving.certificates import Certificates, read_bytes
from keras_elmo.serving.model_signature import (
    ModelSignature,
    TensorSpec,
    as_output,
    tensor_spec,
)
from keras_elmo.serving.serving_error import ServingError
from keras_elmo.serving.transport import ServedModel, VersionStatus

Response = TypeVar("Response")

# What HTTP cannot tell apart has one name, see ServingError.
_CODES = {
    "FAILED_PRECONDITION": "INVALID_ARGUMENT",
    "OUT_OF_RANGE": "INVALID_ARGUMENT",
    "ALREADY_EXISTS": "ABORTED",
    "UNKNOWN": "INTERNAL",
    "DATA_LOSS": "INTERNAL",
}
_OPTIONS = [
    # gRPC's own limit is 4 MB, and an answer may well be larger.
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    # Without these, a channel that could not connect refuses every call for a second, then for longer, whether the
    # server is back or not: trying again would be in vain.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # If the name stands for several servers, they are asked in turn; else all requests go to the first.
    ("grpc.lb_policy_name", "round_robin"),
]


class GrpcTransport:
    """A `Transport` over gRPC.

    Args:
        address: Where the server is.
        model: Which model.
        headers: Sent with every request; gRPC calls them metadata.
        certificates: For `grpcs`.
    """

    def __init__(
        self,
        address: Address,
        model: ServedModel,
        headers: Mapping[str, str],
        certificates: Certificates,
    ):
        self._target = address.target
        self._metadata = [(name.lower(), value) for name, value in headers.items()]
        self._model = model
        if address.is_encrypted:
            credentials = grpc.ssl_channel_credentials(
                read_bytes(certificates.root),
                read_bytes(certificates.client_key),
                read_bytes(certificates.client),
            )
            self._channel = grpc.secure_channel(address.target, credentials, options=_OPTIONS)
        else:
            self._channel = grpc.insecure_channel(address.target, options=_OPTIONS)
        self._predictions = prediction_service_pb2_grpc.PredictionServiceStub(self._channel)
        self._models = model_service_pb2_grpc.ModelServiceStub(self._channel)

    def signatures(self, timeout: float | None) -> dict[str, ModelSignature]:
        request = get_model_metadata_pb2.GetModelMetadataRequest(
            model_spec=self._model_spec(), metadata_field=["signature_def"]
        )
        response = self._call(self._predictions.GetModelMetadata, request, timeout)
        signatures = get_model_metadata_pb2.SignatureDefMap()
        response.metadata["signature_def"].Unpack(signatures)
        return {
            name: ModelSignature(
                {key: _spec(info) for key, info in signature.inputs.items()},
                {key: _spec(info) for key, info in signature.outputs.items()},
                signature.method_name,
            )
            for name, signature in signatures.signature_def.items()
        }

    def status(self, timeout: float | None) -> list[VersionStatus]:
        spec = self._model_spec()
        # A label is none of the things that a server gives the status of.
        spec.ClearField("version_label")
        request = get_model_status_pb2.GetModelStatusRequest(model_spec=spec)
        response = self._call(self._models.GetModelStatus, request, timeout)
        return [
            VersionStatus(
                item.version,
                _enum_name(item, "state"),
                _enum_name(item.status, "error_code"),
                item.status.error_message,
            )
            for item in response.model_version_status
        ]

    def predict(
        self,
        inputs: dict[str, np.ndarray],
        signature_name: str,
        signature: ModelSignature,
        outputs: Sequence[str] | None,
        timeout: float | None,
    ) -> dict[str, np.ndarray]:
        request = predict_pb2.PredictRequest(
            model_spec=self._model_spec(signature_name), output_filter=outputs or ()
        )
        for name, array in inputs.items():
            dtype = tf.string if array.dtype == object else array.dtype
            request.inputs[name].CopyFrom(tf.make_tensor_proto(array, dtype, array.shape))
        response = self._call(self._predictions.Predict, request, timeout)
        return {
            name: as_output(name, _array(proto), signature.outputs[name])
            for name, proto in response.outputs.items()
            if name in signature.outputs
        }

    def classify(
        self, texts: Sequence[bytes], signature_name: str, timeout: float | None
    ) -> list[list[tuple[str, float]]]:
        request = classification_pb2.ClassificationRequest(
            model_spec=self._model_spec(signature_name)
        )
        for text in texts:
            example = request.input.example_list.examples.add()
            example.features.feature["text"].bytes_list.value.append(text)
        response = self._call(self._predictions.Classify, request, timeout)
        return [
            [(item.label, item.score) for item in classifications.classes]
            for classifications in response.result.classifications
        ]

    def close(self) -> None:
        self._channel.close()

    def _model_spec(self, signature_name: str = "") -> ModelSpec:
        spec = ModelSpec(name=self._model.name, signature_name=signature_name)
        if self._model.version is not None:
            spec.version.value = self._model.version
        elif self._model.label is not None:
            spec.version_label = self._model.label
        return spec

    def _call(
        self, method: Callable[..., Response], request: Any, timeout: float | None
    ) -> Response:
        try:
            return method(request, timeout=timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            code, details = error.code().name, error.details() or "no reason given"
            # A message that is too large stays so.
            is_transient = code == "UNAVAILABLE" or (
                code == "RESOURCE_EXHAUSTED" and "larger than max" not in details
            )
            raise ServingError(
                _CODES.get(code, code), f"{details} ({self._target})", is_transient
            ) from error


def _array(proto: TensorProto) -> np.ndarray:
    """What `tf.make_ndarray` gives, which takes a list of Python's numbers for the detour."""
    shape = [dim.size for dim in proto.tensor_shape.dim]
    count = len(proto.float_val)
    # One value may stand for all of them.
    if count < 2 or count != np.prod(shape, dtype=np.int64):
        return tf.make_ndarray(proto)
    # On the wire the values lie as in memory, behind a few bytes that say what they are.
    alone = TensorProto()
    alone.float_val.MergeFrom(proto.float_val)
    data = alone.SerializeToString()
    return np.frombuffer(data, "<f4", count, len(data) - 4 * count).reshape(shape).copy()


def _spec(info: TensorInfo) -> TensorSpec:
    shape = info.tensor_shape
    sizes = None if shape.unknown_rank else [dim.size for dim in shape.dim]
    return tensor_spec(_enum_name(info, "dtype"), sizes)


def _enum_name(message: Message, field: str) -> str:
    values = message.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number
    return values[getattr(message, field)].name
