"""Fixtures of the tests of heads; the other half is imported by name: `import conftest_tasks`."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from conftest_tasks import BAD, GOOD, make_elmo, make_language_model


@pytest.fixture
def elmo():
    return make_elmo()


@pytest.fixture
def language_model():
    return make_language_model()


@pytest.fixture
def reviews():
    """Texts and labels."""
    return [*GOOD, *BAD], ["good"] * len(GOOD) + ["bad"] * len(BAD)
