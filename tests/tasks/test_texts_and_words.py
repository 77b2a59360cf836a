"""Given words and their pieces; tables and batches; how words are written; labels of entities."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_elmo import tokenize_sentences
from keras_elmo.labels import Labels
from keras_elmo.layers.crf import bio_transitions
from keras_elmo.tasks.entities import are_entities, both_kinds, entity_scores, to_iob2
from keras_elmo.tasks.pooling import mean_and_max
from keras_elmo.tasks.table import Table, by_size, dataset, shuffled
from keras_elmo.tasks.texts import columns, cut_words, ragged_words, tensors
from keras_elmo.tasks.word_pieces import mean_of_pieces, word_pieces
from keras_elmo.tasks.word_shape import WordShape

# === Pieces of words ===

word = st.text(
    st.characters(codec="utf-8", exclude_categories=["Zs", "Cc", "Zl", "Zp"]), min_size=1
)


@pytest.mark.parametrize("tokenizer", ["word", "whitespace"])
@settings(deadline=None, max_examples=60)
@given(sentences=st.lists(st.lists(word, max_size=5), max_size=4))
def test_pieces_are_those_of_the_sentence_and_make_the_words(tokenizer, sentences):
    pieces = word_pieces(ragged_words(sentences), tokenizer)
    found = [[token.decode() for token in row] for row in pieces.tokens.to_list()]
    assert found == tokenize_sentences([" ".join(words) for words in sentences], tokenizer)
    for words, tokens, owners in zip(sentences, found, pieces.words.to_list(), strict=True):
        together = [""] * len(words)
        for token, owner in zip(tokens, owners, strict=True):
            together[owner] += token
        # White space that no category has, such as U+0085, is no part of a token.
        assert together == ["".join(w.split("\x85")) for w in words]


@pytest.mark.parametrize(
    ("words", "expected", "owners"),
    [
        (["Mr.", "Li", "cannot", "go"], ["Mr.", "Li", "can", "not", "go"], [0, 1, 2, 2, 3]),
        (["北京", "大学", "。"], ["北", "京", "大", "学", "。"], [0, 0, 1, 1, 2]),
        (["", "a", "", "b c", " "], ["a", "b", "c"], [1, 3, 3]),
        ([], [], []),
        (["do", "n't"], ["do", "n't"], [0, 1]),
    ],
)
def test_pieces(words, expected, owners):
    pieces = word_pieces(ragged_words([["x"], words]), "word")
    assert [token.decode() for token in pieces.tokens.to_list()[1]] == expected
    assert pieces.words.to_list()[1] == owners


def test_mean_of_pieces():
    random = np.random.default_rng(0)
    vectors = random.normal(size=(2, 4, 3)).astype("float32")
    words = np.array([[0, 0, 2, -1], [1, 1, 1, 0]], np.int32)
    found = mean_of_pieces(tf.constant(vectors), words, 3).numpy()
    for row in range(2):
        for place in range(3):
            own = vectors[row][words[row] == place]
            np.testing.assert_allclose(found[row, place], own.mean(0) if len(own) else 0, atol=1e-6)


def test_columns_and_tensors_say_the_same():
    found = cut_words(ragged_words([["北京", "a"], [], ["cannot"]]), "word")
    table = Table(columns(found, "p_"), np.array([3, 0, 2]))
    batch, direct = table.batch(range(3)), tensors(found, "p_")
    assert set(batch) == set(direct)
    for name, value in batch.items():
        assert value.tolist() == direct[name].numpy().tolist(), name


def test_words_that_are_none():
    for wrong in (["one string"], [["a", 1]], [None]):
        with pytest.raises(ValueError, match="`x` must hold lists of words, each a string"):
            ragged_words(wrong)


# === Batches ===


def test_every_row_comes_once():
    sizes = np.random.default_rng(0).integers(1, 30, 103)
    for order in (by_size, shuffled):
        batches = list(order(sizes, 8))
        assert sorted(np.concatenate(batches)) == list(range(103))
        assert len(batches) == 13
    assert [len(batch) for batch in by_size(sizes, 8)] == [8] * 12 + [7]
    first, second = (np.concatenate(list(shuffled(sizes, 8))) for _ in range(2))
    assert (first != second).any()


def test_batches_of_about_the_same_length():
    sizes = np.random.default_rng(0).integers(1, 100, 1000)
    spread = np.mean([np.ptp(sizes[batch]) for batch in shuffled(sizes, 10)])
    assert spread < 20


def test_dataset():
    texts = [np.array([b"a"] * n, object) for n in (1, 3, 2)]
    inputs = Table({"tokens": texts, "token_words": [np.arange(n) for n in (1, 3, 2)]}, np.ones(3))
    targets = Table({"labels": np.array([5, 6, 7], np.int32)}, np.ones(3))
    weights = np.array([1, 2, 3], np.float32)
    with dataset(inputs, targets, weights, 3, shuffle=False) as batches:
        ((x, y, weight),) = batches
    assert x["tokens"].numpy().tolist() == [[b"a", b"", b""], [b"a"] * 3, [b"a", b"a", b""]]
    assert x["token_words"].numpy().tolist() == [[0, -1, -1], [0, 1, 2], [0, 1, -1]]
    assert y["labels"].numpy().tolist() == [5, 6, 7]
    assert weight.numpy().tolist() == [1, 2, 3]
    with dataset(inputs, targets, None, 2, shuffle=True) as batches:
        assert len(batches) == 2


# === How words are written ===


def test_word_shape():
    layer = WordShape()
    words = tf.constant([["Paris", "paris", "USA", "12.5%", "Élan", "A", "", "x2", "北京", "ing"]])
    found = layer(words)
    assert found[0, :, :4].numpy().astype(int).tolist() == [
        [1, 0, 0, 0],
        [0, 0, 0, 0],
        [1, 1, 0, 0],
        [0, 0, 1, 1],
        [1, 0, 0, 0],
        [1, 0, 0, 0],
        [0, 0, 0, 0],
        [0, 0, 1, 0],
        [0, 0, 0, 0],
        [0, 0, 0, 0],
    ]
    assert found.shape == (1, 10, layer.dim) == layer.compute_output_shape((1, 10))
    suffixes = layer(tf.constant([["going", "doing", "ing", "Ing", b"\xffing"]]))[0, :, 4:].numpy()
    assert (suffixes[:3] == suffixes[0]).all()
    assert (suffixes[3] != suffixes[0]).any()


def test_pooling():
    vectors = np.random.default_rng(0).normal(size=(3, 4, 2)).astype("float32") - 5
    mask = np.array([[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]], bool)
    found = mean_and_max(tf.constant(vectors), tf.constant(mask)).numpy()
    for row in range(2):
        real = vectors[row][mask[row]]
        np.testing.assert_allclose(found[row], [*real.mean(0), *real.max(0)], atol=1e-6)
    assert not found[2].any()


# === Labels ===


def test_labels():
    labels = Labels(["a", "b"])
    assert labels.ids(["b", "a"]) == [1, 0]
    with pytest.raises(ValueError, match=r"must hold labels that the model was made with: .*'c'"):
        labels.ids(["a", "c"])
    for wrong in (["a"], [], ["a", "a"], ["a", 1], "ab", ["a", ""], None, [["a"], ["b"]]):
        with pytest.raises(ValueError, match="`labels` must be two or more different names"):
            Labels(wrong)


entity_label = st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"])


@given(labels=st.lists(entity_label))
def test_iob2_is_allowed_and_has_the_same_entities(labels):
    allowed = bio_transitions(["O", "B-X", "I-X", "B-Y", "I-Y"])
    places = {label: place for place, label in enumerate(["O", "B-X", "I-X", "B-Y", "I-Y"])}
    found = to_iob2(labels)
    before = [-1, *map(places.get, found)]
    assert all(allowed[a, b] for a, b in zip(before, before[1:], strict=False))
    assert to_iob2(found) == found
    assert [label[1:] for label in found] == [label[1:] for label in labels]


def spans(labels):
    """Begin, end and kind of each entity."""
    ends = [
        next((k for k in range(n + 1, len(labels)) if labels[k] != f"I-{label[2:]}"), len(labels))
        for n, label in enumerate(labels)
    ]
    return {(n, ends[n], label[2:]) for n, label in enumerate(labels) if label[0] == "B"}


@settings(deadline=None)
@given(
    pairs=st.lists(
        st.integers(1, 6).flatmap(
            lambda n: st.tuples(*[st.lists(entity_label, min_size=n, max_size=n)] * 2)
        ),
        min_size=1,
        max_size=4,
    )
)
def test_scores_are_those_of_sets_of_entities(pairs):
    true, predicted = ([to_iob2(labels) for labels in rows] for rows in zip(*pairs, strict=True))
    gold, found = (
        {(row, *span) for row, labels in enumerate(rows) for span in spans(labels)}
        for rows in (true, predicted)
    )
    right = len(gold & found)
    precision = right / len(found) if found else 0.0
    recall = right / len(gold) if gold else 0.0
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    assert entity_scores(true, predicted) == pytest.approx(
        {"precision": precision, "recall": recall, "f1": f1}
    )


def test_kinds_of_labels():
    assert are_entities(["O", "B-X"])
    assert are_entities(["I-X", "B-X"])
    assert not are_entities(["O"])
    assert not are_entities(["O", "B-X", "NOUN"])
    assert both_kinds(["B-X", "O"]) == ["B-X", "O", "I-X"]
    assert both_kinds(["I-X", "B-Y"]) == ["I-X", "B-Y", "O", "B-X", "I-Y"]
