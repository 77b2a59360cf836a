"""What every test session shares; helpers are imported by name: `import reference`."""

import importlib
import os
import warnings

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# Imported here, where pytest keeps their start-up lines off the screen and where the warnings of
# other people's modules are not yet turned into errors.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    if os.environ.get("KERAS_BACKEND") == "torch":
        import torch  # noqa: F401  (it has to come before TensorFlow)
    import keras


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
