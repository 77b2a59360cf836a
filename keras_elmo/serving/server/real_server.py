"""How TensorFlow Serving itself is started for a model."""

import os
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path

from keras_elmo.serving.server.model_dir import check_model_dir

BINARY = "tensorflow_model_server"
# Settings that are used if they lie beside the model's folder, and the flags that name them.
_SETTINGS = {
    "batching.config": ("--enable_batching", "--batching_parameters_file"),
    "monitoring.config": ("--monitoring_config_file",),
}
_DOCKER_INFO_SECONDS = 60


def image() -> str:
    """The official image of the TensorFlow Serving that belongs to the installed TensorFlow."""
    return f"tensorflow/serving:{version('tensorflow-serving-api')}"


def binary_command(model_dir: str | os.PathLike, rest_port: int, grpc_port: int) -> list[str]:
    """The command line that serves a model by `tensorflow_model_server`.

    Args:
        model_dir: The folder with the version folders; `batching.config` and `monitoring.config` beside it are used.
        rest_port: Port of the REST interface.
        grpc_port: Port of the gRPC interface.

    Returns:
        The program and its arguments.

    Raises:
        ValueError: if the folder cannot be served, or the program is not on PATH.
    """
    path = check_model_dir(model_dir)
    program = shutil.which(BINARY)
    if program is None:
        raise ValueError(
            f"{BINARY} is not on PATH. Install it (Debian package tensorflow-model-server), or use `--docker`."
        )
    return [
        program,
        f"--port={grpc_port}",
        f"--rest_api_port={rest_port}",
        f"--model_name={path.name}",
        f"--model_base_path={path}",
        *_settings(path.parent, path.parent),
    ]


def docker_command(
    model_dir: str | os.PathLike, rest_port: int, grpc_port: int, host: str
) -> list[str]:
    """The command line that serves a model by TensorFlow Serving's official Docker image.

    Args:
        model_dir: The folder with the version folders; `batching.config` and `monitoring.config` beside it are used.
        rest_port: Port of the REST interface.
        grpc_port: Port of the gRPC interface.
        host: The address to listen on.

    Returns:
        The program and its arguments.

    Raises:
        ValueError: if the folder cannot be served, or Docker is not there or does not answer.
    """
    path = check_model_dir(model_dir)
    program = shutil.which("docker")
    if program is None:
        raise ValueError("docker is not on PATH. Install Docker, or use `--binary`.")
    try:
        answer = subprocess.run(
            [program, "info"], capture_output=True, text=True, timeout=_DOCKER_INFO_SECONDS
        )
        reason = "" if answer.returncode == 0 else answer.stderr.strip() or "it says nothing"
    except subprocess.TimeoutExpired:
        reason = f"no answer in {_DOCKER_INFO_SECONDS} seconds"
    if reason:
        raise ValueError(
            f"Docker does not answer: `docker info` failed ({reason.splitlines()[-1]}). Start it, or use `--binary`."
        )
    address = f"[{host}]" if ":" in host else host
    settings = [name for name in _SETTINGS if (path.parent / name).is_file()]
    mounts = {path: f"/models/{path.name}"}
    mounts |= {path.parent / name: f"/config/{name}" for name in settings}
    volumes = [
        f"--mount=type=bind,source={source},target={target},readonly"
        for source, target in mounts.items()
    ]
    return [
        program,
        "run",
        "--rm",
        "--init",
        f"--publish={address}:{grpc_port}:8500",
        f"--publish={address}:{rest_port}:8501",
        *volumes,
        f"--env=MODEL_NAME={path.name}",
        image(),
        *_settings(path.parent, Path("/config")),
    ]


def _settings(folder: Path, seen_as: Path) -> list[str]:
    """The flags for the settings in a folder, which the server sees by another name."""
    found = []
    for name, (*switches, flag) in _SETTINGS.items():
        if (folder / name).is_file():
            found += [*switches, f"{flag}={seen_as / name}"]
    return found
