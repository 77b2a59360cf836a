"""The folder `saved_models/`: what it tells a server is what a server understands, and what it shows works."""

import json
import re
import shlex
import subprocess
from importlib.metadata import version
from pathlib import Path

import model_servers
import numpy as np
import pytest
import requests
import served_core
import yaml
from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from keras_elmo.serving import ElmoClient

FOLDER = Path(__file__).parents[1] / "saved_models"
README = (FOLDER / "README.md").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))["services"]["elmo"]
DEPLOYMENT, *SERVICES = yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text(encoding="utf-8"))
POD = DEPLOYMENT["spec"]["template"]
CONTAINER = POD["spec"]["containers"][0]

# tensorflow_serving/model_servers/main.cc: those that are used or named here.
FLAGS = {
    "allow_version_labels_for_unavailable_models",
    "batching_parameters_file",
    "enable_batching",
    "enable_model_warmup",
    "grpc_max_threads",
    "load_retry_interval_micros",
    "max_num_load_retries",
    "model_config_file",
    "model_config_file_poll_wait_seconds",
    "monitoring_config_file",
    "rest_api_num_threads",
    "rest_api_timeout_in_ms",
    "ssl_config_file",
    "tensorflow_inter_op_parallelism",
    "tensorflow_intra_op_parallelism",
    "version",
}
# Messages that tensorflow-serving-api does not have. BatchingParameters is of
# tensorflow_serving/servables/tensorflow/session_bundle_config.proto: there, numbers are wrapped as `{ value: 1 }`.
BATCHING = {
    "max_batch_size",
    "batch_timeout_micros",
    "max_enqueued_batches",
    "num_batch_threads",
    "thread_pool_name",
    "allowed_batch_sizes",
    "pad_variable_length_inputs",
}
# PrometheusConfig, of tensorflow_serving/config/monitoring_config.proto.
PROMETHEUS = {"enable", "path"}


def without_comments(name):
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return "\n".join(line.partition("#")[0] for line in lines)


def batching():
    content = without_comments("batching.config")
    wrapped = re.findall(r"^(\w+) \{ value: (\d+) \}$", content, re.MULTILINE)
    plain = re.findall(r"^(\w+): (\w+)$", content, re.MULTILINE)
    assert len(wrapped) + len(plain) == len(content.split("\n")) - content.split("\n").count("")
    return {name: int(value) for name, value in wrapped} | dict(plain)


def flags(args):
    return dict(arg.removeprefix("--").split("=", 1) for arg in args)


# --- the configuration ---


def test_models():
    config = text_format.Parse(
        (FOLDER / "models.config").read_text(encoding="utf-8"), ModelServerConfig()
    )
    (model,) = config.model_config_list.config
    assert model.name == Path(model.base_path).name == "elmo"
    assert model.model_platform == "tensorflow"
    versions = set(model.model_version_policy.specific.versions)
    assert set(model.version_labels) == {"stable", "canary"}
    assert set(model.version_labels.values()) <= versions


def test_batching():
    values = batching()
    assert set(values) <= BATCHING
    assert values["pad_variable_length_inputs"] == "true"
    # A request with more sentences than that is refused.
    with ElmoClient("http://localhost:8501") as client:
        assert values["max_batch_size"] >= client._batch_size


def test_monitoring():
    content = without_comments("monitoring.config").strip()
    block = re.fullmatch(r"prometheus_config \{\n((?:  .*\n)*)\}", content)
    fields = dict(line.strip().split(": ") for line in block[1].splitlines())
    assert set(fields) == PROMETHEUS
    assert fields["enable"] == "true"
    path = json.loads(fields["path"])
    assert POD["metadata"]["annotations"]["prometheus.io/path"] == path
    assert path in README


@pytest.mark.parametrize(
    "args", [COMPOSE["command"], CONTAINER["args"]], ids=["compose", "kubernetes"]
)
def test_flags(args):
    values = flags(args)
    assert set(values) <= FLAGS
    for name, value in values.items():
        if name.endswith("_file"):
            assert (FOLDER / Path(value).name).is_file()
    waiting = 2 * batching()["max_batch_size"]
    assert int(values["grpc_max_threads"]) == int(values["rest_api_num_threads"]) == waiting


def test_flags_are_the_same_everywhere():
    compose, kubernetes = flags(COMPOSE["command"]), flags(CONTAINER["args"])
    assert {
        name: value.replace("/models/", "/config/") for name, value in compose.items()
    } == kubernetes
    assert set(re.findall(r"--([a-z]+(?:_[a-z]+)+)", README)) <= FLAGS


def test_image_is_that_of_the_installed_tensorflow():
    texts = (README, COMPOSE["image"], CONTAINER["image"])
    tags = {
        tag for text in texts for tag in re.findall(r"tensorflow/serving:(\S+?)[`\s]", text + " ")
    }
    assert tags == {f"{'.'.join(version('tensorflow-serving-api').split('.')[:2])}.0"}


