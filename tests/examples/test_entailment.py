"""The example of entailment."""

import lzma

import entailment
import pytest


def test_it_runs_on_its_own_sentences(smoke):
    result = smoke("entailment")
    assert (result["num_train"], result["num_test"]) == (6, 6)
    assert result["most_frequent_label"] == pytest.approx(1 / 3)


def write(file, text):
    file.write_bytes(lzma.compress(text.encode()))
    return file


def test_reader(tmp_path):
    file = write(
        tmp_path / "snli_dev.tsv.xz",
        "gold_label\tsentence1\tsentence2\nneutral\tA \"b\tC .\n-\tD\tE\nentailment\tF '\tÉ\n",
    )
    assert entailment.read_pairs(file) == [
        (('A "b', "C ."), "neutral"),
        (("F '", "É"), "entailment"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gold_label\tsentence1\nneutral\tA\n", "snli.xz, line 1: there is no column sentence2"),
        ("", "snli.xz, line 1: there is no column gold_label"),
        ("gold_label\tsentence1\tsentence2\nneutral\tA\tB\nneutral\tA\n", "snli.xz, line 3: "),
    ],
)
def test_reader_says_what_is_wrong(tmp_path, text, message):
    with pytest.raises(SystemExit, match=message):
        entailment.read_pairs(write(tmp_path / "snli.xz", text))
