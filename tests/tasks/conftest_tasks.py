"""Small models with random weights, and a task that the words themselves decide."""

import keras
import numpy as np

from keras_elmo import BidirectionalLanguageModel, ElmoModel

WORDS = ["the", "cat", "dog", "sat", "ran", "good", "bad", "film", ".", "a"]
GOOD = ["a good film .", "the good cat sat .", "good", "a good dog ran"]
BAD = ["a bad film .", "the bad cat ran .", "bad", "a bad dog sat"]


def make_elmo(**arguments):
    """An `ElmoModel` with random weights, also where they begin as zeros."""
    model = ElmoModel(
        **{
            "units": 8,
            "projection_dim": 4,
            "embedding_dim": 4,
            "filters": [[1, 4], [2, 4]],
            "num_highway_layers": 1,
            **arguments,
        }
    )
    random = np.random.default_rng(1)
    for variable in (*model.encoder.variables, *model.bilm.variables):
        variable.assign(random.normal(0, 0.5, variable.shape))
    return model


def make_language_model(**arguments):
    model = BidirectionalLanguageModel(
        make_elmo(trainable_bilm=True, **arguments), ["<S>", "</S>", "<UNK>", *WORDS]
    )
    random = np.random.default_rng(2)
    for variable in model.softmax.variables:
        variable.assign(random.normal(0, 0.5, variable.shape))
    return model


def values(variables):
    """What variables hold, by their paths."""
    return {variable.path: keras.ops.convert_to_numpy(variable).copy() for variable in variables}


def moved(before, variables):
    """The paths of the variables that have changed."""
    return {
        path for path, value in values(variables).items() if not np.array_equal(before[path], value)
    }
