import json
import sys

import pytest

from keras_elmo.extras import require


def test_a_module_that_is_there():
    assert require("json", "plot") is json
    assert require("xml.dom", "plot") is sys.modules["xml.dom"]


@pytest.mark.parametrize("module", ["no_such_module", "no_such_module.inner"])
def test_a_module_that_is_missing(module):
    with pytest.raises(
        ModuleNotFoundError,
        match=r"no_such_module is not installed. Install it with: pip install no_such_module",
    ) as error:
        require(module, "plot")
    assert error.value.name == "no_such_module"


def test_a_module_that_lacks_something_itself(tmp_path, monkeypatch):
    (tmp_path / "broken_module.py").write_text("import what_it_needs")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="No module named 'what_it_needs'"):
        require("broken_module", "plot")
