"""TensorFlow Serving over REST."""

import base64
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.cookiejar import DefaultCookiePolicy
from typing import Any
from urllib.parse import quote

import numpy as np
import requests
import urllib3

from keras_elmo.serving.address import Address
from keras_elmo.serving.certificates import Certificates
from keras_elmo.serving.model_signature import (
    ModelSignature,
    TensorSpec,
    as_output,
    map_objects,
    tensor_spec,
)
from keras_elmo.serving.serving_error import ServingError
from keras_elmo.serving.transport import ServedModel, VersionStatus

_CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    413: "RESOURCE_EXHAUSTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
# Not 413: a message that is too large stays so.
_TRANSIENT = (429, 502, 503)
_BYTES_PER_READ = 2**16


class RestTransport:
    """A `Transport` over REST.

    Args:
        address: Where the server is.
        model: Which model.
        headers: Sent with every request.
        certificates: For `https`.
    """

    def __init__(
        self,
        address: Address,
        model: ServedModel,
        headers: Mapping[str, str],
        certificates: Certificates,
    ):
        self._url = f"{address.target}/v1/models/{quote(model.name, safe='')}"
        self._version = ""
        if model.version is not None:
            self._version = f"/versions/{model.version}"
        elif model.label is not None:
            self._version = f"/labels/{quote(model.label, safe='')}"
        self._status_version = "" if model.version is None else self._version
        self._verify = certificates.root or True
        self._certificate = (
            (certificates.client, certificates.client_key)
            if certificates.client and certificates.client_key
            else None
        )
        # Threads may share a session in which nothing changes: no cookies.
        self._session = requests.Session()
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        self._session.headers.update(headers)
        # Else the password of a .netrc file would take the place of an `authorization` header.
        self._session.auth = lambda request: request

    def signatures(self, timeout: float | None) -> dict[str, ModelSignature]:
        answer = self._call("GET", f"{self._version}/metadata", None, timeout)
        with _reading(answer):
            signatures = answer["metadata"]["signature_def"]["signature_def"]
            return {
                name: ModelSignature(
                    {key: _spec(info) for key, info in signature.get("inputs", {}).items()},
                    {key: _spec(info) for key, info in signature.get("outputs", {}).items()},
                    signature["method_name"],
                )
                for name, signature in signatures.items()
            }

    def status(self, timeout: float | None) -> list[VersionStatus]:
        answer = self._call("GET", self._status_version, None, timeout)
        with _reading(answer):
            return [
                VersionStatus(
                    int(item["version"]),
                    item["state"],
                    item["status"]["error_code"],
                    item["status"]["error_message"],
                )
                for item in answer["model_version_status"]
            ]

    def predict(
        self,
        inputs: dict[str, np.ndarray],
        signature_name: str,
        signature: ModelSignature,
        outputs: Sequence[str] | None,
        timeout: float | None,
    ) -> dict[str, np.ndarray]:
        # REST has no way to ask for some outputs only: all of them come.
        body = {
            "signature_name": signature_name,
            "inputs": {name: _json_value(array) for name, array in inputs.items()},
        }
        answer = self._call("POST", f"{self._version}:predict", body, timeout)
        with _reading(answer):
            values = answer["outputs"]
            if not isinstance(values, dict):
                # A single output comes without its name.
                (name,) = signature.outputs
                values = {name: values}
            return {
                name: as_output(name, _from_base64(name, value), signature.outputs[name])
                for name, value in values.items()
                if name in (outputs or signature.outputs)
            }

    def classify(
        self, texts: Sequence[bytes], signature_name: str, timeout: float | None
    ) -> list[list[tuple[str, float]]]:
        body = {
            "signature_name": signature_name,
            "examples": [{"text": _json_string(text)} for text in texts],
        }
        answer = self._call("POST", f"{self._version}:classify", body, timeout)
        with _reading(answer):
            # The documentation says `result`; the server says `results`.
            results = answer["results"] if "results" in answer else answer["result"]
            # Scores are float32: JSON writes as few digits as tell them apart.
            return [
                [(str(label), float(np.float32(score))) for label, score in pairs]
                for pairs in results
            ]

    def close(self) -> None:
        self._session.close()

    def _call(
        self, method: str, path: str, body: dict[str, Any] | None, timeout: float | None
    ) -> Any:
        url = self._url + path
        try:
            with self._session.request(
                method,
                url,
                data=None if body is None else json.dumps(body).encode(),
                headers=None if body is None else {"Content-Type": "application/json"},
                timeout=urllib3.Timeout(total=timeout),  # type: ignore[arg-type]
                # TensorFlow Serving sends none; a gateway's leads to a page for people.
                allow_redirects=False,
                stream=True,
                # For each request, for the environment goes before what the session has.
                verify=self._verify,
                cert=self._certificate,
            ) as response:
                content = _content(response, timeout)
        except (requests.Timeout, urllib3.exceptions.TimeoutError) as error:
            raise ServingError("DEADLINE_EXCEEDED", f"no answer in time ({url})") from error
        except (requests.exceptions.SSLError, urllib3.exceptions.SSLError) as error:
            raise ServingError("UNAVAILABLE", f"{_innermost(error)} ({url})") from error
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            raise ServingError(
                "UNAVAILABLE", f"{_innermost(error)} ({url})", is_transient=True
            ) from error
        if response.status_code == 200:
            try:
                return json.loads(content)
            except ValueError as error:
                raise ServingError(
                    "INTERNAL", f"the answer is not JSON: {_quote(content)} ({url})"
                ) from error
        try:
            message = str(json.loads(content)["error"])
        except (ValueError, KeyError, TypeError):
            message = f"HTTP {response.status_code} {response.reason}: {_quote(content)}"
        raise ServingError(
            _CODES.get(response.status_code, "INTERNAL"),
            f"{message} ({url})",
            response.status_code in _TRANSIENT,
        )


