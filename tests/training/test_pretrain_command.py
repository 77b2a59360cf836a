"""`keras-elmo pretrain` as a user types it."""

import json
import signal
import subprocess
import sys
import time

import pytest
from conftest_training import TINY, state_of

from keras_elmo import cli
from keras_elmo.cli import pretrain as command
from keras_elmo.training import RECIPES, PretrainConfig

CHANGES = {
    name: value
    for name, value in TINY.to_json().items()
    if value != PretrainConfig().to_json()[name] and name != "max_steps"
}


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs the command: its exit code and standard error."""

    def run(*args):
        monkeypatch.setattr(sys, "argv", ["keras-elmo", "pretrain", *map(str, args)])
        with pytest.raises(SystemExit) as end:
            cli.run()
        return end.value.code or 0, " ".join(capsys.readouterr().err.split())

    return run


@pytest.fixture
def settings(tmp_path):
    path = tmp_path / "settings.json"
    path.write_text(json.dumps(CHANGES))
    return path


@pytest.fixture
def given(text, settings):
    """What every new run is given."""
    files = {"corpus": text / "train.txt", "vocabulary": text / "vocab.txt", "config": settings}
    return [part for name, value in files.items() for part in (f"--{name}", value)]


def test_a_run_and_on_with_it(run, given, text, tmp_path):
    output = tmp_path / "run"
    code, said = run(*given, "-o", output, "--max-steps", 4, "--validation", text / "valid.txt")
    assert code == 0
    assert (
        "Recipe default: 3 rows of 4, 6 negatives, dropout 0.2, clip 1.0; network by adam" in said
    )
    assert "Step 4: perplexity on validation text" in said
    assert "Trained to step 4, 0 whole epochs. Best: step 4, perplexity" in said
    assert f"--model {output}" in said
    code, said = run("--output", output, "--resume", "--max-steps", 6, "--keep", 1)
    assert code == 0
    assert "Going on from step 4." in said
    assert state_of(output / "checkpoints" / "6")[1]["step"] == 6
    code, said = run("--output", output, "--resume", "--seed", 9)
    assert code == 2
    assert "`seed` must be that of the run, 3: a run that goes on may change only" in said


def test_control_c_and_on_with_it(given, text, tmp_path, straight):
    output = tmp_path / "run"
    arguments = [*given, "--output", output, "--max-steps", 100_000]
    call = [sys.executable, "-m", "_keras_elmo_command", "pretrain", *map(str, arguments)]
    process = subprocess.Popen(call, stderr=subprocess.PIPE, text=True)
    log = output / "log.jsonl"
    for _ in range(600):
        if process.poll() is not None or (log.exists() and len(log.read_text().split("\n")) > 4):
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert f"Go on with: keras-elmo pretrain --resume --output {output}" in said


def test_flags_override_the_file_and_that_the_recipe(text, settings):
    file = {"batch_size": 7, "clip_norm": 5.0}
    settings.write_text(json.dumps(file))
    config = command._settings(None, "bilm-tf", "small", None, None, settings)
    expected = RECIPES["bilm-tf"](PretrainConfig()).changed(
        **file, units=1024, projection_dim=128, num_highway_layers=1, filters=config.filters
    )
    assert config == expected
    assert len(config.filters) == 7
    settings.write_text(json.dumps({"config": config.to_json(), "num_predictions": 1}))
    assert command._settings(None, None, None, None, None, settings) == config


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--max-steps", 1, "--epochs", 1], "Give `--max-steps` or `--epochs`, not both."),
        ([], "`--corpus` and `--vocabulary` must be given to begin a run."),
        (["--resume"], "/run must be the folder of a pre-training run to go on with"),
        (["--resume", "--from", "M"], "`--from` and `--new-vocabulary` begin a run"),
        (["--resume", "--new-vocabulary"], "`--from` and `--new-vocabulary` begin a run"),
    ],
)
def test_mistakes(run, tmp_path, arguments, sentence):
    code, said = run("--output", tmp_path / "run", *arguments)
    assert code == 2
    assert sentence in said
    assert not (tmp_path / "run").exists()


def test_a_model_brings_its_architecture(run, given, straight, tmp_path):
    arguments = ["--from", straight, "--architecture", "tiny"]
    code, said = run(*given, "--output", tmp_path / "run", *arguments)
    assert code == 2
    assert "`--from` brings the architecture" in said


def test_a_wrong_file_of_settings(run, given, settings, tmp_path):
    settings.write_text('{"units": -1}')
    code, said = run(*given, "--output", tmp_path / "run")
    assert code == 2
    assert f"{settings}: `units` must be an integer of at least 1. Received: units=-1" in said


def test_standard_input_is_no_corpus(run, given, tmp_path):
    code, said = run("--corpus", "-", *given[2:], "--output", tmp_path / "run")
    assert code == 2
    assert "read more than once" in said


def test_a_vocabulary_that_is_not_there(run, given, tmp_path):
    files = [*given[:2], "--vocabulary", tmp_path / "no.txt", *given[4:]]
    code, said = run(*files, "--output", tmp_path / "run")
    assert code == 2
    assert said.endswith(f"keras-elmo: {tmp_path}/no.txt: No such file or directory")


def test_a_pattern_without_files(run, given, text, tmp_path):
    code, said = run("--corpus", text / "no*.txt", *given[2:], "--output", tmp_path / "run")
    assert code == 2
    assert "which matches none" in said
