import sys

import pytest

from keras_elmo.text import chinese_words


def test_words_not_characters():
    pytest.importorskip("jieba", reason="jieba is not installed (extra `zh`)")
    sentences = ["我喜欢吃苹果 ， 也喜欢苹果手机 iPhone 15 。", "", " \u3000"]
    assert chinese_words(sentences) == [
        ["我", "喜欢", "吃", "苹果", "，", "也", "喜欢", "苹果", "手机", "iPhone", "15", "。"],
        [],
        [],
    ]


def test_errors(monkeypatch):
    for wrong in ("我", [None], ["我", b"x"]):
        with pytest.raises(ValueError, match="`sentences` must be a sequence of strings"):
            chinese_words(wrong)
    monkeypatch.setitem(sys.modules, "jieba", None)
    with pytest.raises(ModuleNotFoundError, match="pip install jieba"):
        chinese_words(["我"])