def _content(response: requests.Response, timeout: float | None) -> bytes:
    """The body. The timeout of a request is one for every read: here it is looked at after each of them."""
    end = None if timeout is None else time.monotonic() + timeout - response.elapsed.total_seconds()
    chunks = []
    while chunk := response.raw.read1(_BYTES_PER_READ, decode_content=True):
        chunks.append(chunk)
        if end is not None and time.monotonic() > end:
            raise requests.Timeout
    return b"".join(chunks)


@contextmanager
def _reading(answer: Any) -> Iterator[None]:
    """Around the reading of an answer that is JSON, but may be of another kind of server."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ServingError(
            "INTERNAL",
            f"the answer is not one of TensorFlow Serving: {_quote(json.dumps(answer).encode())}",
        ) from error


def _spec(info: dict[str, Any]) -> TensorSpec:
    # Left out where it is empty, which is the shape of a scalar.
    shape = info.get("tensor_shape", {})
    sizes = (
        None if shape.get("unknown_rank") else [int(dim["size"]) for dim in shape.get("dim", ())]
    )
    return tensor_spec(info["dtype"], sizes)


def _json_value(array: np.ndarray) -> Any:
    if array.dtype != object:
        return array.tolist()
    return map_objects(_json_string, array).tolist()


def _json_string(value: bytes) -> str | dict[str, str]:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode()}


def _from_base64(name: str, value: Any) -> Any:
    """Strings of outputs whose name ends so are sent encoded."""
    if not name.endswith("_bytes"):
        return value
    if isinstance(value, list):
        return [_from_base64(name, item) for item in value]
    return base64.b64decode(value["b64"]) if isinstance(value, dict) else value


def _quote(content: bytes) -> str:
    return repr(content.decode("utf-8", "replace")[:200])


def _innermost(error: BaseException) -> str:
    """What is at the bottom of the errors that are wrapped in each other: "Connection refused" and the like."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return f"{type(error).__name__}: {error}"
