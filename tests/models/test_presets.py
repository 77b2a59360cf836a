"""Presets: folders that `save_to_preset` writes and `from_preset` reads, whole or not at all."""

import json
import shutil
from importlib.metadata import version

import h5py
import keras
import numpy as np
import pytest
from harness import close, to_numpy

import keras_elmo
from keras_elmo import ElmoModel, presets

# Keras saves TensorFlow's variables through a call that NumPy 2 warns about.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

IDS = keras_elmo.character_ids(["The bank is near the river", "Hello", ""])


def outputs_of(model):
    return {name: to_numpy(value) for name, value in model(IDS).items()}


@pytest.fixture(scope="module")
def model(load):
    *_, model = load()
    model.scalar_mix.scalar_weights.assign([1.0, 2.0, 3.0])
    return model


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("presets") / "preset"
    model.save_to_preset(folder)
    return folder


@pytest.fixture
def preset(saved, tmp_path):
    """A copy to damage."""
    return shutil.copytree(saved, tmp_path / "preset")


def one_sentence(error, *parts):
    """The message is one line for people, not a traceback or a dump of arguments."""
    message = str(error.value)
    for part in parts:
        assert part in message
    assert "\n" not in message
    assert len(message) < 700


# Round trip --------------------------------------------------------------------------------------


def test_round_trip_is_exact(model, saved):
    loaded = ElmoModel.from_preset(saved)
    assert loaded.get_config() == model.get_config()
    for name, value in outputs_of(model).items():
        np.testing.assert_array_equal(outputs_of(loaded)[name], value)
    assert len(loaded.trainable_variables) == 2
    assert sorted(path.name for path in saved.iterdir()) == [
        "config.json",
        "metadata.json",
        "model.weights.h5",
    ]


def test_float16_on_disk_is_float32_in_memory(model, saved, tmp_path):
    model.save_to_preset(tmp_path / "half", weights_dtype="float16")
    weights = "model.weights.h5"
    assert (tmp_path / "half" / weights).stat().st_size < 0.9 * (saved / weights).stat().st_size
    dtypes = set()
    with h5py.File(tmp_path / "half" / weights) as file:
        file.visititems(
            lambda _, item: dtypes.add(str(item.dtype)) if isinstance(item, h5py.Dataset) else None
        )
    assert dtypes == {"float16"}
    loaded = ElmoModel.from_preset(tmp_path / "half")
    for variable, original in zip(loaded.variables, model.variables, strict=True):
        assert variable.dtype == "float32"
        expected = to_numpy(original).astype("float16").astype("float32")
        np.testing.assert_array_equal(to_numpy(variable), expected)
    for name, value in outputs_of(model).items():
        close(outputs_of(loaded)[name], value, 0.05)
    metadata = json.loads((tmp_path / "half" / "metadata.json").read_text(encoding="utf-8"))
    assert metadata["weights_dtype"] == "float16"


@pytest.mark.parametrize("name", ["words", "no highway", "no LSTM projection", "no CNN projection"])
def test_every_variant_survives(load, name, tmp_path):
    *_, model = load(name)
    ids = np.array([[3, 4, 5], [6, 0, 0]]) if name == "words" else IDS
    model.save_to_preset(tmp_path / "preset")
    loaded = ElmoModel.from_preset(tmp_path / "preset")
    np.testing.assert_array_equal(to_numpy(loaded(ids)["elmo"]), to_numpy(model(ids)["elmo"]))


def test_metadata(model, tmp_path):
    given = {"description": "für Tests", "tokenizer": "whitespace", "parameter_count": "ours wins"}
    model.save_to_preset(tmp_path / "preset", metadata=given)
    assert presets.read_metadata(tmp_path / "preset") == {
        "description": "für Tests",
        "tokenizer": "whitespace",
        "keras_elmo_version": version("keras-elmo"),
        "keras_version": version("keras"),
        "parameter_count": model.count_params(),
        "weights_dtype": "float32",
    }
    (tmp_path / "preset" / "metadata.json").unlink()
    assert presets.read_metadata(tmp_path / "preset") == {}
    ElmoModel.from_preset(tmp_path / "preset")


def test_overrides(saved, model):
    overrides = {
        "trainable_bilm": True,
        "layer_norm": "sentence",
        "keep_sentence_boundaries": True,
        "dtype": "mixed_bfloat16",
        "name": "mine",
    }
    loaded = ElmoModel.from_preset(str(saved), **overrides)
    assert loaded.dtype_policy.name == "mixed_bfloat16"
    for name in overrides.keys() - {"dtype"}:
        assert getattr(loaded, name) == overrides[name]
    assert len(loaded.trainable_variables) == len(loaded.variables)
    assert loaded(IDS)["elmo"].shape[1] == IDS.shape[1] + 2
    for variable, original in zip(loaded.variables, model.variables, strict=True):
        np.testing.assert_array_equal(to_numpy(variable), to_numpy(original))


