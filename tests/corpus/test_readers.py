import gzip
import io
import lzma
import os
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from paths import shared

from keras_elmo.corpus import expand, locate_sentences, read_lines, read_sentences


def row(word_id, form):
    return "\t".join([word_id, form, *"________"])


@pytest.fixture
def write(tmp_path):
    def write(content, name="text.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def standard_input(monkeypatch):
    def set_bytes(content):
        stream = io.BytesIO(content)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stream))
        return stream

    return set_bytes


# Lines


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\nb", ["a", "", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\nc\r", ["a\rb", "c\r"]),
        (b"a\r\r\n", ["a\r"]),
        ("a\u2028b\u0085c\x0b\x0c\x1c\x00d\n".encode(), ["a\u2028b\u0085c\x0b\x0c\x1c\x00d"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb", ["a", "\ufeffb"]),
        (b"\xef\xbb\xbf", [""]),
        ("naïve 猫 🐈\n".encode(), ["naïve 猫 🐈"]),
    ],
)
@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress])
def test_lines_end_at_line_feeds_only(write, standard_input, compress, content, lines):
    assert list(read_lines(write(compress(content)))) == lines
    standard_input(compress(content))
    assert list(read_lines("-")) == lines


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))),
    end=st.sampled_from(["\n", "\r\n"]),
    compress=st.sampled_from([bytes, gzip.compress, lzma.compress]),
)
def test_any_lines_come_back(tmp_path, lines, end, compress):
    # What the format itself cannot tell apart: a mark at the start, a return before a line feed.
    lines = [line.rstrip("\r") for line in lines]
    if lines and lines[0].startswith("\ufeff"):
        lines[0] = lines[0].lstrip("\ufeff")
    path = tmp_path / "any.txt"
    path.write_bytes(compress("".join(line + end for line in lines).encode()))
    assert list(read_lines(path)) == lines
    assert list(read_sentences(path)) == lines
    assert list(read_sentences(path, "tokens")) == [line.split() for line in lines]


def test_concatenated_gzip_and_xz_are_read_to_the_end(write):
    for compress in (gzip.compress, lzma.compress):
        assert list(read_lines(write(compress(b"a\nb") + compress(b"c\n")))) == ["a", "bc"]


def test_very_long_lines(write):
    characters = "x" * 44_000
    tokens = " ".join(["token"] * 1_000_000)
    path = write(gzip.compress(f"{characters}\n{tokens}\nlast".encode()))
    assert list(read_lines(path)) == [characters, tokens, "last"]
    assert [len(sentence) for sentence in read_sentences(path, "tokens")] == [1, 1_000_000, 1]


