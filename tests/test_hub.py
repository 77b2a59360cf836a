"""Presets on the Hugging Face Hub, of which a stand-in runs on this machine."""

import json
import shutil

import keras
import numpy as np
import pytest
from harness import to_numpy
from hub_server import running

from keras_elmo import ElmoModel, character_ids, load_model, upload_preset
from keras_elmo.presets import METADATA_FILE, MODEL_CARD_FILE, WEIGHTS_FILE

constants = pytest.importorskip(
    "huggingface_hub.constants", reason="huggingface_hub not installed (extra `hub`)"
)

ADDRESS, REPOSITORY = "hf://me/tiny", "me/tiny"
IDS = character_ids(["The bank", "a"], 50)

# Keras saves TensorFlow's variables through a call that NumPy 2 warns about.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    keras.utils.set_random_seed(1)
    folder = tmp_path_factory.mktemp("preset") / "tiny"
    ElmoModel(
        units=8, projection_dim=4, filters=[[1, 4], [2, 4]], num_highway_layers=0
    ).save_to_preset(folder, metadata={"license": "CC-BY-4.0", "language": "zh"})
    return folder


def at(monkeypatch, address):
    """Says where the Hub is, as HF_ENDPOINT does before the import."""
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "ENDPOINT", address)


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """The stand-in; somebody who may write is logged in, and the cache is empty."""
    with running() as (hub, address):
        at(monkeypatch, address)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setenv("HF_TOKEN", hub.token)
        yield hub


@pytest.fixture
def uploaded(hub, preset):
    upload_preset(ADDRESS, preset)
    return hub


def elmo(source):
    return to_numpy(load_model(source)(IDS)["elmo"])


def test_up_and_down(uploaded, preset):
    files = uploaded.repositories[REPOSITORY]
    metadata = json.loads(files[METADATA_FILE])
    assert metadata["license"] == "CC-BY-4.0"
    assert set(metadata["files"]) == {"config.json", WEIGHTS_FILE}
    assert metadata["files"][WEIGHTS_FILE]["size"] == len(files[WEIGHTS_FILE])
    head = files[MODEL_CARD_FILE].decode().split("---")[1].split("\n")
    assert head[1:-1] == [
        "license: cc-by-4.0",
        "library_name: keras-elmo",
        "tags: [elmo]",
        "language: zh",
    ]
    np.testing.assert_array_equal(elmo(ADDRESS), elmo(preset))
    np.testing.assert_array_equal(
        to_numpy(ElmoModel.from_preset(ADDRESS)(IDS)["elmo"]), elmo(preset)
    )
    # The second time the weights come from the cache.
    fetched = [
        path for method, path in uploaded.requests if method == "GET" and WEIGHTS_FILE in path
    ]
    assert len(fetched) == 1


def test_a_card_with_a_head_stays(hub, preset, tmp_path):
    folder = shutil.copytree(preset, tmp_path / "copy")
    card = "---\nlicense: other\n---\nMine"
    (folder / MODEL_CARD_FILE).write_text(card)
    upload_preset(ADDRESS, folder)
    assert hub.repositories[REPOSITORY][MODEL_CARD_FILE].decode() == card
    assert "files" not in json.loads((folder / METADATA_FILE).read_text())


def test_without_the_network_the_cache_is_used(uploaded, preset, monkeypatch):
    elmo(ADDRESS)
    at(monkeypatch, "http://127.0.0.1:9")
    np.testing.assert_array_equal(elmo(ADDRESS), elmo(preset))


def test_an_interrupted_download_is_noticed_and_goes_on(uploaded, preset, monkeypatch):
    """By the library within the call; what it gives up on is one sentence, and the next call goes on."""
    uploaded.break_off_after = 500
    np.testing.assert_array_equal(elmo(ADDRESS), elmo(preset))
    assert uploaded.break_off_after is None


def test_a_damaged_file_is_fetched_again(uploaded, preset, tmp_path):
    elmo(ADDRESS)
    [weights] = (tmp_path / "cache").rglob(WEIGHTS_FILE)
    damaged = bytearray(weights.read_bytes())
    damaged[-5] ^= 1
    weights.resolve().write_bytes(damaged)
    np.testing.assert_array_equal(elmo(ADDRESS), elmo(preset))


def test_a_file_that_was_changed_on_the_hub(uploaded):
    files = uploaded.repositories[REPOSITORY]
    files[WEIGHTS_FILE] = files[WEIGHTS_FILE][:-1] + b"x"
    with pytest.raises(ValueError, match=f"{WEIGHTS_FILE} is not what the checksums .* call for"):
        load_model(ADDRESS)


def test_put_there_by_hand(hub, preset):
    """Without checksums it is taken as it is; what is no preset is refused."""
    hub.repositories[REPOSITORY] = {p.name: p.read_bytes() for p in preset.iterdir()}
    np.testing.assert_array_equal(elmo(ADDRESS), elmo(preset))
    hub.repositories["me/other"] = {"pytorch_model.bin": b"x"}
    with pytest.raises(ValueError, match="hf://me/other is no preset: it must hold config.json"):
        load_model("hf://me/other")


def test_refused(hub, preset, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="There is no repository me/none on the Hugging Face Hub"):
        load_model("hf://me/none")
    for address in ("hf://me", "hf://a/b/c", "hf://me/..%2f", "hf:///x"):
        with pytest.raises(ValueError, match=r"is hf://owner/name. Received: 'hf:"):
            load_model(address)
        with pytest.raises(ValueError, match=r"is hf://owner/name. Received: 'hf:"):
            upload_preset(address, preset)
    folder = shutil.copytree(preset, tmp_path / "copy")
    (folder / METADATA_FILE).write_text("{}")
    with pytest.raises(ValueError, match="metadata.json names no `license`. Add it"):
        upload_preset(ADDRESS, folder)
    monkeypatch.setenv("HF_TOKEN", "hf_reader")
    with pytest.raises(ValueError, match=r"hf://me/tiny cannot be written \(.*Log in with"):
        upload_preset(ADDRESS, preset)
    at(monkeypatch, "http://127.0.0.1:9")
    with pytest.raises(OSError, match=r"hf://me/tiny cannot be fetched \(.*try again"):
        load_model(ADDRESS)
    with pytest.raises(OSError, match=r"hf://me/tiny cannot be reached"):
        upload_preset(ADDRESS, preset)
