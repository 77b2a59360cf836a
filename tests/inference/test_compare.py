import re

import numpy as np
import pytest

from keras_elmo import ElmoModel, character_ids, load_model
from keras_elmo.inference import Comparison, compare, compare_words
from keras_elmo.inference.compare import cosine_similarity

RIVER, MONEY = "the bank is near the river", "the bank is open for money"


@pytest.fixture(scope="module")
def model():
    model = load_model("elmo_tiny_en")
    model.run_eagerly = True
    return model


def cosine(a, b):
    a, b = np.float64(a), np.float64(b)
    return a @ b / np.sqrt(a @ a) / np.sqrt(b @ b)


def test_similarities_are_those_of_the_vectors(model):
    result = compare(model, [RIVER, "my bank", MONEY], "bank")
    assert result.word == "bank"
    assert result.sentences == [RIVER.split(), ["my", "bank"], MONEY.split()]
    assert result.positions == [(1, 2), (1, 2), (1, 2)]
    outputs = model(character_ids([RIVER, "my bank", MONEY]))
    for layer, name in zip(
        result.layers, ("word_emb", "lstm_outputs1", "lstm_outputs2"), strict=True
    ):
        vectors = np.asarray(outputs[name])[:, 1]
        expected = [[cosine(a, b) for a in vectors] for b in vectors]
        np.testing.assert_allclose(layer, expected, atol=1e-5)
        assert layer.dtype == np.float32


def test_layer_0_knows_no_context_and_the_others_do(model):
    layers = compare(model, [RIVER, MONEY, "bank"], "bank").layers
    np.testing.assert_allclose(layers[0], 1, atol=1e-6)
    for layer in layers[1:]:
        assert (layer[~np.eye(3, dtype=bool)] < 0.999).all()


def test_the_other_sentences_do_not_matter(model):
    both = compare(model, [RIVER, MONEY], "bank").layers
    of_many = compare(model, ["bank", RIVER, "x " * 40 + "bank", MONEY], "bank").layers
    for two, four in zip(both, of_many, strict=True):
        np.testing.assert_allclose(two, four[1::2, 1::2], atol=1e-5)


def test_first_occurrence(model):
    result = compare(model, ["a bank by a bank", "bank"], "bank")
    assert result.positions == [(1, 2), (0, 1)]


def test_a_word_of_several_tokens_is_their_mean(model):
    sentences = ["a New  York minute", "in New York"]
    result = compare(model, sentences, " New York")
    assert result.positions == [(1, 3), (1, 3)]
    vectors = np.asarray(model(character_ids(sentences))["lstm_outputs2"])[:, 1:3].mean(axis=1)
    np.testing.assert_allclose(result.layers[2][0, 1], cosine(*vectors), atol=1e-5)
    np.testing.assert_allclose(result.layers[0][0, 1], 1, atol=1e-6)


def test_several_tokens_must_follow_each_other(model):
    with pytest.raises(
        ValueError, match="The word 'New York' is not in the sentence 'New in York'"
    ):
        compare(model, ["New York", "New in York"], "New York")


def test_token_layers(model):
    result = compare(model, [RIVER, "my bank"], "bank")
    assert [vectors.shape for vectors in result.token_vectors] == [(8, 128), (8, 256), (8, 256)]
    assert [layer.shape for layer in result.token_layers] == [(8, 8)] * 3
    for of_tokens, of_word in zip(result.token_layers, result.layers, strict=True):
        np.testing.assert_allclose(of_tokens[1, 7], of_word[0, 1], atol=1e-6)
        np.testing.assert_allclose(np.diagonal(of_tokens), 1, atol=1e-6)


def test_boundaries_that_the_model_keeps_are_left_out(model):
    keeping = ElmoModel.from_preset("elmo_tiny_en", keep_sentence_boundaries=True)
    keeping.run_eagerly = True
    ours, theirs = (compare(m, [RIVER, "bank"], "bank") for m in (model, keeping))
    for one, two in zip(ours.token_vectors, theirs.token_vectors, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-6)


@pytest.mark.parametrize(
    "sentences", [RIVER, [], [RIVER], (RIVER,), [RIVER, None], [RIVER, b"bank"]], ids=repr
)
def test_sentences_that_are_no_list_of_two(model, sentences):
    with pytest.raises(
        ValueError, match="`sentences` must be a list of two or more sentences .* Received: "
    ):
        compare(model, sentences, "bank")


