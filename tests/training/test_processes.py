"""Training by several processes on loopback: in step, alive and dead."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest_training import TINY, assert_same_state
from ports import free_ports
from test_replicas import losses

CONFIG = TINY.changed(
    batch_size=4, dropout=0.0, max_steps=300, save_every=40, validate_every=100, keep_checkpoints=3
)
WAITING = "Waiting for all other processes of the run.\n"
# What the run is stopped by, and in which process.
STOPS = [(signal.SIGKILL, 0), (signal.SIGKILL, 1), (signal.SIGTERM, 1)]


def start(text, output, *arguments, of_second=()):
    """Two processes of one run."""
    (output.parent / "config.json").write_text(json.dumps(CONFIG.to_json()))
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    workers = []
    # What the tests themselves want to hear of TensorFlow is not what the command's users hear.
    environment = {name: v for name, v in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    for index in range(2):
        cluster = {
            "cluster": {"worker": addresses},
            "task": {"type": "worker", "index": index},
        }
        command = [sys.executable, "-m", "_keras_elmo_command", "pretrain"]
        command += ["--strategy", "multiworker", "--output", str(output), *map(str, arguments)]
        command += [*of_second] * index
        workers.append(
            subprocess.Popen(
                command,
                env=environment | {"TF_CONFIG": json.dumps(cluster)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    return workers


def begun(text, output, **more):
    return start(
        text,
        output,
        *("--corpus", text / "train.txt"),
        *("--vocabulary", text / "vocab.txt"),
        *("--validation", text / "valid.txt"),
        *("--config", output.parent / "config.json"),
        **more,
    )


def ends(workers, timeout=120):
    """Exit codes and what was said, of processes that end by themselves."""
    try:
        said = [worker.communicate(timeout=timeout) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    assert not any(out for out, _ in said)
    return [worker.returncode for worker in workers], [err for _, err in said]


@pytest.fixture(scope="module")
def undisturbed(text, tmp_path_factory):
    output = tmp_path_factory.mktemp("processes") / "run"
    codes, (chief, other) = ends(begun(text, output), timeout=300)
    assert codes == [0, 0], chief + other
    assert "4 rows of 4 on 2 devices" in chief
    assert "Trained to step 300" in chief
    assert other == WAITING
    return output


def test_twenty_steps_are_those_of_one_process(undisturbed, train, text, tmp_path):
    train(tmp_path / "run", CONFIG.changed(validate_every=None))
    one, several = losses(tmp_path / "run"), losses(undisturbed)
    assert len(several) == len(one) == 300
    np.testing.assert_allclose(several[:20], one[:20], atol=1e-5)


@pytest.mark.parametrize(("number", "victim"), STOPS)
def test_a_run_that_was_stopped_goes_on_exactly(number, victim, undisturbed, text, tmp_path):
    output = tmp_path / "run"
    workers = begun(text, output)
    log = output / "log.jsonl"
    step = random.Random(number + victim).randrange(50, 250)
    deadline = time.monotonic() + 120
    while not log.exists() or log.read_bytes().count(b"\n") < step:
        assert time.monotonic() < deadline
        assert all(worker.poll() is None for worker in workers)
        time.sleep(0.01)
    workers[victim].send_signal(number)
    codes, said = ends(workers)
    if number == signal.SIGTERM:
        assert codes == [128 + number] * 2
        assert "Stopping: writing the checkpoint of step" in said[0]
        assert said[1] == WAITING
    else:
        assert codes[victim] == -number
        assert codes[1 - victim] == 2
        assert "Another process of the run has ended, or cannot be reached" in said[1 - victim]
        assert "Traceback" not in said[1 - victim]
    codes, said = ends(start(text, output, "--resume"))
    assert codes == [0, 0], said
    assert_same_state(output / "checkpoints" / "300", undisturbed / "checkpoints" / "300")
    entries, others = (
        [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
        for run in (output, undisturbed)
    )
    for entry in entries + others:
        entry.pop("tokens_per_second", None)
    assert entries == others


def test_one_process_goes_on_with_the_run_of_two(undisturbed, tmp_path):
    from keras_elmo.training import resume

    output = shutil.copytree(undisturbed, tmp_path / "run")
    shutil.rmtree(output / "checkpoints" / "300")
    assert resume(output).step == 300
    np.testing.assert_allclose(losses(output)[280:], losses(undisturbed)[280:], atol=1e-4)


def test_processes_that_do_not_agree(text, tmp_path):
    """Also where models of another shape would be made."""
    words = (text / "vocab.txt").read_text("utf-8")
    (tmp_path / "more.txt").write_text(words + "more\n", "utf-8")
    more = ["--vocabulary", str(tmp_path / "more.txt")]
    codes, said = ends(begun(text, tmp_path / "run", of_second=more))
    assert codes == [2, 2]
    for err in said:
        assert "All processes of a run must have the same configuration, vocabulary and text" in err
    assert not (tmp_path / "run").exists()


def test_what_fails_in_the_first_fails_in_all(text, tmp_path):
    """The folder is in use already: none of them may think that all is well."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").touch()
    codes, said = ends(begun(text, tmp_path / "run"))
    assert codes == [2, 2]
    assert "exists already. Give another folder." in said[0]
    assert "The first process of the run failed: it says why." in said[1]


def test_ctrl_c_while_waiting_for_the_others(text, tmp_path):
    first, second = begun(text, tmp_path / "run")
    second.kill()
    second.communicate()
    assert first.stderr.readline() == WAITING
    time.sleep(3)
    first.send_signal(signal.SIGINT)
    assert ends([first], timeout=30)[0] == [-signal.SIGINT]
