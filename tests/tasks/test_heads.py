"""The heads with labels: strings in, names out; saved, loaded, exported; and what they refuse."""

import functools
import gc
import os
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest_tasks import make_elmo, make_language_model, moved, values

from keras_elmo.export import export_saved_model
from keras_elmo.tasks import SemanticRoleLabeller, TextClassifier, TokenClassifier
from keras_elmo.tasks.cached_vectors import with_cached_vectors
from keras_elmo.tasks.table import Table

SENTENCES = [["the", "cat", "sat"], ["a", "dog"], ["Rex", "cannot", "run", "."], ["dog"]]
TAGS = [["D", "N", "V"], ["D", "N"], ["N", "V", "V", "P"], ["N"]]
ENTITIES = [["O", "B-X", "I-X"], ["O", "B-X"], ["B-Y", "O", "O", "O"], ["B-X"]]


def made(kind):
    """A head and examples of what it learns."""
    if kind == "text":
        x = [" ".join(words) for words in SENTENCES]
        return (
            TextClassifier(make_elmo(num_layers=1), ["no", "yes"], lstm_units=4),
            x,
            ["no", "yes"] * 2,
        )
    if kind == "roles":
        x = [(words, len(words) - 1) for words in SENTENCES]
        y = [[*["B-A", "I-A", "O"][: len(words) - 1], "B-V"] for words in SENTENCES]
        head = SemanticRoleLabeller(
            make_elmo(num_layers=1), ["O", "B-A", "B-V"], lstm_units=4, dropout=0.0
        )
        return head, x, y
    arguments = {"lstm_units": 4, "mix_at_output": True, "word_vocabulary": ["cat", "dog"]}
    if kind == "tags":
        return (
            TokenClassifier(make_elmo(num_layers=1), ["D", "N", "V", "P"], **arguments),
            SENTENCES,
            TAGS,
        )
    labels = ["O", "B-X", "I-X", "B-Y"]
    head = TokenClassifier(make_elmo(num_layers=1), labels, decoder=kind, **arguments)
    return head, SENTENCES, ENTITIES


KINDS = ("text", "tags", "softmax", "crf", "roles")


