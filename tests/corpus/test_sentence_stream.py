import gzip
import lzma
import os
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_elmo.corpus import SentenceStream
from keras_elmo.corpus import sentence_stream as module


@pytest.fixture
def write(tmp_path):
    def write(lines, name="text.txt"):
        text = "".join(f"{line}\n" for line in lines).encode()
        compress = {".gz": gzip.compress, ".xz": lzma.compress}.get(name[-3:], bytes)
        path = tmp_path / name
        path.write_bytes(compress(text))
        return path

    return write


@pytest.fixture
def shards(write, tmp_path):
    """Three files, one of each kind, with an empty one between; 30 lines."""
    write([f"a{n} x" for n in range(10)], "0.txt")
    write([], "1.txt")
    write([f"b{n}" for n in range(10)], "2.txt.gz")
    write([f"c{n} y z" for n in range(10)], "3.txt.xz")
    return str(tmp_path / "*")


def words(sentences):
    return [" ".join(sentence.tokens) for sentence in sentences]


def test_unshuffled_is_line_by_line(shards):
    stream = SentenceStream(shards, shuffle=False)
    drawn = list(stream.epoch(0))
    assert [(sentence.file, sentence.line) for sentence in drawn] == [
        (file, line) for file in (0, 2, 3) for line in range(1, 11)
    ]
    assert [sentence.is_last for sentence in drawn] == [False] * 29 + [True]
    assert drawn[25].tokens == ["c5", "y", "z"]
    assert list(stream.epoch(1)) == drawn


@pytest.mark.parametrize("buffer_size", [1, 3, 30, 1000])
def test_every_epoch_has_every_line_once_in_an_order_of_its_own(shards, buffer_size):
    stream = SentenceStream(shards, buffer_size=buffer_size, seed=7)
    epochs = [list(stream.epoch(number)) for number in range(4)]
    for epoch in epochs:
        assert len(epoch) == 30
        assert len({sentence[:2] for sentence in epoch}) == 30
        assert [sentence.is_last for sentence in epoch] == [False] * 29 + [True]
    assert len({tuple(words(epoch)) for epoch in epochs}) > 1
    for seed in (7, 8):
        again = SentenceStream(shards, buffer_size=buffer_size, seed=seed)
        assert ([list(again.epoch(number)) for number in range(4)] == epochs) == (seed == 7)


def test_files_and_lines_are_both_shuffled(shards):
    stream = SentenceStream(shards, buffer_size=2)
    assert len({next(iter(stream.epoch(number))).file for number in range(20)}) == 3
    stream = SentenceStream(shards, buffer_size=30)
    first = Counter(next(iter(stream.epoch(number))).tokens[0] for number in range(300))
    assert len(first) == 30


@settings(max_examples=20)
@given(start=st.integers(0, 31), buffer_size=st.integers(1, 40), epoch=st.integers(0, 3))
def test_an_epoch_may_begin_anywhere(tmp_path_factory, start, buffer_size, epoch):
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    path.write_text("".join(f"w{n}\n" for n in range(30)))
    stream = SentenceStream(path, buffer_size=buffer_size)
    assert list(stream.epoch(epoch, start)) == list(stream.epoch(epoch))[start:]


def test_plain_text_is_cut_by_the_function_in_pieces_and_only_where_needed(write):
    calls = []

    def tokenize(sentences):
        calls.append(len(sentences))
        return [list(sentence) for sentence in sentences]

    path = write(["ab c"] * 200)
    stream = SentenceStream(path, format="plain", tokenize=tokenize)
    assert words(stream.epoch(0, start=100)) == ["a b   c"] * 100
    assert calls == [64, 36]


def test_long_lines_fill_the_buffer_sooner(write, monkeypatch):
    monkeypatch.setattr(module, "_MAX_BUFFERED_CHARACTERS", 100)
    path = write([f"{n:03}" + "x" * 47 for n in range(50)])
    order = [sentence.line for sentence in SentenceStream(path).epoch(0)]
    assert sorted(order) == list(range(1, 51))
    assert max(place - line for place, line in enumerate(order, start=1)) < 30
    # Two lines in the buffer: no line can come more than one place early.
    assert max(line - place for place, line in enumerate(order, start=1)) == 1


