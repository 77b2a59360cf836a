"""SpanSelector: the answer to a question, cut from a passage."""

import inspect
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest_tasks import make_elmo

from keras_elmo.export import export_saved_model
from keras_elmo.tasks import SpanSelector
from keras_elmo.tasks.answer_spans import best_span, given_answers, positions

# The answer is the word that the question has, too, and the one behind it.
PASSAGE = "a cat sat . the good 😀 film ran"
NEXT = {"cat": "cat sat", "good": "good 😀", "film": "film ran"}
EXAMPLES = [
    *(((f"which {word} ?", PASSAGE), {"text": text, "answer_start": PASSAGE.index(text)})
      for word, text in NEXT.items()),
    *(((f"which {word} ?", PASSAGE), None) for word in ("dog", "bad", "bird")),
]  # fmt: skip
X, Y = map(list, zip(*EXAMPLES, strict=True))
UNEVEN = [
    *X[:2],
    ("", PASSAGE),
    ("which cat ?", ""),
    ("", ""),
    ("which 北 ?", "他 住 在 北京 市 。"),
]


def head_of(model, **arguments):
    return SpanSelector(model, **{"lstm_units": 8, "hidden_units": 16, **arguments})


@pytest.fixture(scope="module")
def trained():
    keras.utils.set_random_seed(1)
    head = head_of(make_elmo(), dropout=0.0)
    head.compile(keras.optimizers.Adam(0.03))
    head.fit(X, Y, epochs=60, verbose=0)
    return head


def outputs_of(head, x):
    return head._predict(x, 32, 0)


def test_learns_answers_and_that_there_is_none(trained):
    assert trained.predict(X, verbose=0) == [*NEXT.values(), "", "", ""]
    scores = trained.evaluate(X, Y, verbose=0)
    assert set(scores) == {"loss", "accuracy", "exact_match", "f1"}
    assert (scores["accuracy"], scores["exact_match"], scores["f1"]) == (1, 1, 1)


def test_padding_changes_no_answer(trained):
    together = outputs_of(trained, UNEVEN)
    for example, output in zip(UNEVEN, together, strict=True):
        (alone,) = outputs_of(trained, [example])
        assert output["answer"] == alone["answer"]
        assert output["probability"] == pytest.approx(alone["probability"], abs=1e-5)


def test_nothing_asked_or_nothing_to_read(trained):
    for output in outputs_of(trained, UNEVEN[2:5]):
        assert (output["answer"], output["start"], output["end"]) == (b"", 0, 0)
        assert output["probability"] == 1
    assert trained.predict([], verbose=0) == []


def test_answers_are_cut_by_bytes(trained):
    for (_, passage), output in zip(X, outputs_of(trained, X), strict=True):
        assert passage.encode()[output["start"] : output["end"]] == output["answer"]


def test_several_right_answers(trained):
    wrong = {"text": "sat .", "answer_start": PASSAGE.index("sat .")}
    scores = trained.evaluate(X, [[wrong, Y[0]], Y[1], Y[2], [], None, [wrong]], verbose=0)
    assert scores["exact_match"] == pytest.approx(5 / 6)
    # The first is what is learned.
    assert scores["accuracy"] == pytest.approx(4 / 6)


# === Places of answers ===


@pytest.mark.parametrize(
    ("passage", "text", "found"),
    [
        ("Ann is in Rome.", "Rome", "Rome"),
        ("Ann is in Rome.", "is in", "is in"),
        ("in the 1970s", "1970", "1970s"),
        ("She can't go", "can", "can't"),
        ("Ann, 34", "Ann, 34", "Ann, 34"),
        ("Ann ", "Ann ", "Ann"),
        ("😀 Ann Änne\u2028住在北京市。", "北京", "北京"),
        ("👩‍👩‍👧 ist süß", "süß", "süß"),
        ("half \ud83d of a pair", "of", "of"),
    ],
)
def test_places_of_answers(elmo, passage, text, found):
    head = head_of(elmo)
    example = ("who ?", passage)
    answer = {"text": text, "answer_start": passage.rindex(text)}
    targets = head._targets([example], [answer])
    row = head._columns([example])
    start, end = row["starts"][0][targets["first"][0]], row["ends"][0][targets["last"][0]]
    assert row["text"][0][start:end].decode() == found


def test_every_token_has_its_place(elmo):
    """From characters to bytes and to tokens and back, for every run of words."""
    head = head_of(elmo)
    words = ["Zoë", "😀", "北", "is", "ñandú", "🇫🇷", "."]
    passage = "  ".join(words)
    row = head._columns([("who ?", passage)])
    starts = [len("  ".join(words[:k])) + 2 * (k > 0) for k in range(len(words))]
    for first, last in itertools.combinations_with_replacement(range(len(words)), 2):
        text = "  ".join(words[first : last + 1])
        answer = {"text": text, "answer_start": starts[first]}
        found = positions(answer, passage, row["starts"][0], row["ends"][0])
        assert found == (first + 1, last + 1)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"text": "Rome", "answer_start": 9}, "stand in the passage at character `answer_start`"),
        ({"text": "Rome", "answer_start": -5}, "stand in the passage.*'Rome' at -5 at index 1"),
        ({"text": "Rome", "answer_start": 99}, "stand in the passage.*the passage has ''"),
        ({"text": " ", "answer_start": 3}, "stand in the passage"),
        ({"text": "", "answer_start": 3}, "stand in the passage"),
        ({"text": "Rome"}, "`y` must hold answers, {\"text\": .., .* or None .* at index 1"),
        ({"text": "Rome", "answer_start": "10"}, "`y` must hold answers, "),
        ({"text": None, "answer_start": 10}, "`y` must hold answers, "),
        ([None], "`y` must hold answers, "),
        ("Rome", "`y` must hold answers, .*'Rome' at index 1"),
    ],
)  # fmt: skip
def test_what_is_no_answer(elmo, answer, message):
    x = [("where ?", "Ann is in Rome.")] * 2
    with pytest.raises(ValueError, match=message):
        head_of(elmo).fit(x, [None, answer], verbose=0)