@functools.cache
def shared(kind):
    """As `made`, for tests that change nothing of it: what it computes is traced once."""
    return made(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_it_learns_by_heart_and_survives_saving(kind, tmp_path):
    head, x, y = made(kind)
    head.compile(keras.optimizers.Adam(0.02))
    head.fit(x, y, epochs=100, batch_size=2, verbose=0)
    assert head.predict(x, verbose=0) == y
    scores = head.evaluate(x, y, verbose=0)
    assert scores["accuracy"] == 1.0
    if kind in ("softmax", "crf", "roles"):
        assert scores["f1"] == scores["precision"] == scores["recall"] == 1.0
    head.save(tmp_path / "head.keras")
    loaded = keras.saving.load_model(tmp_path / "head.keras")
    assert loaded.get_config() == head.get_config() | {
        "model_or_preset": loaded.get_config()["model_or_preset"]
    }
    assert loaded.predict(x, verbose=0) == y
    assert loaded.evaluate(x, y, verbose=0) == pytest.approx(scores)
    head.save_weights(tmp_path / "head.weights.h5")
    other, *_ = made(kind)
    other.load_weights(tmp_path / "head.weights.h5")
    assert other.predict(x, verbose=0) == y


def served(head, tmp_path):
    return tf.saved_model.load(export_saved_model(head, tmp_path / "head")).signatures


def strings(tensor):
    return [
        [value.decode() for value in row if value] for row in np.atleast_2d(tensor.numpy()).tolist()
    ]


def test_exported_text_classifier(tmp_path):
    head, x, _ = shared("text")
    answer = served(head, tmp_path)["default"](tf.constant([*x, ""]))
    assert strings(answer["label"])[0] == head.predict([*x, ""], verbose=0)
    assert strings(answer["labels"]) == [["no", "yes"]] * 5
    np.testing.assert_allclose(
        answer["probabilities"], head.predict_probabilities([*x, ""], verbose=0), atol=1e-6
    )


@pytest.mark.parametrize("kind", ["tags", "softmax", "crf"])
def test_exported_tagger(kind, tmp_path):
    head, x, _ = shared(kind)
    signatures = served(head, tmp_path)
    x = [*x, []]
    padded = tf.ragged.constant(x, dtype=tf.string).to_tensor()
    lengths = tf.constant([len(words) for words in x])
    answer = signatures["tokens"](tokens=padded, sequence_len=lengths)
    assert strings(answer["label"]) == head.predict(x, verbose=0)
    assert strings(answer["tokens"]) == x
    for row, probabilities in enumerate(head.predict_probabilities(x, verbose=0)):
        found = answer["probabilities"][row].numpy()
        np.testing.assert_allclose(found[: len(x[row])], probabilities, atol=1e-5)
        assert not found[len(x[row]) :].any()
    assert answer["sequence_len"].numpy().tolist() == [3, 2, 4, 1, 0]
    # Plain text is cut, and the tokens are labelled that it was cut into.
    text = signatures["default"](tf.constant(["Rex cannot run.", ""]))
    assert strings(text["tokens"]) == [["Rex", "can", "not", "run", "."], []]
    assert strings(text["label"])[0] == head.predict([["Rex", "can", "not", "run", "."]])[0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="`sequence_len` must be from 0"):
        signatures["tokens"](tokens=padded, sequence_len=lengths + 1)


def test_exported_role_labeller(tmp_path):
    head, x, _ = shared("roles")
    signatures = served(head, tmp_path)
    padded = tf.ragged.constant(SENTENCES, dtype=tf.string).to_tensor()
    places = tf.constant([place for _, place in x])
    answer = signatures["tokens"](
        tokens=padded, sequence_len=tf.constant([3, 2, 4, 1]), predicate=places
    )
    assert strings(answer["label"]) == head.predict(x, verbose=0)
    text = signatures["default"](text=tf.constant(["the cat sat"]), predicate=tf.constant([2]))
    assert strings(text["label"]) == head.predict(x[:1], verbose=0)
    for place in (-1, 3):
        with pytest.raises(tf.errors.InvalidArgumentError, match="`predicate` must be the place"):
            signatures["default"](text=tf.constant(["the cat sat"]), predicate=tf.constant([place]))


def test_nothing_but_empty_sentences(tmp_path):
    head, *_ = shared("crf")
    assert head.predict([[], []], verbose=0) == [[], []]
    assert head.predict([], verbose=0) == []
    assert head.predict([["", " "]], verbose=0)[0] == head.predict([["", " "], ["a"]], verbose=0)[0]
    text, *_ = shared("text")
    assert text.predict(["", "  "], verbose=0)[0] in ("no", "yes")
    assert text.predict([], verbose=0) == []
    assert text.predict_probabilities([], verbose=0).shape == (0, 2)
    answer = served(head, tmp_path)["default"](tf.constant(["", " "]))
    assert answer["label"].shape == (2, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_batches_make_no_difference(kind):
    head, x, y = shared(kind)
    alone = [head.predict([example], verbose=0)[0] for example in x]
    assert head.predict(x, verbose=0) == alone
    assert head.predict(x[::-1], batch_size=3, verbose=0) == alone[::-1]
    whole, small = (head.evaluate(x, y, batch_size=n, verbose=0) for n in (4, 1))
    assert whole == pytest.approx(small)


@pytest.mark.parametrize("kind", ["text", "crf"])
@pytest.mark.parametrize("layer_norm", [None, "sentence"])
def test_cached_vectors_are_the_same(kind, layer_norm):
    """The losses of every epoch are those without the cache, the mix being learned."""

    def losses(cache_vectors):
        keras.utils.set_random_seed(3)
        head, x, y = made(kind)
        head = type(head).from_config(
            head.get_config()
            | {
                "model_or_preset": keras.saving.serialize_keras_object(
                    make_elmo(num_layers=1, layer_norm=layer_norm)
                )
            }
        )
        head.compile(keras.optimizers.Adam(0.05))
        for weights in (head.elmo_model.encoder.weights, head.elmo_model.bilm.weights):
            for number, weight in enumerate(weights):
                weight.assign(np.random.default_rng(number).normal(0, 0.5, weight.shape))
        history = head.fit(
            x, y, epochs=3, validation_data=(x, y), cache_vectors=cache_vectors, verbose=0
        )
        return [history.history["loss"], history.history["val_loss"]]

    np.testing.assert_allclose(losses(True), losses(False), rtol=1e-5)


def test_nothing_is_left_of_a_training():
    """Neither the file of the vectors nor the examples, which TensorFlow's dataset would keep."""

    def alive():
        gc.collect()
        tables = sum(type(thing) is Table for thing in gc.get_objects())
        files = (Path("/proc/self/fd") / number for number in os.listdir("/proc/self/fd"))
        # Open files that have no name any more. The list of files was one itself, and is gone.
        names = [os.readlink(file) for file in files if file.is_symlink()]
        return sum(name.endswith("(deleted)") for name in names), tables

    class Stop(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            raise KeyboardInterrupt

    head, x, y = made("text")
    before = alive()
    head.fit(x, y, epochs=2, validation_data=(x, y), batch_size=2, verbose=0)
    head.evaluate(x, y, verbose=0)
    with pytest.raises(KeyboardInterrupt):
        head.fit(x, y, epochs=2, batch_size=2, callbacks=[Stop()], verbose=0)
    assert alive() == before


def test_each_sentence_is_computed_once():
    head, *_ = shared("tags")
    table = head._inputs([*SENTENCES, *SENTENCES])
    cached = with_cached_vectors(table, ("",), head.encoder, verbose=False)
    first, again = (cached.columns["layer_outputs"][k] for k in (0, 4))
    assert first.base is again.base or np.shares_memory(first, again)


def test_no_room_for_vectors(monkeypatch):
    head, x, y = made("text")
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 10}))
    with pytest.raises(OSError, match=r"need 0.0 GB, and .* has 0.0 GB free. Name another folder"):
        head.fit(x, y, epochs=2, verbose=0)
    head.fit(x, y, epochs=2, cache_vectors=False, verbose=0)


