"""gRPC and HTTP servers in the test process that answer as TensorFlow Serving does, and fail on demand."""

import base64
import contextlib
import json
import re
import ssl
import threading
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
import numpy as np
import tensorflow as tf
from google.protobuf.json_format import MessageToDict
from served_core import Refusal
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)

# As TensorFlow Serving's HTTP server maps them.
HTTP_STATUS = {
    "CANCELLED": 499,
    "UNKNOWN": 500,
    "INVALID_ARGUMENT": 400,
    "DEADLINE_EXCEEDED": 504,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "PERMISSION_DENIED": 403,
    "RESOURCE_EXHAUSTED": 429,
    "FAILED_PRECONDITION": 400,
    "ABORTED": 409,
    "OUT_OF_RANGE": 400,
    "UNIMPLEMENTED": 501,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DATA_LOSS": 500,
    "UNAUTHENTICATED": 401,
}
# --- gRPC ---


class GrpcServices(
    prediction_service_pb2_grpc.PredictionServiceServicer,
    model_service_pb2_grpc.ModelServiceServicer,
):
    def __init__(self, core):
        self.core = core

    @contextlib.contextmanager
    def answering(self, context, kind, spec, size=None):
        self.core.note(kind, context.invocation_metadata(), size)
        try:
            version = spec.version.value if spec.HasField("version") else None
            label = spec.version_label if spec.HasField("version_label") else None
            self.core.find(spec.name, version, label)
            yield
        except Refusal as refusal:
            context.abort(getattr(grpc.StatusCode, refusal.code), refusal.message)

    def Predict(self, request, context):
        inputs = {name: tf.make_ndarray(proto) for name, proto in request.inputs.items()}
        size = len(next(iter(inputs.values()))) if inputs else 0
        with self.answering(context, "predict", request.model_spec, size):
            spec = request.model_spec
            outputs = self.core.predict(spec.signature_name, inputs, request.output_filter)
            response = predict_pb2.PredictResponse()
            for name, array in outputs.items():
                response.outputs[name].CopyFrom(as_proto_field(array))
            return response

    def Classify(self, request, context):
        texts = [
            example.features.feature["text"].bytes_list.value[0]
            for example in request.input.example_list.examples
        ]
        with self.answering(context, "classify", request.model_spec, len(texts)):
            response = classification_pb2.ClassificationResponse()
            for pairs in self.core.classify(request.model_spec.signature_name, texts):
                classes = response.result.classifications.add().classes
                for label, score in pairs:
                    classes.add(label=label, score=score)
            return response

    def GetModelMetadata(self, request, context):
        with self.answering(context, "metadata", request.model_spec):
            response = get_model_metadata_pb2.GetModelMetadataResponse()
            response.metadata["signature_def"].Pack(self.core.signature_defs())
            return response

    def GetModelStatus(self, request, context):
        spec = request.model_spec
        version = spec.version.value if spec.HasField("version") else None
        try:
            return self.core.status(version if spec.name == "elmo" else 0)
        except Refusal as refusal:
            context.abort(grpc.StatusCode.NOT_FOUND, refusal.message)


def as_proto_field(array):
    """TensorFlow Serving writes numbers one by one unless it is told otherwise."""
    proto = tf.make_tensor_proto(
        array, tf.string if array.dtype == object else array.dtype, array.shape
    )
    field = {"float32": "float_val", "int32": "int_val"}.get(array.dtype.name)
    if field:
        proto.ClearField("tensor_content")
        proto.ClearField(field)
        getattr(proto, field).extend(array.ravel().tolist())
    return proto


@contextlib.contextmanager
def grpc_server(core, credentials=None):
    """Yields the port."""
    server = grpc.server(futures.ThreadPoolExecutor(16), options=[("grpc.so_reuseport", 0)])
    services = GrpcServices(core)
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(services, server)
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(services, server)
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        yield port
    finally:
        core.gate.set()
        server.stop(None).wait()


# --- REST ---

POST = re.compile(r"/v1/models/([^/:]+)(?:/versions/(\d+)|/labels/([^/:]+))?:(classify|predict)")
GET = re.compile(r"/v1/models/([^/:]+)(?:/versions/(\d+)|/labels/([^/:]+))?(/metadata)?")


class RestHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    core = None

    def do_GET(self):
        self.handle_request(GET, self.get)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.handle_request(POST, lambda match: self.post(match, json.loads(body)))

    def handle_request(self, pattern, answer):
        try:
            match = pattern.fullmatch(self.path)
            if match is None:
                raise Refusal("INVALID_ARGUMENT", f"Malformed request: {self.command} {self.path}")
            status, content = 200, answer(match)
        except Refusal as refusal:
            status, content = HTTP_STATUS[refusal.code], {"error": refusal.message}
        self.send(status, json.dumps(content).encode())

    def send(self, status, content, content_type="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def find(self, match):
        self.core.find(match[1], match[2] and int(match[2]), match[3])

    def get(self, match):
        options = {
            "preserving_proto_field_name": True,
            "always_print_fields_with_no_presence": True,
        }
        if match[4]:
            self.core.note("metadata", self.headers.items())
            self.find(match)
            signatures = MessageToDict(self.core.signature_defs(), **options)
            return {"model_spec": {"name": "elmo"}, "metadata": {"signature_def": signatures}}
        version = match[2] and int(match[2])
        status = MessageToDict(self.core.status(version if match[1] == "elmo" else 0), **options)
        for item in status["model_version_status"]:
            item.setdefault("status", {"error_code": "OK", "error_message": ""})
        return status

    def post(self, match, body):
        if match[4] == "classify":
            texts = [as_bytes(example["text"]) for example in body["examples"]]
            self.core.note("classify", self.headers.items(), len(texts))
            self.find(match)
            results = self.core.classify(body["signature_name"], texts)
            return {
                "results": [
                    [[label, shortest(score)] for label, score in pairs] for pairs in results
                ]
            }
        name = body.get("signature_name", "serving_default")
        types = self.core.signatures[name][0] if name in self.core.signatures else {}
        inputs = {
            key: np.vectorize(as_bytes, [object])(np.array(value, object))
            if types[key][0] == "DT_STRING"
            else np.array(value, types[key][0].removeprefix("DT_").lower())
            for key, value in columns(body, list(types)).items()
        }
        size = len(next(iter(inputs.values())))
        self.core.note("predict", self.headers.items(), size)
        self.find(match)
        outputs = self.core.predict(name, inputs)
        values = {key: as_json(key, array) for key, array in outputs.items()}
        if "instances" in body:
            rows = [{key: value[row] for key, value in values.items()} for row in range(size)]
            return {"predictions": rows if len(values) > 1 else next(iter(values.values()))}
        return {"outputs": values if len(values) > 1 else next(iter(values.values()))}

    def log_message(self, *args):
        """Nothing: it would write to standard error."""


def columns(body, names):
    """The inputs by name, of a request in row or in column format."""
    if "inputs" in body:
        return body["inputs"] if isinstance(body["inputs"], dict) else {names[0]: body["inputs"]}
    rows = body["instances"]
    if isinstance(rows[0], dict) and set(rows[0]) != {"b64"}:
        return {name: [row[name] for row in rows] for name in names}
    return {names[0]: rows}


def as_bytes(value):
    return base64.b64decode(value["b64"]) if isinstance(value, dict) else value.encode()


def shortest(value):
    """A float32 as TensorFlow Serving writes it: with the digits it takes to tell it from others."""
    return float(str(np.float32(value)))


def as_json(name, array):
    if array.dtype == np.float32:
        return np.vectorize(shortest, [object])(array).tolist() if array.size else array.tolist()
    if array.dtype != object:
        return array.tolist()
    if name.endswith("_bytes"):
        encode = lambda value: {"b64": base64.b64encode(value).decode()}  # noqa: E731
    else:
        encode = bytes.decode
    return np.frompyfunc(encode, 1, 1)(array).tolist()


@contextlib.contextmanager
def rest_server(core, context: ssl.SSLContext | None = None, handler=RestHandler):
    """Yields the port."""
    with http_server(type("Handler", (handler,), {"core": core}), context) as port:
        try:
            yield port
        finally:
            core.gate.set()


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Nothing: clients that hang up are what is tested."""


@contextlib.contextmanager
def http_server(handler, context=None):
    """Yields the port."""
    server = QuietServer(("127.0.0.1", 0), handler)
    if context is not None:
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextlib.contextmanager
def page(status, content, content_type="text/html", headers=()):
    """Yields the address of an HTTP server that always answers the same."""

    class Handler(RestHandler):
        def handle_request(self, pattern, answer):
            self.send_response(status)
            for name, value in (("Content-Type", content_type), ("Connection", "close"), *headers):
                self.send_header(name, value)
            if not any(name in ("Content-Length", "Transfer-Encoding") for name, _ in headers):
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    with http_server(Handler) as port:
        yield f"http://127.0.0.1:{port}"
