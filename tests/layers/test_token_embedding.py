"""TokenEmbedding: the harness, and the oracle's table."""

import harness
import numpy as np
import pytest
import reference

from keras_elmo.layers import TokenEmbedding


def test_harness():
    ids = np.array([[3, 1, 4, 1], [5, 9, 2, 0]], "int32")
    kwargs = {"num_tokens": 10, "projection_dim": 4}
    harness.check_layer(TokenEmbedding, kwargs, ids, num_weights=1, padding="zeros")


def test_oracle():
    vocabulary = ["<S>", "</S>", "<UNK>", "the", "bank"]
    options = {"lstm": {"dim": 8, "projection_dim": 4}, "n_tokens_vocab": len(vocabulary)}
    weights = reference.random_model(options, seed=1)
    layer = TokenEmbedding(len(vocabulary) + 1, 4)
    layer.build((None, None))
    layer.set_weights([np.concatenate([np.ones((1, 4)), weights["embedding"]])])
    rows = reference.token_rows(["the", "pond", "bank"], vocabulary)
    output = layer(np.array([[*rows, 0, 0]], "int32"))
    harness.close(output[0, :5], reference.token_embeddings(options, weights, rows))
    # Whatever stands in row 0 of the table.
    harness.close(output[0, 5:], np.zeros((2, 4)))
    np.testing.assert_array_equal(harness.mask_of(output), [[1, 1, 1, 1, 1, 0, 0]])


@pytest.mark.parametrize("name", ["num_tokens", "projection_dim"])
@pytest.mark.parametrize("value", [0, None, 1.5])
def test_argument_errors(name, value):
    message = f"`{name}` must be a positive integer. Received: {name}={value!r}"
    with pytest.raises(ValueError, match=message):
        TokenEmbedding(**{"num_tokens": 3, "projection_dim": 2} | {name: value})


def test_input_errors():
    with pytest.raises(ValueError, match=r"`token_ids` must have 2 axes, .*shape \(1, 2, 3\)"):
        TokenEmbedding(5, 2)(np.ones((1, 2, 3), "int32"))