def test_sample_weights():
    """An example of weight 0 is as if it were not there."""
    head, x, y = made("text")
    head.compile(keras.optimizers.SGD(0.0))
    some = head.fit(x, y, sample_weight=[2, 2, 0, 0], verbose=0).history["loss"][0]
    assert some == pytest.approx(head.evaluate(x[:2], y[:2], verbose=0)["loss"], abs=1e-2)
    with pytest.raises(ValueError, match="`sample_weight` must have a number for each of the 4"):
        head.fit(x, y, sample_weight=[1], verbose=0)


def test_callbacks_of_keras(tmp_path):
    head, x, y = made("tags")
    callbacks = [
        keras.callbacks.EarlyStopping(patience=2, restore_best_weights=True),
        keras.callbacks.ModelCheckpoint(tmp_path / "best.keras", save_best_only=True),
        # Keras itself knows no direction of a measure that is not of its `compile`.
        keras.callbacks.EarlyStopping("val_accuracy", patience=9),
        keras.callbacks.ReduceLROnPlateau("accuracy", patience=9),
    ]
    head.fit(x, y, epochs=3, validation_data=(x, y), callbacks=callbacks, verbose=0)
    assert [callback.mode for callback in callbacks[2:]] == ["max", "max"]
    best = keras.saving.load_model(tmp_path / "best.keras")
    assert best.predict(x, verbose=0) == head.predict(x, verbose=0)


