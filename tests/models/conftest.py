"""The oracle's random models, loaded into the package."""

import json

import pytest
import reference
from test_reference import VARIANTS, VOCABULARY

from keras_elmo.checkpoints import load_checkpoint


@pytest.fixture(scope="session")
def load(tmp_path_factory):
    """`load(name or options, seed=1, **overrides)` -> (options, the oracle's weights, a new model)."""
    written = {}

    def load(variant="plain", seed=1, **overrides):
        options = VARIANTS[variant] if isinstance(variant, str) else variant
        key = json.dumps([options, seed])
        if key not in written:
            weights = reference.random_model(options, seed)
            folder = tmp_path_factory.mktemp("model")
            is_of_words = "char_cnn" not in options
            reference.write_model(folder, options, weights, VOCABULARY if is_of_words else None)
            written[key] = folder, weights
        folder, weights = written[key]
        return options, weights, load_checkpoint(folder, **overrides).model

    return load


@pytest.fixture(scope="session")
def plain(load):
    """The plain variant: (options, the oracle's weights, the model). Not to be changed."""
    return load()
