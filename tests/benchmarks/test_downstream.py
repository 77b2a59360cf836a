"""The table of tasks: what is counted, and what is made of it."""

import collections
import contextlib
import dataclasses
import itertools
import json
import re

import keras
import numpy as np
import pytest
import sacrebleu

if keras.backend.backend() != "tensorflow":
    pytest.skip("heads need TensorFlow", allow_module_level=True)

import downstream
import downstream_heads
import downstream_others
import downstream_tasks
import nearest_sense
import translation
from downstream_tasks import Task

import keras_elmo
from keras_elmo.tasks import cached_vectors

SENTENCES = [
    (["the", "cat", "sat"], ["D", "N", "V"]),
    (["a", "dog", "ran"], ["D", "N", "V"]),
    (["the", "dog"], ["D", "N"]),
]
TAGGING = Task(
    "tagging",
    "folder",
    lambda folder: (SENTENCES, SENTENCES[:2]),
    keras_elmo.TokenClassifier,
    downstream_tasks.words_right,
    epochs=1,
    arguments=(("lstm_units", 4),),
)


def test_what_is_counted():
    labels = ["B-X", "I-X", "O", "B-Y"]
    assert downstream_tasks.spans(labels) == {(0, 2, "X"), (3, 4, "Y")}
    # Wikigold's kind of labels, where I- begins an entity, too.
    assert downstream_tasks.spans_right(None, ["I-X", "I-X", "O"], ["B-X", "I-X", "O"]) == (1, 1, 1)
    assert downstream_tasks.spans_right(None, labels, ["B-X", "O", "O", "B-Y"]) == (1, 2, 2)
    assert downstream_tasks.roles_right(None, ["B-V", "B-A"], ["B-V", "O"]) == (0, 0, 1)
    assert downstream_tasks.words_right(None, ["a", "b"], ["a", "c"]) == (1, 2)
    assert downstream_tasks.answers_right(None, [{"text": "the cat"}], "cat") == (1, 1, 0, 1)
    assert downstream_tasks.answers_right(None, [], "") == (1, 1, 1, 1)


def test_f1_is_that_of_the_heads():
    from keras_elmo.tasks.entities import entity_scores

    true = [["B-X", "I-X", "O", "B-Y"], ["O", "B-Y"]]
    predicted = [["B-X", "O", "O", "B-Y"], ["B-X", "B-Y"]]
    counts = [
        downstream_tasks.spans_right(None, a, b) for a, b in zip(true, predicted, strict=True)
    ]
    assert downstream.score_of(counts, "F1") == pytest.approx(
        100 * entity_scores(true, predicted)["f1"]
    )


def test_bleu_is_that_of_the_corpus():
    references = [
        ["le chat est là .", "le chat est ici ."],
        ["un chien mange"],
        ["oui , merci bien"],
    ]
    answers = ["le chat est ici", "un chien dort", "oui"]
    counts = [
        downstream_others.bleu_counts(None, right, answer)
        for right, answer in zip(references, answers, strict=True)
    ]
    # sacreBLEU wants all first references, then all second ones.
    corpus = sacrebleu.corpus_bleu(answers, list(itertools.zip_longest(*references)))
    assert downstream.score_of(counts, "BLEU") == pytest.approx(corpus.score)
    assert downstream.bleu(np.array([np.sum(counts, axis=0)] * 2)).shape == (2,)


def test_the_measures_of_answers():
    counts = [[1, 1, 0, 1], [0, 0.5, 0, 1]]
    assert downstream.score_of(counts, "exact match") == 50
    assert downstream.score_of(counts, "F1 of answers") == 75


def test_runs_are_made_once_and_make_a_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(downstream_tasks, "TASKS", [TAGGING])
    arguments = ["--data", str(tmp_path), "--output", str(tmp_path / "out"), "--seeds", "0", "1"]
    downstream.main([*arguments, "--columns", "words", "layer 0", "mix"])
    files = sorted((tmp_path / "out").glob("*.json"))
    assert len(files) == 6
    lines = capsys.readouterr().out.splitlines()
    assert [cell for cell in lines if cell.startswith("| tagging | accuracy |")]
    assert lines[-1].startswith("6 runs, 0.0 processor hours, ")
    found = {(r["column"], r["seed"]): r for r in map(json.loads, (f.read_text() for f in files))}
    assert found["words", 0]["gamma"] == 0
    assert found["layer 0", 0]["layer_weights"] == [1, 0, 0]
    weights = found["mix", 1]["layer_weights"]
    assert sum(weights) == pytest.approx(1)
    assert min(weights) > 0.2
    assert weights != [pytest.approx(1 / 3)] * 3
    assert np.sum(found["mix", 0]["counts"], axis=0)[1] == 6
    # Again: nothing is made.
    monkeypatch.setattr(downstream, "vectors_once", None)
    downstream.main([*arguments, "--columns", "words"])
    picture = tmp_path / "weights.png"
    downstream.main(["--report", "--output", str(tmp_path / "out"), "--plot", str(picture)])
    assert picture.stat().st_size > 1000


