"""Fine-tuning that holds: rates of layers, unfreezing, the language model's loss, and what is forgotten."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest_tasks import make_elmo, make_language_model

from keras_elmo import BidirectionalLanguageModel
from keras_elmo.tasks import ForgettingReport, GradualUnfreezing, TextClassifier
from keras_elmo.tasks.language_model_loss import LanguageModelLoss
from keras_elmo.training import evaluate

SENTENCES = [["the", "cat", "sat"], ["a"], ["the", "xyzzy", "ran", "."], []]


def layers(elmo):
    """The weights of each layer, characters first."""
    stacks = (elmo.bilm.forward_stack, elmo.bilm.backward_stack)
    return [
        elmo.encoder.weights,
        *([w for stack in stacks for w in stack.cells[k].weights] for k in range(elmo.num_layers)),
    ]


def values(elmo):
    return [[weight.numpy().copy() for weight in layer] for layer in layers(elmo)]


def head_of(model, **arguments):
    head = TextClassifier(model, ["bad", "good"], lstm_units=0, dropout=0.0, **arguments)
    head.compile(keras.optimizers.Adam(0.01))
    return head


# === Update multipliers ===


def one_step(multipliers, reviews):
    """How far each weight moves in one step; always the same step but for the multipliers."""
    keras.utils.set_random_seed(5)
    elmo = make_elmo(trainable_bilm=True)
    before = values(elmo)
    head_of(elmo, update_multipliers=multipliers).fit(*reviews, shuffle=False, verbose=0)
    after = values(elmo)
    return [[b - a for a, b in zip(*pair, strict=True)] for pair in zip(before, after, strict=True)]


def test_multipliers_scale_the_update_of_each_layer(reviews):
    whole = one_step(None, reviews)
    parts = one_step([0.0, 0.25, 2.0], reviews)
    for layer, multiplier in enumerate([0.0, 0.25, 2.0]):
        for full, part in zip(whole[layer], parts[layer], strict=True):
            assert np.abs(full).max() > 1e-3
            np.testing.assert_allclose(part, multiplier * full, atol=1e-6)
    # Frozen is frozen, to the bit, and 1 is the optimizer's own step, to the bit.
    assert not any(part.any() for part in parts[0])
    for full, same in zip(sum(whole, []), sum(one_step([1, 1, 1], reviews), []), strict=True):
        np.testing.assert_array_equal(full, same)


def test_the_head_learns_whatever_the_multipliers_are(reviews):
    head = head_of(make_elmo(trainable_bilm=True), update_multipliers=[0, 0, 0])
    before = head.classify.kernel.numpy()
    head.fit(*reviews, verbose=0)
    assert (head.classify.kernel.numpy() != before).any()


@pytest.mark.parametrize("epochs_per_layer", [1, 2])
def test_gradual_unfreezing(reviews, epochs_per_layer):
    """Nothing, then the top layer, then the one below, then the characters; toggled in one `fit`."""
    elmo = make_elmo(trainable_bilm=True)
    head = head_of(elmo, update_multipliers=[0.25, 0.5, 1.0])
    seen, in_force = [values(elmo)], []

    class Watch(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            seen.append(values(elmo))
            in_force.append(head.update_multipliers.in_force())

    head.fit(
        *reviews,
        epochs=4 * epochs_per_layer,
        callbacks=[GradualUnfreezing(epochs_per_layer), Watch()],
        verbose=0,
    )
    moved = [
        [any((a != b).any() for a, b in zip(*pair, strict=True)) for pair in zip(*two, strict=True)]
        for two in zip(seen, seen[1:], strict=False)
    ]
    stages = [
        [False, False, False],
        [False, False, True],
        [False, True, True],
        [True, True, True],
    ]
    assert moved == [stage for stage in stages for _ in range(epochs_per_layer)]
    assert in_force[0] == [0, 0, 0]
    assert in_force[-1] == [0.25, 0.5, 1.0]
    assert head.update_multipliers.values() == [0.25, 0.5, 1.0]


def test_unfreezing_that_is_interrupted(reviews, tmp_path):
    """What is frozen for now is neither saved nor kept by the next training."""

    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.save(tmp_path / "head.keras")
            raise KeyboardInterrupt

    elmo = make_elmo(trainable_bilm=True)
    head = head_of(elmo, update_multipliers=[0.25, 0.5, 1.0])
    with pytest.raises(KeyboardInterrupt):
        head.fit(*reviews, epochs=4, callbacks=[GradualUnfreezing(), Stop()], verbose=0)
    assert head.update_multipliers.in_force() == [0.25, 0.5, 1.0]
    assert head.update_multipliers.values() == [0.25, 0.5, 1.0]
    before = values(elmo)
    head.fit(*reviews, verbose=0)
    for layer, old in zip(values(elmo), before, strict=True):
        assert any((a != b).any() for a, b in zip(layer, old, strict=True))
    loaded = keras.saving.load_model(tmp_path / "head.keras")
    assert loaded.update_multipliers.in_force() == [0.25, 0.5, 1.0]


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16"])
def test_averages_of_weights_are_refused(reviews, dtype):
    head = head_of(make_elmo(trainable_bilm=True, dtype=dtype), update_multipliers=[0, 0, 0])
    head.compile(keras.optimizers.SGD(0.5, use_ema=True))
    with pytest.raises(ValueError, match="takes no optimizer with `use_ema=True`"):
        head.fit(*reviews, verbose=0)


def test_multipliers_are_saved(tmp_path):
    head = head_of(make_elmo(trainable_bilm=True), update_multipliers=[0.0, 0.5, 1.0])
    head.save(tmp_path / "head.keras")
    loaded = keras.saving.load_model(tmp_path / "head.keras")
    assert loaded.update_multipliers.values() == [0.0, 0.5, 1.0]


def test_multipliers_that_do_not_fit(elmo):
    with pytest.raises(ValueError, match="`update_multipliers` act on a biLM that is trained"):
        head_of(elmo, update_multipliers=[0, 1, 1])
    trained = make_elmo(trainable_bilm=True)
    for wrong in ([1, 1], [1, 1, -1], 0.5, ["1"] * 3, [float("inf")] * 3):
        with pytest.raises(ValueError, match="`update_multipliers` must be 3 numbers of 0 or more"):
            head_of(trained, update_multipliers=wrong)
    with pytest.raises(ValueError, match="`epochs_per_layer` must be a positive integer"):
        GradualUnfreezing(0)
    with pytest.raises(ValueError, match="`GradualUnfreezing` is for a head with `trainable_bilm"):
        head_of(elmo).fit(["a", "b"], ["bad", "good"], callbacks=[GradualUnfreezing()], verbose=0)


# === The language model's loss ===


def loss_of(language_model, sentences, sampled):
    elmo = language_model.elmo_model
    head = TextClassifier(elmo, ["a", "b"], lstm_units=0)
    table = head._inputs([" ".join(words) for words in sentences])
    batch = {name: tf.constant(v) for name, v in table.batch(range(len(sentences))).items()}
    outputs, _ = head.encoder.layer_outputs(batch)
    loss = LanguageModelLoss(language_model)
    return float(loss(outputs, batch["tokens"], batch["sequence_len"], sampled))


@pytest.mark.parametrize("sentences", [SENTENCES, [["cat"]], [[]], [["a"] * 9, ["dog", "ran"]]])
def test_it_is_the_loss_of_pre_training(language_model, sentences):
    """Under the full softmax its exp is the perplexity that `evaluate` measures, whatever the padding."""
    exact = loss_of(language_model, sentences, sampled=False)
    assert np.exp(exact) == pytest.approx(evaluate(language_model, sentences).perplexity, rel=1e-5)


def test_sampled_from_all_of_a_small_vocabulary_it_is_close(language_model):
    exact, sampled = (loss_of(language_model, SENTENCES, flag) for flag in (False, True))
    # All 13 words are in every sample of 4,096, so that nothing is left to chance.
    assert sampled == pytest.approx(exact, rel=1e-3)


def test_it_is_a_part_of_the_loss(reviews):
    """L = L_task + lambda * L_LM, in training; in evaluation the task's loss alone."""
    weight = 0.5
    language_model = make_language_model()
    with_loss = head_of(language_model, language_model_loss_weight=weight)
    plain = head_of(language_model)
    plain.classify.set_weights(with_loss.classify.get_weights())
    expected = plain.evaluate(*reviews, verbose=0)
    # A rate of zero: the losses are those before the step.
    for head in (with_loss, plain):
        head.compile(keras.optimizers.SGD(0.0))
    found = with_loss.fit(*reviews, verbose=0).history
    task = plain.fit(*reviews, verbose=0).history["loss"][0]
    of_language = loss_of(language_model, [text.split() for text in reviews[0]], sampled=False)
    assert found["language_model_loss"][0] == pytest.approx(of_language, rel=1e-3)
    assert found["loss"][0] == pytest.approx(task + weight * of_language, rel=1e-3)
    assert with_loss.evaluate(*reviews, verbose=0) == pytest.approx(expected)


