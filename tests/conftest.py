"""What every test session shares; helpers are imported by name: `import reference`."""

import importlib
import logging
import os
import sys
import warnings
from types import SimpleNamespace

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# Imported here, where pytest keeps their start-up lines off the screen and where the warnings of
# other people's modules are not yet turned into errors.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    if os.environ.get("KERAS_BACKEND") == "torch":
        import torch  # noqa: F401  (it has to come before TensorFlow)
    import keras

if keras.backend.backend() == "tensorflow":
    import tensorflow as tf

    # The processor as two devices, for the tests of training on several; all others use the first.
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )


def pytest_addoption(parser):
    parser.addoption("--run-large", action="store_true", help="also run the tests marked large")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--run-large"):
        return
    skip_large = pytest.mark.skip(reason="real sizes: needs --run-large")
    for item in items:
        if "large" in item.keywords:
            item.add_marker(skip_large)


@pytest.fixture(autouse=True)
def seeds():
    keras.utils.set_random_seed(1234)


@pytest.fixture(autouse=True, scope="module")
def _forget_what_jax_compiled():
    yield
    if keras.backend.backend() == "jax":
        importlib.import_module("jax").clear_caches()


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs the command with a line of arguments: its exit code, standard output and standard error."""
    # Not at the top: the layers are tested where TensorFlow is not Keras' backend.
    cli = importlib.import_module("keras_elmo.cli")
    tensorflow_log = logging.getLogger("tensorflow")
    level = tensorflow_log.level

    def run(*args, columns=80):
        monkeypatch.setattr(sys, "argv", ["keras-elmo", *map(str, args)])
        monkeypatch.setenv("COLUMNS", str(columns))
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            cli.run()
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return SimpleNamespace(code=end.value.code or 0, out=out, err=err)

    yield run
    tensorflow_log.setLevel(level)


@pytest.fixture
def refused(command):
    """Runs a line that is a mistake: one line on standard error, exit code 2, nothing on standard output."""

    def run(*args):
        result = command(*args)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith("keras-elmo: ")
        assert result.err.endswith("\n")
        assert result.err.count("\n") == 1
        return result.err

    return run
