import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paths import shared

from keras_elmo.character_ids import word_character_ids
from keras_elmo.corpus import SentenceStream, TrainingStream
from keras_elmo.vocabulary import Vocabulary

VOCABULARY = Vocabulary(["<S>", "</S>", "<UNK>", "the", ".", "Āt"])
# Every word is in it, so that ids tell sentences apart.
NUMBERED = Vocabulary(["<S>", "</S>", "<UNK>", *(f"w{n}" for n in range(400))])

SIDES = ("forward_words", "forward_targets", "backward_words", "backward_targets")
CORPORA = st.lists(st.integers(0, 12), min_size=1, max_size=12).filter(any)


@pytest.fixture
def write(tmp_path):
    def write(*sentences, name="text.txt"):
        path = tmp_path / name
        path.write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    """Writes sentences of given lengths, in two files, no word twice; returns their ids too."""

    def numbered(lengths):
        folder = tmp_path_factory.mktemp("corpus")
        words = iter(list(NUMBERED)[3:])
        sentences = [[next(words) for _ in range(length)] for length in lengths]
        half = len(sentences) // 2
        for name, part in (("0.txt", sentences[:half]), ("1.txt", sentences[half:])):
            (folder / name).write_text("".join(" ".join(tokens) + "\n" for tokens in part))
        return str(folder / "*.txt"), [(0, *NUMBERED.ids(tokens), 1) for tokens in sentences]

    return numbered


def ids_of(batch, side):
    array = getattr(batch, side)
    return batch.word_vocabulary_ids[array] if side.endswith("words") else array


def same(batch, other):
    fields = vars(batch)
    return fields.keys() == vars(other).keys() and all(
        np.array_equal(value, getattr(other, name)) for name, value in fields.items()
    )


def rows_of(batches, row, side):
    return [int(id_) for batch in batches for id_ in ids_of(batch, side)[row]]


def test_golden_packing_of_bilm_tf(write):
    sentences = SentenceStream(write("the unknown .", "th .", "the"), shuffle=False)
    stream = TrainingStream(sentences, VOCABULARY, 2, unroll_steps=3)
    golden = [
        (
            [[0, 3, 2], [0, 2, 4]],
            [[3, 2, 4], [2, 4, 1]],
            [[1, 4, 2], [1, 4, 2]],
            [[4, 2, 3], [4, 2, 0]],
        ),
        (
            [[4, 0, 3], [0, 3, 2]],
            [[1, 3, 1], [3, 2, 4]],
            [[3, 1, 3], [1, 4, 2]],
            [[0, 3, 0], [4, 2, 3]],
        ),
    ]
    for expected in golden:
        batch = next(stream)
        for side, ids in zip(SIDES, expected, strict=True):
            assert ids_of(batch, side).tolist() == ids, side


def test_a_batch_has_each_word_it_reads_once_spelled(write):
    sentences = SentenceStream(write("the Āt the", "new"), shuffle=False)
    batch = next(TrainingStream(sentences, VOCABULARY, 1, unroll_steps=6, max_word_length=7))
    words = ["<S>", "the", "Āt", "new", "</S>"]
    assert batch.word_vocabulary_ids.tolist() == [-1, 0, 3, 5, 2, 1]
    np.testing.assert_array_equal(
        batch.word_character_ids, [[0] * 7, *(word_character_ids(word, 7) for word in words)]
    )
    assert batch.forward_words.tolist() == [[1, 2, 3, 2, 1, 4]]
    assert batch.forward_targets.tolist() == [[3, 5, 3, 1, 2, 1]]
    assert batch.backward_words.tolist() == [[5, 2, 3, 2, 5, 4]]
    assert batch.backward_targets.tolist() == [[3, 5, 3, 0, 2, 0]]
    for name, value in vars(batch).items():
        if name not in ("epoch", "position"):
            assert value.dtype == np.int32, name