def test_it_holds_the_language_model(reviews):
    """The perplexity after fine-tuning is lower with the loss than without."""

    def after(weight):
        keras.utils.set_random_seed(0)
        language_model = make_language_model()
        head = head_of(language_model, language_model_loss_weight=weight)
        head.fit(*reviews, epochs=40, verbose=0)
        return evaluate(language_model, SENTENCES).perplexity

    assert after(0.5) < after(0.0)


def test_report_prints_both(language_model, reviews, capsys):
    before = evaluate(language_model, SENTENCES).perplexity
    report = ForgettingReport(language_model, SENTENCES)
    head_of(language_model).fit(*reviews, callbacks=[report], verbose=0)
    assert report.before == pytest.approx(before)
    assert report.after == pytest.approx(evaluate(language_model, SENTENCES).perplexity)
    assert report.after != pytest.approx(before)
    assert (
        capsys.readouterr().out
        == f"Perplexity of the language model: {report.before:.1f} before, {report.after:.1f} after\n"
    )


def test_report_on_another_model(language_model, elmo, reviews):
    with pytest.raises(ValueError, match="`language_model` must be the one that the head was made"):
        head_of(elmo).fit(
            *reviews, callbacks=[ForgettingReport(language_model, SENTENCES)], verbose=0
        )


