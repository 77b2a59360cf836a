"""Exact match and F1 of answers."""

import pytest

from keras_elmo.tasks import answer_scores
from keras_elmo.tasks.answer_scores import answer_words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The  Normans,", ["normans"]),
        ("an apple a day", ["apple", "day"]),
        ("Anne's theory", ["annes", "theory"]),
        ("$5.50", ["550"]),
        ("“quoted”", ["“quoted”"]),
        ("北京 大学。", ["北", "京", "大", "学"]),
        ("在iPhone 15上，", ["在", "iphone", "15", "上"]),
        ("㐀𠀀", ["㐀", "𠀀"]),
        ("The", []),
        ("", []),
    ],
)
def test_words(text, words):
    assert answer_words(text) == words


@pytest.mark.parametrize(
    ("predicted", "right", "exact_match", "f1"),
    [
        ("the cat", ["A cat!"], 1, 1),
        ("cat sat", ["cat sat down there"], 0, 2 * 1 * 0.5 / 1.5),
        ("cat cat", ["cat"], 0, 2 * 0.5 * 1 / 1.5),
        ("dog", ["cat"], 0, 0),
        ("big dog", ["cat", "big dog", "dog"], 1, 1),
        ("", [], 1, 1),
        ("dog", [], 0, 0),
        ("", ["dog"], 0, 0),
        ("北京", ["北京市"], 0, 0.8),
    ],
)
def test_scores(predicted, right, exact_match, f1):
    found = answer_scores([predicted], [right])
    assert found == {"exact_match": exact_match, "f1": pytest.approx(f1)}


def test_means():
    found = answer_scores(["cat", "", "dog"], [["cat"], ["cat"], ["big dog"]])
    assert found == pytest.approx({"exact_match": 1 / 3, "f1": (1 + 0 + 2 / 3) / 3})
    assert answer_scores([], []) == {"exact_match": 0, "f1": 0}
