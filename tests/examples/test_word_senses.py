import importlib.util
import io
import json
import tarfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("the examples need TensorFlow", allow_module_level=True)

# By its path: `benchmarks` has a module of this name, too.
EXAMPLE = Path(__file__).parents[2] / "examples" / "word_senses.py"
spec = importlib.util.spec_from_file_location("examples_word_senses", EXAMPLE)
word_senses = importlib.util.module_from_spec(spec)
spec.loader.exec_module(word_senses)

BANK = ("bank", "NOUN")
LAYERS = ["layer 0", "LSTM 1", "LSTM 2"]
ROWS = [*LAYERS, "mean of all", "most frequent sense"]


def test_smoke(capsys):
    result = word_senses.main(["--smoke"])
    [line] = capsys.readouterr().out.splitlines()
    assert json.loads(line) == result
    assert result["num_words"] == result["num_known"] == 2
    # The model tells the banks apart; the characters alone, and the most frequent sense, do not.
    assert list(result["accuracy"]) == ROWS
    assert result["accuracy"]["LSTM 2"] == 1
    assert result["accuracy"]["layer 0"] == result["accuracy"]["most frequent sense"] == 0.5
    different, same = result["bank"]["river and money"], result["bank"]["money and money"]
    assert list(different) == list(same) == LAYERS
    assert different["layer 0"] == same["layer 0"] == 1
    assert different["LSTM 2"] < same["LSTM 2"] - 0.1


def document(*words):
    """XML as in the archives; of each word text, break level and, where it is known, the sense."""
    root = ElementTree.Element("SimpleWsdDoc")
    for text, break_level, *tag in words:
        attributes = dict(zip(("lemma", "pos", "sense"), tag, strict=False))
        ElementTree.SubElement(root, "word", text=text, break_level=break_level, **attributes)
    return root


def test_sentences_end_at_breaks_of_sentences_and_paragraphs_only():
    root = document(
        ("No", "NO_BREAK"),
        ("sense", "SPACE_BREAK"),
        ("A", "SENTENCE_BREAK"),
        ("bank", "LINE_BREAK", "bank", "NOUN", "b.1"),
        ("Banks", "PARAGRAPH_BREAK", "bank", "NOUN", "b.2"),
        (".", "NO_BREAK"),
    )
    assert list(word_senses.tagged_sentences(root)) == [
        (["A", "bank"], [(1, BANK, "b.1")]),
        (["Banks", "."], [(0, BANK, "b.2")]),
    ]


def test_the_sentences_of_the_smoke_run():
    root = word_senses.smoke_document(["the bank|river is", "a bank|money"])
    assert list(word_senses.tagged_sentences(root)) == [
        (["the", "bank", "is"], [(1, BANK, "river")]),
        (["a", "bank"], [(1, BANK, "money")]),
    ]


def test_archives(tmp_path, capsys):
    money = document(
        ("Banks", "NO_BREAK", "bank", "NOUN", "b.money"),
        ("fail", "SPACE_BREAK", "fail", "VERB", "f.1"),
    )
    river = document(
        ("The", "NO_BREAK"),
        ("bank", "SPACE_BREAK", "bank", "NOUN", "b.river"),
        ("of", "SPACE_BREAK"),
        ("rivers", "SPACE_BREAK", "river", "NOUN", "r.1"),
    )
    unknown = document(("Cows", "NO_BREAK", "cow", "NOUN", "c.1"))
    write_archive(tmp_path / "semcor.tar.xz", river, money, money)
    write_archive(tmp_path / "masc.tar.xz", money, unknown, river)

    result = word_senses.main(["--data", str(tmp_path)])

    assert (result["num_words"], result["num_known"]) == (5, 4)
    # The test has the very vectors of the training.
    assert result["accuracy"] == {**dict.fromkeys(ROWS, 1.0), "most frequent sense": 0.75}
    assert len(capsys.readouterr().out.splitlines()) == 1

    # Of the first sentence alone there are but "bank" by the river and "river".
    result = word_senses.main(["--data", str(tmp_path), "--max-examples", "1"])
    assert result["num_known"] == 3
    assert result["accuracy"] == dict.fromkeys(ROWS, pytest.approx(2 / 3, abs=1e-3))


def write_archive(path, *documents):
    with tarfile.open(path, "w:xz") as archive:
        for number, root in enumerate(documents):
            content = ElementTree.tostring(root)
            member = tarfile.TarInfo(f"folder/{number}.xml")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def learned(*occurrences):
    """Of "bank": senses, means and the most frequent sense, from (sense, vector of a single layer)."""
    found = word_senses.learn((BANK, sense, np.float32([vector])) for sense, *vector in occurrences)
    return found[BANK]


def answer(senses, *vector):
    names, means, _ = senses
    [place] = word_senses.nearest(means, np.float32([vector]))
    return names[place]


def test_nearest_is_the_nearest_mean():
    # One occurrence of "river" is nearest to the word, but the mean of "money" is.
    senses = learned(("river", 1, 0), ("river", -1, 2), ("money", 1, 1), ("money", 2, 1))
    assert answer(senses, 1, 0.1) == "money"
    assert answer(senses, -3, 5) == "river"


def test_most_frequent():
    *_, most_frequent = learned(("river", 1, 0), ("money", 1, 0), ("money", 0, 1))
    assert most_frequent == "money"


def test_ties_are_broken_by_neither_order_nor_number():
    vector = np.random.default_rng(0).normal(size=5)
    names = [f"sense {number}" for number in range(6)]
    answers = {
        answer(learned(*((n, *vector) for n in order for _ in range(times))), *vector)
        for order in (names, names[::-1])
        for times in (1, 3)
    }
    assert len(answers) == 1


def test_no_archives(tmp_path):
    with pytest.raises(SystemExit, match=r"No such file or directory: '.*semcor\.tar\.xz'"):
        word_senses.main(["--data", str(tmp_path)])


def test_no_word_was_seen(tmp_path):
    seen = document(("Cows", "NO_BREAK", "cow", "NOUN", "c.1"))
    asked = document(("Banks", "NO_BREAK", "bank", "NOUN", "b.1"))
    write_archive(tmp_path / "semcor.tar.xz", seen)
    write_archive(tmp_path / "masc.tar.xz", asked)
    with pytest.raises(SystemExit, match="No word of the test was seen in training"):
        word_senses.main(["--data", str(tmp_path)])
