"""The certificates of a TLS connection, checked before they are used."""

import os
import ssl
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Certificates:
    """Files with the certificates of a TLS connection, in PEM format.

    gRPC reads them when it connects and reports a bad one as a server that cannot be reached; so they are checked here.

    Args:
        root: Certificates of the authorities that the server's certificate may be signed by. `None`: those that the
            transport knows.
        client: The client's own certificate, for servers that ask for one, with its chain.
        client_key: Its private key.

    Raises:
        ValueError: if a file cannot be read or is no such certificate, or one of certificate and key is missing.
    """

    root: str | None = None
    client: str | None = None
    client_key: str | None = None

    def __post_init__(self):
        if (self.client is None) != (self.client_key is None):
            given, missing = "client_certificate", "client_key"
            if self.client is None:
                given, missing = missing, given
            raise ValueError(f"`{given}` needs `{missing}` beside it. Received: {missing}=None")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            if self.root is not None:
                context.load_verify_locations(self.root)
        except OSError as error:
            raise ValueError(
                f"`root_certificates` must be a file of certificates in PEM format. {_reason(self.root, error)}"
            ) from error
        try:
            if self.client is not None:
                # The password keeps OpenSSL from asking for one at the terminal.
                context.load_cert_chain(self.client, self.client_key, password="")
        except OSError as error:
            raise ValueError(
                "`client_certificate` and `client_key` must be files in PEM format that belong together, the key "
                f"without a password. {_reason(f'{self.client}, {self.client_key}', error)}"
            ) from error

    @property
    def is_empty(self) -> bool:
        """Whether none is given."""
        return self.root is None and self.client is None


def certificates(
    root: str | os.PathLike | None,
    client: str | os.PathLike | None,
    client_key: str | os.PathLike | None,
) -> Certificates:
    """Makes `Certificates` of any kind of path."""
    return Certificates(*(None if p is None else os.fspath(p) for p in (root, client, client_key)))  # type: ignore[arg-type]


def read_bytes(path: str | None) -> bytes | None:
    """The content of a file, if there is one."""
    return None if path is None else Path(path).read_bytes()


def _reason(path: str | None, error: OSError) -> str:
    return f"{path}: {(error.strerror or str(error)).rstrip('.')}."
