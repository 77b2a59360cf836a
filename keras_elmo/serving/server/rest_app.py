"""rest_app: TensorFlow Serving's REST interface to one model and the live page, as a Starlette application."""

import logging
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import grpc
from google.protobuf import json_format
from tensorflow_serving.apis import model_pb2

from keras_elmo.extras import require
from keras_elmo.serving.server import classify_json, tensor_json
from keras_elmo.serving.server.grpc_services import metadata, signature_defs
from keras_elmo.serving.server.json_text import encode, parse_object, string, text_of
from keras_elmo.serving.server.model_version import DEFAULT_SIGNATURE
from keras_elmo.serving.server.model_versions import ModelVersions
from keras_elmo.serving.server.page_routes import page_routes
from keras_elmo.serving.server.request_error import RequestError, invalid
from keras_elmo.serving.server.tensor_protos import serialized_examples

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

_MODEL = r"(?P<name>[^/:]+)"
_VERSION = r"(?:/versions/(?P<version>[0-9]+)|/labels/(?P<label>[^/:]+))?"
_POST_PATH = re.compile(rf"(?i)/v1/models/{_MODEL}{_VERSION}:(?P<method>classify|regress|predict)")
_GET_PATH = re.compile(rf"(?i)/v1/models(?:/{_MODEL})?{_VERSION}(?:/(?P<what>metadata))?")
_METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]
_LARGEST_VERSION = 2**63 - 1


def rest_app(
    versions: ModelVersions, max_request_bytes: int, max_requests: int, num_threads: int
) -> "Starlette":
    """Makes the application: the interface, and beside it the page, which asks it as any client does.

    Args:
        versions: The model.
        max_request_bytes: Largest body; a larger one is answered by status 413.
        max_requests: How many predictions may be asked for at once; more are answered by status 429.
        num_threads: How many of them are computed at once.

    Returns:
        The application.

    Raises:
        ModuleNotFoundError: if Starlette is not installed, with the command to install it.
    """
    applications = require("starlette.applications", "serve")
    responses = require("starlette.responses", "serve")
    routing = require("starlette.routing", "serve")
    to_thread = require("anyio.to_thread", "serve")
    limiter = require("anyio", "serve").CapacityLimiter(num_threads)
    handler = _Handler(versions)
    num_waiting = 0

    async def answer(request: "Request") -> "Response":
        nonlocal num_waiting
        # As it was sent: a `%2F` in a name is no slash.
        path = request.scope["raw_path"].decode("latin-1")
        if request.url.query:
            path += f"?{request.url.query}"
        status, content = 200, ""
        try:
            if not path.lower().startswith("/v1/"):
                raise RequestError(grpc.StatusCode.NOT_FOUND, f"Not Found: {path}")
            body = await _read(request, max_request_bytes)
            if request.method == "POST" and (match := _POST_PATH.fullmatch(path)):
                if num_waiting >= max_requests:
                    raise RequestError(
                        grpc.StatusCode.RESOURCE_EXHAUSTED,
                        f"More than {max_requests} requests at once. Try again later.",
                    )
                num_waiting += 1
                try:
                    content = await to_thread.run_sync(handler.post, match, body, limiter=limiter)
                finally:
                    num_waiting -= 1
            elif request.method == "GET" and (match := _GET_PATH.fullmatch(path)):
                content = handler.get(match)
            else:
                raise invalid(f"Malformed request: {request.method} {path}")
        except _TooLarge:
            status = 413
            content = _error(f"The request body is larger than {max_request_bytes} bytes.")
        except RequestError as error:
            status, content = error.http_status, _error(error.message)
        except Exception:
            logging.getLogger(__name__).exception("%s %s", request.method, path)
            status, content = 500, _error("Internal error: see the server's log.")
        return responses.Response(encode(content), status, media_type="application/json")

    rest = routing.Route("/{path:path}", answer, methods=_METHODS)
    return applications.Starlette(routes=[*page_routes(versions), rest])


class _TooLarge(Exception):
    pass


class _Handler:
    """The answers, as JSON."""

    def __init__(self, versions: ModelVersions):
        self._versions = versions

    def post(self, match: re.Match, body: bytes) -> str:
        """Predict and classify. The order of the checks is TensorFlow Serving's."""
        spec = _spec(match)
        document = parse_object(body)
        spec.signature_name = tensor_json.signature_name(document)
        if match["method"] == "predict":
            with self._versions.use(spec) as (_, model):
                name = spec.signature_name or DEFAULT_SIGNATURE
                if name not in model.signatures:
                    raise invalid(f'Serving signature name: "{name}" not found in signature def')
                infos = model.signatures[name].inputs
                if not infos:
                    raise invalid(f"Failed to get input map for signature: {name}")
                inputs, in_rows = tensor_json.read_inputs(document, infos)
                outputs = model.predict(name, inputs)
            return (tensor_json.write_rows if in_rows else tensor_json.write_columns)(outputs)
        examples = serialized_examples(classify_json.read_examples(document))
        with self._versions.use(spec) as (_, model):
            if match["method"] == "classify":
                return classify_json.write_classes(model.classify(spec.signature_name, examples))
        raise RequestError(
            grpc.StatusCode.UNIMPLEMENTED,
            f"The development server does not do {match['method']}: TensorFlow Serving does.",
        )

    def get(self, match: re.Match) -> str:
        """Status and metadata."""
        if match["name"] is None:
            raise invalid("Missing model name in request.")
        spec = _spec(match)
        if match["what"] is None:
            return text_of(_json(self._versions.status(spec)))
        with self._versions.use(spec) as (number, model):
            response = metadata(spec.name, number, model)
        return text_of(
            {
                "model_spec": _json(response.model_spec),
                "metadata": {"signature_def": _json(signature_defs(model))},
            }
        )


async def _read(request: "Request", max_bytes: int) -> bytes:
    """The body. One that is too large is read to its end, or its sender would not see the answer, but not kept."""
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size <= max_bytes:
            pieces.append(piece)
        else:
            pieces.clear()
    if size > max_bytes:
        raise _TooLarge
    return b"".join(pieces)


def _spec(match: re.Match) -> model_pb2.ModelSpec:
    spec = model_pb2.ModelSpec(name=unquote(match["name"]))
    if match["version"]:
        if int(match["version"]) > _LARGEST_VERSION:
            raise invalid(f"Failed to convert version: {match['version']} to numeric.")
        spec.version.value = int(match["version"])
    elif match["label"]:
        spec.version_label = unquote(match["label"])
    return spec


def _json(message: Any) -> dict[str, Any]:
    return json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )


def _error(message: str) -> str:
    return f'{{"error": {string(encode(message))}}}'
