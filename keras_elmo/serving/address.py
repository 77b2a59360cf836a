"""Where a model server is, from what a user writes."""

from dataclasses import dataclass
from urllib.parse import urlsplit

SCHEMES = ("grpc", "grpcs", "http", "https")


@dataclass(frozen=True)
class Address:
    """The address of a model server.

    Attributes:
        scheme: "grpc", "grpcs", "http" or "https".
        target: For gRPC, host and port; for REST, the URL before `/v1`.
    """

    scheme: str
    target: str

    @property
    def is_rest(self) -> bool:
        """Whether the server is asked over REST; else over gRPC."""
        return self.scheme in ("http", "https")

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection is TLS."""
        return self.scheme in ("grpcs", "https")


def parse_address(address: str) -> Address:
    """Reads an address.

    Args:
        address: "host:port" or "grpc://host:port" for gRPC, "grpcs://host:port" for gRPC over TLS, "http://.." or
            "https://.." for REST. A URL may have a path, for servers behind a gateway.

    Returns:
        The address.

    Raises:
        ValueError: if it is none of these, lacks what it needs, or holds a password.

    Example:
    >>> parse_address("localhost:8500")
    Address(scheme='grpc', target='localhost:8500')
    >>> parse_address("https://models.example.org/nlp/").target
    'https://models.example.org/nlp'
    """
    if not isinstance(address, str):
        raise ValueError(f"`address` must be a string. Received: {address!r}")
    if "@" in address:
        # Not shown: it may be a password.
        raise ValueError(
            "`address` must not hold a user or a password. Give them as a header: "
            '`headers={"authorization": ..}`.'
        )
    scheme, separator, rest = address.partition("://")
    if not separator:
        scheme, rest = "grpc", address
    parts = urlsplit(f"//{rest}")
    try:
        port = parts.port
    except ValueError as error:
        raise ValueError(
            f"The port of `address` must be a number. Received: {address!r}"
        ) from error
    if scheme not in SCHEMES or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(
            '`address` must be "host:port" for gRPC or "http://host:port" for REST, or begin with grpcs:// or '
            f"https:// for TLS. Received: {address!r}"
        )
    if scheme in ("http", "https"):
        return Address(scheme, f"{scheme}://{rest.rstrip('/')}")
    if port is None or parts.path not in ("", "/"):
        raise ValueError(
            "`address` must name a host and a port for gRPC, such as localhost:8500. "
            f"Received: {address!r}"
        )
    return Address(scheme, parts.netloc)
