import lzma

import conllu
import pos_tagging
import pytest


def test_smoke(smoke):
    result = smoke("pos_tagging")
    assert (result["num_train"], result["num_test"]) == (2, 2)
    assert 0 <= result["accuracy"] <= 1
    assert [word for word, _ in result["answer"]] == "Time flies like an arrow .".split()


def test_ranges_and_empty_nodes_are_no_words(tmp_path):
    for part in ("train", "dev", "test"):
        path = tmp_path / f"en_ewt-ud-{part}.conllu.xz"
        path.write_bytes(lzma.compress(pos_tagging.SMOKE.encode()))
    train, dev, test = pos_tagging.read(tmp_path)
    assert train == dev == test
    assert train == [
        (["Birds", "do", "n't", "sing", "."], ["NOUN", "AUX", "PART", "VERB", "PUNCT"]),
        (["She", "reads", "an", "old", "book"], ["PRON", "VERB", "DET", "ADJ", "NOUN"]),
    ]


def test_what_is_not_conllu_is_refused():
    with pytest.raises(conllu.exceptions.ParseException):
        pos_tagging.words_and_tags("one two three\n")
