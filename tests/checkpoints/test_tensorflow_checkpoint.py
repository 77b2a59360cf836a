"""The checkpoints of bilm-tf's training, made by simple-elmo's copy of it: `tests/data/bilm_checkpoints/make.py`."""

import shutil

import keras
import numpy as np
import paths
import pytest

from keras_elmo import load_language_model, load_model
from keras_elmo.checkpoints import load_checkpoint, tensorflow_checkpoint
from keras_elmo.models import BidirectionalLanguageModel

FOLDER = paths.DATA / "bilm_checkpoints"
CASES = ["two_layers", "one_layer", "other_scope", "shared_softmax"]


def expected(case):
    return np.load(FOLDER / case / "expected.npz")


@pytest.mark.parametrize("case", CASES)
def test_every_weight_is_read(case):
    """Under the names of the HDF5 files, whatever the scope; nothing of the optimizer."""
    given = {
        name.removeprefix("weights/"): value
        for name, value in expected(case).items()
        if name.startswith("weights/")
    }
    arrays = tensorflow_checkpoint.read_arrays(tensorflow_checkpoint.find(FOLDER / case))
    assert len(arrays) == len(given)
    for name, array in arrays.items():
        assert array.dtype == np.float32
        equal = [key for key, value in given.items() if np.array_equal(value, array)]
        assert len(equal) == 1, name
        # Biases may be equal by chance: they are all zero at first, but two steps have moved them.
        assert equal[0].split("/")[0] == name.split("/")[0]


@pytest.mark.parametrize("case", CASES)
def test_losses_are_those_of_bilm_tf(case):
    given = expected(case)
    checkpoint = load_checkpoint(FOLDER / case)
    assert "TensorFlow checkpoint" in checkpoint.format
    words = ["<S>", "</S>", "<UNK>", *map(str, range(9))]
    model = BidirectionalLanguageModel(checkpoint.model, words)
    model.set_softmax(*checkpoint.softmax)
    inputs = {f"{name}_targets": given[f"{name}_targets"] for name in ("forward", "backward")}
    if "forward_ids" in given and given["forward_ids"].ndim == 3:
        both = np.concatenate([given["forward_ids"], given["backward_ids"]])
        inputs["word_ids"], places = np.unique(
            both.reshape(-1, both.shape[-1]), axis=0, return_inverse=True
        )
        inputs["word_ids"] = np.pad(inputs["word_ids"], [(1, 0), (0, 0)])
        forward, backward = np.split(places.reshape(both.shape[:2]) + 1, 2)
    else:
        inputs["word_ids"] = np.arange(len(words) + 1)
        forward, backward = given["forward_ids"], given["backward_ids"]
    losses = model(inputs | {"forward_words": forward, "backward_words": backward})
    for direction, loss in zip(("forward", "backward"), given["losses"], strict=True):
        found = keras.ops.convert_to_numpy(losses[direction])
        assert found.mean() == pytest.approx(loss, abs=1e-5)


def copied(case, tmp_path):
    folder = tmp_path / "save"
    shutil.copytree(FOLDER / case, folder, ignore=shutil.ignore_patterns("expected.npz"))
    return folder


def test_it_is_a_language_model_with_its_vocabulary(tmp_path):
    folder = copied("two_layers", tmp_path)
    with pytest.raises(ValueError, match="has no vocabulary, so it is no language model"):
        load_language_model(folder)
    (folder / "vocab.txt").write_text("\n".join(["<S>", "</S>", "<UNK>", *"abcdefghi"]) + "\n")
    assert len(load_language_model(folder).vocabulary) == 12
    (folder / "vocab.txt").write_text("<S>\n</S>\n<UNK>\n")
    with pytest.raises(ValueError, match="has 12 rows, but the vocabulary has 3 words"):
        load_language_model(folder)


def same_vectors(model, other):
    ids = np.random.default_rng(0).integers(1, 200, size=(2, 3, 8))
    np.testing.assert_array_equal(model(ids)["elmo"], other(ids)["elmo"])


def test_ways_to_name_it(tmp_path):
    """The folder, what the files' names have in common, or the index file."""
    folder = copied("two_layers", tmp_path)
    model = load_model(folder)
    for name in ("model.ckpt-2", "model.ckpt-2.index"):
        same_vectors(load_model(folder / name), model)


