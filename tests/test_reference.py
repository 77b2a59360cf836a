"""The oracle itself, against vectors that bilm-tf, simple-elmo and simple-elmo-pytorch gave."""

import json

import h5py
import numpy as np
import pytest
import reference
from paths import DATA, shared

GENERATED = DATA / "generated"
TOLERANCE = 1e-5


def close(actual, expected, tolerance=TOLERANCE):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance)


def generated_sentences():
    return json.loads((GENERATED / "sentences.json").read_text(encoding="utf-8"))


def run(options, weights, tokens, state=None):
    rows = reference.character_rows(tokens, options["char_cnn"]["max_characters_per_token"])
    vectors = reference.token_embeddings(options, weights, rows)
    return reference.bilm(options, weights, vectors, state)


def options_for(activation="relu", filters=((1, 5), (2, 6), (4, 9)), n_highway=1, **lstm):
    char_cnn = {
        "activation": activation,
        "filters": [list(pair) for pair in filters],
        "embedding": {"dim": 4},
        "n_characters": 262,
        "max_characters_per_token": 50,
    }
    if n_highway is not None:
        char_cnn["n_highway"] = n_highway
    lstm = {"dim": 24, "projection_dim": 6, "cell_clip": 3, "proj_clip": 3, "n_layers": 2} | lstm
    return {"lstm": lstm, "char_cnn": char_cnn}


# bilm-tf: 3 streams of 10 sentences, LSTM state carried along each stream ------------------------


@pytest.fixture(scope="module")
def bilm_tf():
    folder = shared("fixtures", "bilm_tf")
    options, weights = reference.load_weights(folder / "options.json", folder / "lm_weights.hdf5")
    text = (folder / "lm_embeddings_sentences.json").read_text(encoding="utf-8")
    streams = [[sentence.split() for sentence in stream] for stream in json.loads(text)]
    goldens = []
    for k, stream in enumerate(streams):
        with h5py.File(folder / f"lm_embeddings_{k}.hdf5", "r") as file:
            # (2 directions, T, p) -> (T, 2 p)
            golden = [np.concatenate(file[str(i)][()], axis=-1) for i in range(len(stream))]
        goldens.append(golden)
    return options, weights, streams, goldens


@pytest.mark.parametrize("k", range(3))
def test_bilm_tf_streams_with_carried_state(bilm_tf, k):
    options, weights, streams, goldens = bilm_tf
    state = None
    assert len(streams[k]) == 10
    for tokens, golden in zip(streams[k], goldens[k], strict=True):
        layers, state = run(options, weights, tokens, state)
        close(layers[-1][1:-1], golden)


@pytest.mark.parametrize("k", range(3))
def test_bilm_tf_first_sentence_is_stateless_and_the_second_is_not(bilm_tf, k):
    options, weights, streams, goldens = bilm_tf
    first, second = (run(options, weights, tokens)[0][-1][1:-1] for tokens in streams[k][:2])
    close(first, goldens[k][0])
    assert np.abs(second - goldens[k][1]).max() > 0.01


# The generated models ----------------------------------------------------------------------------

# The goldens were computed in float32. In `skip3_tanh_clip` the clipped layers amplify its rounding
# step by step: float32 and float64 runs of this same oracle part by 1e-6 in the first steps of a
# direction, 8e-5 after 10 and 1e-2 after 40, and so do golden and oracle. A wrong formula (gates
# swapped, no clip, no forget bias, skip from layer 1, ..) is off by 0.4 and more within 8 steps.
ROUNDING = {"skip2": (1e-5, 1e-5, 1e-5), "skip3_tanh_clip": (1e-5, 1e-4, 2e-2)}


def tolerance(name, num_steps):
    """What float32 rounding may do in the first `num_steps` steps of a direction."""
    few, some, many = ROUNDING[name]
    return few if num_steps <= 3 else some if num_steps <= 10 else many


@pytest.fixture(scope="module", params=ROUNDING)
def generated(request):
    folder = GENERATED / request.param
    options, weights = reference.load_weights(folder / "options.json", folder / "weights.hdf5")
    batch = [run(options, weights, tokens)[0] for tokens in generated_sentences()]
    with h5py.File(folder / "expected.hdf5", "r") as file:
        expected = {name: item[()] for name, item in file.items()} | dict(file.attrs)
    return request.param, options, weights, batch, expected


