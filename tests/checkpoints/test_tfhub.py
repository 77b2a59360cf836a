"""Modules of TensorFlow Hub, made of bilm-tf's graph by `tests/data/hub_modules/make.py`."""

import re
import shutil

import numpy as np
import paths
import pytest
from harness import to_numpy

from keras_elmo import load_model
from keras_elmo.checkpoints import load_checkpoint, tfhub
from keras_elmo.checkpoints.archive import unpacked

FOLDER = paths.DATA / "hub_modules"
CASES = ["google", "deeppavlov"]


@pytest.fixture
def module(tmp_path):
    """A module's folder, to be changed."""
    with unpacked(FOLDER / "google.tar.gz") as folder:
        return shutil.copytree(folder, tmp_path / "module")


@pytest.mark.parametrize("case", CASES)
def test_numbers_are_those_of_the_module(case):
    """All layers and its `elmo`, with the mix that the module has; where there are words."""
    expected = np.load(FOLDER / f"{case}.npz")
    checkpoint = load_checkpoint(FOLDER / f"{case}.tar.gz")
    assert checkpoint.format == "TF-Hub module"
    assert checkpoint.metadata["tokenizer"] == "whitespace"
    outputs = {k: to_numpy(v) for k, v in checkpoint.model(expected["character_ids"]).items()}
    words = expected["character_ids"].any(-1)
    layers = np.moveaxis(expected["layers"], 1, 0)
    word_emb = np.concatenate([outputs["word_emb"]] * 2, axis=-1)
    found = [word_emb, *(outputs[f"lstm_outputs{k}"] for k in range(1, len(layers)))]
    for ours, theirs in zip(found, layers, strict=True):
        np.testing.assert_allclose(ours[words], theirs[words], atol=1e-5)
    np.testing.assert_allclose(outputs["elmo"][words], expected["elmo"][words], atol=1e-5)
    weights = to_numpy(checkpoint.model.scalar_mix.scalar_weights)
    np.testing.assert_allclose(weights, np.linspace(-1, 1, len(layers)), atol=1e-6)


def test_what_the_graph_tells():
    one, other = (load_model(FOLDER / f"{case}.tar.gz") for case in CASES)
    names = ("activation", "use_skip_connections", "cell_clip", "projection_clip", "num_layers")
    assert [getattr(one, name) for name in names] == ["relu", True, 3.0, 3.0, 2]
    assert [getattr(other, name) for name in names] == ["tanh", False, 0.2, 0.1, 3]


def test_it_becomes_a_preset(module, tmp_path):
    model = load_model(module, trainable_bilm=True)
    assert model.trainable_bilm
    model.save_to_preset(tmp_path / "preset")
    ids = np.load(FOLDER / "google.npz")["character_ids"]
    again = load_model(tmp_path / "preset")(ids)["elmo"]
    np.testing.assert_array_equal(to_numpy(again), to_numpy(model(ids)["elmo"]))


def refused(folder, message, **overrides):
    with pytest.raises(ValueError, match=message) as error:
        load_model(folder, **overrides)
    assert "\n" not in str(error.value)


def test_damaged_files(module):
    graph = module / tfhub.GRAPH_FILE
    whole = graph.read_bytes()
    for bytes_ in (b"", whole[:-100], b"no graph"):
        graph.write_bytes(bytes_)
        refused(module, "saved_model.pb is no SavedModel, or damaged or cut off")
    graph.write_bytes(whole)
    data = next((module / "variables").glob("*.data-00000-*"))
    data.write_bytes(data.read_bytes()[:100])
    refused(module, "no TensorFlow checkpoint, or damaged or cut off")


def test_another_saved_model(module, tmp_path):
    """Of which the sentence says what could be meant."""
    import tensorflow as tf

    other = tf.Module()
    other.variable = tf.Variable([1.0])
    tf.saved_model.save(other, str(tmp_path / "other"))
    refused(tmp_path / "other", "neither `char_embed` nor `embedding`.*what `keras-elmo export`")


def test_overrides_that_change_the_weights(module):
    refused(module, "No ElmoModel can be made of .*module: ", layer_norm="none")
    refused(module, "must have the shape", units=7)


@pytest.mark.parametrize("name", ["CNN/W_cnn_0", "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/B"])
def test_a_module_that_lacks_something(module, monkeypatch, name):
    real = tfhub.tensorflow_checkpoint.read_arrays

    def read_arrays(*args):
        return {key: value for key, value in real(*args).items() if key != name}

    monkeypatch.setattr(tfhub.tensorflow_checkpoint, "read_arrays", read_arrays)
    refused(module, f"holds no ELMo that reads characters: .*{re.escape(name)}|`filters` must")


def test_a_mix_of_another_size(module, monkeypatch):
    monkeypatch.setattr(tfhub, "_MIX", {"(?:.*/)?aggregation/scaling": "mix/weights"})
    refused(module, r"a weight for each of 3 layers and one scale. Received: shapes \[\(1,\), None")
