"""`load_model` and `load_checkpoint`: whatever people have, known by what it is."""

import gzip
import re
import shutil
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import reference
from harness import to_numpy
from test_reference import VOCABULARY, options_for

import keras_elmo
from keras_elmo import presets
from keras_elmo.checkpoints import load_checkpoint, preset

# Keras saves TensorFlow's variables through a call that NumPy 2 warns about.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

OPTIONS = options_for(use_skip_connections=True) | {"n_tokens_vocab": len(VOCABULARY)}
IDS = keras_elmo.character_ids(["The bank is", "near"])


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A folder of bilm-tf's files."""
    weights = reference.random_model(OPTIONS, seed=1, softmax=True)
    folder = tmp_path_factory.mktemp("source") / "model"
    return reference.write_model(folder, OPTIONS, weights, VOCABULARY)


@pytest.fixture(scope="module")
def elmo(source):
    return to_numpy(keras_elmo.load_model(source)(IDS)["elmo"])


def check(checkpoint, elmo, vocabulary=True):
    np.testing.assert_array_equal(to_numpy(checkpoint.model(IDS)["elmo"]), elmo)
    assert checkpoint.softmax is not None
    assert (checkpoint.vocabulary is not None) == vocabulary


def refused(source, *parts):
    with pytest.raises(ValueError, match=re.escape(str(parts[0]))) as error:
        keras_elmo.load_model(source)
    message = str(error.value)
    for part in parts:
        assert str(part) in message
    assert "\n" not in message
    assert len(message) < 600


# Recognized --------------------------------------------------------------------------------------


def test_preset_by_name_and_by_folder(tmp_path):
    by_name = keras_elmo.load_model("elmo_tiny_en", layer_norm="sentence")
    assert by_name.layer_norm == "sentence"
    shutil.copytree(presets.preset_folder("elmo_tiny_en"), tmp_path / "copy")
    by_folder = load_checkpoint(tmp_path / "copy")
    assert by_folder.format == "keras_elmo preset"
    assert by_folder.metadata == load_checkpoint("elmo_tiny_en").metadata
    expected = by_name(IDS)["lstm_outputs2"]
    np.testing.assert_array_equal(
        to_numpy(by_folder.model(IDS)["lstm_outputs2"]), to_numpy(expected)
    )


@pytest.mark.parametrize("kind", [str, Path])
def test_folder(source, elmo, kind):
    checkpoint = load_checkpoint(kind(source))
    assert checkpoint.format == "bilm-tf / AllenNLP"
    check(checkpoint, elmo)


def test_overrides(source):
    model = keras_elmo.load_model(source, trainable_bilm=True, keep_sentence_boundaries=True)
    assert model.trainable_bilm
    assert model(IDS)["elmo"].shape[1] == 5


@pytest.mark.parametrize("root", ["", "158/"])
@pytest.mark.parametrize("name", ["158.zip", "158.tar.gz", "158.tar", "158"])
def test_archive(source, elmo, tmp_path, root, name):
    """As NLPL hands them out: at the root or in one folder; known by content, not by name."""
    archive = tmp_path / name
    files = sorted(source.iterdir())
    if name.endswith((".tar.gz", ".tar")):
        with tarfile.open(archive, "w:gz" if name.endswith("gz") else "w") as tar:
            for file in files:
                tar.add(file, root + file.name)
    else:
        with zipfile.ZipFile(archive, "w") as zipped:
            for file in files:
                zipped.write(file, root + file.name)
    check(load_checkpoint(archive), elmo)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_archive_of_a_preset(source, elmo, tmp_path):
    preset.write(load_checkpoint(source), tmp_path / "preset")
    with zipfile.ZipFile(tmp_path / "preset.zip", "w") as zipped:
        for file in (tmp_path / "preset").iterdir():
            zipped.write(file, f"preset/{file.name}")
    checkpoint = load_checkpoint(tmp_path / "preset.zip")
    assert checkpoint.format == "keras_elmo preset"
    check(checkpoint, elmo)
    check(load_checkpoint(tmp_path / "preset" / "model.weights.h5"), elmo)


def test_the_file_of_weights_itself(source, elmo, tmp_path):
    """Among several it says which, and whatever the ending of the others."""
    folder = shutil.copytree(source, tmp_path / "model")
    other = reference.random_model(OPTIONS, seed=2)
    other = reference.write_model(tmp_path / "other", OPTIONS, other) / "weights.hdf5"
    other.rename(folder / "other.hdf5")
    (folder / "weights.hdf5").rename(folder / "weights.h5")
    check(load_checkpoint(folder / "weights.h5"), elmo)
    assert load_checkpoint(folder / "other.hdf5").softmax is None