def test_generated_character_ids(generated):
    _, options, _, _, expected = generated
    width = options["char_cnn"]["max_characters_per_token"]
    for i, tokens in enumerate(generated_sentences()):
        rows = reference.character_rows(tokens, width)[1:-1]
        np.testing.assert_array_equal(expected["character_ids"][i, : len(tokens)], rows)
        assert not expected["character_ids"][i, len(tokens) :].any()
        assert expected["mask_with_boundaries"][i].sum() == len(tokens) + 2


def test_generated_layers(generated):
    name, options, _, batch, expected = generated
    projection_dim = options["lstm"]["projection_dim"]
    for layers, activations in zip(batch, expected["activations"], strict=True):
        assert len(layers) == len(activations)
        length = len(layers[0])
        close(layers[0], activations[0, :length])
        for layer, golden in zip(layers[1:], activations[1:, :length], strict=True):
            for num_steps in (3, 10, length):
                limit = tolerance(name, min(num_steps, length))
                forward = np.s_[:num_steps, :projection_dim]
                backward = np.s_[::-1, projection_dim:]
                close(layer[forward], golden[forward], limit)
                close(layer[backward][:num_steps], golden[backward][:num_steps], limit)


@pytest.mark.parametrize(("output", "layer_norm"), [("elmo", None), ("elmo_layer_norm", "batch")])
def test_generated_mix_of_the_golden_layers(generated, output, layer_norm):
    *_, batch, expected = generated
    golden_batch = [
        list(activations[:, : len(layers[0])].astype(np.float64))
        for layers, activations in zip(batch, expected["activations"], strict=True)
    ]
    w, gamma = expected["scalar_mix_weights"], expected["gamma"]
    mixed = reference.scalar_mix(golden_batch, w, gamma, layer_norm)
    for vectors, golden in zip(mixed, expected[output], strict=True):
        close(vectors[1:-1], golden[: len(vectors) - 2], 1e-6)


@pytest.mark.parametrize(("output", "layer_norm"), [("elmo", None), ("elmo_layer_norm", "batch")])
def test_generated_embed(generated, output, layer_norm):
    name, options, weights, batch, expected = generated
    w, gamma = expected["scalar_mix_weights"], expected["gamma"]
    results = reference.embed(
        options, weights, generated_sentences(), w=w, gamma=gamma, layer_norm=layer_norm
    )
    for layers, result, golden in zip(batch, results, expected[output], strict=True):
        golden = golden[: len(result["elmo"])]
        # The norm spreads the rounding of the long sentence over all: never the strictest limit.
        limit = tolerance(name, max(len(layers[0]), 4))
        close(result["elmo"], golden, limit)
        close(result["default"], golden.mean(axis=0), limit)
        close(np.tile(result["word_emb"], 2), layers[0][1:-1], 0)
        for k in range(1, len(layers)):
            close(result[f"lstm_outputs{k}"], layers[k][1:-1], 0)


def test_generated_without_highway_and_skip():
    folder = GENERATED / "noskip1_nohighway"
    options, weights = reference.load_weights(folder / "options.json", folder / "weights.hdf5")
    sentences = generated_sentences()
    with h5py.File(folder / "expected_tf1.hdf5", "r") as file:
        expected = {name: item[()] for name, item in file.items()}
    assert [len(tokens) for tokens in sentences] == expected["lengths"].tolist()
    for i, tokens in enumerate(sentences):
        layers, _ = run(options, weights, tokens)
        length = len(tokens)
        close(layers[0], np.tile(expected["token_embeddings"][i, : length + 2], 2))
        assert len(layers) == expected["lm_embeddings"].shape[1]
        for layer, golden in zip(layers, expected["lm_embeddings"][i], strict=True):
            close(layer[1:-1], golden[:length])


# Character rows: bilm-tf's own golden rows, shifted by one ---------------------------------------


