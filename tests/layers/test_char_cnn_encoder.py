"""CharCNNEncoder: the harness, the oracle, and the shortcuts against the plain computation."""

import harness
import keras
import numpy as np
import pytest
import reference

from keras_elmo.layers import CharCNNEncoder

ON_JAX = keras.backend.backend() == "jax"
TEXT = [
    ["The", "bank", "of", "the", "river"],
    ["", "a", "Straßenbahnhaltestelle", "中华人民共和国"],
    ["<S>", "the", "</S>", "the", "🙂", "x" * 10, "y" * 11],
    [],
]


def batch_of(sentences, max_word_length):
    """Right-padded character ids without boundaries, int32."""
    ids = np.zeros((len(sentences), max(map(len, sentences)), max_word_length), "int32")
    for row, tokens in zip(ids, sentences, strict=True):
        row[: len(tokens)] = reference.character_rows(tokens, max_word_length)[1:-1]
    return ids


def encoder_for(options, weights):
    cnn, projection_dim = options["char_cnn"], options["lstm"]["projection_dim"]
    encoder = CharCNNEncoder(
        projection_dim,
        embedding_dim=cnn["embedding"]["dim"],
        filters=cnn["filters"],
        num_highway_layers=cnn["n_highway"],
        activation=cnn["activation"],
        use_projection="CNN_proj/W_proj" in weights,
    )
    encoder.build((None, None, cnn["max_characters_per_token"]))
    harness.set_encoder(encoder, weights)
    return encoder


@pytest.mark.parametrize(
    ("kwargs", "num_weights"),
    [
        ({"projection_dim": 5, "embedding_dim": 3, "filters": [[1, 4], [3, 6]]}, 1 + 4 + 8 + 2),
        (
            {
                "projection_dim": 10,
                "embedding_dim": 3,
                "filters": [[1, 4], [3, 6]],
                "num_highway_layers": 0,
                "activation": "tanh",
                "use_projection": False,
                "num_characters": 262,
                "word_padding": 261,
            },
            1 + 4,
        ),
    ],
)
def test_harness(kwargs, num_weights):
    ids = batch_of([["The", "bank", "is", "near"], ["Hi", "you"]], 8)
    harness.check_layer(CharCNNEncoder, kwargs, ids, num_weights=num_weights, padding="zeros")


# Against the oracle ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"activation": "tanh", "num_highway_layers": 0},
        {"num_highway_layers": 3, "max_word_length": 50},
        {"activation": "tanh", "num_highway_layers": 2, "projection_dim": 20},  # no projection
        {"num_highway_layers": 1, "projection_dim": 20},
        {"filters": ((1, 7),), "max_word_length": 3},
        {"filters": ((3, 7), (1, 2)), "max_word_length": 3, "embedding_dim": 1},
        {"filters": ((7, 3), (2, 4), (7, 5)), "max_word_length": 7, "num_highway_layers": 2},
        {"filters": ((5, 3), (12, 4)), "max_word_length": 13},
    ],
    ids=repr,
)
def test_oracle(config):
    options = harness.options_for(**config)
    weights = reference.random_model(options, seed=len(repr(config)))
    max_word_length = options["char_cnn"]["max_characters_per_token"]
    encoder = encoder_for(options, weights)
    output = harness.to_numpy(encoder(batch_of(TEXT, max_word_length)))
    assert encoder.widest_filter == max(width for width, _ in options["char_cnn"]["filters"])
    for row, tokens in zip(output, TEXT, strict=True):
        rows = reference.character_rows(tokens, max_word_length)[1:-1]
        harness.close(row[: len(tokens)], reference.token_embeddings(options, weights, rows))
        assert not row[len(tokens) :].any()


# The shortcuts -----------------------------------------------------------------------------------


@pytest.fixture
def spied():
    """An encoder that notes the shapes of what it really encodes."""
    options = harness.options_for(max_word_length=20)
    encoder = encoder_for(options, reference.random_model(options, seed=3))
    shapes, features = [], encoder._features

    def spy(words):
        shapes.append(tuple(words.shape))
        return features(words)

    encoder._features = spy
    return encoder, shapes


@pytest.mark.parametrize("longest", [1, 9, 13, 14, 15, 16, 17, 18])
def test_shortcuts_give_what_the_plain_computation_gives(spied, longest, monkeypatch):
    encoder, shapes = spied
    ids = batch_of([["ab", "a", "x" * longest], ["a", "", "a"]], 20)
    short = encoder(ids)
    with monkeypatch.context() as patch:
        # As on JAX: no shortcut.
        patch.setattr(keras.backend, "backend", lambda: "jax")
        plain = encoder(ids)
    harness.close(short, plain, tolerance=1e-6)
    assert shapes[1] == (6, 20)
    if not ON_JAX:
        # Four words and "no word"; begin and end of word, and a window of padding as wide as the
        # widest filter (4).
        assert shapes[0] == (4 + 1, min(20, max(longest, 2) + 2 + 4))


@pytest.mark.skipif(ON_JAX, reason="JAX encodes every word in full")
def test_each_distinct_word_is_encoded_once(spied):
    encoder, shapes = spied
    words = [f"w{i}" for i in range(50)]
    random = np.random.default_rng(0)
    ids = batch_of([list(random.choice(words, 40)) for _ in range(200)], 20)
    output = harness.to_numpy(encoder(ids))
    assert shapes == [(50 + 1, 3 + 2 + 4)]
    flat = ids.reshape(-1, 20)
    distinct, first, inverse = np.unique(flat, axis=0, return_index=True, return_inverse=True)
    assert len(distinct) == 50
    vectors = output.reshape(len(flat), -1)
    np.testing.assert_array_equal(vectors, vectors[first][inverse.reshape(-1)])


