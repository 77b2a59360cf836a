"""ElmoModel on disk: `.keras` and weights files, alone and inside a user's model, here and in another process."""

import json
import os
import subprocess
import sys

import keras
import numpy as np
import pytest
from harness import close, to_numpy

import keras_elmo
from keras_elmo import ElmoModel

# Keras saves TensorFlow's variables through a call that NumPy 2 warns about.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

IDS = keras_elmo.character_ids(["The bank is near the river", "Hello", "", "so close"])


def outputs_of(model):
    return {name: to_numpy(value) for name, value in model(IDS).items()}


def assert_same(actual, expected):
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(actual[name], value, err_msg=name)


def users_model(model):
    ids = keras.Input((None, 50), dtype="int32", name="ids")
    x = keras.layers.Dense(3, activation="tanh", name="dense")(model(ids)["elmo"])
    x = keras_elmo.SentenceMean(name="pool")(x)
    outer = keras.Model(ids, keras.layers.Dense(1, name="head")(x))
    outer.compile(keras.optimizers.Adam(0.1), "mse")
    return outer


FRESH = """
import keras_elmo  # first: it must be all that is needed
import keras, numpy as np
ids = np.load("ids.npy")
numpy = keras.ops.convert_to_numpy
outputs = keras.saving.load_model("bare.keras")(ids)
arrays = {f"bare/{name}": numpy(value) for name, value in outputs.items()}
outer = keras.saving.load_model("outer.keras")
arrays["outer"] = numpy(outer(ids))
arrays["predicted"] = outer.predict(ids, verbose=0)
for i, variable in enumerate(outer.optimizer.variables):
    arrays[f"optimizer/{i}"] = variable.numpy()
arrays["counts"] = [len(outer.weights), len(outer.trainable_weights)]
np.savez("arrays.npz", **arrays)
"""


def test_fresh_process_needs_nothing_but_the_import(load, tmp_path):
    """User problems 1 and 35: fit, save, load in another process: all the same to the bit."""
    *_, model = load()
    outer = users_model(model)
    outer.fit(IDS, np.arange(4.0), verbose=0)
    outer.save(tmp_path / "outer.keras")
    model.save(tmp_path / "bare.keras")
    np.save(tmp_path / "ids.npy", IDS)
    code = FRESH
    if keras.backend.backend() == "torch":
        code = "import torch\n" + code  # has to come before TensorFlow
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=os.environ, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    with np.load(tmp_path / "arrays.npz") as file:
        arrays = dict(file)
    bare = {name.removeprefix("bare/"): arrays[name] for name in arrays if name.startswith("bare/")}
    assert_same(bare, outputs_of(model))
    np.testing.assert_array_equal(arrays["outer"], to_numpy(outer(IDS)))
    close(arrays["predicted"], outer.predict(IDS, verbose=0), 1e-6)
    assert arrays["counts"].tolist() == [len(outer.weights), len(outer.trainable_weights)]
    for i, variable in enumerate(outer.optimizer.variables):
        np.testing.assert_array_equal(arrays[f"optimizer/{i}"], to_numpy(variable))
    assert f"optimizer/{i + 1}" not in arrays
    assert len(outer.optimizer.variables) == 2 + 2 * 6, (
        "Adam: two moments each of mix, head and dense"
    )


@pytest.mark.parametrize("name", ["words", "no highway", "no LSTM projection", "no CNN projection"])
def test_every_variant_survives(load, name, tmp_path):
    *_, model = load(name)
    ids = np.array([[3, 4, 5], [6, 0, 0]]) if name == "words" else IDS
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    for output, value in model(ids).items():
        np.testing.assert_array_equal(to_numpy(loaded(ids)[output]), to_numpy(value))


def test_options_survive(tmp_path):
    model = ElmoModel(
        units=8,
        projection_dim=4,
        num_layers=1,
        use_skip_connections=False,
        cell_clip=None,
        projection_clip=1.5,
        max_word_length=12,
        embedding_dim=3,
        filters=[(1, 4), (3, 5)],
        num_highway_layers=0,
        activation="tanh",
        layer_norm="sentence",
        keep_sentence_boundaries=True,
        trainable_bilm=True,
        dtype="mixed_bfloat16",
        name="mine",
    )
    config = json.loads(json.dumps(model.get_config()))
    assert config == model.get_config(), "not JSON types"
    assert ElmoModel.from_config(config).get_config() == config
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == config
    assert loaded.name == "mine"
    assert len(loaded.trainable_variables) == len(loaded.variables)


@pytest.mark.parametrize("inside", [False, True])
def test_weights_files(load, inside, tmp_path):
    """User problem 35: `save_weights` and `load_weights`, alone and in a user's model."""
    first, second = load(seed=1)[-1], load(seed=2)[-1]
    first.scalar_mix.gamma.assign(3.0)
    saved, loaded = (users_model(model) if inside else model for model in (first, second))
    assert np.abs(outputs_of(first)["elmo"] - outputs_of(second)["elmo"]).max() > 0.1
    saved.save_weights(tmp_path / "model.weights.h5")
    loaded.load_weights(tmp_path / "model.weights.h5")
    assert len(loaded.weights) == len(saved.weights)
    assert_same(outputs_of(second), outputs_of(first))


def test_a_model_with_two_elmos(load, tmp_path):
    """Two models of one architecture in one model of a user's: each finds its own weights again."""
    first, second = load(seed=1, name="first")[-1], load(seed=2, name="second")[-1]
    ids = keras.Input((None, 50), dtype="int32")
    outer = keras.Model(ids, [first(ids)["elmo"], second(ids)["elmo"]])
    outer.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for actual, expected in zip(loaded(IDS), outer(IDS), strict=True):
        np.testing.assert_array_equal(to_numpy(actual), to_numpy(expected))