def test_kinds_of_lists():
    pandas = pytest.importorskip("pandas")
    head, x, y = made("text")
    for texts, labels in (
        (tuple(x), np.array(y)),
        (np.array(x), tuple(y)),
        (pandas.Series(x), pandas.Series(y)),
    ):
        head.fit(texts, labels, verbose=0)
        assert len(head.predict(texts, verbose=0)) == 4


def test_lone_surrogates_are_dropped():
    head, *_ = shared("text")
    np.testing.assert_array_equal(
        *(head.predict_probabilities([text], verbose=0) for text in ("the \ud800cat", "the cat"))
    )


def test_iob_becomes_iob2():
    """Labels of CoNLL-2003 and wikigold, where `I-` begins an entity."""
    head = TokenClassifier(make_elmo(num_layers=1), ["I-X", "O"], lstm_units=4)
    assert head.labels == ["I-X", "O", "B-X"]
    y = [["O", "I-X", "I-X"], ["O", "I-X"], ["I-X", "O", "O", "O"], ["I-X"]]
    head.compile(keras.optimizers.Adam(0.05))
    head.fit(SENTENCES, y, epochs=60, verbose=0)
    assert head.predict(SENTENCES, verbose=0) == [
        ["O", "B-X", "I-X"],
        ["O", "B-X"],
        ["B-X", "O", "O", "O"],
        ["B-X"],
    ]
    assert head.evaluate(SENTENCES, y, verbose=0)["f1"] == 1.0


@pytest.mark.parametrize("decoder", ["softmax", "crf"])
def test_decoded_entities_are_allowed(decoder):
    head = TokenClassifier(
        make_elmo(num_layers=1), ["O", "B-X", "B-Y"], decoder=decoder, lstm_units=0
    )
    head.classify.kernel.assign(np.random.default_rng(0).normal(0, 5, head.classify.kernel.shape))
    sentences = [["the", "cat", "sat", "on", "a", "dog", "."] * 3] * 2
    for labels in head.predict(sentences, verbose=0):
        for before, label in zip(["O", *labels], labels, strict=False):
            assert label[:2] != "I-" or before[1:] == label[1:]


def test_words_are_cut_as_the_tokenizer_cuts():
    """One label for every word, whatever its pieces are; a Chinese word is the mean of its characters."""
    head = TokenClassifier(make_elmo(num_layers=1), ["N", "V"], lstm_units=0, use_word_shape=False)
    vectors, mask, layers = head.encoder(head._inputs([["北京", "好"]]).batch([0]))
    pieces = head.encoder(head._inputs([["北", "京", "好"]]).batch([0]))[0].numpy()
    assert mask.shape == (1, 2)
    assert layers[0].shape[1] == 5
    np.testing.assert_allclose(vectors[0, 0], pieces[0, :2].mean(0), atol=1e-6)
    np.testing.assert_allclose(vectors[0, 1], pieces[0, 2], atol=1e-6)


def test_mixed_bfloat16():
    head, x, y = made("crf")
    elmo = make_elmo(num_layers=1, dtype="mixed_bfloat16")
    head = TokenClassifier(elmo, ["O", "B-X", "B-Y"], decoder="crf", mix_l2=0.001, lstm_units=4)
    head.fit(x, y, epochs=2, verbose=0)
    assert head.predict_probabilities(x, verbose=0)[0].dtype == np.float32
    assert np.isfinite(head.evaluate(x, y, verbose=0)["loss"])
    tuned = TextClassifier(
        make_language_model(dtype="mixed_bfloat16"),
        ["a", "b"],
        language_model_loss_weight=0.1,
        lstm_units=4,
    )
    history = tuned.fit(["the cat", "a dog"], ["a", "b"], epochs=2, verbose=0).history
    assert np.isfinite(history["loss"]).all()


# === Bad input ===

