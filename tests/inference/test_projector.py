"""The folder for the Embedding Projector: a line for each word in every file."""

import keras
import numpy as np
import pytest

from keras_elmo import ElmoModel, Embedder
from keras_elmo.inference import write_projector

SENTENCES = ["The bank is near.", "", "my bank , my bank", "苹果 is 苹果"]

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="an Embedder needs TensorFlow"
)


@pytest.fixture(scope="module")
def embedder():
    keras.utils.set_random_seed(1)
    model = ElmoModel(units=8, projection_dim=4, filters=[[1, 4], [2, 4]], num_highway_layers=0)
    return Embedder(model)


def read(folder):
    rows = [line.split("\t") for line in (folder / "metadata.tsv").read_text("utf-8").splitlines()]
    layers = [np.loadtxt(folder / f"layer_{k}.tsv", ndmin=2) for k in range(3)]
    return rows, layers


def test_every_word(embedder, tmp_path):
    told = []
    count = write_projector(
        SENTENCES, tmp_path / "p", embedder, on_progress=lambda *numbers: told.append(numbers)
    )
    (head, *rows), layers = read(tmp_path / "p")
    assert head == ["word", "sentence number", "place", "sentence"]
    assert rows[0] == ["The", "1", "1", "The bank is near ."]
    assert rows[5] == ["my", "3", "1", "my bank , my bank"]
    assert len(rows) == count == told[-1][1]
    assert told[-1][0] == 4
    expected = np.concatenate(list(embedder.embed(SENTENCES)), axis=1)
    for found, layer in zip(layers, expected, strict=True):
        np.testing.assert_allclose(found, layer, rtol=1e-4, atol=1e-7)


def test_the_occurrences_of_words(embedder, tmp_path):
    """Chinese words are cut into characters here: a word has the mean of theirs."""
    write_projector(SENTENCES, tmp_path / "p", embedder, ["bank", "苹果"])
    (_, *rows), layers = read(tmp_path / "p")
    assert [row[:3] for row in rows] == [
        ["bank", "1", "2"],
        ["bank", "3", "2"],
        ["bank", "3", "5"],
        ["苹 果", "4", "1"],
        ["苹 果", "4", "4"],
    ]
    *_, chinese = embedder.embed(SENTENCES)
    np.testing.assert_allclose(layers[2][3], chinese[2, :2].mean(axis=0), rtol=1e-4, atol=1e-7)


def test_the_text_is_read_until_there_are_enough(embedder, tmp_path):
    def endless():
        while True:
            yield "a b c"

    assert write_projector(endless(), tmp_path / "p", embedder, max_words=4) == 4
    (_, *rows), layers = read(tmp_path / "p")
    assert [row[0] for row in rows] == ["a", "b", "c", "a"]
    assert all(len(layer) == 4 for layer in layers)


def test_tabs_and_lone_surrogates_stay_in_their_cell(embedder, tmp_path):
    write_projector([["a\tb", "c\nd", "e\ud800"]], tmp_path / "p", embedder)
    (_, *rows), _ = read(tmp_path / "p")
    assert [row[0] for row in rows] == ["a b", "c d", "e?"]
    assert all(len(row) == 4 for row in rows)


def test_what_tensorboard_reads(embedder, tmp_path):
    write_projector(["a b"], tmp_path / "p", embedder)
    text = (tmp_path / "p" / "projector_config.pbtxt").read_text()
    assert text.count("embeddings {") == 3
    for name in ("layer_0.tsv", "layer_1.tsv", "layer_2.tsv", "metadata.tsv"):
        assert f'"{name}"' in text
        assert (tmp_path / "p" / name).is_file()


@pytest.mark.parametrize("words", [(), ["Bank"]])
def test_no_word(embedder, tmp_path, words):
    text = ["my bank"] if words else ["", " "]
    with pytest.raises(ValueError, match="words Bank is in the text|The text has no word"):
        write_projector(text, tmp_path / "p", embedder, words)
    assert not list(tmp_path.iterdir())


def test_refused(embedder, tmp_path):
    with pytest.raises(ValueError, match="exists already"):
        write_projector(["a"], tmp_path, embedder)
    with pytest.raises(ValueError, match="`max_words` must be a positive integer"):
        write_projector(["a"], tmp_path / "p", embedder, max_words=0)
    with pytest.raises(ValueError, match="The Projector shows every layer.*layers='top'"):
        write_projector(["a"], tmp_path / "p", Embedder(embedder.model, "top"))
