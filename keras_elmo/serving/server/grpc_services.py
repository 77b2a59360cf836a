"""TensorFlow Serving's gRPC services for one model: PredictionService and ModelService."""

import logging
from collections.abc import Callable
from typing import Any

import grpc
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from keras_elmo.serving.server.model_version import DEFAULT_SIGNATURE, ModelVersion
from keras_elmo.serving.server.model_versions import ModelVersions
from keras_elmo.serving.server.request_error import RequestError, invalid
from keras_elmo.serving.server.tensor_protos import serialized_examples, to_arrays, to_proto

_SIGNATURE_DEF = "signature_def"
_MAX_MESSAGE = 1024


def add_services(versions: ModelVersions, server: grpc.Server) -> None:
    """Adds both services to a server.

    Args:
        versions: The model.
        server: The server, not yet started.
    """
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        _PredictionService(versions), server
    )
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(_ModelService(versions), server)


def signature_defs(model: ModelVersion) -> get_model_metadata_pb2.SignatureDefMap:
    """All signatures of a model, as one message."""
    return get_model_metadata_pb2.SignatureDefMap(signature_def=model.signatures)


def metadata(
    name: str, number: int, model: ModelVersion
) -> get_model_metadata_pb2.GetModelMetadataResponse:
    """What GetModelMetadata answers.

    Args:
        name: The model's name.
        number: Its version.
        model: The version.
    """
    response = get_model_metadata_pb2.GetModelMetadataResponse()
    response.model_spec.name = name
    response.model_spec.version.value = number
    response.metadata[_SIGNATURE_DEF].Pack(signature_defs(model))
    return response


class _PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    def __init__(self, versions: ModelVersions):
        self._versions = versions

    # The names are those of the service.
    def Predict(
        self, request: predict_pb2.PredictRequest, context: grpc.ServicerContext
    ) -> predict_pb2.PredictResponse:
        def answer() -> predict_pb2.PredictResponse:
            spec = _spec(request)
            with self._versions.use(spec) as (number, model):
                outputs = model.predict(
                    spec.signature_name, to_arrays(request.inputs), request.output_filter
                )
            response = predict_pb2.PredictResponse()
            _name_model(response, spec, number)
            for name, array in outputs.items():
                response.outputs[name].CopyFrom(to_proto(array))
            return response

        return _answer(answer, context)

    def Classify(
        self, request: classification_pb2.ClassificationRequest, context: grpc.ServicerContext
    ) -> classification_pb2.ClassificationResponse:
        def answer() -> classification_pb2.ClassificationResponse:
            spec = _spec(request)
            with self._versions.use(spec) as (number, model):
                result = model.classify(spec.signature_name, serialized_examples(request.input))
            response = classification_pb2.ClassificationResponse(result=result)
            _name_model(response, spec, number)
            return response

        return _answer(answer, context)

    def GetModelMetadata(
        self,
        request: get_model_metadata_pb2.GetModelMetadataRequest,
        context: grpc.ServicerContext,
    ) -> get_model_metadata_pb2.GetModelMetadataResponse:
        def answer() -> get_model_metadata_pb2.GetModelMetadataResponse:
            spec = _spec(request)
            if not request.metadata_field:
                raise invalid("GetModelMetadataRequest must specify at least one metadata_field")
            for field in request.metadata_field:
                if field != _SIGNATURE_DEF:
                    raise invalid(f"Metadata field {field} is not supported")
            with self._versions.use(spec) as (number, model):
                return metadata(spec.name, number, model)

        return _answer(answer, context)


class _ModelService(model_service_pb2_grpc.ModelServiceServicer):
    def __init__(self, versions: ModelVersions):
        self._versions = versions

    def GetModelStatus(
        self, request: get_model_status_pb2.GetModelStatusRequest, context: grpc.ServicerContext
    ) -> get_model_status_pb2.GetModelStatusResponse:
        return _answer(lambda: self._versions.status(_spec(request)), context)


def _answer(answer: Callable[[], Any], context: grpc.ServicerContext) -> Any:
    if not context.is_active():
        return context.abort(grpc.StatusCode.CANCELLED, "The client does not wait any more.")
    try:
        return answer()
    except RequestError as error:
        message = error.message
        if len(message) > _MAX_MESSAGE:
            message = message[:_MAX_MESSAGE] + "...TRUNCATED"
        return context.abort(error.code, message)
    except Exception:
        logging.getLogger(__name__).exception("A request failed unforeseen.")
        return context.abort(grpc.StatusCode.INTERNAL, "Internal error: see the server's log.")


def _spec(request: Any) -> Any:
    if not request.HasField("model_spec"):
        raise invalid("Missing ModelSpec")
    return request.model_spec


def _name_model(response: Any, spec: Any, number: int) -> None:
    response.model_spec.name = spec.name
    response.model_spec.signature_name = spec.signature_name or DEFAULT_SIGNATURE
    response.model_spec.version.value = number