def test_the_last_of_several(tmp_path):
    """By the file `checkpoint`, else by the number of steps; 10 is more than 9."""
    folder = copied("two_layers", tmp_path)
    for path in folder.glob("model.ckpt-2.*"):
        for step in (9, 10):
            shutil.copy(path, folder / path.name.replace("-2.", f"-{step}."))
    assert tensorflow_checkpoint.find(folder).name == "model.ckpt-2.index"
    (folder / "checkpoint").write_text('model_checkpoint_path: "/gone/model.ckpt-9"\n')
    assert tensorflow_checkpoint.find(folder).name == "model.ckpt-9.index"
    (folder / "checkpoint").write_text('model_checkpoint_path: "C:\\\\runs\\\\model.ckpt-9"\r\n')
    assert tensorflow_checkpoint.find(folder).name == "model.ckpt-9.index"
    (folder / "checkpoint").write_bytes(b'model_checkpoint_path: "\xff\xfe"')
    assert tensorflow_checkpoint.find(folder).name == "model.ckpt-10.index"
    (folder / "checkpoint").unlink()
    assert tensorflow_checkpoint.find(folder).name == "model.ckpt-10.index"


def test_a_dumped_file_beside_it(tmp_path):
    """The checkpoint counts, which has the softmax; the HDF5 file where it is named."""
    from keras_elmo.checkpoints import bilm_tf

    checkpoint = load_checkpoint(copied("two_layers", tmp_path))
    checkpoint.softmax = None
    bilm_tf.write(checkpoint, tmp_path / "dumped")
    shutil.copy(tmp_path / "dumped" / "model.hdf5", tmp_path / "save")
    assert load_checkpoint(tmp_path / "save").softmax is not None
    named = load_checkpoint(tmp_path / "save" / "model.hdf5")
    assert named.softmax is None
    same_vectors(named.model, checkpoint.model)


def test_what_only_looks_like_a_checkpoint(tmp_path):
    """An index without its data, of whatever program, does not hide a good file."""
    from keras_elmo.checkpoints import bilm_tf

    bilm_tf.write(load_checkpoint(FOLDER / "two_layers"), tmp_path / "bilm")
    (tmp_path / "bilm" / "words.index").write_bytes(b"of another program")
    assert "TensorFlow" not in load_checkpoint(tmp_path / "bilm").format


def test_paths_that_tensorflow_takes_for_patterns(tmp_path):
    folder = tmp_path / "sp ace ünï [x] * 猫"
    shutil.copytree(FOLDER / "two_layers", folder)
    same_vectors(load_model(folder), load_model(FOLDER / "two_layers"))


def test_there_and_back_by_hdf5(tmp_path):
    """Checkpoint -> HDF5 -> model -> HDF5: every dataset is the same to the byte."""
    import h5py

    from keras_elmo.checkpoints import bilm_tf

    bilm_tf.write(load_checkpoint(FOLDER / "two_layers"), tmp_path / "one")
    bilm_tf.write(load_checkpoint(tmp_path / "one"), tmp_path / "two")
    arrays = tensorflow_checkpoint.read_arrays(FOLDER / "two_layers" / "model.ckpt-2.index")
    for name, array in arrays.items():
        for copy in ("one", "two"):
            with h5py.File(tmp_path / copy / "model.hdf5") as file:
                assert file[name][()].tobytes() == array.tobytes(), name


def test_what_is_damaged(tmp_path):
    folder = copied("two_layers", tmp_path)
    data = next(folder.glob("*.data-*"))
    whole = data.read_bytes()
    data.write_bytes(whole[:500])
    with pytest.raises(ValueError, match="no TensorFlow checkpoint, or damaged or cut off"):
        load_model(folder)
    data.unlink()
    with pytest.raises(ValueError, match="no TensorFlow checkpoint, or damaged or cut off"):
        load_model(folder / "model.ckpt-2")
    with pytest.raises(ValueError, match="must have one HDF5 file of weights. Found: none"):
        load_model(folder)
    data.write_bytes(whole)
    (folder / "model.ckpt-2.index").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="no TensorFlow checkpoint, or damaged or cut off"):
        load_model(folder)


def test_a_checkpoint_of_something_else(tmp_path):
    import tensorflow as tf

    folder = copied("two_layers", tmp_path)
    for path in folder.glob("model.ckpt-2.*"):
        path.unlink()
    tf.train.Checkpoint(kernel=tf.Variable([1.0])).save(str(folder / "other"))
    with pytest.raises(ValueError, match="holds no biLM of bilm-tf: it has neither `char_embed` n"):
        load_model(folder)


def test_without_options(tmp_path):
    folder = copied("two_layers", tmp_path)
    (folder / "options.json").unlink()
    with pytest.raises(ValueError, match="must have one file `options.json`. Found: none"):
        load_model(folder)
