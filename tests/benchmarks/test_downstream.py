"""The table of tasks: what is counted, and what is made of it."""

import json

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("heads need TensorFlow", allow_module_level=True)

import downstream
import downstream_tasks
from downstream_tasks import Task

import keras_elmo

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
    downstream_tasks.ratio,
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
    assert downstream_tasks.f1(np.sum(counts, axis=0)) == pytest.approx(
        entity_scores(true, predicted)["f1"]
    )
    assert downstream.score_of(np.sum(counts, axis=0)[None])[0] == pytest.approx(
        downstream_tasks.f1(np.sum(counts, axis=0))
    )


def test_runs_are_made_once_and_make_a_table(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(downstream_tasks, "TASKS", [TAGGING])
    arguments = ["--data", str(tmp_path), "--output", str(tmp_path / "out"), "--seeds", "0", "1"]
    downstream.main([*arguments, "--columns", "words", "layer 0", "mix"])
    files = sorted((tmp_path / "out").glob("*.json"))
    assert len(files) == 6
    lines = capsys.readouterr().out.splitlines()
    assert [cell for cell in lines if cell.startswith("| tagging (accuracy) |")]
    found = {(r["column"], r["seed"]): r for r in map(json.loads, (f.read_text() for f in files))}
    assert found["words", 0]["gamma"] == 0
    assert found["layer 0", 0]["layer_weights"] == [1, 0, 0]
    weights = found["mix", 1]["layer_weights"]
    assert sum(weights) == pytest.approx(1)
    assert min(weights) > 0.2
    assert weights != [pytest.approx(1 / 3)] * 3
    assert np.sum(found["mix", 0]["counts"], axis=0)[1] == 6
    # Again: nothing is made.
    monkeypatch.setattr(downstream, "run", None)
    downstream.main([*arguments, "--columns", "words"])
    downstream.main(["--report", "--output", str(tmp_path / "out")])


def test_the_bootstrap():
    """The same answers are never better; better ones in every example always are."""
    random = np.random.default_rng(0)
    base = {"counts": [[int(v), 1] for v in random.integers(2, size=200)]}
    assert downstream.not_above([base], [base]) == 1
    better = {"counts": [[1, 1]] * 200}
    assert downstream.not_above([better], [base]) == 0
    slightly = {"counts": [list(row) for row in base["counts"]]}
    slightly["counts"][0] = [1 - slightly["counts"][0][0], 1]
    assert 0.3 < downstream.not_above([slightly], [base]) <= 1
    assert downstream.not_above([], [base]) is None