def test_report_on_a_frozen_model(tmp_path, reviews):
    make_language_model().save_to_preset(tmp_path / "preset")
    frozen = BidirectionalLanguageModel.from_preset(tmp_path / "preset", trainable_bilm=False)
    head = head_of(frozen)
    with pytest.raises(ValueError, match="`ForgettingReport` is for a biLM that is trained"):
        head.fit(*reviews, callbacks=[ForgettingReport(frozen, SENTENCES)], verbose=0)
    with pytest.raises(ValueError, match=r"Load it by `keras_elmo.load_language_model\(.., train"):
        head_of(frozen, language_model_loss_weight=0.1)


def test_saved_head_goes_on_with_the_loss(language_model, reviews, tmp_path):
    head = head_of(language_model, language_model_loss_weight=0.1)
    head.fit(*reviews, verbose=0)
    head.save(tmp_path / "head.keras")
    loaded = keras.saving.load_model(tmp_path / "head.keras")
    np.testing.assert_array_equal(
        *(h.predict_probabilities(reviews[0], verbose=0) for h in (head, loaded))
    )
    assert loaded.language_model.vocabulary == language_model.vocabulary
    keras.utils.set_random_seed(1)
    first = head.fit(*reviews, verbose=0).history["loss"]
    keras.utils.set_random_seed(1)
    assert loaded.fit(*reviews, verbose=0).history["loss"] == pytest.approx(first, rel=1e-5)


def test_nothing_of_it_is_exported(language_model, reviews, tmp_path):
    """Neither the table of the vocabulary, nor the softmax, nor random numbers are in the graph."""
    from keras_elmo.export import export_saved_model

    head = head_of(language_model, language_model_loss_weight=0.1)
    head.fit(*reviews, verbose=0)
    path = export_saved_model(head, tmp_path / "head")
    served = tf.saved_model.load(path)
    for signature in served.signatures.values():
        graph = signature.graph.as_graph_def()
        operations = {
            node.op
            for nodes in (graph.node, *(f.node_def for f in graph.library.function))
            for node in nodes
        }
        assert not {op for op in operations if "Table" in op or "Random" in op}
    names = [name for name, _ in tf.train.list_variables(str(path / "variables/variables"))]
    sizes = [shape for _, shape in tf.train.list_variables(str(path / "variables/variables"))]
    assert not any("softmax" in name for name in names)
    assert [len(language_model.vocabulary), 4] not in sizes
    assert not list((path / "assets").glob("*"))


@pytest.mark.parametrize("weight", [-0.1, "much", float("nan")])
def test_weight_that_is_none(language_model, weight):
    with pytest.raises(ValueError, match="`language_model_loss_weight` must be zero or a positive"):
        head_of(language_model, language_model_loss_weight=weight)


def test_no_softmax(elmo, tmp_path):
    """Lambda without a softmax is one clear sentence."""
    make_elmo().save_to_preset(tmp_path / "preset")
    with pytest.raises(ValueError, match=r"needs a language model, and .*preset has no softmax"):
        head_of(str(tmp_path / "preset"), trainable_bilm=True, language_model_loss_weight=0.1)
    with pytest.raises(ValueError, match="needs a language model, and an `ElmoModel` has no soft"):
        head_of(elmo, language_model_loss_weight=0.1)


def test_frozen_bilm(tmp_path):
    make_language_model().save_to_preset(tmp_path / "preset")
    with pytest.raises(ValueError, match="acts on a biLM that is trained. Received: .*=0.1 with"):
        head_of(str(tmp_path / "preset"), language_model_loss_weight=0.1)


def test_preset_with_a_softmax(tmp_path, reviews):
    make_language_model().save_to_preset(tmp_path / "preset")
    head = head_of(tmp_path / "preset", trainable_bilm=True, language_model_loss_weight=0.1)
    history = head.fit(*reviews, validation_data=reviews, verbose=0).history
    assert set(history) == {
        "accuracy",
        "language_model_loss",
        "loss",
        "val_accuracy",
        "val_loss",
    }
