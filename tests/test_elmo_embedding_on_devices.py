"""Models of users with `ElmoEmbedding` on two devices; `test_elmo_embedding.py` has what `fit` learns there."""

import contextlib

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("strategies are TensorFlow's", allow_module_level=True)

from keras_elmo import ElmoEmbedding, ElmoModel, TextClassifier
from keras_elmo.training.strategies import make_strategy


def tiny_elmo():
    sizes = {"units": 8, "projection_dim": 4, "embedding_dim": 4, "filters": [[1, 4], [2, 4]]}
    return ElmoModel(**sizes, num_highway_layers=1)


@pytest.mark.parametrize("saved_on", [1, 2])
def test_saved_on_some_devices_and_loaded_on_others(saved_on, tmp_path):
    strategy = make_strategy("mirrored")
    assert strategy.num_replicas_in_sync == 2
    scopes = [contextlib.nullcontext(), strategy.scope()]
    with scopes[saved_on - 1]:
        ids = keras.Input((None, 50), dtype="int32")
        elmo = ElmoEmbedding(tiny_elmo(), inputs="character_ids", output="default")(ids)
        model = keras.Model(ids, keras.layers.Dense(1)(elmo))
    model.save(tmp_path / "model.keras")
    with scopes[2 - saved_on]:
        loaded = keras.saving.load_model(tmp_path / "model.keras")
    weights, others = model.get_weights(), loaded.get_weights()
    assert any(weight.any() for weight in weights)
    for weight, other in zip(weights, others, strict=True):
        np.testing.assert_array_equal(weight, other)
    words = np.random.default_rng(0).integers(1, 200, size=(2, 3, 50))
    np.testing.assert_allclose(model(words), loaded(words), atol=1e-6)


def test_a_head_says_that_it_is_for_one_device():
    with make_strategy("mirrored").scope():
        head = TextClassifier(tiny_elmo(), ["bad", "good"], lstm_units=0)
    with pytest.raises(
        ValueError, match="A head is trained on one device, for Keras' `fit` can shar"
    ):
        head.fit(["a fine film", "a dull one"], ["good", "bad"], verbose=0)