@pytest.mark.parametrize("sentence", ["", " ", "Bank", "bank-like", "riverbank", "it's"])
def test_absent_word(model, sentence):
    expected = f"The word 'bank' is not in the sentence {sentence!r}, which was cut into "
    with pytest.raises(ValueError, match=re.escape(expected)):
        compare(model, [RIVER, sentence], "bank")


def test_empty_word(model):
    with pytest.raises(ValueError, match="`word` must be a word of the sentences"):
        compare(model, [RIVER, MONEY], "  ")


def test_text_is_cut_by_the_tokenizer(model):
    sentences = ["It's my bank.", "The bank."]
    cut = compare(model, sentences, "bank")
    assert cut.sentences == [["It", "'s", "my", "bank", "."], ["The", "bank", "."]]
    assert cut.positions == [(3, 4), (1, 2)]
    uncut = compare(model, sentences, "bank.", "whitespace")
    assert uncut.sentences == [["It's", "my", "bank."], ["The", "bank."]]
    assert uncut.positions == [(2, 3), (1, 2)]
    with pytest.raises(ValueError, match="`tokenizer` must be"):
        compare(model, sentences, "bank", "words")


def test_a_chinese_word_is_the_mean_of_its_characters(model):
    sentences = ["我喜欢苹果。", "苹果公司很大。"]
    result = compare(model, sentences, "苹果")
    assert result.positions == [(3, 5), (0, 2)]
    first, second = (
        np.asarray(model(character_ids([list(sentence)]))["lstm_outputs1"])[0]
        for sentence in sentences
    )
    expected = cosine(first[3:5].mean(axis=0), second[:2].mean(axis=0))
    np.testing.assert_allclose(result.layers[1][0, 1], expected, atol=1e-5)


@pytest.mark.parametrize("word", ["x" * 10_000, "<PAD>", "</S>", "苹果", "😀", "[/b]"], ids=ascii)
def test_odd_words(model, word):
    layers = compare(model, [f"one {word}", f"{word} two"], word).layers
    assert np.isfinite(layers).all()
    np.testing.assert_allclose(layers[0], 1, atol=1e-6)


def test_words_alone(model):
    words = ["bank", "banker", "<S>", "bank"]
    similarity = compare_words(model, words)
    vectors = np.asarray(model(character_ids(words))["word_emb"])[:, 0]
    expected = [[cosine(a, b) for a in vectors] for b in vectors]
    np.testing.assert_allclose(similarity, expected, atol=1e-5)
    np.testing.assert_allclose(similarity[0, 3], 1, atol=1e-6)


@pytest.mark.parametrize("words", ["banker", [], ["banker"], ["banker", 1]], ids=repr)
def test_words_that_are_no_list_of_two(model, words):
    with pytest.raises(ValueError, match="`words` must be a list of two or more words"):
        compare_words(model, words)


@pytest.mark.parametrize("word", ["", " ", "New York"])
def test_words_with_white_space(model, word):
    with pytest.raises(
        ValueError, match="`words` must be single words without white space. Received: '"
    ):
        compare_words(model, ["bank", word])


def test_a_model_without_characters():
    model = ElmoModel(units=4, projection_dim=3, num_layers=1, vocabulary_size=5)
    with pytest.raises(ValueError, match="needs a model that reads characters"):
        compare(model, [RIVER, MONEY], "bank")


def test_cosine_similarity():
    vectors = np.float32([[3, 4], [6, 8], [-3, -4], [4, -3], [0, 0]])
    expected = [[1, 1, -1, 0, 0], [1, 1, -1, 0, 0], [-1, -1, 1, 0, 0], [0, 0, 0, 1, 0], [0] * 5]
    np.testing.assert_allclose(cosine_similarity(vectors), expected, atol=1e-6)
    rows = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    assert np.abs(cosine_similarity(rows)).max() <= 1


def test_a_comparison_cannot_be_changed(model):
    result = compare(model, [RIVER, MONEY], "bank")
    assert isinstance(result, Comparison)
    with pytest.raises(AttributeError):
        result.word = "river"
