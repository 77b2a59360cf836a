import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_elmo.character_ids import word_character_ids
from keras_elmo.corpus.word_rows import WordRows


@given(
    st.lists(st.lists(st.text(max_size=6), unique=True, max_size=8), max_size=8),
    st.integers(1, 10),
)
def test_rows_are_those_of_the_mapper_however_little_is_remembered(calls, capacity):
    rows = WordRows(max_word_length=6, capacity=capacity)
    for words in calls:
        spelled = rows(words)
        assert spelled.dtype == np.int32
        assert spelled.shape == (len(words), 6)
        for row, word in zip(spelled, words, strict=True):
            np.testing.assert_array_equal(row, word_character_ids(word, 6))


def test_what_was_given_out_does_not_change_when_memory_is_reused():
    rows = WordRows(max_word_length=5, capacity=2)
    first = rows(["a", "b"])
    kept = first.copy()
    rows(["c", "d"])
    np.testing.assert_array_equal(first, kept)


def test_bad_numbers():
    with pytest.raises(ValueError, match="`capacity` must be an integer of at least 1"):
        WordRows(50, capacity=0)
    with pytest.raises(ValueError, match="`max_word_length` must be an integer of at least 3"):
        WordRows(2)
