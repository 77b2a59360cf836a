"""The scripts for several devices: they run here, or what they would run is looked at."""

import json
import os
import subprocess
import sys
from pathlib import Path

import paths
import pytest
import yaml
from ports import free_ports

from keras_elmo.training.strategies import make_strategy

FOLDER = paths.DATA.parents[1] / "examples" / "several_devices"


@pytest.fixture
def text(tmp_path):
    lines = ["the cat sat on the mat .", "a dog ran ."] * 20
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n")
    words = sorted({word for line in lines for word in line.split()})
    (tmp_path / "vocab.txt").write_text("\n".join(["<S>", "</S>", "<UNK>", *words]) + "\n")
    config = {"units": 6, "projection_dim": 4, "embedding_dim": 3, "filters": [[1, 3]]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    return tmp_path


ARGUMENTS = (
    "--corpus text.txt --vocabulary vocab.txt --output run --config config.json --batch-size 2 --unroll-steps 5"
).split()


def environment(**more):
    scripts = os.path.dirname(sys.executable)
    kept = {name: v for name, v in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    return kept | {"PATH": scripts + os.pathsep + os.environ["PATH"]} | more


def started(script, *arguments, cwd, **more):
    return subprocess.Popen(
        ["bash", FOLDER / script, *arguments],
        cwd=cwd,
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_gpus(text):
    """On the processor, one device; the second call goes on."""
    for steps, said in (("2", "Trained to step 2,"), ("4", "Going on from step 2.")):
        process = started("gpus.sh", *ARGUMENTS, "--max-steps", steps, cwd=text)
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert said in err


def test_machines(text):
    """Two processes on loopback. One fails at first and is started again by the script, as are both."""
    addresses = ",".join(f"127.0.0.1:{port}" for port in free_ports(2))
    stub = text / "bin" / "keras-elmo"
    stub.parent.mkdir()
    real = Path(sys.executable).parent / "keras-elmo"
    stub.write_text(
        f'#!/bin/bash\nif [ ! -e failed ]; then touch failed; exit 7; fi\nexec {real} "$@"\n'
    )
    stub.chmod(0o755)
    arguments = [addresses, *ARGUMENTS, "--max-steps", "3"]
    first = started("machines.sh", "0", *arguments, cwd=text)
    path = f"{stub.parent}{os.pathsep}{environment()['PATH']}"
    second = started("machines.sh", "1", *arguments, cwd=text, PATH=path)
    (_, chief), (_, other) = (process.communicate(timeout=240) for process in (first, second))
    assert (first.returncode, second.returncode) == (0, 0), chief + other
    assert "Attempt 0 ended with status 7." in other
    assert "2 rows of 5 on 2 devices" in chief
    assert "Trained to step 3," in chief


def test_kubernetes(tmp_path):
    """What the pods would call, and that all numbers of pods and all names are the same."""
    service, job = yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text())
    template = job["spec"]["template"]["spec"]
    [container] = template["containers"]
    [pods] = [entry["value"] for entry in container["env"]]
    assert job["spec"]["completions"] == job["spec"]["parallelism"] == int(pods)
    assert service["metadata"]["name"] == template["subdomain"] == job["metadata"]["name"]
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
    assert container["volumeMounts"][0]["name"] == template["volumes"][0]["name"]
    stub = tmp_path / "keras-elmo"
    stub.write_text('#!/bin/bash\necho "$TF_CONFIG"\nprintf "%s " "$@" >&2\n')
    stub.chmod(0o755)
    done = subprocess.run(
        [*container["command"], *container["args"]],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", "PODS": pods, "JOB_COMPLETION_INDEX": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == {
        "cluster": {"worker": ["elmo-0.elmo:9000", "elmo-1.elmo:9000"]},
        "task": {"type": "worker", "index": 1},
    }
    assert container["ports"][0]["containerPort"] == 9000
    assert done.stderr.startswith(
        "pretrain --strategy multiworker --or-resume --corpus /elmo/text/"
    )


def test_slurm(tmp_path):
    """What the job calls, and that it is queued again unless the run is at its end."""
    calls = tmp_path / "calls"
    for name, status in (("srun", "$STATUS"), ("scontrol", "0")):
        stub = tmp_path / name
        stub.write_text(f'#!/bin/bash\necho {name} "$@" >> {calls}\nexit {status}\n')
        stub.chmod(0o755)
    for status in (0, 143):
        calls.unlink(missing_ok=True)
        done = subprocess.run(
            ["bash", FOLDER / "slurm.sbatch", "--output", "run"],
            env={
                "PATH": f"{tmp_path}:{os.environ['PATH']}",
                "STATUS": str(status),
                "SLURM_JOB_ID": "8",
            },
        )
        assert done.returncode == status
        called = calls.read_text().splitlines()
        assert called[0] == (
            "srun --kill-on-bad-exit=1 keras-elmo pretrain --strategy multiworker --or-resume --batch-size 1024 "
            "--output run"
        )
        assert called[1:] == (["scontrol requeue 8"] if status else [])


# === Clusters ===


@pytest.fixture
def no_cluster(monkeypatch):
    for name in list(os.environ):
        if name == "TF_CONFIG" or name.startswith("SLURM_"):
            monkeypatch.delenv(name)
    return monkeypatch


def test_slurms_variables(no_cluster):
    """As `srun` sets them on two machines without GPUs, the second with two tasks."""
    from keras_elmo.training.strategies import _slurm_cluster

    for name, value in {
        "PROCID": "2",
        "STEP_NUM_TASKS": "3",
        "STEP_NODELIST": "node[1-2]",
        "STEP_TASKS_PER_NODE": "1,2",
    }.items():
        no_cluster.setenv(f"SLURM_{name}", value)
    no_cluster.setenv("PATH", "/nowhere")
    resolver = _slurm_cluster()
    assert resolver.cluster_spec().as_dict() == {
        "worker": ["node1:8888", "node2:8888", "node2:8889"]
    }
    assert (resolver.task_type, resolver.task_id) == ("worker", 2)
    no_cluster.delenv("SLURM_STEP_NODELIST")
    with pytest.raises(ValueError, match="Slurm's environment variables must describe the job's t"):
        make_strategy("multiworker")


@pytest.mark.parametrize(
    "config",
    [
        "nothing",
        "[]",
        '{"cluster": {"worker": ["a:1"]}}',
        '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}',
        '{"cluster": {"worker": ["a:1"], "ps": ["b:1"]}, "task": {"type": "worker", "index": 0}}',
        '{"cluster": {"worker": ["a:1"]}, "task": {"type": "chief", "index": 0}}',
    ],
)
def test_a_cluster_that_is_none(no_cluster, config):
    no_cluster.setenv("TF_CONFIG", config)
    with pytest.raises(ValueError, match="TF_CONFIG must be JSON as .* Received: TF_CONFIG="):
        make_strategy("multiworker")


def test_no_cluster(no_cluster):
    with pytest.raises(ValueError, match="needs a cluster: in the environment variable TF_CONFIG"):
        make_strategy("multiworker")
    with pytest.raises(ValueError, match="`strategy` must be one of single, mirrored, multiworker"):
        make_strategy("tpu")