def test_compose():
    assert COMPOSE["volumes"] == [".:/models:ro"]
    assert all(port.startswith("127.0.0.1:") for port in COMPOSE["ports"])
    limits = COMPOSE["deploy"]["resources"]["limits"]
    values = flags(COMPOSE["command"])
    assert (
        limits["cpus"]
        == values["tensorflow_intra_op_parallelism"]
        == values["tensorflow_inter_op_parallelism"]
    )
    assert int(limits["cpus"]) == batching()["num_batch_threads"]


def test_kubernetes():
    labels = POD["metadata"]["labels"]
    assert DEPLOYMENT["spec"]["selector"]["matchLabels"] == labels
    ports = {port["name"]: port["containerPort"] for port in CONTAINER["ports"]}
    assert ports == {"grpc": 8500, "rest": 8501}
    for service in SERVICES:
        assert service["spec"]["selector"] == labels
        for port in service["spec"]["ports"]:
            assert ports[port["targetPort"]] == port["port"]
    assert {volume["name"] for volume in POD["spec"]["volumes"]} == {
        mount["name"] for mount in CONTAINER["volumeMounts"]
    }
    for probe in ("startupProbe", "readinessProbe"):
        assert CONTAINER[probe]["httpGet"] == {"path": "/v1/models/elmo/metadata", "port": "rest"}
    assert CONTAINER["resources"]["limits"]["cpu"] == str(batching()["num_batch_threads"])
    assert set(flags(CONTAINER["args"])["model_config_file"].split("/")[1:2]) == {"config"}
    for name in re.findall(r"--from-file=saved_models/(\S+)", README):
        assert (FOLDER / name).is_file()


# --- the health check ---


def check_health(port):
    """Compose reads `$$` as `$`."""
    program, *args, script = COMPOSE["healthcheck"]["test"][1:]
    assert "/127.0.0.1/8501" in script
    script = script.replace("$$", "$").replace("/127.0.0.1/8501", f"/127.0.0.1/{port}")
    return subprocess.run([program, *args, script], capture_output=True).returncode


def test_health_check_asks_whether_a_version_is_loaded():
    core = served_core.Core()
    with model_servers.rest_server(core) as port:
        assert check_health(port) == 0
        core.is_loaded = False
        # The status would not tell.
        assert requests.get(f"http://127.0.0.1:{port}/v1/models/elmo").status_code == 200
        assert check_health(port) != 0
    assert check_health(port) != 0


# --- what the README shows ---


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def ports():
    core = served_core.Core()
    with model_servers.grpc_server(core) as grpc_port, model_servers.rest_server(core) as rest_port:
        yield {
            "localhost:8500": f"127.0.0.1:{grpc_port}",
            "localhost:8501": f"127.0.0.1:{rest_port}",
        }


def at(ports, text):
    for shown, real in ports.items():
        text = text.replace(shown, real)
    return text


def test_python_of_the_readme(ports, tmp_path, monkeypatch, capsys):
    import tensorflow as tf

    monkeypatch.chdir(tmp_path)
    tf.saved_model.save(tf.Module(), "saved_models/elmo/1")
    for block in blocks("python"):
        exec(compile(at(ports, block), "README.md", "exec"), {})
    out = capsys.readouterr().out.splitlines()
    assert out[:4] == [tf.__version__, "(6, 3)", "(1, 3)", "(2, 3)"]
    assert out[-3].startswith("INVALID_ARGUMENT INVALID_ARGUMENT: the signature")
    assert out[-2:] == ["(6, 3)", "(1, 3)"]


def test_curl_of_the_readme(ports):
    commands = [line for block in blocks("bash") for line in block.splitlines() if "curl" in line]
    answers = []
    for command in commands:
        curl, silent, url, *data = shlex.split(at(ports, command))
        assert (curl, silent, data[:1]) in (("curl", "-s", []), ("curl", "-s", ["-d"]))
        answer = requests.request(
            "POST" if data else "GET", f"http://{url}", data=data[1] if data else None
        )
        assert answer.status_code == 200, answer.text
        answers.append(answer.json())
    status, metadata, rows, columns, tokens = answers
    assert status["model_version_status"][0]["state"] == "AVAILABLE"
    assert "tokens" in metadata["metadata"]["signature_def"]["signature_def"]
    assert (
        [row["sequence_len"] for row in rows["predictions"]]
        == columns["outputs"]["sequence_len"]
        == [6, 1]
    )
    assert np.shape(tokens["outputs"]["elmo"]) == (2, 2, 3)


def test_files_of_the_readme():
    for name in re.findall(r"^\| `(\S+)` \|", README, re.MULTILINE):
        assert (FOLDER / name).is_file()
