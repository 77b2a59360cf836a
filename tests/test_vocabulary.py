"""Vocabulary: files of every kind that users have, and precise errors for the broken ones."""

import codecs
import doctest
import gzip
import hashlib
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_elmo import vocabulary as module
from keras_elmo.vocabulary import Vocabulary

SPECIALS = ["<S>", "</S>", "<UNK>"]
TOKENS = [*SPECIALS, "the", "cat", "naïve", "日本語", "🙂"]
LINES = "".join(f"{token}\n" for token in TOKENS)


@pytest.fixture
def write(tmp_path):
    def write(content: str | bytes, name: str = "vocab.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        return path

    return write


def test_ids_and_tokens_are_each_others_inverse():
    vocabulary = Vocabulary(TOKENS)
    assert vocabulary.ids(TOKENS) == list(range(len(TOKENS)))
    assert vocabulary.tokens(np.arange(len(TOKENS))) == TOKENS
    assert list(vocabulary) == TOKENS
    assert len(vocabulary) == len(TOKENS)
    assert "cat" in vocabulary
    assert "Cat" not in vocabulary


def test_specials_may_stand_anywhere():
    vocabulary = Vocabulary(["the", "</S>", "cat", "<UNK>", "<S>"])
    assert (vocabulary.begin_id, vocabulary.end_id, vocabulary.unknown_id) == (4, 1, 3)
    assert vocabulary.ids(["dog", "the"]) == [3, 0]


def test_equality_hash_and_sha256_follow_tokens_and_order():
    vocabulary, same = Vocabulary(TOKENS), Vocabulary(iter(TOKENS))
    other = Vocabulary(TOKENS[::-1])
    assert vocabulary == same
    assert hash(vocabulary) == hash(same)
    assert vocabulary.sha256 == same.sha256 == hashlib.sha256(LINES.encode("utf-8")).hexdigest()
    assert vocabulary != other
    assert vocabulary.sha256 != other.sha256
    assert vocabulary != TOKENS
    assert pickle.loads(pickle.dumps(vocabulary)) == vocabulary
    assert repr(vocabulary) == f"<Vocabulary of 8 tokens, sha256 {vocabulary.sha256[:12]}>"


@pytest.mark.parametrize(
    "content",
    [
        LINES.encode("utf-8"),
        LINES.encode("utf-8").rstrip(b"\n"),
        codecs.BOM_UTF8 + LINES.encode("utf-8"),
        LINES.replace("\n", "\r\n").encode("utf-8"),
        LINES.replace("the\n", "!!!MAXTERMID\nthe\n").encode("utf-8"),
        gzip.compress(LINES.encode("utf-8")),
        gzip.compress(codecs.BOM_UTF8 + LINES.encode("utf-8")),
    ],
    ids=["clean", "no last newline", "BOM", "CRLF", "MAXTERMID", "gzip", "gzip and BOM"],
)
@pytest.mark.parametrize("name", ["vocab.txt", "vocab.txt.gz"])
def test_files_of_the_same_tokens_load_equal(write, content, name):
    assert Vocabulary.load(write(content, name)) == Vocabulary(TOKENS)
    assert Vocabulary.load(str(write(content, name))) == Vocabulary(TOKENS)


@pytest.mark.skipif(sys.getfilesystemencoding() != "utf-8", reason="file names are not UTF-8")
def test_file_names_may_be_of_any_script(tmp_path):
    Vocabulary(TOKENS).save(tmp_path / "naïve 日本.txt")
    assert Vocabulary.load(tmp_path / "naïve 日本.txt") == Vocabulary(TOKENS)


@pytest.mark.parametrize(
    "word", ["a\u00a0b", "\u00a0", "\u3000", "a\u2028b", "a\x85b", "a\x0cb", "x "]
)
def test_only_the_line_end_is_stripped(write, word):
    path = write("\n".join([*SPECIALS, word, "the"]))
    assert list(Vocabulary.load(path)) == [*SPECIALS, word, "the"]


@pytest.mark.parametrize("name", ["vocab.txt", "vocab.txt.gz"])
def test_saved_files_load_equal_and_leave_nothing_beside(tmp_path, name):
    vocabulary = Vocabulary(TOKENS)
    (tmp_path / name).write_text("old")
    vocabulary.save(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    data = (tmp_path / name).read_bytes()
    assert (gzip.decompress(data) if name.endswith(".gz") else data) == LINES.encode("utf-8")
    assert Vocabulary.load(tmp_path / name) == vocabulary


def test_a_save_that_fails_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "vocab.txt"
    path.write_text("old")

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        Vocabulary(TOKENS).save(path)
    assert [other.name for other in tmp_path.iterdir()] == ["vocab.txt"]
    assert path.read_text() == "old"


WORDS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\n\r"), min_size=1)


@given(st.lists(WORDS.filter(lambda word: word.strip(" \t")), max_size=8), st.randoms())
def test_any_unicode_survives_a_file(tmp_path_factory, words, random):
    tokens = list(dict.fromkeys([*SPECIALS, *words]))
    random.shuffle(tokens)
    path = tmp_path_factory.getbasetemp() / "any.txt"
    Vocabulary(tokens).save(path)
    assert list(Vocabulary.load(path)) == tokens


def test_a_byte_order_mark_of_the_first_token_survives_a_file(tmp_path):
    vocabulary = Vocabulary(["\ufeffthe", *SPECIALS])
    vocabulary.save(tmp_path / "vocab.txt")
    assert Vocabulary.load(tmp_path / "vocab.txt") == vocabulary


def test_token_ids_are_shifted_and_unknown_words_leave_no_hole():
    vocabulary = Vocabulary(TOKENS)
    token_ids = vocabulary.token_ids(["the dog cat", ["cat"], ""])
    assert token_ids.dtype == np.int32
    assert token_ids.tolist() == [[4, 3, 5], [5, 0, 0], [0, 0, 0]]
    assert vocabulary.token_ids([]).shape == (0, 0)
    assert vocabulary.token_ids([[], ""]).shape == (2, 0)


def test_errors_of_the_constructor():
    def refused(sentence, tokens):
        with pytest.raises(ValueError, match=re.escape(sentence)):
            Vocabulary(tokens)

    refused("`tokens` must be a list of str tokens. Received: tokens='<S>' of type str", "<S>")
    refused(
        "`tokens` must hold str tokens. Received: b'the' of type bytes at tokens[3]",
        [*SPECIALS, b"the"],
    )
    refused("must hold no blank token. Received: '' at tokens[3]; remove it.", [*SPECIALS, ""])
    for token in ("a\nb", "a\r", "\ud800", "!!!MAXTERMID"):
        refused(
            "`tokens` must hold tokens without line ends and lone surrogates, and no "
            f"!!!MAXTERMID. Received: {token!r} at tokens[3]; remove it.",
            [*SPECIALS, token],
        )
    refused(
        "`tokens` must hold every token once. Received: 'a' at tokens[3] and tokens[5]; remove one",
        [*SPECIALS, "a", "b", "a"],
    )
    refused(
        "`tokens` must hold <S>, </S>, <UNK>, as single tokens. Received: 1 tokens without </S>, "
        "<UNK>; add what is missing.",
        ["<S>"],
    )


NOT_UTF8 = "Received: not UTF-8, line {}, byte {} of the file is {}; convert it"
ASCII = "<S>\n</S>\n<UNK>\nthe\n"
BROKEN = {
    "no </S>": ("<S>\n<UNK>\nthe\n", "Received: 3 tokens without </S>; add what is missing."),
    "lower case": (
        "<s>\n</s>\n<UNK>",
        "without <S>, </S>; case matters: write <s>, </s> in capitals.",
    ),
    "empty": ("", "Received: 0 tokens without <S>, </S>, <UNK>; add what is missing."),
    "twice": (
        LINES + "the\n",
        "hold every token once. Received: 'the' at line 4 and line 9; remove",
    ),
    "twice, after a skipped line": (
        "!!!MAXTERMID\n" + LINES + "the",
        "'the' at line 5 and line 10",
    ),
    "blank line": (
        "<S>\n\n</S>\n<UNK>\n",
        "hold no blank token. Received: '' at line 2; remove it.",
    ),
    "white line": ("<S>\r\n \r\n</S>\r\n<UNK>", "hold no blank token. Received: ' ' at line 2"),
    "blank last line": (LINES + "\n", "hold no blank token. Received: '' at line 9"),
    "old Mac line ends": ("<S>\r</S>\r<UNK>\r", "tokens without line ends"),
    "UTF-16": (ASCII.encode("utf-16"), NOT_UTF8.format(1, 0, "0xff")),
    "UTF-16, little": (ASCII.encode("utf-16-le"), NOT_UTF8.format(1, 1, "0x00")),
    "UTF-16, big": (ASCII.encode("utf-16-be"), NOT_UTF8.format(1, 0, "0x00")),
    "cp1255": ("<S>\nשלום\n".encode("cp1255"), NOT_UTF8.format(2, 4, "0xf9")),
    "gbk": ("<S>\n中文\n".encode("gbk"), NOT_UTF8.format(2, 4, "0xd6")),
    "after a BOM": (codecs.BOM_UTF8 + b"<S>\n\xff", NOT_UTF8.format(2, 7, "0xff")),
    "binary": (b"\x89HDF\r\n\x1a\n", NOT_UTF8.format(1, 0, "0x89")),
    "gzipped binary": (gzip.compress(b"<S>\n\xff"), NOT_UTF8.format(2, 4, "0xff")),
    "gzip cut short": (gzip.compress(LINES.encode())[:-9], "be whole. Received: a gzip file that"),
    "no gzip": (
        b"\x1f\x8b\x08\x00" + b"\xff" * 20,
        "be whole. Received: a gzip file that does not",
    ),
}


@pytest.mark.parametrize(("content", "sentence"), BROKEN.values(), ids=BROKEN)
def test_broken_files_are_named_with_place_and_fix(write, content, sentence):
    path = write(content)
    pattern = re.escape(f"The vocabulary file {str(path)!r} must ") + ".*" + re.escape(sentence)
    with pytest.raises(ValueError, match=pattern):
        Vocabulary.load(path)


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.txt"):
        Vocabulary.load(tmp_path / "nowhere.txt")


@pytest.mark.parametrize("method", ["ids", "tokens", "token_ids"])
@pytest.mark.parametrize("value", ["the cat", b"the cat", 3, None])
def test_a_single_value_is_not_a_list(method, value):
    sentence = rf"must be a list of .* Received: \w+={value!r} .*; put a single one into a list."
    with pytest.raises(ValueError, match=sentence):
        getattr(Vocabulary(TOKENS), method)(value)


@pytest.mark.parametrize("token", [b"the", None, 3])
def test_tokens_must_be_str(token):
    vocabulary = Vocabulary(TOKENS)
    with pytest.raises(ValueError, match=f"A token must be a str. Received: {token!r} of type"):
        vocabulary.ids(["the", token])
    with pytest.raises(ValueError, match=f"A token must be a str. Received: {token!r} of type"):
        vocabulary.token_ids([["the", token]])


@pytest.mark.parametrize("id_", [-1, 8, 1.5, "the"])
def test_ids_must_be_in_range(id_):
    sentence = f"`ids` must be integers from 0 to 7, the vocabulary's last. Received: {id_!r}"
    with pytest.raises(ValueError, match=re.escape(sentence)):
        Vocabulary(TOKENS).tokens([0, id_])


def test_examples():
    assert doctest.testmod(module).failed == 0


@pytest.mark.skipif("IN_C_LOCALE" in os.environ, reason="this is the run under LC_ALL=C")
def test_the_locale_does_not_matter():
    """All of the above once more, where `open()` would read and write ASCII."""
    ascii_locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
        env={**os.environ, **ascii_locale, "IN_C_LOCALE": "1"},
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
