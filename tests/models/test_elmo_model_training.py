"""ElmoModel in training: what moves, what stays, and what no gradient is kept for."""

import keras
import numpy as np
import pytest
from harness import to_numpy

import keras_elmo

SENTENCES = ["The bank is near the river", "I went to the bank", "Hello", ""] * 8 + ["one more"]
IDS = keras_elmo.character_ids(SENTENCES)
LABELS = (np.arange(len(SENTENCES)) % 2).astype("float32")
# Keras saves TensorFlow's variables through a call that NumPy 2 warns about.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

backend = keras.backend.backend()


def classifier(model):
    """A user's model: a Dense on the sentence vector."""
    ids = keras.Input((None, 50), dtype="int32")
    head = keras.layers.Dense(1, activation="sigmoid", kernel_initializer="ones")
    outer = keras.Model(ids, head(model(ids)["default"]))
    outer.compile(keras.optimizers.SGD(0.5), "binary_crossentropy")
    return outer


def weights_of(model):
    return {variable.path: to_numpy(variable) for variable in model.variables}


def moved_by_fit(model, outer=None):
    """The names of the variables that one epoch changes."""
    outer = outer or classifier(model)
    before = weights_of(model)
    # 33 sentences in batches of 32: the last batch has one row (user problem 9).
    outer.fit(IDS, LABELS, batch_size=32, epochs=1, shuffle=False, verbose=0)
    after = weights_of(model)
    assert before.keys() == after.keys()
    assert all(np.isfinite(value).all() for value in after.values())
    return {path for path, value in before.items() if (value != after[path]).any()}


MIX = {"scalar_mix/scalar_weights", "scalar_mix/gamma"}


def test_only_the_mix_is_trainable(load):
    """User problem 52: three numbers and gamma, and a step moves all of them and nothing else."""
    *_, model = load()
    assert {variable.path for variable in model.trainable_variables} == MIX
    assert [variable.shape for variable in model.trainable_variables] == [(3,), ()]
    assert moved_by_fit(model) == MIX
    assert (to_numpy(model.scalar_mix.scalar_weights) != 0).all()


@pytest.mark.parametrize("whose", ["model", "outer", "sequence"])
def test_trainable_true_does_not_unfreeze_the_bilm(load, whose):
    """User problem 52: 75 million parameters do not become trainable by surprise."""
    *_, model = load()
    outer = classifier(model)
    if whose == "model":
        model.trainable = True
    elif whose == "outer":
        outer.trainable = True
    else:
        outer.trainable = False
        assert outer.trainable_variables == []
        assert model.trainable_variables == []
        assert model.trainable is False
        outer.trainable = True
    outer.compile(keras.optimizers.SGD(0.5), "binary_crossentropy")
    assert {variable.path for variable in model.trainable_variables} == MIX
    assert len(outer.trainable_variables) == 4
    assert moved_by_fit(model, outer) == MIX


def test_model_that_is_not_trainable_trains_nothing(load):
    *_, model = load(trainable=False)
    assert model.trainable_variables == []
    assert moved_by_fit(model) == set()
    *_, model = load(trainable=False, trainable_bilm=True)
    assert model.trainable_variables == []
    model.trainable = True
    assert len(model.trainable_variables) == len(model.variables)


@pytest.mark.parametrize("name", ["plain", "words", "no LSTM projection", "no CNN projection"])
def test_trainable_bilm_trains_everything(load, name):
    """User problem 52: `trainable_bilm=True` moves every weight."""
    *_, model = load(name, trainable_bilm=True)
    assert len(model.trainable_variables) == len(model.variables)
    if name != "words":
        assert moved_by_fit(model) == {variable.path for variable in model.variables}
        row_0 = to_numpy(model.encoder.character_embedding.embeddings)[0]
        assert not row_0.any(), "the vector of id 0, where there is no word, must stay zero"