REFUSED = {
    "label in a list": ("text", ["a", "b"], [["no"], ["yes"]], r"made with: .*\['no'\]"),
    "unseen entity": ("crf", [["a"], ["b"]], [["O"], ["I-Z"]], "at index 1.*'I-Z'"),
    "predicate is a truth": ("roles", [(["a", "b"], True)], [["O", "B-V"]], "pairs of a list of"),
    "unseen label": ("text", ["a"], ["maybe"], "labels that the model was made with: .*'maybe'"),
    "unseen tag": ("tags", [["a"]], [["X"]], "labels that the model was made with: .*'X'"),
    "counts differ": ("tags", [["a", "b"]], [["N"]], "2 words and 1 labels at index 0"),
    "labels in a string": ("tags", [["a"]], ["N"], "1 words and 'N' labels at index 0"),
    "more texts than labels": ("text", ["a", "b"], ["no"], "Received: 2 texts and 1 labels"),
    "no texts": ("text", [], [], "Received: 0 texts and 0 labels"),
    "empty text": ("text", ["a", "  "], ["no", "yes"], "an empty text at index 1"),
    "empty sentence": ("tags", [["a", "b"], []], [["N", "V"], []], "an empty text at index 1"),
    "one class": ("text", ["a", "b"], ["no", "no"], "two different labels .*: 'no' alone"),
    "one tag": ("tags", [["a"], ["b"]], [["N"], ["N"]], "two different labels"),
    "a string": ("text", "a", ["no"], "`x` must be a list or an array"),
    "no labels": ("text", ["a"], None, "must be lists, of texts and of what is right"),
    "a number": (
        "text",
        ["a", 1],
        ["no", "yes"],
        "`x` must hold strings, each a whole text. Received: 1 of",
    ),
    "text for a tagger": ("tags", ["a b"], [["N", "V"]], "3 words|lists of words"),
    "no predicate": ("roles", [["a", "b"]], [["O", "B-V"]], "pairs of a list of words and the pl"),
    "predicate outside": ("roles", [(["a"], 1)], [["B-V"]], "pairs of a list of words and the pl"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    kind, x, y, message = REFUSED[case]
    head, *_ = shared(kind)
    with pytest.raises(ValueError, match=message) as error:
        head.fit(x, y, verbose=0)
    assert "\n" not in str(error.value)


def test_dataset_is_refused(elmo):
    head = TextClassifier(elmo, ["a", "b"])
    with pytest.raises(ValueError, match="`x` and `y` must be lists"):
        head.fit(tf.data.Dataset.from_tensor_slices(["a"]), ["a"])


@pytest.mark.parametrize("labels", [["a"], [], "ab", ["a", "a"], ["a", 1], [["a"], ["b"]], None])
@pytest.mark.parametrize("head", [TextClassifier, TokenClassifier])
def test_labels_that_are_none(elmo, head, labels):
    with pytest.raises(ValueError, match="`labels` must be two or more different names"):
        head(elmo, labels)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lstm_units": -1}, "`lstm_units` must be zero or a positive integer"),
        ({"dropout": 1.0}, "`dropout` must be a rate"),
        ({"trainable_bilm": True}, "`trainable_bilm` is decided by the model that was given"),
        ({"trainable_bilm": 1.5}, "`trainable_bilm` must be one of None, True, False"),
        ({"tokenizer": "bytes"}, '`tokenizer` must be "word" or "whitespace"'),
        ({"mix_l2": -1.0}, "`l2` must be None, zero or a positive number"),
    ],
)
def test_arguments_out_of_range(elmo, arguments, message):
    with pytest.raises(ValueError, match=message):
        TextClassifier(elmo, ["a", "b"], **arguments)


@pytest.mark.parametrize("words", ["the", [], ["a", "a"], ["a", 1]])
def test_word_vocabulary_that_is_none(elmo, words):
    with pytest.raises(ValueError, match="`word_vocabulary` must be different words, one at least"):
        TextClassifier(elmo, ["a", "b"], word_vocabulary=words)


