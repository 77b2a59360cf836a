"""`char.dic` and `word.dic`: odd lines keep their ids, wrong ones are named."""

import pytest

from keras_elmo.checkpoints.lexicon_file import read_lexicon


@pytest.fixture
def path(tmp_path):
    return tmp_path / "word.dic"


def read(path, text, num_entries):
    path.write_bytes(text.encode())
    return read_lexicon(path, num_entries)


def test_entries_in_the_order_of_their_ids(path):
    assert read(path, "b\t1\na\t0\r\nc d\t2", 3) == ["a", "b", "c d"]


def test_odd_lines_keep_their_ids(path):
    """User problem 25: lines end at line feeds only, whatever else the tool takes for an end, or strips."""
    entries = ["a", "\u0085", "\u2028", "x\u2028y", "\t", "p\tq", "", "\u00a0", "é ", "\x1c", "\f"]
    text = "".join(f"{entry}\t{id_}\n" for id_, entry in enumerate(entries))
    # One entry of white space is U+3000, as the tool reads it; the others are what they are.
    assert read(path, text, len(entries)) == ["a", "\u3000", *entries[2:]]


@pytest.mark.parametrize("line", ["\u3000\t1", "\t1", "1", " 1 ", "\u00a0\t1"])
def test_white_space_alone_is_an_ideographic_space(path, line):
    assert read(path, f"a\t0\n{line}\nb\t2\n", 3) == ["a", "\u3000", "b"]


def test_white_space_before_an_entry(path):
    """The tool drops it; where the entry is there without it, the tool fails, and this entry stays as it is."""
    assert read(path, "\u00a010\t0\na\t1\n", 2) == ["10", "a"]
    assert read(path, "\u00a010\t0\n10\t1\n", 2) == ["\u00a010", "10"]
    assert read(path, "\u00a0\t0\n\u3000\t1\n", 2) == ["\u00a0", "\u3000"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\t0\nb\n", "word.dic, line 2: must be an entry, a tab and its id. Received: 'b'"),
        ("a\t0\nb\t-1\n", "line 2: must be an entry, a tab and its id"),
        ("a\t0\nb\t1.0\n", "line 2: must be an entry, a tab and its id"),
        ("a\t0\nb\t" + "9" * 5000, "line 2: must be an entry, a tab and its id"),
        ("a\t0\nb\t0\n", "line 2: the id 0 is that of line 1, too"),
        ("a\t0\nb\t2\n", "line 2: the id 2 leaves a gap: there are 2 entries, .* must be 0 to 1"),
        ("a\t0\n", "word.dic has 1 entries, but the weights have vectors for 2"),
        ("a\t0\nb\t1\nc\t2\n", "has 3 entries, but the weights have vectors for 2"),
        ("", "has 0 entries"),
    ],
)
def test_wrong_lines(path, text, message):
    with pytest.raises(ValueError, match=message):
        read(path, text, 2)


def test_no_file_and_no_text(path):
    with pytest.raises(ValueError, match="word.dic cannot be read as a lexicon in UTF-8"):
        read_lexicon(path, 2)
    path.write_bytes(b"\xff\t0\n")
    with pytest.raises(ValueError, match="cannot be read as a lexicon in UTF-8: .*0xff"):
        read_lexicon(path, 2)