def test_saved_again_over_the_old_one(model, preset):
    with pytest.raises(ValueError, match=r"exists already. Remove it, or give another name"):
        model.save_to_preset(preset)
    (preset / "old.txt").write_text("old")
    model.save_to_preset(preset, overwrite=True)
    assert not (preset / "old.txt").exists()
    ElmoModel.from_preset(preset)
    assert [path.name for path in preset.parent.iterdir()] == ["preset"]


# Errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["weights", "conversion", "metadata"])
@pytest.mark.parametrize("there_already", [False, True])
def test_nothing_half_written(model, preset, monkeypatch, when, there_already):
    folder = preset if there_already else preset.parent / "new"

    def fail(*args, **kwargs):
        raise OSError("no space left on device")

    if when == "weights":
        monkeypatch.setattr(ElmoModel, "save_weights", fail)
    elif when == "conversion":
        monkeypatch.setattr(h5py.Group, "require_group", fail)
    metadata = {"not JSON": object()} if when == "metadata" else None
    with pytest.raises((OSError, TypeError)):
        model.save_to_preset(folder, "float16", metadata, overwrite=there_already)
    monkeypatch.undo()
    assert [path.name for path in preset.parent.iterdir()] == ["preset"]
    ElmoModel.from_preset(preset)


@pytest.mark.parametrize("dtype", ["bfloat16", "float64", None, 16])
def test_weights_dtype(model, tmp_path, dtype):
    with pytest.raises(ValueError, match=r"`weights_dtype` must be one of 'float32', 'float16'"):
        model.save_to_preset(tmp_path / "preset", weights_dtype=dtype)
    assert not list(tmp_path.iterdir())


def test_unknown_override(saved):
    with pytest.raises(ValueError, match=r"no argument `traineble_bilm`. It has: units, ") as error:
        ElmoModel.from_preset(saved, traineble_bilm=True)
    one_sentence(error, "trainable_bilm")


def test_override_that_changes_weights(saved):
    with pytest.raises(ValueError, match=r"model.weights.h5 does not hold the weights") as error:
        ElmoModel.from_preset(saved, units=25)
    one_sentence(error, str(saved))


def test_no_such_preset(tmp_path):
    for preset in ("elmo_tiny_klingon", tmp_path / "nothing"):
        with pytest.raises(ValueError, match=r"There is no preset and no folder") as error:
            ElmoModel.from_preset(preset)
        one_sentence(error, str(preset), "elmo_tiny_en")


@pytest.mark.parametrize("name", ["config.json", "model.weights.h5"])
def test_missing_file(preset, name):
    (preset / name).unlink()
    with pytest.raises(ValueError, match=rf"is not a preset, for it has no {name}\. ") as error:
        ElmoModel.from_preset(preset)
    one_sentence(error, str(preset))


@pytest.mark.parametrize("size", [0, 7, 100, 3000, -1])
def test_truncated_weights(preset, size):
    path = preset / "model.weights.h5"
    data = path.read_bytes()
    path.write_bytes(data[: size if size >= 0 else len(data) - 2000])
    with pytest.raises(ValueError, match=r"model.weights.h5 does not hold the weights") as error:
        ElmoModel.from_preset(preset)
    one_sentence(error, str(path), "damaged")


def test_weights_of_another_model(preset, load):
    load("no highway")[-1].save_weights(preset / "model.weights.h5")
    with pytest.raises(ValueError, match=r"model.weights.h5 does not hold the weights") as error:
        ElmoModel.from_preset(preset)
    one_sentence(error)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read as JSON"),
        ('{"class_name": "ElmoModel", "config": {"units"', "cannot be read as JSON"),
        ("\udcff", "cannot be read as JSON"),
        ("[1, 2]", "must hold a JSON object. Received: list"),
        ("{}", "must be the configuration of an ElmoModel. Received: class_name=None"),
        ('{"class_name": "Dense", "config": {}}', "Received: class_name='Dense'"),
        ('{"class_name": "ElmoModel", "config": 3}', "must be the configuration of an ElmoModel"),
        ('{"class_name": "ElmoModel", "config": {"unitz": 3}}', "unitz"),
        ('{"class_name": "ElmoModel", "config": {"units": "many"}}', "units='many'"),
    ],
)
def test_damaged_config(preset, text, message):
    (preset / "config.json").write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(ValueError, match=r"config\.json") as error:
        ElmoModel.from_preset(preset)
    one_sentence(error, message, str(preset))


def test_damaged_metadata(preset):
    (preset / "metadata.json").write_text("{")
    with pytest.raises(ValueError, match=r"metadata.json cannot be read as JSON"):
        presets.read_metadata(preset)


# The bundled ones --------------------------------------------------------------------------------


def test_bundled_presets():
    assert presets.DEFAULT_PRESET in presets.preset_names()
    for name in presets.preset_names():
        model = ElmoModel.from_preset(name)
        metadata = presets.read_metadata(presets.preset_folder(name))
        assert metadata["parameter_count"] == model.count_params()
        assert {"description", "license", "tokenizer"} <= metadata.keys()
        assert np.isfinite(outputs_of(model)["elmo"]).all()
        assert keras.backend.floatx() == "float32"
