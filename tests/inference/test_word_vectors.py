"""WordVectors: a word's row is its layer 0, whatever was asked before, and the table keeps its bounds."""

import concurrent.futures

import keras
import numpy as np
import pytest

import keras_elmo
from keras_elmo import ElmoModel, character_ids
from keras_elmo.inference import word_vectors
from keras_elmo.inference.word_vectors import BOUNDARIES, WordVectors

WORDS = ["a", "the", "bank", "银行", "x" * 60, "", "<S>", "lone\ud800", "Ünïcödé"]


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(2)
    return ElmoModel(
        units=8,
        projection_dim=4,
        filters=[[1, 4], [3, 6]],
        num_highway_layers=1,
        max_word_length=20,
    )


def check(model, table, places, sentences):
    for row, sentence in zip(places, sentences, strict=True):
        words = [BOUNDARIES[0], *sentence, BOUNDARIES[1]]
        expected = model.encoder(character_ids([words], model.max_word_length))[0]
        np.testing.assert_allclose(table[row], expected, rtol=0, atol=1e-6)
        assert 0 not in row


def test_rows_are_layer_0_of_the_words(model):
    words = WordVectors(model)
    sentences = [WORDS, [], ["bank", "bank"]]
    check(model, *words.look_up(sentences), sentences)
    more = [["bank", "new"], ["a"]]
    check(model, *words.look_up(more), more)


def test_a_word_is_encoded_once(model, monkeypatch):
    words, seen = WordVectors(model), []
    encode = words._encode
    monkeypatch.setattr(words, "_encode", lambda ids: seen.append(ids.shape[1]) or encode(ids))
    words.look_up([["a", "b", "a"], ["b"]])
    assert seen == [4]  # the boundaries as well
    words.look_up([["b", "c"]])
    assert seen == [4, 1]
    words.look_up([["c"]])
    assert seen == [4, 1]
    monkeypatch.setattr(word_vectors, "WORDS_PER_BATCH", 2)
    words.look_up([["d", "e", "f"]])
    assert seen == [4, 1, 2, 1]


def test_most_words_of_a_text_are_not_encoded(model, monkeypatch):
    """Less than half of the character CNN's work is left, for words are not all equally frequent (user problem 49)."""
    embedder = keras_elmo.Embedder(model, layers="top")
    rows = []
    encode = embedder._words._encode
    monkeypatch.setattr(
        embedder._words, "_encode", lambda ids: rows.append(ids.shape[1]) or encode(ids)
    )
    # Zipf's law: the n-th word of the language occurs 1/n times as often as the first.
    chances = 1 / np.arange(1, 10_001)
    draw = np.random.default_rng(0).choice(10_000, size=(100, 20), p=chances / chances.sum())
    list(embedder.embed([[f"w{k}" for k in sentence] for sentence in draw]))
    assert sum(rows) == len(np.unique(draw)) + len(BOUNDARIES)
    assert sum(rows) <= draw.size / 2


def test_nothing_is_kept_without_the_cache(model, monkeypatch):
    words = WordVectors(model, ["word_cache"])
    for _ in range(3):
        table, places = words.look_up([["a", "b"]])
        assert len(table) == 5
        check(model, table, places, [["a", "b"]])


def test_the_table_keeps_its_bounds(model, monkeypatch):
    monkeypatch.setattr(word_vectors, "MAX_VALUES", 4 * 10)
    words = WordVectors(model)
    for k in range(30):
        sentence = [f"w{k}", f"w{k + 1}", f"w{k + 2}"]
        table, places = words.look_up([sentence])
        assert len(table) <= 10
        check(model, table, places, [sentence])
    # Of the words at hand all have a place.
    many = [f"m{k}" for k in range(25)]
    table, places = words.look_up([many])
    assert len(table) == 1 + 2 + 25
    check(model, table, places, [many])


def test_threads_do_not_mix_up_their_words(model, monkeypatch):
    """What was handed out stays as it is while others fill the table, or have it start anew."""
    monkeypatch.setattr(word_vectors, "MAX_VALUES", 4 * 12)
    words = WordVectors(model)

    def ask(k):
        sentences = [[f"w{k}", f"w{k % 7}", "a"]]
        return sentences, words.look_up(sentences)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(ask, range(40)))
    for sentences, (table, places) in answers:
        check(model, table, places, sentences)


def test_an_embedder_may_be_asked_in_turns(model):
    """Two generators of one Embedder, each between the other's windows."""
    embedder = keras_elmo.Embedder(model, layers="top")
    sentences = [["a", "bank"], ["the", "bank", "is"], ["far"]]
    alone = [next(embedder.embed([sentence])) for sentence in sentences]
    first, second = embedder.embed(sentences), embedder.embed(sentences[::-1])
    for k in range(3):
        np.testing.assert_allclose(next(first), alone[k], atol=1e-6)
        np.testing.assert_allclose(next(second), alone[2 - k], atol=1e-6)
