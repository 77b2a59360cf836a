"""Fixtures of the tests of serving; the model that is served is imported by name: `import tiny_model`."""

import shutil

import keras
import pytest

if keras.backend.backend() != "tensorflow":
    collect_ignore_glob = ["*"]
else:
    import tiny_model

    from keras_elmo.serving.server import LocalServer


@pytest.fixture(scope="session")
def saved_model(tmp_path_factory):
    """A SavedModel whose vectors have the scale 1."""
    return tiny_model.save(tmp_path_factory.mktemp("saved") / "model")


@pytest.fixture(scope="session")
def other_model(tmp_path_factory):
    """One whose vectors have the scale 2."""
    return tiny_model.save(tmp_path_factory.mktemp("saved") / "other", scale=2.0)


@pytest.fixture
def model_dir(tmp_path, saved_model):
    """A folder `tiny` with version 1."""
    shutil.copytree(saved_model, tmp_path / "tiny" / "1")
    return tmp_path / "tiny"


@pytest.fixture(scope="module")
def server(tmp_path_factory, saved_model):
    """A server for a model `tiny` with version 1, which nothing changes."""
    model_dir = tmp_path_factory.mktemp("served") / "tiny"
    shutil.copytree(saved_model, model_dir / "1")
    with LocalServer(model_dir, 0, 0, max_request_bytes=100_000) as server:
        yield server
