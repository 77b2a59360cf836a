"""What ElmoClient asks of gRPC and REST."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from keras_elmo.serving.model_signature import ModelSignature


@dataclass(frozen=True)
class ServedModel:
    """Which model of a server is meant.

    Attributes:
        name: Its name.
        version: One version of it, or `None`.
        label: The label of one version, or `None`. With neither, the server takes the newest that it has loaded.
    """

    name: str
    version: int | None = None
    label: str | None = None


@dataclass(frozen=True)
class VersionStatus:
    """The state of one version of a model.

    Attributes:
        version: The version.
        state: "START", "LOADING", "AVAILABLE", "UNLOADING" or "END".
        error_code: "OK", or the name of a gRPC status if it could not be loaded.
        error_message: Why it could not be loaded, or empty.
    """

    version: int
    state: str
    error_code: str
    error_message: str


class Transport(Protocol):
    """One way to a model server. Every method is one request.

    `timeout` is the time for it in seconds, `None` for no end. All of them raise `ServingError`, and may be called from
    several threads at once.
    """

    def signatures(self, timeout: float | None) -> dict[str, ModelSignature]:
        """The signatures of the model."""

    def status(self, timeout: float | None) -> list[VersionStatus]:
        """The state of the model's versions."""

    def predict(
        self,
        inputs: dict[str, np.ndarray],
        signature_name: str,
        signature: ModelSignature,
        outputs: Sequence[str] | None,
        timeout: float | None,
    ) -> dict[str, np.ndarray]:
        """Runs a signature. `outputs` are those that are needed; there may be more of them in the answer."""

    def classify(
        self, texts: Sequence[bytes], signature_name: str, timeout: float | None
    ) -> list[list[tuple[str, float]]]:
        """Runs a signature of tf.Examples with the feature `text`: for each, labels and scores."""

    def close(self) -> None:
        """Closes the connections."""