def test_names_of_allennlp(source, elmo, tmp_path):
    prefix = "elmo_2x4096_512_2048cnn_2xhighway_"
    shutil.copy(source / "options.json", tmp_path / f"{prefix}options.json")
    shutil.copy(source / "weights.hdf5", tmp_path / f"{prefix}weights.hdf5")
    check(load_checkpoint(tmp_path), elmo, vocabulary=False)
    check(load_checkpoint(tmp_path / f"{prefix}weights.hdf5"), elmo, vocabulary=False)


def test_gzipped_vocabulary(source, elmo, tmp_path):
    folder = shutil.copytree(source, tmp_path / "model")
    data = (folder / "vocab.txt").read_bytes()
    (folder / "vocab.txt").unlink()
    (folder / "vocab.txt.gz").write_bytes(gzip.compress(data))
    checkpoint = load_checkpoint(folder)
    check(checkpoint, elmo)
    assert list(checkpoint.vocabulary) == VOCABULARY


# Not recognized ----------------------------------------------------------------------------------


def test_nothing_there(tmp_path):
    refused("elmo_tiny_klingon", "There is no file, folder or preset", "Presets: elmo_tiny_en")
    refused(tmp_path / "nothing", "There is no file, folder or preset", tmp_path / "nothing")
    refused(tmp_path / "nothing.hdf5", "There is no file, folder or preset")


def test_whole_keras_model(tmp_path):
    (tmp_path / "model.keras").write_bytes(b"whatever")
    refused(tmp_path / "model.keras", "keras.saving.load_model", "import keras_elmo")


def test_folder_of_something_else(tmp_path):
    refused(tmp_path, tmp_path, "holds no model", "options.json", "Found: nothing")
    (tmp_path / "notes.md").write_text("notes")
    refused(tmp_path, "Found: notes.md")


def test_half_a_preset(source, tmp_path):
    preset.write(load_checkpoint(source), tmp_path / "preset")
    (tmp_path / "preset" / "config.json").unlink()
    refused(tmp_path / "preset", "is not a preset, for it has no config.json")


def test_half_a_model(source, tmp_path):
    folder = shutil.copytree(source, tmp_path / "model")
    (folder / "options.json").unlink()
    refused(folder, folder, "must have one file `options.json`. Found: none")
    refused(folder / "weights.hdf5", "must have one file `options.json`")


def test_file_of_something_else(tmp_path):
    (tmp_path / "model.bin").write_bytes(b"\0" * 100)
    refused(tmp_path / "model.bin", tmp_path / "model.bin", ".zip, .tar or .tar.gz")


@pytest.mark.parametrize("source", [None, 3, ["a"]])
def test_sources_that_are_no_paths(source):
    refused(source, "`source` must be a name or a path. Received: source=")


def test_damaged_archive(source, tmp_path):
    shutil.make_archive(str(tmp_path / "model"), "gztar", source)
    archive = tmp_path / "model.tar.gz"
    archive.write_bytes(archive.read_bytes()[:-200])
    refused(archive, archive, "damaged")


def test_error_inside_an_archive_names_the_archive(source, tmp_path):
    """The temporary folder is gone when the message is read: it says nothing to anybody."""
    folder = shutil.copytree(source, tmp_path / "model")
    (folder / "options.json").write_text("{}")
    shutil.make_archive(str(tmp_path / "packed"), "zip", folder)
    refused(
        tmp_path / "packed.zip", tmp_path / "packed.zip", "options.json", "`lstm.dim` is missing"
    )


def test_softmax_of_another_number_of_words_than_the_options_say(source, tmp_path):
    folder = shutil.copytree(source, tmp_path / "model")
    path = folder / "options.json"
    path.write_text(
        path.read_text().replace(f'"n_tokens_vocab": {len(VOCABULARY)}', '"n_tokens_vocab": 99')
    )
    with pytest.raises(ValueError, match=f"has {len(VOCABULARY)} rows, but .* says 99 words"):
        load_checkpoint(folder)


def test_options_nested_too_deeply(source, tmp_path):
    folder = shutil.copytree(source, tmp_path / "model")
    (folder / "options.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="options.json cannot be read as JSON"):
        load_checkpoint(folder)