def test_a_word_that_is_only_predicted_is_not_among_those_read(write):
    sentences = SentenceStream(write("w0 w1 w2 w3 w4 w5"), shuffle=False)
    batch = next(TrainingStream(sentences, NUMBERED, 1, unroll_steps=2))
    assert sorted(batch.word_vocabulary_ids.tolist()) == [-1, 0, 1, 3, 8]


@settings(max_examples=60, deadline=None)
@given(
    lengths=CORPORA,
    batch_size=st.integers(1, 5),
    unroll_steps=st.integers(1, 6),
    num_epochs=st.integers(1, 4),
    shuffle=st.booleans(),
    buffer_size=st.integers(1, 15),
)
def test_rows_are_whole_sentences_in_both_directions(
    numbered, lengths, batch_size, unroll_steps, num_epochs, shuffle, buffer_size
):
    patterns, sentences = numbered(lengths)
    corpus = SentenceStream(patterns, shuffle=shuffle, buffer_size=buffer_size)
    stream = TrainingStream(corpus, NUMBERED, batch_size, unroll_steps, num_epochs=num_epochs)
    num_steps = num_epochs * sum(len(sentence) - 1 for sentence in sentences)
    try:
        batches = list(stream)
    except ValueError as error:
        if "shorter than one batch" not in str(error):
            raise
        return
    num_kept = len(batches) * batch_size * unroll_steps
    assert stream.num_dropped == num_steps - num_kept
    with pytest.raises(StopIteration):
        next(stream)

    found = []
    for row in range(batch_size):
        forward, targets, backward, backward_targets = (
            rows_of(batches, row, side) for side in SIDES
        )
        starts = [place for place, id_ in enumerate(forward) if id_ == NUMBERED.begin_id]
        assert starts[0] == 0
        for start, end in zip(starts, [*starts[1:], len(forward)], strict=True):
            read = (*forward[start:end], targets[end - 1])
            sentence = next(s for s in sentences if s[: len(read)] == read)
            # The last sentence of a row may be cut off, where the run ends.
            assert sentence == read or end == len(forward)
            reverse = sentence[::-1][: len(read)]
            assert tuple(targets[start:end]) == read[1:]
            assert tuple(backward[start:end]) == reverse[:-1]
            assert tuple(backward_targets[start:end]) == reverse[1:]
            found.append(sentence)
    # No sentence more often than there are epochs, and those that are not there were dropped.
    left = [sentence for sentence in sentences for _ in range(num_epochs)]
    for sentence in found:
        left.remove(sentence)
    assert sum(len(sentence) - 1 for sentence in left) <= stream.num_dropped


