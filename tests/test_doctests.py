"""The examples in the docstrings, run."""

import doctest
import importlib
import pkgutil

import keras
import pytest

import keras_elmo

pytestmark = [
    pytest.mark.skipif(
        keras.backend.backend() != "tensorflow",
        reason="the examples print what they print on TensorFlow",
    ),
    # Keras' own saving asks NumPy 2 for its arrays in NumPy 1's way.
    pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy"),
]

MODULES = [
    "keras_elmo",
    *(module.name for module in pkgutil.walk_packages(keras_elmo.__path__, "keras_elmo.")),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
    assert not list(tmp_path.iterdir()), "an example leaves files behind"


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    modules = map(importlib.import_module, MODULES)
    assert sum(bool(test.examples) for module in modules for test in finder.find(module)) > 10
