"""The command lines of TensorFlow Serving: run by executables that print what they are given, and by the real ones."""

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import time
import urllib.request

import pytest

from keras_elmo.serving.server.real_server import (
    BINARY,
    binary_command,
    docker_command,
    image,
)

PRINTS_ITS_ARGUMENTS = """#!{python}
import sys
if sys.argv[1:] != ["info"]:
    print(*sys.argv[1:], sep="\\n")
"""


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A folder that alone is on PATH; `programs("docker", script)` puts an executable there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def put(name, script=PRINTS_ITS_ARGUMENTS):
        (folder / name).write_text(script.format(python=sys.executable))
        (folder / name).chmod(stat.S_IRWXU)

    return put


def arguments(command):
    return subprocess.check_output(command, text=True).splitlines()


def test_binary(model_dir, programs):
    programs(BINARY)
    expected = [
        "--port=11",
        "--rest_api_port=22",
        "--model_name=tiny",
        f"--model_base_path={model_dir}",
    ]
    assert arguments(binary_command(model_dir, 22, 11)) == expected
    settings = model_dir.parent
    (settings / "batching.config").write_text("")
    (settings / "monitoring.config").write_text("")
    assert arguments(binary_command(model_dir, 22, 11)) == [
        *expected,
        "--enable_batching",
        f"--batching_parameters_file={settings}/batching.config",
        f"--monitoring_config_file={settings}/monitoring.config",
    ]


def test_docker(model_dir, programs):
    programs("docker")
    (model_dir.parent / "batching.config").write_text("")
    assert arguments(docker_command(model_dir, 22, 11, "127.0.0.1")) == [
        "run",
        "--rm",
        "--init",
        "--publish=127.0.0.1:11:8500",
        "--publish=127.0.0.1:22:8501",
        f"--mount=type=bind,source={model_dir},target=/models/tiny,readonly",
        f"--mount=type=bind,source={model_dir.parent}/batching.config,target=/config/batching.config,readonly",
        "--env=MODEL_NAME=tiny",
        image(),
        "--enable_batching",
        "--batching_parameters_file=/config/batching.config",
    ]
    assert "--publish=[::1]:11:8500" in docker_command(model_dir, 22, 11, "::1")


def test_what_is_missing(model_dir, programs):
    with pytest.raises(
        ValueError, match=f"{BINARY} is not on PATH. Install it .*, or use `--docker`."
    ):
        binary_command(model_dir, 1, 2)
    with pytest.raises(
        ValueError, match=r"docker is not on PATH. Install Docker, or use `--binary`."
    ):
        docker_command(model_dir, 1, 2, "127.0.0.1")
    programs("docker", "#!{python}\nimport sys\nsys.exit('a note\\nno daemon')\n")
    with pytest.raises(
        ValueError, match=r"`docker info` failed \(no daemon\). Start it, or use `--binary`."
    ):
        docker_command(model_dir, 1, 2, "127.0.0.1")


def test_a_docker_that_does_not_answer(model_dir, programs, monkeypatch):
    programs("docker", "#!{python}\nimport time\ntime.sleep(600)\n")
    monkeypatch.setattr("keras_elmo.serving.server.real_server._DOCKER_INFO_SECONDS", 0.1)
    with pytest.raises(ValueError, match=r"`docker info` failed \(no answer in 0.1 seconds\)"):
        docker_command(model_dir, 1, 2, "127.0.0.1")


def test_a_folder_that_cannot_be_served(tmp_path):
    for command in (
        lambda: binary_command(tmp_path, 1, 2),
        lambda: docker_command(tmp_path, 1, 2, ""),
    ):
        with pytest.raises(ValueError, match="has no version folders"):
            command()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def lacks_docker():
    if shutil.which("docker") is None:
        return "docker is not on PATH"
    if subprocess.run(["docker", "info"], capture_output=True, timeout=60).returncode != 0:
        return "`docker info` fails"
    if subprocess.run(["docker", "image", "inspect", image()], capture_output=True).returncode != 0:
        return f"the image {image()} is not here"
    return None


@pytest.mark.parametrize("way", ["binary", "docker"])
def test_the_real_one(model_dir, way):
    if way == "binary" and shutil.which(BINARY) is None:
        pytest.skip(f"{BINARY} is not on PATH")
    if way == "docker" and (reason := lacks_docker()):
        pytest.skip(reason)
    rest_port, grpc_port = free_port(), free_port()
    if way == "binary":
        command = binary_command(model_dir, rest_port, grpc_port)
    else:
        command = docker_command(model_dir, rest_port, grpc_port, "127.0.0.1")
    url = f"http://127.0.0.1:{rest_port}/v1/models/tiny:predict"
    body = json.dumps({"instances": ["a bc"]}).encode()
    with subprocess.Popen(command, env=dict(os.environ)) as process:
        try:
            answer = None
            while answer is None:
                assert process.poll() is None
                try:
                    answer = json.load(urllib.request.urlopen(url, body))
                except OSError:
                    time.sleep(0.5)
        finally:
            process.terminate()
    assert answer["predictions"][0]["default"] == [1.5, 1.0]