def test_vectors_in_bfloat16_make_a_table_of_their_own(tmp_path, monkeypatch, capsys):
    # Adam's first step knows only the signs.
    monkeypatch.setattr(downstream_tasks, "TASKS", [dataclasses.replace(TAGGING, epochs=3)])
    arguments = ["--data", str(tmp_path), "--output", str(tmp_path), "--seeds", "0"]
    for precision in ("float32", "bfloat16"):
        downstream.main([*arguments, "--columns", "mix", "--precision", precision])
    exact, rough = (
        json.loads((tmp_path / f"tagging-mix-0{more}.json").read_text())
        for more in ("", "-bfloat16")
    )
    assert rough["precision"] == "bfloat16"
    # It read other numbers, but not very different ones.
    assert rough["gamma"] != exact["gamma"]
    assert rough["gamma"] == pytest.approx(exact["gamma"], abs=1e-3)
    lines = capsys.readouterr().out.splitlines()
    [row] = [line for line in lines if line.startswith("| tagging ") and line.count("|") == 6]
    assert re.fullmatch(r"\| tagging \| accuracy \| [\d.]+ \| [\d.]+ \| [+-][\d.]+ \|", row)


def test_rows_of_an_embedder_are_those_of_the_head():
    """In full precision the same numbers, but for the boundaries, which no head reads."""
    head = keras_elmo.TokenClassifier(labels=["A", "B"], lstm_units=4)
    sentences = ["the bank", "a 苹果 b"]
    texts = [np.array(sentence.encode().split(), object) for sentence in sentences]
    exact = cached_vectors._rows(texts, head.encoder, False)
    found = downstream_heads.embedder_rows("elmo_tiny_en", "float32", map(tuple, texts))
    for ours, theirs in zip(found, exact, strict=True):
        np.testing.assert_allclose(ours[1:-1], theirs[1:-1], atol=1e-6)
        assert not ours[[0, -1]].any()


def test_a_part_of_the_examples_makes_a_second_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(downstream_tasks, "TASKS", [TAGGING])
    monkeypatch.setattr(downstream, "vectors_once", lambda *_: contextlib.nullcontext())
    seen = []

    def run(task, train, test, column):
        seen.append(len(train))
        return {"counts": [[len(train), 3]]}

    task = dataclasses.replace(TAGGING, run=run, max_examples=2, baseline=("always N", ["N"] * 3))
    task = dataclasses.replace(
        task, count=lambda given, right, answer: (right.count("N"), len(right))
    )
    monkeypatch.setattr(downstream_tasks, "TASKS", [task])
    for part in ("0.34", "1"):
        downstream.main(
            ["--data", str(tmp_path), "--output", str(tmp_path), "--part", part, "--columns", "mix"]
        )
    assert seen == [1] * 3 + [2] * 3
    out = capsys.readouterr().out
    assert "| *always N* | accuracy | 33.3 |" in out
    assert "| tagging | accuracy | 1 |  |  |  | 33.3 ± 0.0 |" in out
    assert "| tagging | accuracy | 2 |  |  |  | 66.7 ± 0.0 |" in out


def test_the_nearest_sense(tmp_path, monkeypatch):
    """One word is right in every layer, one in the upper layers alone, and of one nothing is known."""
    Occurrence = collections.namedtuple("Occurrence", "lemma sense")
    river, money = (Occurrence("bank", sense) for sense in ("river", "money"))
    vectors = {
        "training": [
            (river, [[1, 0], [1, 0], [0, 1], [1, 0]]),
            (money, [[1, 1], [0, 1], [1, 0], [0, 1]]),
            (money, [[1, 1], [0, 1], [1, 0], [0, 1]]),
        ],
        "test": [
            (river, [[1, 0], [1, 0], [0, 1], [1, 0]]),
            (money, [[1, 0], [0, 1], [1, 0], [0, 1]]),
            (Occurrence("bat", "animal"), [[1, 0]] * 4),
        ],
    }
    monkeypatch.setattr(keras_elmo, "Embedder", lambda model: None)
    monkeypatch.setattr(nearest_sense, "read_tagged", lambda archive: archive)
    monkeypatch.setattr(
        nearest_sense,
        "occurrence_vectors",
        lambda embedder, archive: ((o, np.float32(v)) for o, v in vectors[archive]),
    )
    [task] = [task for task in downstream_tasks.TASKS if task.name == "word senses"]
    found = {c: downstream_others.run_senses(task, ["training"], ["test"], c) for c in task.columns}
    assert found["layer 0"]["counts"] == [[1, 1, 1], [0, 1, 1], [0, 0, 1]]
    assert found["top"]["counts"] == found["mix"]["counts"] == [[1, 1, 1], [1, 1, 1], [0, 0, 1]]
    assert found["mix"]["baseline"][1] == [[0, 1, 1], [1, 1, 1], [0, 0, 1]]


@pytest.mark.parametrize("column", ["words", "layer 0", "mix"])
def test_translation(column):
    [task] = [task for task in downstream_tasks.TASKS if task.name.startswith("translation")]
    pairs = [(english, french) for english, all in translation.SMOKE.items() for french in all]
    task = dataclasses.replace(task, epochs=1)
    result = downstream_others.run_translation(
        task, pairs * 2, list(translation.SMOKE.items())[:2], column
    )
    assert len(result["layer_weights"]) == (3 if column == "mix" else 1)
    assert np.shape(result["counts"]) == (2, 10)


def test_the_bootstrap():
    """The same answers are never better; better ones in every example always are."""
    random = np.random.default_rng(0)
    base = {"counts": [[int(v), 1] for v in random.integers(2, size=200)]}
    assert downstream.not_above([base], [base], "accuracy") == "1.0000"
    better = {"counts": [[1, 1]] * 200}
    assert downstream.not_above([better], [base], "accuracy") == "0.0000"
    slightly = {"counts": [list(row) for row in base["counts"]]}
    slightly["counts"][0] = [1 - slightly["counts"][0][0], 1]
    assert 0.3 < float(downstream.not_above([slightly], [base], "accuracy")) <= 1
    assert downstream.not_above([], [base], "accuracy") == ""
