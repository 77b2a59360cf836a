"""The examples in the docstrings of the corpus."""

import doctest
import importlib
import pkgutil

import pytest

import keras_elmo.corpus

MODULES = [module.name for module in pkgutil.iter_modules(keras_elmo.corpus.__path__)]
WITHOUT_EXAMPLE = {"batch", "checks"}


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    result = doctest.testmod(importlib.import_module(f"keras_elmo.corpus.{name}"))
    assert result.failed == 0, "see the captured output"
    assert bool(result.attempted) == (name not in WITHOUT_EXAMPLE)