@pytest.mark.parametrize(
    ("token", "width", "row"),
    [
        ("th", 5, [259, 117, 105, 260, 261]),
        ("thhhhh", 5, [259, 117, 105, 105, 260]),
        ("Āt", 5, [259, 197, 129, 117, 260]),
        ("The", 7, [259, 85, 105, 102, 260, 261, 261]),
        ("", 4, [259, 260, 261, 261]),
        ("\ud800", 4, [259, 260, 261, 261]),
        ("</S>", 4, [259, 258, 260, 261]),
    ],
)
def test_character_rows(token, width, row):
    rows = reference.character_rows([token], width)
    assert rows.tolist() == [
        [259, 257, 260] + [261] * (width - 3),
        row,
        [259, 258, 260] + [261] * (width - 3),
    ]


def test_character_rows_cut_by_bytes():
    row = reference.character_rows(["中华人民共和国"], 20)[1]
    cut = [229, 185, 174, 230, 142, 143, 229, 187, 187, 231, 177, 146]
    assert row.tolist() == [259, *cut, 230, 134, 178, 230, 147, 141, 260]


def test_token_rows():
    vocabulary = ["</S>", "<S>", "<UNK>", "the"]
    assert reference.token_rows(["the", "unknown"], vocabulary).tolist() == [2, 4, 3, 1]


# Scalar mix, by hand -----------------------------------------------------------------------------


def test_scalar_mix_weights():
    layers = [np.full((3, 4), value) for value in (1.0, 2.0, 6.0)]
    close(reference.scalar_mix([layers], np.zeros(3))[0], np.full((3, 4), 3.0))
    close(reference.scalar_mix([layers], np.array([0, 0, 99.0]), 0.5)[0], np.full((3, 4), 3.0))


def test_scalar_mix_layer_norm():
    first, second = np.array([[1.0, 3.0], [5.0, 7.0]]), np.array([[10.0, 20.0]])
    alone = [[-1.3416408, -0.4472136], [0.4472136, 1.3416408]]
    batch = [[first], [second]]
    by_sentence = reference.scalar_mix(batch, np.zeros(1), layer_norm="sentence")
    close(by_sentence[0], alone)
    close(by_sentence[1], [[-1, 1]])
    by_batch = np.concatenate(reference.scalar_mix(batch, np.zeros(1), layer_norm="batch"))
    elements = np.array([[1, 3], [5, 7], [10, 20]])
    close(by_batch, (elements - elements.mean()) / elements.std())


# Random models -----------------------------------------------------------------------------------

VARIANTS = {
    "plain": options_for(use_skip_connections=True),
    "tanh": options_for("tanh", use_skip_connections=False),
    "no highway key": options_for(n_highway=None),
    "no highway": options_for(n_highway=0),
    "two highway layers": options_for(n_highway=2),
    "no LSTM projection": options_for(dim=6),
    "no CNN projection": options_for(projection_dim=20),
    "one layer": options_for(n_layers=1, use_skip_connections=True),
    "four layers": options_for(n_layers=4, use_skip_connections=True),
    "no clips": options_for(cell_clip=None, proj_clip=None),
    "words": {"lstm": {"dim": 24, "projection_dim": 6, "n_layers": 2}, "n_tokens_vocab": 9},
}
VOCABULARY = ["<S>", "</S>", "<UNK>", "The", "bank", "is", "near", "the", "."]


