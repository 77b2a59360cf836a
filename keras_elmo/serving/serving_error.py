"""ServingError: what went wrong on the way to a model server and back, the same over gRPC and REST."""


class ServingError(Exception):
    """A model server refused a request, or could not be reached, or did not answer in time.

    HTTP has fewer codes than gRPC. What HTTP cannot tell apart has one name over both: `FAILED_PRECONDITION` and
    `OUT_OF_RANGE` are `INVALID_ARGUMENT`, `ALREADY_EXISTS` is `ABORTED`, `UNKNOWN` and `DATA_LOSS` are `INTERNAL`.

    Args:
        code: The name of a gRPC status: "INVALID_ARGUMENT", "NOT_FOUND", "UNAVAILABLE", "DEADLINE_EXCEEDED", ..
        message: What happened.
        is_transient: Whether the same request may well succeed a moment later.

    Attributes:
        code: The code.
        is_transient: Whether trying again makes sense. `ElmoClient` has done so before it raises.

    Example:
    >>> print(ServingError("NOT_FOUND", "Servable not found for request: Latest(elmo)"))
    NOT_FOUND: Servable not found for request: Latest(elmo)
    """

    def __init__(self, code: str, message: str, is_transient: bool = False):
        super().__init__(code, message, is_transient)
        self.code = code
        self.message = message
        self.is_transient = is_transient

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"
