"""Preset folders with the vocabulary and the softmax of a language model beside the model."""

import json
import re

import h5py
import numpy as np
import pytest
import reference
from harness import to_numpy
from test_reference import VOCABULARY, options_for

from keras_elmo import presets
from keras_elmo.checkpoints import bilm_tf, preset
from keras_elmo.checkpoints.checkpoint import Checkpoint, Softmax
from keras_elmo.vocabulary import Vocabulary

# Keras saves TensorFlow's variables through a call that NumPy 2 warns about.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

OPTIONS = options_for(use_skip_connections=True) | {"n_tokens_vocab": len(VOCABULARY)}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    weights = reference.random_model(OPTIONS, seed=1, softmax=True)
    folder = tmp_path_factory.mktemp("source") / "model"
    checkpoint = bilm_tf.read(reference.write_model(folder, OPTIONS, weights, VOCABULARY))
    checkpoint.metadata = {"description": "für Tests", "tokenizer": "whitespace"}
    return checkpoint


@pytest.fixture
def folder(checkpoint, tmp_path):
    preset.write(checkpoint, tmp_path / "preset")
    return tmp_path / "preset"


def refused(folder, *parts):
    with pytest.raises(ValueError, match=re.escape(str(parts[0]))) as error:
        preset.read(folder)
    message = str(error.value)
    for part in parts:
        assert str(part) in message
    assert "\n" not in message


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_round_trip(checkpoint, tmp_path, dtype):
    preset.write(checkpoint, tmp_path / "preset", dtype)
    with h5py.File(tmp_path / "preset" / presets.LANGUAGE_MODEL_FILE) as file:
        assert {file[name].dtype for name in ("softmax/W", "softmax/b")} == {np.dtype(dtype)}
    read = preset.read(tmp_path / "preset")
    assert read.format == "keras_elmo preset"
    assert read.vocabulary == checkpoint.vocabulary
    for actual, expected in zip(read.softmax, checkpoint.softmax, strict=True):
        assert actual.dtype == np.float32
        np.testing.assert_array_equal(actual, expected.astype(dtype).astype("float32"))
    for actual, expected in zip(read.model.variables, checkpoint.model.variables, strict=True):
        expected = to_numpy(expected).astype(dtype).astype("float32")
        np.testing.assert_array_equal(to_numpy(actual), expected)
    assert read.metadata | checkpoint.metadata == read.metadata
    assert read.metadata["weights_dtype"] == dtype
    assert read.metadata["parameter_count"] == checkpoint.model.count_params()


def test_out_of_bilm_tf_and_back_is_exact(folder, checkpoint, tmp_path):
    bilm_tf.write(preset.read(folder), tmp_path / "back")
    _, weights = reference.load_weights(OPTIONS, tmp_path / "back" / "model.hdf5")
    for name, expected in reference.random_model(OPTIONS, seed=1, softmax=True).items():
        np.testing.assert_array_equal(weights[name], expected)


def test_what_is_not_there_is_not_written(checkpoint, tmp_path):
    preset.write(Checkpoint(checkpoint.model), tmp_path / "preset")
    names = {path.name for path in (tmp_path / "preset").iterdir()}
    assert names == {"config.json", "model.weights.h5", "metadata.json"}
    read = preset.read(tmp_path / "preset")
    assert (read.vocabulary, read.softmax) == (None, None)
    (tmp_path / "preset" / "metadata.json").unlink()
    assert preset.read(tmp_path / "preset").metadata == {}


def test_model_card(checkpoint, tmp_path):
    (tmp_path / "card.md").write_text("# Für Tests\n", encoding="utf-8")
    preset.write(checkpoint, tmp_path / "preset", model_card=tmp_path / "card.md")
    card = tmp_path / "preset" / presets.MODEL_CARD_FILE
    assert card.read_text(encoding="utf-8") == "# Für Tests\n"


def test_overrides(folder):
    assert preset.read(folder, layer_norm="sentence").model.layer_norm == "sentence"


def test_existing_folder(checkpoint, folder):
    with pytest.raises(ValueError, match=r"exists already. Remove it, or give another name"):
        preset.write(checkpoint, folder)


@pytest.mark.parametrize("what", ["vocabulary", "model card"])
def test_nothing_half_written(checkpoint, tmp_path, monkeypatch, what):
    def fail(*args):
        raise OSError("no space left on device")

    card = tmp_path / "missing.md"
    if what == "vocabulary":
        card = None
        monkeypatch.setattr(Vocabulary, "save", fail)
    with pytest.raises(OSError, match=r"no space left|missing\.md"):
        preset.write(checkpoint, tmp_path / "preset", model_card=card)
    assert not list(tmp_path.iterdir())


def test_weights_dtype(checkpoint, tmp_path):
    with pytest.raises(ValueError, match=r"`weights_dtype` must be one of 'float32', 'float16'"):
        preset.write(checkpoint, tmp_path / "preset", "int8")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["softmax/W", "softmax/b"])
def test_half_a_softmax(folder, name):
    with h5py.File(folder / presets.LANGUAGE_MODEL_FILE, "a") as file:
        del file[name]
    refused(folder, folder / presets.LANGUAGE_MODEL_FILE, f"`{name}`")


@pytest.mark.parametrize("size", [0, 100, -100])
def test_truncated_softmax(folder, size):
    path = folder / presets.LANGUAGE_MODEL_FILE
    path.write_bytes(path.read_bytes()[:size])
    refused(folder, path, "`softmax/W` and `softmax/b`", "damaged")


@pytest.mark.parametrize(("kernel", "bias"), [((9, 7), (9,)), ((9, 6), (8,)), ((9,), (9,))])
def test_misshaped_softmax(folder, kernel, bias):
    with h5py.File(folder / presets.LANGUAGE_MODEL_FILE, "w") as file:
        file["softmax/W"], file["softmax/b"] = np.zeros(kernel), np.zeros(bias)
    refused(folder, "`softmax/W` must have the shape (words, 6)", kernel, bias)


def test_vocabulary_of_another_size(folder):
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in VOCABULARY[:-1]))
    refused(folder, "`softmax/W` has 9 rows", "the vocabulary has 8 words")


def test_vocabulary_that_is_wrong(folder):
    (folder / "vocab.txt").write_text("the\n")
    refused(folder, "vocab.txt", "<S>, </S>, <UNK>")


def test_damaged_metadata(folder):
    (folder / "metadata.json").write_text(json.dumps([1]))
    refused(folder, folder / "metadata.json", "must hold a JSON object")


@pytest.mark.parametrize(
    "softmax",
    [
        Softmax(np.zeros((8, 6), "float32"), np.zeros(8, "float32")),
        Softmax(np.zeros((9, 5), "float32"), np.zeros(9, "float32")),
    ],
)
def test_parts_that_do_not_fit_are_not_written(checkpoint, tmp_path, softmax):
    """What could not be read again is not written in the first place."""
    broken = Checkpoint(checkpoint.model, checkpoint.vocabulary, softmax)
    for write in (preset.write, bilm_tf.write):
        with pytest.raises(ValueError, match=r"`softmax/W`"):
            write(broken, tmp_path / "folder")
    assert not list(tmp_path.iterdir())
