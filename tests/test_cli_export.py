"""`keras-elmo export` as a user types it."""

import json
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_elmo import ElmoEmbedding, ElmoModel, TokenClassifier, presets
from keras_elmo.vocabulary import Vocabulary

SMALL = {
    "filters": [[1, 4]],
    "embedding_dim": 4,
    "units": 8,
    "projection_dim": 4,
    "num_highway_layers": 1,
}


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """The file of a classifier."""
    path = tmp_path_factory.mktemp("models") / "films.keras"
    layers = [
        keras.Input((), dtype="string"),
        ElmoEmbedding(ElmoModel(**SMALL), output="default"),
        keras.layers.Dense(2, activation="softmax"),
    ]
    keras.Sequential(layers).save(path)
    return path


def description(folder):
    return json.loads((folder / "assets.extra/keras_elmo.json").read_text())


def test_a_preset(command, tmp_path):
    folder = tmp_path / "elmo"
    options = ("--weights", "float16", "--outputs", "elmo", "sequence_len")
    result = command("export", "elmo_tiny_en", folder, *options)
    assert (result.code, result.out) == (0, "")
    assert result.err.startswith(f"Wrote {folder / '1'} (")
    found = description(folder / "1")
    assert found["source"] == "elmo_tiny_en"
    assert found["tokenizer"] == "word"
    assert found["weights_dtype"] == "float16"
    assert found["language"] == "en"
    assert found["signatures"]["default"]["outputs"] == ["elmo", "sequence_len"]
    served = tf.saved_model.load(folder / "1").signatures["default"]
    answer = served(tf.constant(["It's my bank."]))
    expected = ElmoEmbedding()(["It's my bank."])
    np.testing.assert_allclose(answer["elmo"], expected, atol=2e-3)


@pytest.mark.filterwarnings("ignore:The model was trained on text cut by")
def test_options_of_elmo(command, tmp_path):
    folder = tmp_path / "elmo"
    options = ("--tokenizer", "whitespace", "--precision", "bfloat16", "--substitutes")
    assert command("export", "elmo_tiny_en", folder, *options).code == 0
    found = description(folder / "1")
    assert found["tokenizer"] == "whitespace"
    assert found["precision"] == "bfloat16"
    assert "substitutes" in found["signatures"]


def test_a_word_cache(command, tmp_path):
    folder = tmp_path / "elmo"
    options = ("--outputs", "elmo", "--word-cache")
    assert command("export", "elmo_tiny_en", folder, *options, "100").code == 0
    assert description(folder / "1")["word_cache"] == 100
    served = tf.saved_model.load(folder / "1").signatures["default"]
    expected = ElmoEmbedding()(["It's my riverbank."])
    answer = served(tf.constant(["It's my riverbank."]))
    np.testing.assert_allclose(answer["elmo"], expected, atol=1e-5)


@pytest.mark.filterwarnings("always:The vocabulary has 2 words:UserWarning")
def test_a_word_cache_of_all_words(command, tmp_path):
    """A vocabulary beside weights that have no softmax is enough."""
    preset = tmp_path / "preset"
    ElmoModel(**SMALL).save_to_preset(preset)
    Vocabulary(["<S>", "</S>", "<UNK>", "the", "bank"]).save(preset / presets.VOCABULARY_FILE)
    result = command("export", preset, tmp_path / "elmo", "--word-cache", "9")
    assert result.code == 0
    assert "note: The vocabulary has 2 words, fewer than the 9 of the word cache" in result.err
    assert description(tmp_path / "elmo/1")["word_cache"] == 2


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_a_classifier(command, classifier, tmp_path):
    result = command("export", classifier, tmp_path / "films", "--labels", "bad", "good")
    assert result.code == 0
    assert description(tmp_path / "films/1")["labels"] == ["bad", "good"]
    assert command("export", classifier, tmp_path / "plain").code == 0
    assert sorted(description(tmp_path / "plain/1")["signatures"]) == ["default", "serving_default"]


def test_a_tagger(command, tmp_path):
    text = keras.Input((), dtype="string")
    vectors = ElmoEmbedding(ElmoModel(**SMALL))(text)
    tags = keras.layers.Dense(2, activation="softmax")(vectors)
    keras.Model(text, tags).save(tmp_path / "tagger.keras")
    result = command("export", tmp_path / "tagger.keras", tmp_path / "out", "--labels", "N", "V")
    assert result.code == 0
    served = tf.saved_model.load(tmp_path / "out/1").signatures["default"]
    assert served(tf.constant(["It's here."]))["label"].shape == (1, 4)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_a_head(command, refused, tmp_path):
    """A tagger with names of its own: trained, saved, exported, called; without a word about its optimizer."""
    head = TokenClassifier(ElmoModel(**SMALL), ["N", "V"], lstm_units=4)
    head.fit([["Birds", "fly"]], [["N", "V"]], verbose=0)
    head.save(tmp_path / "tagger.keras")
    result = command("export", tmp_path / "tagger.keras", tmp_path / "out")
    assert result.code == 0
    assert "optimizer" not in result.err
    assert description(tmp_path / "out/1")["labels"] == ["N", "V"]
    served = tf.saved_model.load(tmp_path / "out/1").signatures["default"]
    assert served(tf.constant(["Birds fly"]))["label"].numpy().astype(str).tolist() == head.predict(
        [["Birds", "fly"]], verbose=0
    )
    line = refused("export", tmp_path / "tagger.keras", tmp_path / "out", "--labels", "a", "b")
    assert "tagger.keras says itself what it serves: leave `--labels` out" in line


def test_mistakes(refused, classifier, tmp_path):
    out = tmp_path / "out"
    line = refused("export", "elmo_tiny_en", out, "--labels", "a", "b")
    assert "`--labels` are the classes of a classifier or tagger, the .keras file" in line
    for option in (["--tokenizer", "word"], ["--precision", "bfloat16"], ["--substitutes"]):
        line = refused("export", classifier, out, *option)
        assert "has its own tokenizer and precision and no language model" in line
    assert "does not exist" in refused("export", tmp_path / "none.keras", out)
    (tmp_path / "bad.keras").write_text("no archive")
    line = refused("export", tmp_path / "bad.keras", out)
    assert "bad.keras must be a Keras model's file, as `model.save` writes it" in line
    assert "'--outputs' must be followed by words" in refused("export", "m", out, "--outputs")
    assert "`outputs` must be names of outputs" in refused(
        "export", "elmo_tiny_en", out, "--outputs", "bilm"
    )
    shutil.copytree(presets.preset_folder("elmo_tiny_en"), tmp_path / "preset")
    (tmp_path / "preset" / presets.LANGUAGE_MODEL_FILE).unlink()
    line = refused("export", tmp_path / "preset", out, "--substitutes")
    assert "has no softmax, so it is no language model" in line
    line = refused("export", classifier, out, "--word-cache", "9")
    assert "`--word-cache` goes with models that serve the vectors of words: a preset" in line
    ElmoModel(**SMALL).save_to_preset(tmp_path / "weights")
    line = refused("export", tmp_path / "weights", out, "--word-cache", "9")
    assert "weights has no vocabulary, whose first words `--word-cache` stores. Put `vocab" in line
    line = refused("export", "elmo_tiny_en", out, "--word-cache", "0")
    assert "'--word-cache': Input should be greater than or equal to 1" in line
    assert not out.exists()