@pytest.mark.skipif(ON_JAX, reason="JAX encodes every word in full")
def test_words_of_the_same_length_go_together_in_training(spied):
    encoder, shapes = spied
    words = ["a", "bb", "c", "x" * 30, "dd", "eee", "f" * 9]
    ids = batch_of([words, words[::-1]], 20)
    plain = encoder(ids)
    shapes.clear()
    harness.close(encoder(ids, training=True), plain, tolerance=1e-6)
    # Four rows of zeros and the seven words, with begin and end and a window of padding.
    assert shapes == [(2, 4), (3, 1 + 2 + 4), (3, 2 + 2 + 4), (3, 20)]
    shapes.clear()
    # Fewer words than groups.
    harness.close(encoder(ids[:, :1], training=True), plain[:, :1], tolerance=1e-6)
    assert [count for count, _ in shapes] == [1, 2, 1, 2]


def test_no_sentences_no_tokens_nothing_but_padding(spied):
    encoder, _ = spied
    assert tuple(encoder(np.zeros((0, 3, 20), "int32")).shape) == (0, 3, 6)
    assert tuple(encoder(np.zeros((2, 0, 20), "int32")).shape) == (2, 0, 6)
    output = encoder(np.zeros((2, 3, 20), "int32"))
    harness.close(output, np.zeros((2, 3, 6)))
    assert not harness.mask_of(output).any()


# First weights, errors ---------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_first_weights(activation):
    encoder = CharCNNEncoder(64, filters=[[2, 300], [4, 200]], activation=activation)
    encoder.build((None, None, 50))
    table = harness.to_numpy(encoder.character_embedding.embeddings)
    assert table.shape == (262, 16)
    assert not table[0].any()
    assert 0.97 < np.abs(table).max() <= 1
    for convolution, width in zip(encoder.convolutions, (2, 4), strict=True):
        kernel = harness.to_numpy(convolution.kernel)
        if activation == "relu":
            assert 0.045 < np.abs(kernel).max() <= 0.05
        else:
            np.testing.assert_allclose(kernel.std(), (width * 16) ** -0.5, rtol=0.05)
        assert not harness.to_numpy(convolution.bias).any()
    np.testing.assert_allclose(
        harness.to_numpy(encoder.projection.kernel).std(), 500**-0.5, rtol=0.05
    )


def test_row_zero_stays_zero_in_training():
    encoder = CharCNNEncoder(4, embedding_dim=3, filters=[[1, 4], [2, 4]])
    model = keras.Sequential([keras.Input((None, 6), dtype="int32"), encoder])
    model.compile(keras.optimizers.Adam(0.1), "mse")
    ids = batch_of([["ab", "a"], ["b"]], 6)
    model.fit(ids, np.ones((2, 2, 4), "float32"), verbose=0)
    assert not harness.to_numpy(encoder.character_embedding.embeddings)[0].any()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"projection_dim": 0}, "`projection_dim` must be a positive integer. Received: .*=0"),
        ({"projection_dim": 2.0}, "`projection_dim` must be a positive integer. Received: .*=2.0"),
        ({"embedding_dim": True}, "`embedding_dim` must be a positive integer. Received: .*=True"),
        ({"num_characters": -1}, "`num_characters` must be a positive integer. Received: .*=-1"),
        (
            {"num_highway_layers": -1},
            "`num_highway_layers` must be zero or a positive integer. Received: .*=-1",
        ),
        (
            {"num_highway_layers": "2"},
            "`num_highway_layers` must be zero or a positive integer. Received: .*='2'",
        ),
        ({"activation": "gelu"}, "`activation` must be one of 'relu', 'tanh'. Received: .*'gelu'"),
        ({"filters": 7}, "`filters` must be a list of pairs of positive integers .*=7"),
        ({"filters": []}, r"`filters` must be a list of pairs of positive integers .*=\[\]"),
        ({"filters": [7, 3]}, r"`filters` must be a list of pairs .*=\[7, 3\]"),
        ({"filters": [[1, 2, 3]]}, "`filters` must be a list of pairs of positive integers"),
        ({"filters": [[1, 0]]}, "`filters` must be a list of pairs of positive integers"),
        (
            {"use_projection": False, "projection_dim": 8, "filters": [[1, 4], [2, 3]]},
            "`use_projection=False` needs as many filters as `projection_dim`. "
            "Received: 7 filters and projection_dim=8",
        ),
    ],
    ids=repr,
)
def test_argument_errors(kwargs, message):
    with pytest.raises(ValueError, match=message):
        CharCNNEncoder(**kwargs)


def test_input_errors():
    encoder = CharCNNEncoder(4, filters=[[1, 2], [5, 2]])
    with pytest.raises(ValueError, match=r"`character_ids` must have 3 axes, .*shape \(2, 8\)"):
        encoder(np.ones((2, 8), "int32"))
    too_narrow = r"no smaller than the widest filter, 5. Received a tensor of shape \(2, 3, 4\)"
    with pytest.raises(ValueError, match=too_narrow):
        encoder(np.ones((2, 3, 4), "int32"))
    with pytest.raises(ValueError, match="word length, must be known"):
        encoder(keras.Input((None, None), dtype="int32"))
    with pytest.raises(ValueError, match="no smaller than the widest filter"):
        encoder.compute_output_shape((None, None, 4))
