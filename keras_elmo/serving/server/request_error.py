"""RequestError: what a request is answered with instead of a result."""

import grpc

# As TensorFlow Serving's HTTP server maps them.
_HTTP_STATUS = {
    grpc.StatusCode.CANCELLED: 499,
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.FAILED_PRECONDITION: 400,
    grpc.StatusCode.ABORTED: 409,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.UNIMPLEMENTED: 501,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.UNAUTHENTICATED: 401,
}


class RequestError(Exception):
    """An answer that is an error.

    Args:
        code: The gRPC status code.
        message: What is said, in TensorFlow Serving's words where it has some.

    Attributes:
        http_status: The same as an HTTP status.

    Example:
    >>> RequestError(grpc.StatusCode.NOT_FOUND, "no such model").http_status
    404
    """

    def __init__(self, code: grpc.StatusCode, message: str):
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def http_status(self) -> int:
        return _HTTP_STATUS.get(self.code, 500)


def invalid(message: str) -> RequestError:
    """The error for a request that is wrong in itself."""
    return RequestError(grpc.StatusCode.INVALID_ARGUMENT, message)