def test_every_sentence_once_in_an_epoch(numbered):
    patterns, sentences = numbered([3] * 12)
    stream = TrainingStream(SentenceStream(patterns, seed=3), NUMBERED, 3, 4, num_epochs=5)
    batches = list(stream)
    assert stream.num_dropped == 0
    # Sentences of just one window: batch by batch, row by row is the order in which they are drawn.
    drawn = [tuple(row) for batch in batches for row in ids_of(batch, "forward_words").tolist()]
    epochs = [drawn[start : start + 12] for start in range(0, 60, 12)]
    assert all(sorted(epoch) == sorted(s[:-1] for s in sentences) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 5
    assert [batch.epoch for batch in batches] == [n for e in range(5) for n in (e, e, e, e + 1)]


def test_steps_of_a_run_are_counted_from_the_data(write):
    """User problem 57: 4 + 3 + 2 steps, two epochs."""
    sentences = SentenceStream(write("the unknown .", "th .", "the"))
    stream = TrainingStream(sentences, VOCABULARY, 1, unroll_steps=3, num_epochs=2)
    batches = list(stream)
    assert len(batches) == 6
    assert stream.num_dropped == 0
    # The second epoch begins when the last sentence of the first is drawn, in the third batch.
    assert [batch.epoch for batch in batches[2:5]] == [1, 1, 1]
    assert batches[5].epoch == 2


def test_a_sentence_longer_than_the_window_goes_on_in_its_row(write):
    """User problem 56: 100 tokens are five windows and one step."""
    long = " ".join(f"w{n}" for n in range(100))
    sentences = SentenceStream(write(long, *["w200"] * 200), shuffle=False)
    batches = list(TrainingStream(sentences, NUMBERED, 2, num_epochs=1))
    row = rows_of(batches, 0, "forward_words")
    assert row[:101] == [0, *range(3, 103)]
    assert row[101:105] == [0, 203, 0, 203]
    assert rows_of(batches, 0, "backward_words")[:101] == [1, *range(102, 2, -1)]


def test_an_empty_line_is_one_step_and_boundaries_in_text_are_boundaries(write):
    sentences = SentenceStream(write("the", "", "<S> </S>"), shuffle=False)
    batch = next(TrainingStream(sentences, VOCABULARY, 1, unroll_steps=6))
    assert ids_of(batch, "forward_words").tolist() == [[0, 3, 0, 0, 0, 1]]
    assert batch.forward_targets.tolist() == [[3, 1, 1, 0, 1, 1]]


@pytest.mark.parametrize("shuffle", [True, False])
def test_a_stream_goes_on_exactly_from_every_batch(numbered, shuffle):
    lengths = [3, 0, 40, 5, 1, 7, 2, 0, 9, 4, 6, 1, 3, 8, 2]

    def corpus():
        return SentenceStream(patterns, shuffle=shuffle, buffer_size=4, seed=11)

    patterns, _ = numbered(lengths)
    settings = {"batch_size": 3, "unroll_steps": 4, "max_word_length": 8, "num_epochs": 4}
    whole = TrainingStream(corpus(), NUMBERED, **settings)
    start = whole.position
    batches = list(whole)
    assert len(batches) > 25
    positions = [start, *(batch.position for batch in batches)]
    for number, position in enumerate(positions):
        position = json.loads(json.dumps(position))
        resumed = TrainingStream(corpus(), NUMBERED, **settings, position=position)
        assert resumed.position == position
        rest = list(resumed)
        assert len(rest) == len(batches) - number
        assert all(same(*pair) for pair in zip(rest, batches[number:], strict=True))
        assert resumed.num_dropped == whole.num_dropped > 0
    assert whole.position == positions[-1]


def test_a_run_may_be_made_longer(numbered):
    patterns, _ = numbered([4] * 5)
    corpus = SentenceStream(patterns, seed=1)
    endless = TrainingStream(corpus, NUMBERED, 2, 3)
    batches = [next(endless) for _ in range(20)]
    first = list(TrainingStream(corpus, NUMBERED, 2, 3, num_epochs=2))
    longer = TrainingStream(corpus, NUMBERED, 2, 3, num_epochs=4, position=first[-1].position)
    second = list(longer)
    assert len(first) + len(second) == (4 * 25) // 6
    assert all(same(*pair) for pair in zip(first + second, batches, strict=False))


def test_resuming_cuts_no_skipped_sentence_again(numbered):
    patterns, _ = numbered([4] * 80)
    cut = []

    def tokenize(lines):
        cut.extend(lines)
        return [line.split() for line in lines]

    corpus = SentenceStream(patterns, "plain", tokenize)
    stream = TrainingStream(corpus, NUMBERED, 1, 5, num_epochs=1)
    for _ in range(70):
        batch = next(stream)
    cut.clear()
    assert (
        len(list(TrainingStream(corpus, NUMBERED, 1, 5, num_epochs=1, position=batch.position)))
        == 10
    )
    assert len(cut) == 10


def test_the_position_is_small(write):
    path = write("w0 " * 1_000_000, *["w1 w2"] * 1000)
    stream = TrainingStream(SentenceStream(path, shuffle=False), NUMBERED, 8)
    position = next(stream).position
    assert position["rows"][0] == [0, 1, 20]
    assert len(json.dumps(position)) < 300
    resumed = TrainingStream(SentenceStream(path, shuffle=False), NUMBERED, 8, position=position)
    assert same(next(resumed), next(stream))


def test_one_word_in_all(write):
    stream = TrainingStream(SentenceStream(write("the")), VOCABULARY, 2, unroll_steps=3)
    assert ids_of(next(stream), "forward_words").tolist() == [[0, 3, 0], [0, 3, 0]]


def test_the_first_batch_drawn_ahead(write):
    corpus = SentenceStream(write("the", "the . Āt", "the", "."), shuffle=False)
    stream, plain = (TrainingStream(corpus, VOCABULARY, 2, 2, num_epochs=2) for _ in range(2))
    before = stream.position
    stream.check()
    assert stream.position == before
    for batch, expected in zip(stream, plain, strict=True):
        assert same(batch, expected)
        assert stream.position == expected.position


def test_a_run_shorter_than_a_batch(write):
    stream = TrainingStream(SentenceStream(write("the")), VOCABULARY, 2, 3, num_epochs=2)
    sentence = (
        "The run is shorter than one batch of 2 rows of 3 steps: 4 predictions in all "
        "(`num_epochs`: 2). Take a smaller batch"
    )
    with pytest.raises(ValueError, match=re.escape(sentence)):
        next(stream)


@pytest.mark.parametrize("name", ["batch_size", "unroll_steps", "num_epochs"])
@pytest.mark.parametrize("value", [0, 2.0])
def test_bad_numbers(write, name, value):
    arguments = {"batch_size": 2, name: value}
    with pytest.raises(ValueError, match=f"`{name}` must be an integer of at least 1. Received"):
        TrainingStream(SentenceStream(write("the")), VOCABULARY, **arguments)
    with pytest.raises(ValueError, match="`max_word_length` must be an integer of at least 3"):
        TrainingStream(SentenceStream(write("the")), VOCABULARY, 2, max_word_length=2)


def test_a_position_of_something_else(write):
    corpus = SentenceStream(write("the", "the . Āt", "the", "."), shuffle=False)
    position = next(TrainingStream(corpus, VOCABULARY, 2, 2)).position
    assert position["rows"] == [None, [0, 2, 2]]

    def resume(corpus=corpus, batch_size=2, **changes):
        TrainingStream(corpus, VOCABULARY, batch_size, 2, position={**position, **changes})

    with pytest.raises(ValueError, match="The corpus must be the one that the position is in"):
        resume(SentenceStream(corpus.files, seed=5))
    with pytest.raises(ValueError, match="The corpus must be the one that the position is in"):
        TrainingStream(corpus, VOCABULARY, 2, 2, position={})
    with pytest.raises(
        ValueError, match="as many rows as the batch. Received: 2 rows and batch_size=3"
    ):
        resume(batch_size=3)
    with pytest.raises(ValueError, match=r"`position\['epoch'\]` must be an integer of at least 0"):
        resume(epoch=-1)
    with pytest.raises(
        ValueError, match=r"`position\['sentence'\]` must be an integer of at least 0"
    ):
        resume(sentence=None)
    with pytest.raises(ValueError, match=r"text\.txt must have a line 9, but ends before it"):
        resume(rows=[None, [0, 9, 1]])
    with pytest.raises(
        ValueError, match=r"line 3: must have 2 tokens or more, as it had before, but has 1"
    ):
        resume(rows=[None, [0, 3, 2]])


def test_a_corpus_that_shrank(write):
    corpus = SentenceStream(write("the the", "the the"), shuffle=False)
    position = next(TrainingStream(corpus, VOCABULARY, 1, 3)).position
    write("the the the the")
    stream = TrainingStream(corpus, VOCABULARY, 1, 3, position=position)
    with pytest.raises(ValueError, match="more than 1 sentences, as it had before, but ends there"):
        next(stream)


@pytest.mark.large
def test_a_real_shard_goes_on_exactly():
    vocabulary = Vocabulary.load(shared("models", "tiny_en", "vocab.txt"))
    files = [shared("data", "lm", f"train-{n:02}.txt.xz") for n in range(2)]
    stream = TrainingStream(SentenceStream(files), vocabulary, 128)
    for _ in range(1000):
        batch = next(stream)
    resumed = TrainingStream(SentenceStream(files), vocabulary, 128, position=batch.position)
    for _ in range(300):
        assert same(next(resumed), next(stream))