def test_a_blank_line_is_an_empty_sentence(write):
    stream = SentenceStream(write(["a b", "", " \t", "c"]), shuffle=False)
    assert [sentence.tokens for sentence in stream.epoch(0)] == [["a", "b"], [], [], ["c"]]


def test_single_sentences(shards):
    stream = SentenceStream(shards)
    places = [(3, 10), (0, 1), (3, 2), (0, 1)]
    assert stream.tokens_at(places) == {
        (3, 10): ["c9", "y", "z"],
        (0, 1): ["a0", "x"],
        (3, 2): ["c1", "y", "z"],
    }
    assert stream.tokens_at([]) == {}
    with pytest.raises(
        ValueError, match=r"0\.txt must have a line 11, but ends before it\. Has the"
    ):
        stream.tokens_at([(0, 11)])
    with pytest.raises(ValueError, match=r"The corpus has 4 files, no file 4\."):
        stream.tokens_at([(4, 1)])


def test_the_fingerprint_follows_files_and_settings(write, tmp_path):
    path = write(["a", "b"])
    stream = SentenceStream(path)
    (tmp_path / "moved").mkdir()
    moved = tmp_path / "moved" / "text.txt"
    moved.write_bytes(path.read_bytes())
    assert SentenceStream(moved).fingerprint == stream.fingerprint
    others = [
        SentenceStream(path, seed=1),
        SentenceStream(path, shuffle=False),
        SentenceStream(path, buffer_size=5),
        SentenceStream(path, format="plain", tokenize=list),
        SentenceStream([path, write(["a"], "other.txt")]),
        SentenceStream(write(["a", "b", "c"])),
    ]
    assert len({stream.fingerprint, *(other.fingerprint for other in others)}) == 7


def test_a_million_tokens_in_a_line(write):
    stream = SentenceStream(write(["short", "w " * 1_000_000]))
    assert sorted(len(sentence.tokens) for sentence in stream.epoch(0)) == [1, 1_000_000]


def test_a_bad_byte_is_named(tmp_path):
    (tmp_path / "bad.txt").write_bytes(b"good\nb\xffd\n")
    stream = SentenceStream(tmp_path / "bad.txt")
    with pytest.raises(ValueError, match=r"bad\.txt, line 2, byte 1: the text must be UTF-8"):
        list(stream.epoch(0))


@pytest.mark.parametrize("lines", [[], ["", "  ", "\t"]])
def test_a_corpus_without_a_word(write, tmp_path, lines):
    write(lines, "a.txt")
    with pytest.raises(
        ValueError, match=r"must have at least one word\. Received: 1 empty or blank file: .*a\.txt"
    ):
        SentenceStream(tmp_path / "a.txt")
    for name in "bcd":
        write(lines, f"{name}.txt")
    with pytest.raises(ValueError, match=r"4 empty or blank files: .*a\.txt, .*c\.txt, \.\.\.$"):
        SentenceStream(str(tmp_path / "*.txt"))


def test_no_file(tmp_path):
    with pytest.raises(ValueError, match=r"which matches none\. Check the spelling"):
        SentenceStream(str(tmp_path / "*.txt"))


def test_what_can_be_read_only_once_is_refused(tmp_path):
    with pytest.raises(ValueError, match="A corpus must be made of files.*Received: '-'; write it"):
        SentenceStream("-")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="A corpus must be made of files.*pipe"):
        SentenceStream(tmp_path / "pipe")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"format": "conllu"}, '`format` must be "tokens" or "plain". Received: format=\'conllu\''),
        ({"format": "plain"}, '`tokenize` must be a function if `format` is "plain"'),
        ({"tokenize": list}, '`tokenize` must be a function if `format` is "plain", and None'),
        (
            {"buffer_size": 0},
            "`buffer_size` must be an integer of at least 1. Received: buffer_size=0",
        ),
        ({"seed": -1}, "`seed` must be an integer of at least 0. Received: seed=-1"),
    ],
)
def test_bad_arguments(write, arguments, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        SentenceStream(write(["a"]), **arguments)
