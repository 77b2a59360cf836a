"""PairClassifier: a label for two texts."""

import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest_tasks import make_elmo, make_language_model, moved, values

from keras_elmo.export import export_saved_model
from keras_elmo.tasks import PairClassifier
from keras_elmo.tasks.attention import attended

LABELS = ["other", "same"]
WORDS = ["cat", "dog", "film"]
# Whether both are about the same.
PAIRS = [(f"the {first} sat .", f"a {second}") for first in WORDS for second in WORDS]
ANSWERS = [LABELS[first == second] for first in WORDS for second in WORDS]
# Of all lengths, none included.
UNEVEN = [("the cat sat .", "a dog"), ("", "a"), ("good", ""), ("", ""), ("a film", "the " * 9)]


def head_of(model, **arguments):
    return PairClassifier(model, LABELS, **{"lstm_units": 8, "hidden_units": 16, **arguments})


@pytest.fixture(scope="module")
def trained():
    keras.utils.set_random_seed(1)
    head = head_of(make_elmo(), dropout=0.0)
    head.compile(keras.optimizers.Adam(0.02))
    head.fit(PAIRS, ANSWERS, epochs=120, verbose=0)
    return head


def test_learns(trained):
    assert trained.predict(PAIRS, verbose=0) == ANSWERS
    scores = trained.evaluate(PAIRS, ANSWERS, verbose=0)
    assert set(scores) == {"loss", "accuracy"}
    assert scores["accuracy"] == 1


def test_probabilities(trained):
    found = trained.predict_probabilities(np.array(PAIRS), batch_size=4, verbose=0)
    assert found.shape == (9, 2)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)
    assert [LABELS[row] for row in found.argmax(axis=1)] == ANSWERS


def test_padding_changes_no_answer(trained):
    together = trained.predict_probabilities(UNEVEN, verbose=0)
    alone = [trained.predict_probabilities([pair], verbose=0)[0] for pair in UNEVEN]
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_no_pairs(trained):
    assert trained.predict([], verbose=0) == []
    assert trained.predict_probabilities([], verbose=0).shape == (0, 2)


def test_attended_is_the_mean_by_softmax():
    random = np.random.default_rng(0)
    scores, vectors = random.normal(size=(2, 3, 4)), random.normal(size=(2, 4, 5))
    lengths = [2, 4]
    mask = np.arange(4) < np.array(lengths)[:, np.newaxis]
    vectors[~mask] = 0
    found = attended(*map(tf.constant, (scores, vectors, mask))).numpy()
    for row, length in enumerate(lengths):
        weights = np.exp(scores[row, :, :length])
        weights /= weights.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found[row], weights @ vectors[row, :length], atol=1e-9)


@pytest.mark.parametrize("wrong", ["two", ("one",), ("one", "two", "three"), ("one", None), None])
def test_what_is_no_pair(elmo, wrong):
    head = head_of(elmo)
    message = r"`x` must hold pairs of strings, \(premise, hypothesis\).* at index 1"
    with pytest.raises(ValueError, match=message):
        head.fit([("a", "b"), wrong], LABELS, verbose=0)
    with pytest.raises(ValueError, match=message):
        head.predict([("a", "b"), wrong], verbose=0)


def test_what_cannot_be_learned(elmo):
    head = head_of(elmo)
    with pytest.raises(ValueError, match="labels that the model was made with"):
        head.fit([("a", "b"), ("a", "c")], ["same", "likewise"], verbose=0)
    with pytest.raises(ValueError, match="an empty hypothesis at index 1"):
        head.fit([("a", "b"), ("a", " ")], LABELS, verbose=0)
    with pytest.raises(ValueError, match="an empty premise at index 0"):
        head.fit([("", "b"), ("a", "c")], LABELS, verbose=0)


@pytest.mark.parametrize("hidden_units", [0, 1.5])
def test_hidden_units(elmo, hidden_units):
    with pytest.raises(ValueError, match="`hidden_units` must be a positive integer"):
        head_of(elmo, hidden_units=hidden_units)


def test_save_and_load(trained, tmp_path):
    trained.save(tmp_path / "head.keras")
    loaded = keras.saving.load_model(tmp_path / "head.keras")
    arguments = set(inspect.signature(PairClassifier).parameters) - {"kwargs"}
    assert arguments <= set(loaded.get_config())
    # Keras names the layers of the copy anew.
    config = {**loaded.get_config(), "model_or_preset": trained.get_config()["model_or_preset"]}
    assert config == trained.get_config()
    np.testing.assert_array_equal(
        loaded.predict_probabilities(UNEVEN, verbose=0),
        trained.predict_probabilities(UNEVEN, verbose=0),
    )


def test_exported(trained, tmp_path):
    served = tf.saved_model.load(export_saved_model(trained, tmp_path / "pairs"))
    premise, hypothesis = map(tf.constant, zip(*UNEVEN, strict=True))
    found = served.signatures["default"](premise=premise, hypothesis=hypothesis)
    assert [label.decode() for label in found["label"].numpy()] == trained.predict(
        UNEVEN, verbose=0
    )
    assert found["labels"].numpy().tolist() == [[b"other", b"same"]] * len(UNEVEN)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must hold the same number of texts"):
        served.signatures["default"](premise=premise, hypothesis=hypothesis[:1])
    np.testing.assert_allclose(
        found["probabilities"], trained.predict_probabilities(UNEVEN, verbose=0), atol=1e-6
    )


def test_cached_vectors_are_the_same(elmo):
    def losses(cache_vectors):
        keras.utils.set_random_seed(3)
        history = head_of(elmo, dropout=0.0).fit(
            PAIRS, ANSWERS, batch_size=4, epochs=2, cache_vectors=cache_vectors, verbose=0
        )
        return history.history["loss"]

    np.testing.assert_allclose(losses(True), losses(False), atol=1e-5)


def test_the_language_models_loss_is_the_mean_of_both_texts():
    head = head_of(make_language_model(), language_model_loss_weight=0.1)
    given = iter([2.0, 4.0])
    head._language_model_loss = lambda *_: tf.constant(next(given))
    head(head._inputs(PAIRS[:2]).batch(range(2)), training=True)
    assert float(sum(head.losses)) == pytest.approx(0.1 * 3.0)
    assert float(head.language_model_loss_tracker.result()) == pytest.approx(3.0)


def test_fine_tuned_with_the_language_models_loss(language_model):
    head = head_of(language_model, language_model_loss_weight=0.1)
    bilm = language_model.elmo_model.bilm
    before = values(bilm.weights)
    history = head.fit(PAIRS, ANSWERS, verbose=0).history
    assert history["language_model_loss"][0] > 0
    assert moved(before, bilm.weights) == set(before)


def test_from_preset():
    head = PairClassifier.from_preset("elmo_tiny_en", labels=LABELS)
    assert head.encoder.output_dim == 256
    assert head.tokenizer == "word"
