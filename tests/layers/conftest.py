"""Of other people's warnings one has to be let through here."""

from pathlib import Path

import pytest

# Keras 3.15 turns its variables into arrays (in `get_weights` and when it saves) in a way that
# NumPy 2.4 deprecates.
KERAS_VARIABLES = "ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings(KERAS_VARIABLES))
