"""Exact shortcuts: without any of them the numbers are the same, and something else is done."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_elmo import ElmoModel, character_ids
from keras_elmo.layers import SHORTCUTS, char_cnn_encoder, lstm_stack, without_shortcuts

SENTENCES = ["the bank of the river", "", "unbelievable 银行", "a"]
NAMES = [[name] for name in SHORTCUTS] + [list(SHORTCUTS)]


@pytest.fixture
def model():
    keras.utils.set_random_seed(3)
    model = ElmoModel(
        units=8,
        projection_dim=4,
        filters=[[1, 4], [3, 6]],
        num_highway_layers=1,
        max_word_length=20,
    )
    for weight in model.weights:
        if weight.name == "bias":
            weight.assign(keras.random.normal(weight.shape, seed=4))
    return model


@pytest.mark.parametrize("names", NAMES, ids="+".join)
def test_a_model_gives_the_same(model, names):
    ids = ops.convert_to_tensor(character_ids(SENTENCES, 20))
    expected = model(ids)
    with without_shortcuts(names):
        found = model(ids)
    for name, value in expected.items():
        np.testing.assert_allclose(
            ops.convert_to_numpy(found[name]), ops.convert_to_numpy(value), rtol=0, atol=1e-6
        )


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="Embedder needs TensorFlow")
@pytest.mark.parametrize("layers", ["all", "mix", "word"])
@pytest.mark.parametrize("names", NAMES, ids="+".join)
def test_an_embedder_gives_the_same(model, names, layers):
    from keras_elmo import Embedder

    # The last two are read in pieces.
    sentences = [["the", "bank"], [], ["a"], ["b", "the"] * 5, [f"w{k}" for k in range(20)]] * 2
    expected = Embedder(model, layers=layers, batch_tokens=8).embed(sentences)
    found = Embedder(model, layers=layers, batch_tokens=8, without=names).embed(sentences)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-6)


def test_masked_steps_are_not_taken(model, monkeypatch):
    """Padding goes behind the tokens, so that the loop sees no mask; without the shortcut it does."""
    masks = []
    scan = lstm_stack._scan
    monkeypatch.setattr(lstm_stack, "_scan", lambda *args: masks.append(None) or scan(*args))
    ids = ops.convert_to_tensor(character_ids(SENTENCES, 20))
    model.bilm(model.token_encoder(ids), mask=ops.ones((4, 7), "bool"))
    assert len(masks) == 4
    with without_shortcuts(["tokens_first"]):
        model.bilm(model.token_encoder(ids), mask=ops.ones((4, 7), "bool"))
    assert len(masks) == 4


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="JAX encodes every word in full")
@pytest.mark.parametrize(
    ("names", "rows", "columns"),
    [([], 4, 9), (["distinct_words"], 5, 9), (["trimmed_words"], 4, 20)],
)
def test_words_are_not_encoded_in_full(model, monkeypatch, names, rows, columns):
    shapes = []
    features = char_cnn_encoder.CharCNNEncoder._features

    def spy(self, words):
        shapes.append(tuple(words.shape))
        return features(self, words)

    monkeypatch.setattr(char_cnn_encoder.CharCNNEncoder, "_features", spy)
    # Three distinct words, one row of zeros more; "bank" needs 6 columns, and the widest filter 3 more.
    with without_shortcuts(names):
        model.encoder(ops.convert_to_tensor(character_ids(["the bank the bank a"], 20)))
    assert shapes == [(rows, columns)]


def test_there_is_no_such_shortcut(model):
    with (
        pytest.raises(ValueError, match="shortcuts are distinct_words, .*Received: 'magic'"),
        without_shortcuts(["magic"]),
    ):
        pass
    if keras.backend.backend() == "tensorflow":
        from keras_elmo import Embedder

        with pytest.raises(ValueError, match="Received: 'magic'"):
            Embedder(model, without=["magic"])