def test_given_answers():
    answer = {"text": "is", "answer_start": np.int64(4), "more": 1}
    assert given_answers(answer, "Ann is", 0) == [answer]
    assert given_answers((answer, answer), "Ann is", 0) == [answer, answer]
    assert given_answers(None, "Ann is", 0) == given_answers([], "Ann is", 0) == []


@pytest.mark.parametrize("wrong", ["two", ("one",), ("one", 2)])
def test_what_is_no_pair(elmo, wrong):
    message = r"`x` must hold pairs of strings, \(question, passage\).* at index 0"
    with pytest.raises(ValueError, match=message):
        head_of(elmo).predict([wrong], verbose=0)
    with pytest.raises(ValueError, match=message):
        head_of(elmo).fit([wrong], [None], verbose=0)


def test_what_is_empty_cannot_be_learned(elmo):
    with pytest.raises(ValueError, match="an empty question at index 0"):
        head_of(elmo).fit([("", "Ann is")], [None], verbose=0)


@pytest.mark.parametrize("name", ["hidden_units", "max_answer_length"])
def test_positive_integers(elmo, name):
    with pytest.raises(ValueError, match=f"`{name}` must be a positive integer"):
        head_of(elmo, **{name: 0})


# === The likeliest span ===


@pytest.mark.parametrize("max_length", [1, 3, 30])
def test_best_span_is_that_of_brute_force(max_length):
    random = np.random.default_rng(max_length)
    start_logits, end_logits = random.normal(size=(2, 20, 8)).astype("float32") * 2
    start_logits[:, 6:] = end_logits[:, 6:] = np.finfo("float32").min
    logits = tf.constant(start_logits), tf.constant(end_logits)
    found = [value.numpy() for value in best_span(*logits, max_length)]
    allowed = [(0, 0)] + [
        (i, j) for i in range(1, 6) for j in range(i, 6) if j - i + 1 <= max_length
    ]
    for row in range(20):
        scores = np.array([start_logits[row, i] + end_logits[row, j] for i, j in allowed])
        best = scores.argmax()
        assert (found[0][row], found[1][row]) == allowed[best]
        probabilities = np.exp(scores) / np.exp(scores).sum()
        assert found[2][row] == pytest.approx(probabilities[best], abs=1e-5)
    assert {start == 0 for start in found[0]} == {True, False}


def test_best_span_of_a_long_passage_takes_no_square():
    """20,000 positions: their square would be 1.6 GB."""
    random = np.random.default_rng(0)
    start_logits, end_logits = random.normal(size=(2, 1, 20_000)).astype("float32")
    start_logits[0, 19_990] = end_logits[0, 19_995] = 50
    start, end, probability = best_span(tf.constant(start_logits), tf.constant(end_logits), 30)
    assert (int(start[0]), int(end[0])) == (19_990, 19_995)
    assert float(probability[0]) > 0.99


def test_answers_that_are_too_long_are_told(elmo):
    head = head_of(elmo, max_answer_length=2)
    answer = {"text": "cat sat .", "answer_start": PASSAGE.index("cat")}
    with pytest.warns(UserWarning, match="1 of 2 answers are longer than `max_answer_length`, 2 t"):
        head._targets(X[:2], [answer, None])


# === Ways to use it ===


def test_save_and_load(trained, tmp_path):
    trained.save(tmp_path / "head.keras")
    loaded = keras.saving.load_model(tmp_path / "head.keras")
    arguments = set(inspect.signature(SpanSelector).parameters) - {"kwargs"}
    assert arguments <= set(loaded.get_config())
    # Keras names the layers of the copy anew.
    config = {**loaded.get_config(), "model_or_preset": trained.get_config()["model_or_preset"]}
    assert config == trained.get_config()
    assert loaded.predict(UNEVEN, verbose=0) == trained.predict(UNEVEN, verbose=0)


def test_exported(trained, tmp_path):
    served = tf.saved_model.load(export_saved_model(trained, tmp_path / "answers"))
    question, passage = map(tf.constant, zip(*UNEVEN, strict=True))
    found = served.signatures["default"](question=question, passage=passage)
    assert set(found) == {"answer", "probability", "start", "end"}
    assert found["start"].dtype == found["end"].dtype == tf.int32
    expected = outputs_of(trained, UNEVEN)
    for row, output in enumerate(expected):
        for name in ("answer", "start", "end"):
            assert found[name].numpy()[row] == output[name]
        assert found["probability"].numpy()[row] == pytest.approx(output["probability"], abs=1e-5)


def test_cached_vectors_are_the_same(elmo):
    def losses(cache_vectors):
        keras.utils.set_random_seed(3)
        history = head_of(elmo, dropout=0.0, lstm_units=0).fit(
            X, Y, batch_size=4, epochs=2, cache_vectors=cache_vectors, verbose=0
        )
        return history.history["loss"]

    np.testing.assert_allclose(losses(True), losses(False), atol=1e-5)


def test_from_preset():
    head = SpanSelector.from_preset("elmo_tiny_en", max_answer_length=3)
    assert head.max_answer_length == 3
    assert head.encoder.output_dim == 256
