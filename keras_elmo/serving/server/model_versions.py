"""ModelVersions: serves the newest version in a folder, and goes over to a newer one without losing a request."""

import ctypes
import gc
import os
import platform
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from tensorflow_serving.apis import get_model_status_pb2, model_pb2

from keras_elmo.serving.server.model_dir import check_model_dir, fingerprint, version_folders
from keras_elmo.serving.server.model_version import ModelVersion
from keras_elmo.serving.server.request_error import RequestError, invalid

_Status: Any = get_model_status_pb2.ModelVersionStatus


@dataclass
class _State:
    """What the status of a version says."""

    state: int
    code: grpc.StatusCode = grpc.StatusCode.OK
    message: str = ""


@dataclass
class _Served:
    """A loaded version, and how many requests are using it."""

    number: int
    model: ModelVersion
    num_requests: int = 0
    retired: bool = False


class ModelVersions:
    """The versions of one model: the newest is served; a newer one is loaded beside it and takes its place.

    The old one answers what it has begun and is unloaded after its last request. A folder that does not load is
    reported, and the old version stays; it is tried again when its files change. A folder that is new is loaded once
    two looks at it, a second apart, have found the same files: somebody may be copying it.

    Args:
        model_dir: The folder with the version folders. Its name is the model's.
        say: Called with a sentence about every change.

    Attributes:
        name: The model's name.

    Raises:
        ValueError: if the folder cannot be served, or its newest version does not load.
    """

    def __init__(
        self, model_dir: str | os.PathLike, say: Callable[[str], None] = lambda sentence: None
    ):
        self._model_dir = check_model_dir(model_dir)
        self._say = say
        self.name = self._model_dir.name
        self._lock = threading.Lock()
        self._refreshing = threading.Lock()
        self._states: dict[int, _State] = {}
        self._current: _Served | None = None
        # What the newest folder looked like when it was seen last, and when it did not load.
        self._seen: tuple[int, Any] | None = None
        self._refused: tuple[int, Any] | None = None
        self._watcher: threading.Thread | None = None
        self._end = threading.Event()
        self._unloaded = threading.Event()
        number, folder = max(version_folders(self._model_dir).items())
        if not self._load(number, folder):
            raise ValueError(
                f"{folder} cannot be served: {self._states[number].message} Export it anew, or remove it."
            )

    @property
    def current(self) -> int:
        """The version that is served."""
        with self._lock:
            return self._served().number

    @property
    def description(self) -> dict[str, Any]:
        """What the export of the version that is served says of it."""
        with self._lock:
            return self._served().model.description

    @contextmanager
    def use(self, spec: model_pb2.ModelSpec) -> Iterator[tuple[int, ModelVersion]]:
        """Keeps a version loaded while its block runs.

        Args:
            spec: Which: the model's name and, unless it is to be the current one, a version.

        Yields:
            The version's number, and the model.

        Raises:
            RequestError: if there is no such model or version.
        """
        served = self._take(spec)
        try:
            yield served.number, served.model
        finally:
            self._give_back(served)

    def status(self, spec: model_pb2.ModelSpec) -> get_model_status_pb2.GetModelStatusResponse:
        """The states of all versions since the start, newest first, or of the one that is asked for.

        Args:
            spec: The model's name, and perhaps a version.

        Raises:
            RequestError: if there is no such model or version.
        """
        with self._lock:
            states = dict(self._states) if spec.name == self.name else {}
        if spec.HasField("version"):
            number = spec.version.value
            if number not in states:
                raise RequestError(
                    grpc.StatusCode.NOT_FOUND,
                    f"Could not find version {number} of model {spec.name}",
                )
            states = {number: states[number]}
        if not states:
            raise RequestError(
                grpc.StatusCode.NOT_FOUND, f"Could not find any versions of model {spec.name}"
            )
        response = get_model_status_pb2.GetModelStatusResponse()
        for number in sorted(states, reverse=True):
            entry = response.model_version_status.add()
            entry.version, entry.state = number, states[number].state
            entry.status.error_code = states[number].code.value[0]
            entry.status.error_message = states[number].message
        return response

    def watch(self, seconds: float = 1.0) -> None:
        """Looks for a new version again and again, until `close`.

        Args:
            seconds: Time between two looks. Defaults to 1.
        """

        def look() -> None:
            while not self._end.wait(seconds):
                self.refresh()
                if self._unloaded.is_set():
                    self._unloaded.clear()
                    _give_memory_back()

        self._watcher = threading.Thread(target=look, name="versions", daemon=True)
        self._watcher.start()

    def refresh(self) -> None:
        """Looks once: loads the newest version if it is another than the current one and its files stand still."""
        with self._refreshing:
            folders = version_folders(self._model_dir)
            # Whoever removes all folders of a running server meant anything but to stop it.
            if not folders:
                return
            number, folder = max(folders.items())
            if number == self.current:
                return
            found = (number, fingerprint(folder))
            if found == self._refused:
                return
            if found != self._seen:
                self._seen = found
                return
            self._refused = None if self._load(number, folder) else found

    def close(self) -> None:
        """Stops watching and unloads what is loaded; requests must have ended."""
        self._end.set()
        if self._watcher is not None:
            self._watcher.join()
        with self._lock:
            served, self._current = self._current, None
        if served is not None:
            self._retire(served)

    def _load(self, number: int, folder: Path) -> bool:
        self._set_state(number, _State(_Status.LOADING))
        try:
            model = ModelVersion(folder)
        # Whatever is wrong with the folder: the server goes on with what it has.
        except Exception as error:
            message = " ".join(str(getattr(error, "message", error)).split()).rstrip(".") + "."
            code = getattr(error, "code", grpc.StatusCode.UNKNOWN)
            if not isinstance(code, grpc.StatusCode):
                code = grpc.StatusCode.UNKNOWN
            self._set_state(number, _State(_Status.END, code, message))
            if self._current is not None:
                self._say(
                    f"{folder} does not load: {message} Version {self._current.number} stays."
                )
            return False
        with self._lock:
            old, self._current = self._current, _Served(number, model)
            self._states[number] = _State(_Status.AVAILABLE)
            if old is not None:
                self._states[old.number] = _State(_Status.UNLOADING)
        if old is not None:
            self._say(
                f"Version {number} is served now; version {old.number} ends with its last request."
            )
            self._retire(old)
        return True

    def _retire(self, served: _Served) -> None:
        with self._lock:
            served.retired = True
            unused = served.num_requests == 0
        if unused:
            self._unload(served)

    def _unload(self, served: _Served) -> None:
        served.model.close()
        self._set_state(served.number, _State(_Status.END))
        self._unloaded.set()

    def _take(self, spec: model_pb2.ModelSpec) -> _Served:
        if not spec.name:
            raise invalid("ModelSpec has no name specified.")
        if spec.HasField("version_label"):
            raise invalid(f"Unrecognized servable version label: {spec.version_label}")
        with self._lock:
            number = spec.version.value if spec.HasField("version") else None
            if (
                spec.name != self.name
                or self._current is None
                or number not in (None, self._current.number)
            ):
                wanted = (
                    f"Latest({spec.name})" if number is None else f"Specific({spec.name}, {number})"
                )
                raise RequestError(
                    grpc.StatusCode.NOT_FOUND, f"Servable not found for request: {wanted}"
                )
            self._current.num_requests += 1
            return self._current

    def _give_back(self, served: _Served) -> None:
        with self._lock:
            served.num_requests -= 1
            last = served.retired and served.num_requests == 0
        if last:
            self._unload(served)

    def _served(self) -> _Served:
        if self._current is None:
            raise RequestError(grpc.StatusCode.UNAVAILABLE, f"The model {self.name} is closed.")
        return self._current

    def _set_state(self, number: int, state: _State) -> None:
        with self._lock:
            self._states[number] = state


def _give_memory_back() -> None:
    """Frees a closed model's graph, a cycle of objects; glibc would keep the memory for itself."""
    gc.collect()
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)
