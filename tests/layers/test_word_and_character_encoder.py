"""WordAndCharacterEncoder: the harness, and its formula written out."""

import harness
import numpy as np
import pytest

from keras_elmo.layers import CharCNNEncoder, WordAndCharacterEncoder

CHARACTERS = {
    "num_characters": 12,
    "word_padding": 11,
    "embedding_dim": 3,
    "filters": [[1, 4], [3, 2]],
    "num_highway_layers": 1,
    "activation": "tanh",
}
WORDS = {"num_words": 7, "word_dim": 4}
IDS = {
    "character_ids": np.array(
        [
            [[9, 2, 10, 11, 11, 11], [9, 3, 4, 5, 10, 11], [9, 10, 11, 11, 11, 11]],
            [[9, 2, 10, 11, 11, 11], [9, 8, 8, 8, 8, 10], [9, 7, 10, 11, 11, 11]],
        ],
        "int32",
    ),
    "word_ids": np.array([[3, 1, 6], [3, 2, 2]], "int32"),
}


def some_ids(*names):
    return {name: IDS[name] for name in names}


@pytest.mark.parametrize(
    ("parts", "ids", "num_weights"),
    [
        (CHARACTERS | WORDS, IDS, 1 + 1 + 4 + 4 + 2),
        (CHARACTERS, some_ids("character_ids"), 1 + 4 + 4 + 2),
        (WORDS, some_ids("word_ids"), 1 + 2),
    ],
    ids=["both", "characters", "words"],
)
def test_harness(parts, ids, num_weights):
    harness.check_layer(
        WordAndCharacterEncoder,
        {"projection_dim": 5, **parts},
        ids,
        num_weights=num_weights,
        padding="zeros",
    )


def test_formula():
    """Words first, then characters, then the projection."""
    layer = WordAndCharacterEncoder(5, **CHARACTERS, **WORDS)
    output = layer(IDS)
    harness.randomize(layer)
    output = harness.to_numpy(layer(IDS))
    words = harness.to_numpy(layer.word_embedding.embeddings)[IDS["word_ids"]]
    characters = harness.to_numpy(layer.char_cnn_encoder(IDS["character_ids"]))
    kernel, bias = map(harness.to_numpy, (layer.projection.kernel, layer.projection.bias))
    harness.close(output, np.concatenate([words, characters], axis=-1) @ kernel + bias)


def test_words_are_trimmed_by_the_padding_that_is_said():
    """Of 262 ids, as bytes have, 261 may be a character: ELMoForManyLangs' ids are those of its lexicon."""
    arguments = {"projection_dim": 4, "embedding_dim": 3, "filters": [[1, 3], [2, 4]]}
    encoder = CharCNNEncoder(**arguments, word_padding=7)
    ids = np.array([[[9, 261, 261, 261, 261, 5, 10, 7, 7, 7], [9, 2, 10, *[7] * 7]]], "int32")
    encoder(ids)
    harness.randomize(encoder)
    whole = [harness.to_numpy(encoder(ids[:, k : k + 1]))[0, 0] for k in range(2)]
    together = harness.to_numpy(encoder(ids))[0]
    harness.close(together, np.stack(whole), 1e-6)
    table = harness.to_numpy(encoder.character_embedding.embeddings)
    windows = table[ids[0, 0]]
    kernels = [harness.to_numpy(convolution.kernel) for convolution in encoder.convolutions]
    biases = [harness.to_numpy(convolution.bias) for convolution in encoder.convolutions]
    features = []
    for kernel, bias in zip(kernels, biases, strict=True):
        width = len(kernel)
        steps = [np.tensordot(windows[k : k + width], kernel, 2) for k in range(10 - width + 1)]
        features.append(np.maximum(np.max(steps, axis=0) + bias, 0))
    expected = encoder._transform(np.concatenate(features)[None])
    harness.close(together[:1], expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs `num_words` or `num_characters`. Received: None for both"),
        ({"num_words": 0}, "`num_words` must be a positive integer. Received: num_words=0"),
        ({"num_words": 3, "word_dim": 0}, "`word_dim` must be a positive integer"),
        ({"num_characters": 0}, "`num_characters` must be a positive integer"),
        ({"num_characters": 3, "word_padding": 0}, "`word_padding` must be a positive integer"),
        ({"projection_dim": 0, "num_words": 3}, "`projection_dim` must be a positive integer"),
        ({"num_words": 3, "filters": 1}, "`filters` must be a list of pairs"),
    ],
)
def test_argument_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        WordAndCharacterEncoder(**{"projection_dim": 4} | arguments)


def test_input_errors():
    layer = WordAndCharacterEncoder(4, **CHARACTERS, **WORDS)
    expected = r"must be a dict of 'word_ids' and 'character_ids'. Received: "
    with pytest.raises(ValueError, match=expected + r"\['word_ids'\]"):
        layer(some_ids("word_ids"))
    with pytest.raises(ValueError, match=expected):
        layer(IDS["word_ids"])
