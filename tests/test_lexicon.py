"""Lexicon: words and their Unicode characters to ids, as ELMoForManyLangs maps them."""

import numpy as np
import pytest

from keras_elmo import Lexicon

SPECIAL = ["<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>"]
BOS, EOS, OOV, PAD, BOW, EOW = range(6, 12)
CHARACTERS = [*"catи\u3000", *SPECIAL]
WORDS = ["cat", "<oov>", "<bos>", "<pad>", "at"]


@pytest.fixture
def lexicon():
    return Lexicon(CHARACTERS, WORDS)


def test_rows_and_padding(lexicon):
    """The marks at the ends of a word are swapped; places without a token are zero."""
    ids = lexicon.ids([["cat", "at"], [], ["иtá"]], max_word_length=6)
    assert {name: (array.shape, array.dtype) for name, array in ids.items()} == {
        "character_ids": ((3, 2, 6), np.int32),
        "word_ids": ((3, 2), np.int32),
    }
    assert ids["word_ids"].tolist() == [[1, 5], [0, 0], [2, 0]]
    assert ids["character_ids"].tolist() == [
        [[EOW, 1, 2, 3, BOW, PAD], [EOW, 2, 3, BOW, PAD, PAD]],
        [[0] * 6, [0] * 6],
        [[EOW, 4, 3, OOV, BOW, PAD], [0] * 6],
    ]


def test_white_space_cuts_strings_and_not_tokens(lexicon):
    ids = lexicon.ids(["cat  at", ["cat at", "\u3000"]], max_word_length=9)
    assert ids["word_ids"].tolist() == [[1, 5], [2, 2]]
    assert ids["character_ids"][1, 1].tolist() == [EOW, 5, BOW, *[PAD] * 6]


def test_long_words_are_cut_by_characters_before_they_are_looked_up(lexicon):
    ids = lexicon.ids([["catcatcat", "cat", "иииииииии"]], max_word_length=5)
    assert ids["word_ids"].tolist() == [[1, 1, 2]]
    assert ids["character_ids"][0].tolist() == [
        [EOW, 1, 2, 3, BOW],
        [EOW, 1, 2, 3, BOW],
        [EOW, 4, 4, 4, BOW],
    ]


def test_boundaries_are_one_symbol_however_short_words_are(lexicon):
    ids = lexicon.ids([["<bos>", "<eos>", "<pad>", ""]], max_word_length=3)
    assert ids["word_ids"].tolist() == [[3, 2, 2, 2]]
    assert ids["character_ids"][0].tolist() == [
        [EOW, BOS, BOW],
        [EOW, EOS, BOW],
        [EOW, OOV, BOW],
        [EOW, BOW, PAD],
    ]


def test_nothing(lexicon):
    ids = lexicon.ids([])
    assert ids["word_ids"].shape == (0, 0)
    assert ids["character_ids"].shape == (0, 0, 50)
    assert lexicon.ids([[], []])["character_ids"].shape == (2, 0, 50)


def test_one_part_alone():
    assert list(Lexicon(CHARACTERS).ids([["cat"]])) == ["character_ids"]
    assert list(Lexicon(None, WORDS).ids([["cat"]])) == ["word_ids"]


def test_config_and_equality(lexicon):
    assert Lexicon(**lexicon.get_config()) == lexicon
    assert hash(Lexicon(CHARACTERS, WORDS)) == hash(lexicon)
    assert lexicon != Lexicon(CHARACTERS)
    assert lexicon != CHARACTERS
    assert repr(lexicon) == "<Lexicon of 11 characters and 5 words>"
    assert lexicon.word_padding == PAD


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, None), "must have `characters` or `words`. Received: None for both"),
        ((["a", 3],), r"`characters` must be a list of str. Received: characters\[1\]=3"),
        (([*CHARACTERS, "c"],), "`characters` must hold every entry once. Received twice: 'c'"),
        ((CHARACTERS, ["<oov>"]), "`words` must hold <oov>, <pad>. .* 1 entries without <pad>"),
        (("abc",), "`characters` must hold <bos>, <eos>, .* 1 entries without <bos>, <eos>, <oov>"),
    ],
)
def test_argument_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        Lexicon(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cat",), "`sentences` must be a list of sentences"),
        (([["cat", None]],), r"Received: sentences\[0\]\[1\]=None"),
        (([["cat"]], 2), "`max_word_length` must be an integer of at least 3"),
    ],
)
def test_input_errors(lexicon, arguments, message):
    with pytest.raises(ValueError, match=message):
        lexicon.ids(*arguments)