def test_reading_is_lazy(write):
    lines = read_lines(write(b"good\n" * 100_000 + b"\xff"))
    assert next(lines) == "good"
    lines.close()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_pipe_that_drips_is_recognized_all_the_same(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def drip():
        with open(pipe, "wb", buffering=0) as output:
            for byte in lzma.compress(b"one\ntwo\n"):
                output.write(bytes([byte]))

    writer = threading.Thread(target=drip)
    writer.start()
    assert list(read_lines(pipe)) == ["one", "two"]
    writer.join()


def test_standard_input_stays_open(standard_input):
    stream = standard_input(b"a\nb\n")
    assert list(read_lines(Path("-"))) == ["a", "b"]
    assert not stream.closed


def test_standard_input_that_is_closed(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ValueError, match="standard input cannot be read: it is closed"):
        list(read_lines("-"))


@pytest.mark.parametrize(
    ("content", "place", "byte"),
    [
        (b"fine\nab\xffc\n", "line 2, byte 2", "0xff"),
        (b"\xef\xbb\xbfab\xe9 ", "line 1, byte 5", "0xe9"),
        ("é".encode()[:1], "line 1, byte 0", "0xc3"),
        (b"a\r\n\xed\xa0\x80", "line 2, byte 0", "0xed"),
        (b"\n\n\xc0\x80", "line 3, byte 0", "0xc0"),
    ],
)
def test_bad_bytes_are_named_with_their_place(write, standard_input, content, place, byte):
    path = write(content)
    with pytest.raises(ValueError, match=f"text.txt, {place}: .* must be UTF-8.*{byte}"):
        list(read_lines(path))
    standard_input(content)
    with pytest.raises(ValueError, match=f"^standard input, {place}: .* must be UTF-8.*{byte}"):
        list(read_lines("-"))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_utf_16_gets_a_hint(write, encoding):
    with pytest.raises(ValueError, match=r"line 1, .* looks like UTF-16; `iconv"):
        list(read_lines(write("ÿé bien\n".encode(encoding))))


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_truncated_compressed_files(write, compress):
    whole = compress(os.urandom(30_000).hex().encode())
    for length in (7, 13, 100, len(whole) // 2, len(whole) - 1):
        with pytest.raises(ValueError, match=r"text.txt: .* cut short or damaged after line 0"):
            list(read_lines(write(whole[:length])))


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_damaged_compressed_files(write, compress):
    damaged = bytearray(compress(b"one\n" * 1000))
    damaged[-6] ^= 0xFF  # in the checksum of gzip, in the footer of xz
    with pytest.raises(ValueError, match=r"text.txt: .* cut short or damaged after line \d"):
        list(read_lines(write(bytes(damaged))))


def test_trailing_bytes_after_gzip_are_no_text(write):
    with pytest.raises(ValueError, match="damaged after line 1"):
        list(read_lines(write(gzip.compress(b"one\n") + b"garbage")))


@pytest.mark.parametrize("read", [read_lines, read_sentences, locate_sentences])
def test_missing_files_and_folders_fail_before_reading(tmp_path, read):
    with pytest.raises(ValueError, match=r"`path` must be .* does not exist. Check the spelling"):
        read(tmp_path / "missing.txt")
    with pytest.raises(ValueError, match=r"`path` must be .* is a folder"):
        read(tmp_path)


def test_unreadable_file(write, monkeypatch):
    path = write(b"secret")

    def refuse(*args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(ValueError, match="text.txt cannot be read: Permission denied"):
        list(read_lines(path))


# Sentences


def test_plain_and_tokens_keep_blank_lines(write):
    path = write("One two.\n\n  three\tfour\u3000five \n")
    assert list(read_sentences(path)) == ["One two.", "", "  three\tfour\u3000five "]
    assert list(read_sentences(path, "tokens")) == [["One", "two."], [], ["three", "four", "five"]]


def test_several_files_follow_each_other(write, standard_input):
    paths = [write("a", "1"), "-", write("c\n\nd", "2")]
    standard_input(b"b\n")
    assert list(locate_sentences(paths)) == [
        (str(paths[0]), 1, "a"),
        ("standard input", 1, "b"),
        (str(paths[2]), 1, "c"),
        (str(paths[2]), 2, ""),
        (str(paths[2]), 3, "d"),
    ]


def test_unknown_format():
    with pytest.raises(ValueError, match=r'`format` must be one of "plain".* format=\'conll\''):
        read_sentences("-", "conll")


def test_conllu_words(write):
    content = "\n".join(
        [
            "# newdoc",
            "",
            "# text = I don't 10 000",
            row("1", "I"),
            row("2-3", "don't"),
            row("2", "do"),
            row("3", "n't"),
            row("3.1", "ghost"),
            "# a comment further down",
            row("4", "10 000"),
            "",
            " ",
            row("0.1", "ghost"),
            row("1", "#"),
            "",
            row("1", "last"),
        ]
    )
    sentences = [["I", "do", "n't", "10 000"], ["#"], ["last"]]
    for text in (content, content.replace("\n", "\r\n")):
        path = write(text)
        assert list(read_sentences(path, "conllu")) == sentences
        assert [line for _, line, _ in locate_sentences(path, "conllu")] == [4, 14, 16]


def test_conllu_sentences_do_not_reach_over_files(write):
    paths = [write(row("1", "a"), "1"), write(row("1", "b"), "2")]
    assert list(read_sentences(paths, "conllu")) == [["a"], ["b"]]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("2 b", r"10 columns .* Received: 1 in '2 b'"),
        (row("2", "b") + "\t_", "10 columns .* Received: 11"),
        (row("3", "b"), "the ID must be 2.* Received: ID '3'"),
        (row("1", "b"), "the ID must be 2.* a blank line must end each sentence"),
        (row("x", "b"), "the ID must be 2.* Received: ID 'x'"),
        (row("02", "b"), "the ID must be 2.* Received: ID '02'"),
        (row("2-", "b"), "the ID must be 2.* Received: ID '2-'"),
        (row("٢", "b"), "the ID must be 2"),
        (row("2", ""), "the FORM, the second column, must not be empty"),
    ],
)
def test_broken_conllu(write, line, problem):
    path = write("# text\n" + row("1", "a") + "\n" + line + "\n")
    with pytest.raises(ValueError, match=rf"text.txt, line 3: .*{problem}"):
        list(read_sentences(path, "conllu"))


@pytest.mark.parametrize(
    ("name", "num_sentences", "num_words"),
    [("train", 12_544, 204_577), ("dev", 2_001, 25_147), ("test", 2_077, 25_094)],
)
def test_universal_dependencies(name, num_sentences, num_words):
    path = shared("data", "tasks", "pos_ud_english_ewt", f"en_ewt-ud-{name}.conllu.xz")
    lengths = [len(sentence) for sentence in read_sentences(path, "conllu")]
    assert (len(lengths), sum(lengths)) == (num_sentences, num_words)


# Names


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("b.txt", "a.txt", "c.md", "[1].txt", "inner/d.txt", "inner/e.txt/f"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        ("a.txt", ["a.txt"]),
        ("?.txt", ["a.txt", "b.txt"]),
        (["c.md", "?.txt"], ["c.md", "a.txt", "b.txt"]),
        (["b.txt", "*.txt", "./b.txt"], ["b.txt", "[1].txt", "a.txt"]),
        ("[1].txt", ["[1].txt"]),
        ("inner/*.txt", ["inner/d.txt"]),
        ("**/*.txt", ["[1].txt", "a.txt", "b.txt", "inner/d.txt"]),
        (["-", Path("a.txt"), "-"], ["-", "a.txt"]),
    ],
)
def test_expand(patterns, names):
    assert expand(patterns) == [Path(name) for name in names]


@pytest.mark.usefixtures("folder")
def test_expand_does_not_take_a_file_for_standard_input():
    Path("-").write_text("from the file")
    (path,) = expand("./-")
    assert list(read_lines(path)) == ["from the file"]


@pytest.mark.usefixtures("folder")
def test_expand_refuses_what_names_no_file():
    with pytest.raises(ValueError, match=r"Received: '\*.tsv', which matches none"):
        expand(["a.txt", "*.tsv"])
    with pytest.raises(ValueError, match=r"Received: 'inn\*', which matches none"):
        expand("inn*")
    with pytest.raises(ValueError, match="path='inner', which is a folder"):
        expand("inner")
    with pytest.raises(ValueError, match="`patterns` must name at least one file"):
        expand([])
