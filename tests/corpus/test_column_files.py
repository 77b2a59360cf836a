"""Labelled words in columns: what is a column, a comment, a sentence, and what is wrong with a file."""

import gzip
import lzma

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paths import shared

from keras_elmo.corpus import LabelledSentence, read_columns


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "labels.txt"
        path.write_text(text, "utf-8", newline="")
        return path

    return write


def test_words_and_labels(written):
    found = read_columns(written("Ada\tB-PER\nsleeps\tO\n\nLima\tB-LOC\n"))
    assert found == [(["Ada", "sleeps"], ["B-PER", "O"]), (["Lima"], ["B-LOC"])]
    assert isinstance(found[0], LabelledSentence)
    assert found[1].words == ["Lima"]


def test_columns_by_number(written):
    path = written("1\tLima\tNNP\tB-LOC\t-\n2\tNew York\tNNP\tO\t-\n")
    words = ["Lima", "New York"]
    assert read_columns(path, word=1, label=3) == [(words, ["B-LOC", "O"])]
    assert read_columns(path, word=-4, label=-3) == [(words, ["NNP", "NNP"])]


def test_spaces_part_columns_where_no_tab_does(written):
    # A no-break space is part of a word; several spaces part as one does.
    path = written("EU NNP  I-ORG\n10\u00a0000 CD O \n")
    assert read_columns(path) == [(["EU", "10\u00a0000"], ["I-ORG", "O"])]


def test_lines_of_white_space_end_a_sentence_and_several_do_so_once(written):
    path = written("\n \nAda\tO\n\t\n\t \n\r\nLima\tO\r\n\n\n")
    assert read_columns(path) == [(["Ada"], ["O"]), (["Lima"], ["O"])]


def test_document_marks_are_skipped(written):
    path = written("-DOCSTART- -X- O\n\nEU NNP I-ORG\n-DOCSTART- -X- O\nrejects VBZ O\n")
    assert read_columns(path) == [(["EU"], ["I-ORG"]), (["rejects"], ["O"])]


@pytest.mark.parametrize("text", ["", "\n\n", "# a comment\n", "-DOCSTART- -X- O\n\n"])
def test_a_file_without_words_has_no_sentences(written, text):
    assert read_columns(written(text)) == []


class TestComments:
    def test_of_a_file_parted_by_tabs(self, written):
        # "# Lima sleeps" has as many words as there are columns.
        path = written("# newdoc\n# Lima sleeps\nLima\tNNP\tO\n\n# id = 2\n#\tSYM\tO\n")
        assert read_columns(path) == [(["Lima"], ["O"]), (["#"], ["O"])]

    def test_of_a_file_parted_by_spaces(self, written):
        path = written("# id 5239\tdomain=train\nLima _ _ B-LOC\n\n# _ _ O\n1 _ _ O\n")
        assert read_columns(path) == [(["Lima"], ["B-LOC"]), (["#", "1"], ["O", "O"])]

    def test_a_number_sign_is_a_word(self, written):
        tabs = written("#\tO\n#photography\tO\n#\tO\n")
        assert read_columns(tabs) == [(["#", "#photography", "#"], ["O"] * 3)]
        spaces = written("010 O\n\n# O\n\n# O\n1 O\n")
        assert read_columns(spaces)[1:] == [(["#"], ["O"]), (["#", "1"], ["O", "O"])]

    @pytest.mark.parametrize("text", ["Lima\tO\n# not here\n", "Lima\tO\n\n#photography\n"])
    def test_only_before_the_first_word_and_with_a_space(self, written, text):
        with pytest.raises(ValueError, match="there must be 2 columns parted by tabs"):
            read_columns(written(text))


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress])
def test_compressed_and_with_a_byte_order_mark(tmp_path, compress):
    path = tmp_path / "labels"
    path.write_bytes(compress("\ufeffLima\tB-LOC\n".encode()))
    assert read_columns(path) == [(["Lima"], ["B-LOC"])]


class TestBadInput:
    def test_a_line_without_a_label(self, written):
        path = written("Ada\tO\nLima\n")
        expected = (
            r"labels.txt, line 2: there must be 2 columns parted by tabs, as on line 1. "
            r"Received: 1 in 'Lima'$"
        )
        with pytest.raises(ValueError, match=expected):
            read_columns(path)

    def test_a_line_with_more_columns(self, written):
        with pytest.raises(ValueError, match="line 3: there must be 2 columns parted by spaces"):
            read_columns(written("Ada O\n\nLima NNP O\n"))

    @pytest.mark.parametrize(
        ("text", "columns"),
        [
            ("Ada\n", {}),
            ("Ada\tO\n", {"label": 2}),
            ("Ada\tO\n", {"word": -3}),
            ("Ada\tO\n", {"word": 1, "label": -1}),
        ],
    )
    def test_a_file_without_the_columns(self, written, text, columns):
        expected = r"labels.txt, line 2: `word=-?\d` and `label=-?\d` must be two of the columns. Received: "
        with pytest.raises(ValueError, match=expected):
            read_columns(written("# comment\n" + text), **columns)

    @pytest.mark.parametrize("line", ["\tO", "Lima\t"])
    def test_an_empty_word_or_label(self, written, line):
        with pytest.raises(ValueError, match="line 2: neither the word nor the label may be empty"):
            read_columns(written(f"Ada\tO\n{line}\n"))


# What a word may be: no white space at which columns or lines are cut, and not a comment's or a document's mark.
_WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1).filter(
    lambda word: word.strip() and not word.startswith(("-DOCSTART-", "# ", "\ufeff"))
)


@given(st.lists(st.lists(st.tuples(_WORDS, st.sampled_from("OBI")), min_size=1), min_size=1))
def test_what_was_written_is_read(tmp_path_factory, sentences):
    path = tmp_path_factory.mktemp("columns") / "labels.tsv"
    path.write_text(
        "\n\n".join("\n".join(f"{word}\t{label}" for word, label in rows) for rows in sentences),
        "utf-8",
        newline="",
    )
    assert read_columns(path) == [tuple(map(list, zip(*rows, strict=True))) for rows in sentences]


@pytest.mark.parametrize(
    ("name", "columns", "num_sentences", "num_words"),
    [
        ("ner_wnut17/wnut17train.conll", {}, 3394, 62730),
        ("ner_wnut17/emerging.dev.conll", {}, 1009, 15733),
        ("ner_wnut17/emerging.test.annotated", {}, 1287, 23394),
        (
            "ner_uner_chinese_gsdsimp/zh_gsdsimp-ud-train.iob2.xz",
            {"word": 1, "label": 2},
            3997,
            98616,
        ),
        ("ner_wikigold/wikigold.conll.txt", {}, 1696, 39007),
    ],
)
def test_published_files(name, columns, num_sentences, num_words):
    found = read_columns(shared("data", "tasks", *name.split("/")), **columns)
    assert len(found) == num_sentences
    assert sum(len(sentence.words) for sentence in found) == num_words