def test_the_choice_survives_config_and_saving(load, tmp_path):
    for trainable_bilm, number in ((False, 2), (True, 20)):
        *_, model = load(trainable_bilm=trainable_bilm)
        outer = classifier(model)
        outer.save(tmp_path / "model.keras")
        loaded = keras.saving.load_model(tmp_path / "model.keras")
        assert len(loaded.trainable_variables) == len(outer.trainable_variables)
        assert len(outer.trainable_variables) - 2 >= number
        assert (len(model.trainable_variables) == 2) == (not trainable_bilm)


@pytest.mark.skipif(backend != "tensorflow", reason="needs tf.GradientTape")
def test_no_gradient_for_the_frozen_bilm(load):
    """User problem 53: nothing flows back into the biLM, whatever is asked for."""
    import tensorflow as tf

    *_, model = load()
    with tf.GradientTape() as tape:
        outputs = model(IDS, training=True)
        loss = sum(
            tf.reduce_sum(outputs[name] ** 2) for name in ("elmo", "lstm_outputs1", "word_emb")
        )
    gradients = tape.gradient(loss, [variable.value for variable in model.variables])
    for variable, gradient in zip(model.variables, gradients, strict=True):
        assert (gradient is None) == (variable.path not in MIX), variable.path


@pytest.mark.skipif(backend != "torch", reason="needs requires_grad")
def test_torch_keeps_no_graph_of_the_frozen_bilm(load):
    *_, model = load()
    outputs = model(IDS, training=True)
    assert outputs["elmo"].requires_grad
    assert not outputs["lstm_outputs2"].requires_grad
    outputs["elmo"].sum().backward()
    for variable in model.variables:
        assert (variable.value.grad is None) == (variable.path not in MIX), variable.path


@pytest.mark.skipif(backend != "tensorflow", reason="needs tf.GradientTape")
@pytest.mark.parametrize("layer_norm", [None, "sentence", "batch"])
@pytest.mark.parametrize("sentences", [SENTENCES[:5], ["", ""], ["a"]])
def test_gradients_are_finite(load, sentences, layer_norm):
    """User problem 52: also with empty sentences, and with nothing else."""
    import tensorflow as tf

    *_, model = load(trainable_bilm=True, layer_norm=layer_norm)
    variables = [variable.value for variable in model.trainable_variables]
    with tf.GradientTape() as tape:
        outputs = model(keras_elmo.character_ids(sentences), training=True)
        loss = tf.reduce_sum(outputs["elmo"] ** 2) + tf.reduce_sum(outputs["default"] ** 2)
    gradients = tape.gradient(loss, variables)
    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        assert gradient is not None, variable.path
        assert np.isfinite(tf.convert_to_tensor(gradient).numpy()).all(), variable.path


def test_fixed_mix_does_not_move(load):
    """User problem 20: fixed weights, and their gamma, stay what they are."""
    *_, model = load()
    ids = keras.Input((None, 50), dtype="int32")
    mix = keras_elmo.ScalarMix(fixed_weights=[0, 0, 1])
    mixed = mix(model.bilm(model.token_encoder(ids)))
    outer = keras.Model(ids, keras.layers.Dense(1)(keras_elmo.SentenceMean()(mixed)))
    outer.compile(keras.optimizers.SGD(0.5), "mse")
    before = [to_numpy(variable) for variable in mix.variables]
    outer.fit(IDS, LABELS, verbose=0)
    for variable, value in zip(mix.variables, before, strict=True):
        np.testing.assert_array_equal(to_numpy(variable), value)


def test_training_and_inference_agree(load):
    """There is no dropout inside, and the gates computed ahead are the same."""
    *_, model = load()
    trained, inferred = model(IDS, training=True), model(IDS, training=False)
    for name, value in inferred.items():
        np.testing.assert_allclose(to_numpy(trained[name]), to_numpy(value), rtol=0, atol=1e-6)