@pytest.mark.parametrize("name", VARIANTS)
def test_random_model(name, tmp_path):
    options = VARIANTS[name] | {"n_tokens_vocab": len(VOCABULARY)}
    weights = reference.random_model(options, seed=1, softmax=True)
    lstm = options["lstm"]
    projection_dim = lstm["projection_dim"]
    assert ("CNN_proj/W_proj" in weights) == (name not in ("no CNN projection", "words"))
    assert any("W_P_0" in key for key in weights) == (name != "no LSTM projection")
    assert any("CNN_high" in key for key in weights) == (
        name not in ("no highway key", "no highway", "words")
    )
    assert ("embedding" in weights) == (name == "words")
    assert weights["softmax/W"].shape == (len(VOCABULARY), projection_dim)
    assert weights["softmax/b"].shape == (len(VOCABULARY),)

    folder = reference.write_model(tmp_path / "model", options, weights, VOCABULARY)
    assert (folder / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1] == VOCABULARY
    read_options, read = reference.load_weights(folder / "options.json", folder / "weights.hdf5")
    assert read_options == options
    assert read.keys() == weights.keys()
    for key, value in weights.items():
        assert value.dtype == np.float64
        np.testing.assert_array_equal(value, read[key])

    sentences = [*generated_sentences(), []]
    results = reference.embed(options, weights, sentences, VOCABULARY)
    for tokens, result in zip(sentences, results, strict=True):
        assert result["word_emb"].shape == (len(tokens), projection_dim)
        for k in range(1, lstm["n_layers"] + 1):
            assert result[f"lstm_outputs{k}"].shape == (len(tokens), 2 * projection_dim)
        assert f"lstm_outputs{lstm['n_layers'] + 1}" not in result
        assert result["elmo"].shape == (len(tokens), 2 * projection_dim)
        assert np.isfinite(result["default"]).all()
    assert not results[-1]["default"].any()
    for output in results[0].keys() - {"default"}:
        values = np.concatenate([result[output] for result in results])
        assert 0.03 < values.std(axis=0).mean() < 3


def test_random_model_depends_on_the_seed_alone():
    first, same, other = (reference.random_model(VARIANTS["plain"], seed) for seed in (1, 1, 2))
    for key, value in first.items():
        np.testing.assert_array_equal(value, same[key])
        assert np.abs(value - other[key]).max() > 0


@pytest.mark.parametrize("clip", ["cell_clip", "proj_clip"])
@pytest.mark.parametrize("seed", range(3))
def test_clips_bite_but_not_everywhere(clip, seed):
    options = VARIANTS["plain"]
    unclipped = options | {"lstm": options["lstm"] | {clip: None}}
    weights = reference.random_model(options, seed)
    tokens = generated_sentences()[-1]
    layers, state = run(options, weights, tokens)
    assert np.abs(layers[-1] - run(unclipped, weights, tokens)[0][-1]).max() > 0.01
    cell, output = (np.concatenate(values) for values in zip(*state[0], strict=True))
    assert np.mean(np.abs(cell) == 3) < 0.5
    assert np.mean(np.abs(output) == 3) < 0.5


def test_projection_clip_does_nothing_without_a_projection():
    options = options_for(dim=6, proj_clip=0.01)
    weights = reference.random_model(options, seed=1)
    assert np.abs(run(options, weights, ["The", "bank"])[0][1]).max() > 0.01


@pytest.mark.parametrize("name", ["plain", "no LSTM projection"])
def test_state_continues_where_it_stopped(name):
    options = VARIANTS[name]
    weights = reference.random_model(options, seed=3)
    vectors = np.random.default_rng(0).normal(size=(7, 6))
    for direction in reference.DIRECTIONS:
        whole, final = reference.lstm_stack(options, weights, direction, vectors)
        first, state = reference.lstm_stack(options, weights, direction, vectors[:3])
        second, end = reference.lstm_stack(options, weights, direction, vectors[3:], state)
        for layer, *parts in zip(whole, first, second, strict=True):
            np.testing.assert_allclose(layer, np.concatenate(parts), rtol=0, atol=1e-13)
        np.testing.assert_allclose(np.hstack(final[-1]), np.hstack(end[-1]), rtol=0, atol=1e-13)


def test_each_direction_carries_its_own_state():
    options = VARIANTS["plain"]
    weights = reference.random_model(options, seed=3)
    vectors = np.random.default_rng(0).normal(size=(7, 6))
    whole, _ = reference.bilm(options, weights, vectors)
    left, after_left = reference.bilm(options, weights, vectors[:3])
    right, after_right = reference.bilm(options, weights, vectors[3:])
    right_after_left, _ = reference.bilm(options, weights, vectors[3:], after_left)
    left_after_right, _ = reference.bilm(options, weights, vectors[:3], after_right)
    for k in (1, 2):
        forward = np.concatenate([left[k], right_after_left[k]])[:, :6]
        backward = np.concatenate([left_after_right[k], right[k]])[:, 6:]
        close(np.concatenate([forward, backward], axis=1), whole[k], 1e-13)