def test_what_keras_would_not_understand(elmo):
    """One sentence for what Keras' own `fit`, `evaluate`, `compile` and calls take, and heads do not."""
    x, y = ["the cat", "a dog"], ["a", "b"]
    head = TextClassifier(elmo, ["a", "b"], lstm_units=0)
    for arguments, message in (
        ({"validation_split": 0.5}, "A head's `fit` has no `validation_split`"),
        ({"class_weight": {0: 1}}, "A head's `fit` has no `class_weight`"),
        ({"validation_data": (x, y, [1, 1])}, "`validation_data` must be a pair"),
        ({"validation_data": x[:1]}, "`validation_data` must be a pair"),
        ({"batch_size": 0}, "`batch_size` must be a positive integer"),
    ):
        with pytest.raises(ValueError, match=message):
            head.fit(x, y, verbose=0, **arguments)
    for name in ("sample_weight", "steps"):
        with pytest.raises(ValueError, match=f"A head's `evaluate` has no `{name}`"):
            head.evaluate(x, y, **{name: 1})
    with pytest.raises(ValueError, match="A head is asked by `predict`, with a list of texts"):
        head(tf.constant(x))
    with pytest.raises(ValueError, match="A head is exported by `keras_elmo.export.export_saved"):
        head.export("head")
    for arguments in ({"loss": "mse"}, {"metrics": ["accuracy"]}):
        head.compile("adam", **arguments)
        with pytest.raises(ValueError, match="A head has its own loss and metrics"):
            head.fit(x, y, verbose=0)
    with pytest.raises(ValueError, match="`dtype` is decided by the model that was given"):
        TextClassifier(elmo, ["a", "b"], dtype="mixed_bfloat16")


def test_evaluate_without_a_cache():
    head, x, y = shared("crf")
    with_cache, without = (head.evaluate(x, y, cache_vectors=c, verbose=0) for c in (None, False))
    assert with_cache == pytest.approx(without)


def test_roles_begin_with_b_and_i(elmo):
    with pytest.raises(ValueError, match="`labels` must be `O` and roles that begin with `B-` and"):
        SemanticRoleLabeller(elmo, ["V", "A0", "O"])


def test_models_that_are_none(elmo):
    with pytest.raises(ValueError, match="`model_or_preset` must be an `ElmoModel`, a `Bidirect"):
        TextClassifier(3, ["a", "b"])
    with pytest.raises(ValueError, match="There is no file, folder or preset 'nowhere'"):
        TextClassifier("nowhere", ["a", "b"])
    of_words = make_elmo(num_layers=1, vocabulary_size=9)
    with pytest.raises(ValueError, match="A head needs a model that reads characters"):
        TextClassifier(of_words, ["a", "b"])
    with pytest.raises(ValueError, match="`decoder` must be one of 'softmax', 'crf'"):
        TokenClassifier(elmo, ["a", "b"], decoder="greedy")
    head = TextClassifier(make_elmo(num_layers=1, trainable_bilm=True), ["no", "yes"])
    with pytest.raises(ValueError, match="`cache_vectors` is for a frozen biLM"):
        head.fit(["a", "b"], ["no", "yes"], cache_vectors=True)


@pytest.mark.parametrize("labels", [["yes", "no"], ["no", "yes", "maybe"]])
def test_weights_of_other_labels(tmp_path, labels):
    head, *_ = shared("text")
    head.save_weights(tmp_path / "head.weights.h5")
    other = TextClassifier(make_elmo(num_layers=1), labels, lstm_units=4)
    before = values(other.weights)
    with pytest.raises(ValueError, match=r"saved with the labels \['no', 'yes'\]; this model has"):
        other.load_weights(tmp_path / "head.weights.h5")
    assert not moved(before, other.weights)


def test_from_preset():
    head = TextClassifier.from_preset("elmo_tiny_zh", labels=["坏", "好"], lstm_units=0)
    assert head.tokenizer == "word"
    assert head.serving_description()["labels"] == ["坏", "好"]
    assert set(head.predict(["我喜欢这部电影。"], verbose=0)) <= {"坏", "好"}
