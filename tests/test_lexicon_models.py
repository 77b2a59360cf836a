"""What works with a model of ELMoForManyLangs, whose ids are made of words in Python, and what is refused."""

import json

import h5py
import numpy as np
import pytest
from harness import close
from paths import DATA

import keras_elmo
from keras_elmo import BidirectionalLanguageModel, ElmoEmbedding, Embedder, TextClassifier
from keras_elmo.checkpoints import bilm_tf, load_checkpoint
from keras_elmo.export import export_saved_model
from keras_elmo.inference import compare
from keras_elmo.training import PretrainConfig
from keras_elmo.training.starting_model import model_from
from keras_elmo.vocabulary import Vocabulary

# Keras' own saving asks NumPy 2 for its arrays in NumPy 1's way.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy")

FOLDER = DATA / "many_langs"
SOURCE = FOLDER / "words_and_characters"
SENTENCES = json.loads((FOLDER / "sentences.json").read_text(encoding="utf-8"))
VOCABULARY = Vocabulary(["<S>", "</S>", "<UNK>", "cat"])
READS_A_LEXICON = (
    "reads the ids of a lexicon, which are made of words in Python: use `keras_elmo.Embedder`"
)


@pytest.fixture(scope="module")
def model():
    return keras_elmo.load_model(SOURCE)


def expected_of(name):
    with np.load(FOLDER / name / "expected.npz") as file:
        return [file[f"sentence_{k}"] for k in range(len(SENTENCES))]


# What works --------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_tokens", [2048, 3])
@pytest.mark.parametrize("name", ["words_and_characters", "characters", "words", "square"])
def test_embedder(name, batch_tokens):
    """Also in pieces, with the state carried on."""
    embedder = Embedder(FOLDER / name, batch_tokens=batch_tokens)
    assert embedder.tokenizer == "whitespace"
    embedded = embedder.embed(SENTENCES)
    for actual, expected in zip(embedded, expected_of(name), strict=True):
        close(actual, expected)


def test_embedder_of_a_model(model):
    """A string is cut at white space: these models were trained on text that is cut."""
    [vectors] = Embedder(model).embed([" ".join(SENTENCES[1])])
    close(vectors, expected_of("words_and_characters")[1])


def test_long_words_are_counted_by_characters():
    embedder = Embedder(SOURCE, layers="word")
    vectors = list(embedder.embed([["中" * 10, "中" * 11, "x"]]))[0]
    assert vectors.shape == (3, 6)
    assert embedder.length_unit == "characters"
    assert dict(embedder.word_lengths) == {10: 1, 11: 1, 1: 1}
    assert (embedder.num_cut_words, embedder.cut_words) == (1, ["中" * 11])
    np.testing.assert_array_equal(vectors[0], vectors[1])


def test_compare(model):
    result = compare(model, ["The cat sat .", "A dog saw the cat"], "cat", "whitespace")
    assert len(result.layers) == 3
    close(result.layers[0], np.ones((2, 2)))
    assert result.layers[2][0, 1] < 0.99999


def test_info(command):
    facts = json.loads(command("info", SOURCE, "--json").out)
    assert facts["format"] == "ELMoForManyLangs"
    assert facts["architecture"]["units"] == 10
    sizes = {
        name: facts["architecture"][name] for name in ("word_dim", "num_characters", "num_words")
    }
    assert sizes == {"word_dim": 4, "num_characters": 67, "num_words": 20}
    table = command("info", FOLDER / "words").out
    assert "num words" in table
    assert "num characters" not in table


def test_embed(command, tmp_path):
    (tmp_path / "text.txt").write_text("The cat sat by the river .\n" + "中" * 20, encoding="utf-8")
    result = command("embed", tmp_path / "text.txt", "-o", tmp_path / "out.hdf5", "--model", SOURCE)
    assert result.code == 0
    assert "Words cut: 1 (12.50%), for the model reads 10 characters of a word." in result.err
    with h5py.File(tmp_path / "out.hdf5") as file:
        close(file["0"][()], expected_of("words_and_characters")[0])


def test_convert(command, refused, tmp_path):
    """A preset has the lexicon in it; the format of bilm-tf has no place for one."""
    assert command("convert", SOURCE, tmp_path / "preset").code == 0
    [vectors] = Embedder(tmp_path / "preset").embed(SENTENCES[:1])
    close(vectors, expected_of("words_and_characters")[0])
    assert "has no place for the lexicon" in refused(
        "convert", SOURCE, tmp_path / "bilm", "--to", "bilm"
    )
    assert not (tmp_path / "bilm").exists()


# What is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "use",
    [
        lambda model, path: ElmoEmbedding(model),
        lambda model, path: ElmoEmbedding(SOURCE),
        lambda model, path: TextClassifier(model, labels=["good", "bad"]),
        lambda model, path: export_saved_model(model, path / "elmo"),
    ],
    ids=["embedding", "embedding of a path", "head", "export"],
)
def test_strings_in_a_graph(model, use, tmp_path):
    with pytest.raises(ValueError, match=READS_A_LEXICON) as error:
        use(model, tmp_path)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_export_command(refused, tmp_path):
    said = refused("export", SOURCE, tmp_path / "elmo")
    assert said.startswith(
        "keras-elmo: A SavedModel that takes strings needs a model that reads bytes"
    )


def test_language_models(model):
    with pytest.raises(ValueError, match="`elmo_model` must read bytes or the ids of `vocabulary`"):
        BidirectionalLanguageModel(model, VOCABULARY)
    with pytest.raises(ValueError, match="has no softmax, so it is no language model"):
        keras_elmo.load_language_model(SOURCE)
    with pytest.raises(
        ValueError, match="cannot be trained on here. Take a model that reads bytes"
    ):
        model_from(SOURCE, PretrainConfig(), VOCABULARY, np.ones(4))


def test_other_formats(tmp_path):
    with pytest.raises(ValueError, match="no place for the lexicon of an ELMoForManyLangs model"):
        bilm_tf.write(load_checkpoint(SOURCE), tmp_path / "bilm")


def test_text(model):
    with pytest.raises(
        ValueError, match=r"reads character ids, not text. Make them by `model.ids\(sentences\)`"
    ):
        model(np.array(["The cat"]))
    with pytest.raises(
        ValueError, match="reads the token ids of a vocabulary: make them by `Vocab"
    ):
        keras_elmo.ElmoModel(8, 4, filters=[[1, 2]], vocabulary_size=5).ids([["The", "cat"]])


@pytest.mark.parametrize(
    "arguments", [{"lexicon": ["a"]}, {"lexicon": 3}, {"vocabulary_size": 5}], ids=str
)
def test_arguments_of_the_model(model, arguments):
    with pytest.raises(ValueError, match="`lexicon` must be a keras_elmo.Lexicon, or its config"):
        keras_elmo.ElmoModel(8, 4, **{"lexicon": model.lexicon, **arguments})
