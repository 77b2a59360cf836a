"""What the tests of the examples share."""

import importlib
import json

import pytest


@pytest.fixture
def smoke(capsys):
    """Runs an example on its own few sentences: what it reports, which is all that it prints on standard output."""

    def run(name):
        returned = importlib.import_module(name).main(["--smoke"])
        [line] = capsys.readouterr().out.splitlines()
        assert json.loads(line) == returned
        return returned

    return run
