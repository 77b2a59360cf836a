"""Models of users with `ElmoEmbedding` on two devices: what Keras' `fit` learns is what it learns on one."""

import contextlib

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("strategies are TensorFlow's", allow_module_level=True)

import tensorflow as tf

from keras_elmo import ElmoEmbedding, ElmoModel, TextClassifier
from keras_elmo.text import map_characters, tokenize
from keras_elmo.training.strategies import make_strategy

TEXTS = ["a good film .", "the good cat sat .", "good", "a good dog ran"]
TEXTS += ["a bad film .", "the bad cat ran .", "bad", "a bad dog sat"]


def tiny_elmo(**arguments):
    sizes = {"units": 8, "projection_dim": 4, "embedding_dim": 4, "filters": [[1, 4], [2, 4]]}
    return ElmoModel(**sizes, num_highway_layers=1, **arguments)


def spelled():
    """Batches of texts as character ids: Keras' `fit` cannot share out strings."""
    texts = tf.data.Dataset.from_tensor_slices((TEXTS, [1.0] * 4 + [0.0] * 4)).batch(8)
    return texts.map(lambda text, label: (map_characters(tokenize(text)), label))


def trained(scope, trainable_bilm):
    keras.utils.set_random_seed(0)
    with scope:
        ids = keras.Input((None, 50), dtype="int32")
        elmo = ElmoEmbedding(tiny_elmo(trainable_bilm=trainable_bilm), inputs="character_ids")
        pooled = keras.layers.GlobalAveragePooling1D()(elmo(ids))
        model = keras.Model(ids, keras.layers.Dense(1, "sigmoid")(pooled))
        model.compile(keras.optimizers.SGD(0.5), "binary_crossentropy")
    history = model.fit(spelled(), epochs=3, shuffle=False, verbose=0).history
    return model, history["loss"]


@pytest.mark.parametrize("trainable_bilm", [False, True])
def test_fit_on_two_devices(trainable_bilm, tmp_path):
    """The losses are those of one device; what is saved there is loaded here, and the other way round."""
    strategy = make_strategy("mirrored")
    assert strategy.num_replicas_in_sync == 2
    one, losses = trained(contextlib.nullcontext(), trainable_bilm)
    two, others = trained(strategy.scope(), trainable_bilm)
    assert losses[-1] < losses[0]
    np.testing.assert_allclose(others, losses, atol=1e-6)
    two.save(tmp_path / "two.keras")
    one.save(tmp_path / "one.keras")
    alone = keras.saving.load_model(tmp_path / "two.keras")
    with strategy.scope():
        together = keras.saving.load_model(tmp_path / "one.keras")
    for loaded, saved in ((alone, two), (together, one)):
        for weight, other in zip(loaded.get_weights(), saved.get_weights(), strict=True):
            np.testing.assert_array_equal(weight, other)
    expected = one.predict(spelled(), verbose=0)
    for model in (alone, together):
        np.testing.assert_allclose(model.predict(spelled(), verbose=0), expected, atol=1e-5)


def test_a_head_says_that_it_is_for_one_device():
    with make_strategy("mirrored").scope():
        head = TextClassifier(tiny_elmo(), ["bad", "good"], lstm_units=0)
    with pytest.raises(
        ValueError, match="A head is trained on one device, for Keras' `fit` can shar"
    ):
        head.fit(TEXTS, ["good"] * 4 + ["bad"] * 4, verbose=0)
