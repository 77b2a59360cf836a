"""The NumPy mapper: the rows that the released weights were trained on."""

import doctest
import json
import re
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_elmo.character_ids import (
    BEGIN_OF_SENTENCE,
    BEGIN_OF_WORD,
    END_OF_SENTENCE,
    END_OF_WORD,
    NUM_CHARACTERS,
    WORD_PADDING,
    character_ids,
    count_cut_words,
    word_character_ids,
)

# The package exports the function under the module's name.
module = sys.modules[character_ids.__module__]

GOLDEN = Path(__file__).parents[2] / "shared" / "fixtures" / "generated"
CHINA = "中华人民共和国"
# fmt: off
CHINA_ROW = [
    259, 229, 185, 174, 230, 142, 143, 229, 187, 187, 231, 177, 146, 230, 134, 178, 230, 147, 141,
    260,
]
# fmt: on
ANY_TEXT = st.text(st.characters(exclude_categories=()))
WIDTHS = st.sampled_from([3, 5, 12, 20, 50])


def spelled(word: str, width: int) -> list[int]:
    """The row in plain Python: the oracle."""
    data = word.encode("utf-8", "ignore")
    characters = {b"<S>": [257], b"</S>": [258]}.get(data, [byte + 1 for byte in data[: width - 2]])
    return ([259, *characters, 260] + [261] * width)[:width]


def test_the_constants_number_the_table_in_the_docstring():
    assert NUM_CHARACTERS == 262
    assert [BEGIN_OF_SENTENCE, END_OF_SENTENCE] == [257, 258]
    assert [BEGIN_OF_WORD, END_OF_WORD, WORD_PADDING] == [259, 260, 261]
    assert module.NO_TOKEN == 0
    assert module.MAX_WORD_LENGTH == 50


@pytest.mark.parametrize(
    ("word", "width", "row"),
    [
        ("th", 5, [259, 117, 105, 260, 261]),
        ("thhhhh", 5, [259, 117, 105, 105, 260]),
        ("Āt", 5, [259, 197, 129, 117, 260]),
        ("The", 50, [259, 85, 105, 102, 260, *[261] * 45]),
        ("<S>", 50, [259, 257, 260, *[261] * 47]),
        ("</S>", 50, [259, 258, 260, *[261] * 47]),
        ("</S>", 3, [259, 258, 260]),
        ("<s>", 5, [259, 61, 116, 63, 260]),
        ("</Sx", 5, [259, 61, 48, 84, 260]),
        ("", 5, [259, 260, 261, 261, 261]),
        ("\ud800", 5, [259, 260, 261, 261, 261]),
        ("a\ud800b", 5, [259, 98, 99, 260, 261]),
        ("\0a\0", 5, [259, 1, 98, 1, 260]),
        (CHINA, 20, CHINA_ROW),
    ],
)
def test_golden_rows(word, width, row):
    ids = word_character_ids(word, width)
    assert ids.dtype == np.int32
    assert ids.tolist() == row
    np.testing.assert_array_equal(character_ids([[word]], width), [[row]])


def test_words_are_cut_by_bytes_even_inside_a_character():
    e_acute = [196, 170]
    assert word_character_ids("é" * 30).tolist() == [259, *e_acute * 24, 260]
    assert word_character_ids("a" * 47 + "é").tolist() == [259, *[98] * 47, e_acute[0], 260]
    np.testing.assert_array_equal(word_character_ids("a" * 49), word_character_ids("a" * 60))


def test_shorter_sentences_are_padded_with_rows_of_zeros():
    ids = character_ids(["a  b\tc\n", ["d"], "", []], max_word_length=4)
    assert ids.dtype == np.int32
    assert ids.shape == (4, 3, 4)
    assert ids[0, :, 1].tolist() == [98, 99, 100]
    assert ids[1, 0].tolist() == [259, 101, 260, 261]
    assert not ids[1, 1:].any()
    assert not ids[2:].any()


@pytest.mark.parametrize(
    ("sentences", "shape"), [([], (0, 0, 50)), ([[]], (1, 0, 50)), (["", "  "], (2, 0, 50))]
)
def test_empty_input_has_no_tokens(sentences, shape):
    ids = character_ids(sentences)
    assert ids.shape == shape
    assert ids.dtype == np.int32


def test_an_empty_token_in_a_list_is_a_word():
    assert character_ids([["a", ""]], 4).tolist() == [[[259, 98, 260, 261], [259, 260, 261, 261]]]


