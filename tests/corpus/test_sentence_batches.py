import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_elmo.character_ids import word_character_ids
from keras_elmo.corpus import sentence_batches
from keras_elmo.vocabulary import Vocabulary

VOCABULARY = Vocabulary(["<S>", "</S>", "<UNK>", "the", "cat", "Āt"])


@settings(deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from(["the", "cat", "Āt", "new", "", "</S>", "\ud800"]), max_size=9)
    ),
    st.integers(1, 40),
)
def test_every_sentence_stands_once_whole_within_the_budget(sentences, batch_tokens):
    seen = []
    for batch in sentence_batches(sentences, VOCABULARY, 6, batch_tokens):
        rows, steps = batch.forward_words.shape
        assert rows * steps <= batch_tokens or rows == 1
        assert steps == batch.num_steps[0] == batch.num_steps.max()
        assert np.all(np.diff(batch.num_steps) <= 0)
        assert not batch.word_character_ids[0].any()
        assert batch.word_vocabulary_ids[0] == -1
        assert batch.num_steps.dtype == np.int32
        assert batch.indices.dtype == np.int64
        for row, index in enumerate(batch.indices):
            seen.append(index)
            words = ["<S>", *sentences[index], "</S>"]
            end = len(words) - 1
            assert batch.num_steps[row] == end
            for direction, order in (("forward", words), ("backward", words[::-1])):
                read = getattr(batch, f"{direction}_words")[row]
                targets = getattr(batch, f"{direction}_targets")[row]
                assert batch.word_vocabulary_ids[read[:end]].tolist() == VOCABULARY.ids(order[:-1])
                np.testing.assert_array_equal(
                    batch.word_character_ids[read[:end]],
                    [word_character_ids(word, 6) for word in order[:-1]],
                )
                assert targets[:end].tolist() == VOCABULARY.ids(order[1:])
                assert not read[end:].any()
                assert not targets[end:].any()
    assert sorted(seen) == list(range(len(sentences)))


def test_sentences_are_sorted_by_length_in_bounded_pieces():
    read = []

    def sentences():
        for number in range(10_000):
            read.append(number)
            yield ["the"] * (number % 7)

    batches = sentence_batches(sentences(), VOCABULARY, batch_tokens=16)
    lengths = [next(batches).num_steps.tolist() for _ in range(5)]
    assert lengths == [[7, 7]] * 5
    assert len(read) < 64 * 16
    assert sum(len(batch.indices) for batch in batches) == 10_000 - 10


def test_no_sentences_and_an_empty_one():
    assert list(sentence_batches([], VOCABULARY)) == []
    (batch,) = sentence_batches([[]], VOCABULARY)
    assert batch.forward_targets.tolist() == [[1]]
    assert batch.backward_targets.tolist() == [[0]]


@pytest.mark.parametrize("sentence", ["the cat", b"the", None, ["the", 3], [b"the"], 5])
def test_what_is_no_list_of_tokens_is_refused(sentence):
    with pytest.raises(ValueError, match="`sentences` must be lists of str tokens.* as sentence 1"):
        list(sentence_batches([["fine"], sentence], VOCABULARY))


def test_bad_numbers_at_once():
    with pytest.raises(ValueError, match="`batch_tokens` must be an integer of at least 1"):
        sentence_batches([], VOCABULARY, batch_tokens=0)
    with pytest.raises(ValueError, match="`max_word_length` must be an integer of at least 3"):
        sentence_batches([], VOCABULARY, 2)
