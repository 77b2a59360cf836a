"""`keras-elmo demo` as a user types it."""

import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import urllib.request

import keras
import pytest

from keras_elmo import ElmoEmbedding, ElmoModel, TextClassifier
from keras_elmo.export import LanguageModelServer


@pytest.fixture
def weights(tmp_path):
    """The folder of a small model without a language model."""
    keras.utils.set_random_seed(1)
    folder = tmp_path / "2024"
    ElmoModel(8, 4, filters=[[1, 4]], num_highway_layers=0).save_to_preset(folder)
    return folder


@pytest.fixture
def start(weights, tmp_path):
    """Starts the command, with a browser that writes down what it is to open."""
    (tmp_path / "temporary").mkdir()
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    browser.chmod(stat.S_IRWXU)
    environment = {**os.environ, "BROWSER": f"{browser} %s", "TMPDIR": str(tmp_path / "temporary")}
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    command = [sys.executable, "-m", "_keras_elmo_command", "demo", "--model", str(weights)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stderr.readline().startswith(f"Preparing {weights}: ")
            yield process
        finally:
            process.kill()


def test_it_opens_the_page_and_leaves_nothing_behind(start, tmp_path):
    address = start.stderr.readline().removeprefix("Page  ").strip()
    assert address.startswith("http://127.0.0.1:")
    assert start.stderr.readline() == "Ctrl-C ends it.\n"
    with urllib.request.urlopen(f"{address}page/model.json", timeout=120) as answer:
        about = json.load(answer)
    # A name that a server takes: one of digits alone would be a version.
    assert about["name"] == "model_2024"
    assert "tokens" in about["description"]["signatures"]
    assert "substitutes" not in about["description"]["signatures"]
    assert list((tmp_path / "temporary").glob("keras_elmo_*")) == []
    start.send_signal(signal.SIGINT)
    assert start.communicate(timeout=300)[1] == ""
    assert start.returncode == 0
    assert (tmp_path / "opened").read_text().strip() == address


def test_it_is_stopped_before_the_model_is_ready(start, tmp_path):
    assert len(list((tmp_path / "temporary").glob("keras_elmo_*"))) == 1
    start.send_signal(signal.SIGINT)
    assert start.communicate(timeout=300)[1] == ""
    assert start.returncode == 130
    assert list((tmp_path / "temporary").glob("keras_elmo_*")) == []


@pytest.fixture
def demo(command, monkeypatch, saved_model):
    """Runs the command on a model that is exported already; tells what it wanted to export, too."""
    exported = []

    def export(model, folder, metadata):
        exported.append(model)
        shutil.copytree(saved_model, folder / "1")

    monkeypatch.setattr("keras_elmo.cli.demo.export_saved_model", export)
    monkeypatch.setattr("keras_elmo.serving.server.LocalServer.wait", lambda server: None)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield lambda *arguments: (command("demo", *arguments), *exported)
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_without_a_browser(demo, weights, monkeypatch):
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    result, model = demo("--model", weights)
    assert result.code == 0
    assert "keras-elmo: no browser was found here: open http://127.0.0.1:" in result.err
    assert isinstance(model, ElmoEmbedding)


def test_all_that_a_model_can_is_served(demo, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    result, model = demo("--no-browser")
    assert result.code == 0
    assert opened == []
    assert isinstance(model, LanguageModelServer)


def test_a_head(demo, tmp_path):
    elmo = ElmoModel(8, 4, filters=[[1, 4]], num_highway_layers=0)
    TextClassifier(elmo, ["bad", "good"]).save(tmp_path / "my films.keras")
    result, model = demo("--model", tmp_path / "my films.keras", "--no-browser")
    assert result.code == 0
    assert model.labels == ["bad", "good"]


def test_what_is_no_model(refused, tmp_path):
    assert "nowhere" in refused("demo", "--model", tmp_path / "nowhere")
    assert "must be a Keras model's file" in refused("demo", "--model", tmp_path / "nowhere.keras")
