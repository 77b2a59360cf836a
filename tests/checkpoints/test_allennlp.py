"""Archives of AllenNLP's models, made by its modules: `tests/data/allennlp/make.py`."""

import shutil

import numpy as np
import paths
import pytest
from harness import to_numpy

from keras_elmo import load_model
from keras_elmo.checkpoints import allennlp, load_checkpoint, torch_file
from keras_elmo.checkpoints.archive import unpacked

FOLDER = paths.DATA / "allennlp"
CASES = ["tagger", "two_mixes"]


@pytest.fixture
def archive(tmp_path):
    """An archive's folder, to be changed."""
    with unpacked(FOLDER / "tagger.tar.gz") as folder:
        return shutil.copytree(folder, tmp_path / "model")


@pytest.mark.parametrize("case", CASES)
def test_numbers_are_those_of_allennlp(case):
    """All layers, and the first mix; the fine-tuned weights, not those of a file somewhere else."""
    expected = np.load(FOLDER / f"{case}.npz")
    checkpoint = load_checkpoint(FOLDER / f"{case}.tar.gz")
    assert checkpoint.format == "AllenNLP archive"
    ids = expected["character_ids"].astype("int32")
    outputs = {name: to_numpy(value) for name, value in checkpoint.model(ids).items()}
    words = ids.any(-1)
    found = [np.concatenate([outputs["word_emb"]] * 2, axis=-1)]
    found += [outputs[f"lstm_outputs{k}"] for k in range(1, len(expected["layers"]))]
    for ours, theirs in zip(found, expected["layers"], strict=True):
        np.testing.assert_allclose(ours[words], theirs[words], atol=1e-5)
    np.testing.assert_allclose(outputs["elmo"][words], expected["elmo"][0][words], atol=1e-5)


def refused(folder, message, **overrides):
    with pytest.raises(ValueError, match=message) as error:
        load_model(folder, **overrides)
    assert "\n" not in str(error.value)


def test_a_model_without_elmo(archive, monkeypatch):
    monkeypatch.setattr(
        torch_file, "read_state_dict", lambda path: {"encoder.weight": np.ones((2, 2))}
    )
    refused(archive, "holds no ELMo that reads characters.*Found: encoder.weight")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("_token_embedder._projection.weight", "has no parameter .*_projection.weight"),
        ("forward_layer_0.state_projection.weight", "has no parameter .*state_projection.weight"),
        ("char_conv_0.weight", "No ElmoModel can be made of .*weights.th: `filters`"),
        ("scalar_mix_0.scalar_parameters.2", "has no parameter .*scalar_parameters.2"),
        ("backward_layer_1.state_linearity.bias", "the dataset `RNN_1/.*Cell1.* is missing"),
    ],
)
def test_an_elmo_that_lacks_something(archive, monkeypatch, name, message):
    real = torch_file.read_state_dict
    monkeypatch.setattr(
        torch_file,
        "read_state_dict",
        lambda path: {key: value for key, value in real(path).items() if not key.endswith(name)},
    )
    refused(archive, message)


def test_damaged_files(archive):
    weights = archive / allennlp.WEIGHTS_FILE
    weights.write_bytes(weights.read_bytes()[:500])
    refused(archive, "weights.th .*is no file of PyTorch weights, or is damaged or cut short")
    (archive / allennlp.CONFIG_FILE).write_text("{")
    refused(archive, "config.json cannot be read as JSON")


def test_overrides(archive):
    assert load_model(archive, activation="tanh").activation == "tanh"
    refused(archive, "must have the shape", units=7)
    refused(archive, "No ElmoModel can be made of", activation="gelu")