def test_typed_boundaries_are_the_boundary_rows_and_typed_padding_is_a_word():
    ids = character_ids(["<S> a </S> <PAD>"], max_word_length=8)
    np.testing.assert_array_equal(ids[0, 0], word_character_ids("<S>", 8))
    np.testing.assert_array_equal(ids[0, 2], word_character_ids("</S>", 8))
    assert ids[0, 3].tolist() == [259, *[byte + 1 for byte in b"<PAD>"], 260, 261]


def test_sequences_of_every_kind_give_the_same_ids():
    words = [["the", "cat"], ["a", "dog"]]
    expected = character_ids(words)
    for same in (
        ["the cat", "a dog"],
        [tuple(tokens) for tokens in words],
        np.array(words),
        np.array(words, dtype=object),
        np.array(["the cat", "a dog"]),
        (iter(tokens) for tokens in words),
    ):
        np.testing.assert_array_equal(character_ids(same), expected)


def test_golden_character_ids():
    if not GOLDEN.exists():
        pytest.skip("shared/fixtures is not beside the repository")
    sentences = json.loads((GOLDEN / "sentences.json").read_text(encoding="utf-8"))
    with h5py.File(GOLDEN / "skip2" / "expected.hdf5") as file:
        np.testing.assert_array_equal(character_ids(sentences), file["character_ids"][()])


@given(st.lists(st.lists(ANY_TEXT, max_size=4), max_size=4), WIDTHS)
def test_any_unicode_is_spelled_as_the_oracle_spells_it(sentences, width):
    ids = character_ids(sentences, width)
    num_tokens = max(map(len, sentences), default=0)
    expected = [
        [spelled(word, width) for word in words] + [[0] * width] * (num_tokens - len(words))
        for words in sentences
    ]
    np.testing.assert_array_equal(ids, np.reshape(expected, (len(sentences), num_tokens, width)))


def test_cut_words_are_counted():
    assert count_cut_words([[CHINA]], max_word_length=20) == (1, 1)
    assert count_cut_words([[CHINA]]) == (0, 1)
    assert count_cut_words(["a" * 48 + " b", "a" * 49 + " " + "a" * 49]) == (2, 4)
    assert count_cut_words(["<S> a </S>", []], max_word_length=3) == (0, 3)
    assert count_cut_words([]) == (0, 0)


A_LIST = (
    r"`sentences` must be a list of sentences, each a str or a list of str tokens. Received: {}"
)


@pytest.mark.parametrize("function", [character_ids, count_cut_words])
@pytest.mark.parametrize(
    ("sentences", "received"),
    [
        ("the cat", "sentences='the cat'; for one sentence pass [sentence]."),
        (b"the cat", "sentences=b'the cat'; for one sentence pass [sentence]."),
        (None, "sentences=None; for one sentence pass [sentence]."),
        (["a", None], "sentences[1]=None of type NoneType; convert it to str"),
        ([b"a"], "sentences[0]=b'a' of type bytes; convert it to str, bytes with `.decode"),
        (["a", ["b", 3]], "sentences[1][1]=3 of type int; convert it to str"),
        ([["a", b"b"]], "sentences[0][1]=b'b' of type bytes; convert it to str"),
        ([["a", None]], "sentences[0][1]=None of type NoneType; convert it to str"),
        ([[["a"]]], "sentences[0][0]=['a'] of type list; convert it to str"),
    ],
)  # fmt: skip
def test_what_is_not_text_is_refused(function, sentences, received):
    with pytest.raises(ValueError, match=re.escape(A_LIST.format(received))):
        function(sentences)


def test_a_word_must_be_a_str():
    with pytest.raises(ValueError, match="`word` must be a str. Received: word=b'a' of type bytes"):
        word_character_ids(b"a")


@pytest.mark.parametrize("max_word_length", [2, -1, 5.0, "50", None, True])
@pytest.mark.parametrize("function", [character_ids, count_cut_words, word_character_ids])
def test_max_word_length_must_hold_a_byte(function, max_word_length):
    sentence = (
        "`max_word_length` must be an integer of at least 3: begin of word, one byte, end of word. "
        f"Received: max_word_length={max_word_length!r}"
    )
    with pytest.raises(ValueError, match=re.escape(sentence)):
        function("a" if function is word_character_ids else ["a"], max_word_length)


def test_max_word_length_may_be_a_numpy_integer():
    assert character_ids(["a"], np.int64(3)).tolist() == [[[259, 98, 260]]]


def test_examples():
    assert doctest.testmod(module).failed == 0
