"""The package against vectors that bilm-tf, simple-elmo and simple-elmo-pytorch gave, and against the oracle.

`test_reference.py` holds the oracle, in float64, to the same vectors and says how far rounding may go: 1e-5, but for
the clipped layers of `skip3_tanh_clip`, which amplify it from step to step. Run in float64 the package agrees with
the oracle to 1e-9 there, too.
"""

import json

import h5py
import keras
import numpy as np
import pytest
import reference
from paths import DATA, shared
from test_reference import ROUNDING, generated_sentences
from test_reference import tolerance as oracle_tolerance

import keras_elmo
from keras_elmo.checkpoints import load_checkpoint

GENERATED = DATA / "generated"
TOLERANCE = 1e-5


def numpy(tensor):
    return keras.ops.convert_to_numpy(tensor)


def close(actual, expected, limit=TOLERANCE):
    np.testing.assert_allclose(numpy(actual), expected, rtol=0, atol=limit)


def tolerance(name, num_steps):
    """The oracle's limit; where it is wide: three times that, for here both sides round, not one."""
    limit = oracle_tolerance(name, num_steps)
    return limit if limit <= TOLERANCE else 3 * limit


# bilm-tf: 3 streams of 10 sentences, LSTM state carried along each stream ------------------------


@pytest.fixture(scope="module")
def bilm_tf():
    folder = shared("fixtures", "bilm_tf")
    text = (folder / "lm_embeddings_sentences.json").read_text(encoding="utf-8")
    streams = json.loads(text)
    goldens = []
    for k, stream in enumerate(streams):
        with h5py.File(folder / f"lm_embeddings_{k}.hdf5", "r") as file:
            # (2 directions, num_tokens, projection_dim) -> (num_tokens, 2 * projection_dim)
            golden = [np.concatenate(file[str(i)][()], axis=-1) for i in range(len(stream))]
        goldens.append(golden)
    return keras_elmo.load_model(folder / "lm_weights.hdf5"), streams, goldens


def top_layer(model, sentences, state):
    """The top layer of a batch, boundaries in, and the state to go on from."""
    token_embeddings = model.token_encoder(keras_elmo.character_ids(sentences))
    layers, state = model.bilm(token_embeddings, initial_state=state, return_state=True)
    return numpy(layers[-1]), state


@pytest.mark.parametrize("k", range(3))
def test_bilm_tf_stream_with_state_passed_along_by_hand(bilm_tf, k):
    """User problems 1 and 47: state is explicit; nothing is kept that was not handed over."""
    model, streams, goldens = bilm_tf
    assert len(streams[k]) == 10
    state = None
    for sentence, golden in zip(streams[k], goldens[k], strict=True):
        top, state = top_layer(model, [sentence], state)
        close(top[0, 1:-1], golden)


def test_bilm_tf_streams_as_a_batch(bilm_tf):
    """Row k goes on from row k; the padding of the shorter rows does not move their state."""
    model, streams, goldens = bilm_tf
    state = None
    for i in range(10):
        top, state = top_layer(model, [stream[i] for stream in streams], state)
        for row, golden in zip(top, (golden[i] for golden in goldens), strict=True):
            close(row[1 : 1 + len(golden)], golden)


def test_bilm_tf_first_sentences_are_stateless_and_the_second_are_not(bilm_tf):
    model, streams, goldens = bilm_tf
    for i in (0, 1):
        outputs = model(keras_elmo.character_ids([stream[i] for stream in streams]))
        for row, golden in zip(numpy(outputs["lstm_outputs2"]), goldens, strict=True):
            difference = np.abs(row[: len(golden[i])] - golden[i]).max()
            assert difference < TOLERANCE if i == 0 else difference > 0.01


# The generated models ----------------------------------------------------------------------------


@pytest.fixture(scope="module", params=ROUNDING)
def generated(request):
    folder = GENERATED / request.param
    with h5py.File(folder / "expected.hdf5", "r") as file:
        expected = {name: item[()] for name, item in file.items()} | dict(file.attrs)
    return request.param, folder, expected


def load_with_mix(folder, expected, **overrides):
    model = keras_elmo.load_model(folder / "weights.hdf5", **overrides)
    model.scalar_mix.scalar_weights.assign(expected["scalar_mix_weights"])
    model.scalar_mix.gamma.assign(expected["gamma"])
    return model


def test_generated_character_ids(generated):
    _, _, expected = generated
    ids = keras_elmo.character_ids(generated_sentences())
    np.testing.assert_array_equal(ids, expected["character_ids"])


def test_generated_layers(generated):
    name, folder, expected = generated
    model = keras_elmo.load_model(folder / "weights.hdf5", keep_sentence_boundaries=True)
    outputs = {key: numpy(value) for key, value in model(expected["character_ids"]).items()}
    num_layers, projection_dim = model.num_layers, model.projection_dim
    assert expected["activations"].shape[1] == num_layers + 1
    for i, golden in enumerate(expected["activations"]):
        length = int(expected["mask_with_boundaries"][i].sum())
        assert outputs["sequence_len"][i] == length - 2
        close(np.tile(outputs["word_emb"][i, :length], 2), golden[0, :length])
        for k in range(1, num_layers + 1):
            layer = outputs[f"lstm_outputs{k}"][i]
            assert not layer[length:].any()
            for num_steps in (3, 10, length):
                limit = tolerance(name, min(num_steps, length))
                forward = np.s_[:num_steps, :projection_dim]
                backward = np.s_[length - 1 :: -1, projection_dim:]
                close(layer[forward], golden[k][forward], limit)
                close(layer[backward][:num_steps], golden[k][backward][:num_steps], limit)


MIXES = pytest.mark.parametrize(
    ("output", "layer_norm"), [("elmo", None), ("elmo_layer_norm", "batch")]
)


@MIXES
def test_generated_mix_of_the_golden_layers(generated, output, layer_norm):
    """The mix alone: on the golden layers there is no rounding to wait for, whatever the model."""
    _, folder, expected = generated
    model = load_with_mix(folder, expected, layer_norm=layer_norm)
    layers = list(np.moveaxis(expected["activations"], 1, 0))
    mask = expected["mask_with_boundaries"].astype(bool)
    mixed = numpy(model.scalar_mix(layers, mask=mask))
    # The golden vectors stand where the words stand; what is beside them is padding.
    words = expected["character_ids"].any(axis=-1)
    close(mixed[:, 1:-1][words], expected[output][words])


@MIXES
def test_generated_mix(generated, output, layer_norm):
    name, folder, expected = generated
    model = load_with_mix(folder, expected, layer_norm=layer_norm)
    outputs = {key: numpy(value) for key, value in model(expected["character_ids"]).items()}
    for i, length in enumerate(outputs["sequence_len"]):
        golden = expected[output][i, :length]
        # The norm spreads the rounding of the long sentence over all: never the strictest limit.
        limit = tolerance(name, max(int(length) + 2, 4))
        close(outputs["elmo"][i, :length], golden, limit)
        close(outputs["default"][i], golden.mean(axis=0), limit)
        assert not outputs["elmo"][i, length:].any()


def test_generated_without_highway_and_skip():
    folder = GENERATED / "noskip1_nohighway"
    with h5py.File(folder / "expected_tf1.hdf5", "r") as file:
        expected = {name: item[()] for name, item in file.items()}
    model = keras_elmo.load_model(folder / "weights.hdf5", keep_sentence_boundaries=True)
    outputs = model(keras_elmo.character_ids(generated_sentences()))
    outputs = {key: numpy(value) for key, value in outputs.items()}
    assert outputs["sequence_len"].tolist() == expected["lengths"].tolist()
    assert expected["lm_embeddings"].shape[1] == 2
    for i, length in enumerate(expected["lengths"]):
        word_emb = outputs["word_emb"][i, : length + 2]
        close(word_emb, expected["token_embeddings"][i, : length + 2])
        layer_0, layer_1 = expected["lm_embeddings"][i, :, :length]
        close(np.tile(word_emb[1:-1], 2), layer_0)
        close(outputs["lstm_outputs1"][i, 1 : length + 1], layer_1)


@pytest.mark.parametrize("name", [*ROUNDING, "noskip1_nohighway"])
def test_generated_models_in_float64_equal_the_oracle(name):
    """No rounding to speak of: what is left is the formula."""
    if keras.backend.backend() != "tensorflow":
        pytest.skip("of Keras' backends only TensorFlow computes every step in float64")
    files = GENERATED / name / "options.json", GENERATED / name / "weights.hdf5"
    options, weights = reference.load_weights(*files)
    sentences = generated_sentences()
    model = keras_elmo.load_model(files[1], dtype="float64")
    outputs = model(keras_elmo.character_ids(sentences))
    outputs = {key: numpy(value) for key, value in outputs.items()}
    for i, result in enumerate(reference.embed(options, weights, sentences)):
        for output in result.keys() - {"default"}:
            close(outputs[output][i, : len(sentences[i])], result[output], 1e-9)


# The trained models ------------------------------------------------------------------------------

SENTENCES = [
    "The bank is near the river .",
    "I went to the bank to deposit money , and then I went home again .",
    "Pneumonoultramicroscopicsilicovolcanoconiosis !",
    "中华人民共和国 😀 é",
    "",
]


@pytest.mark.parametrize("name", ["tiny_en", "bilm_tf_tiny_en"])
def test_trained_model_equals_the_oracle(name):
    folder = shared("models", name)
    checkpoint = load_checkpoint(folder)
    options, weights = reference.load_weights(folder / "options.json", folder / "model.hdf5")
    np.testing.assert_array_equal(checkpoint.softmax.kernel, weights["softmax/W"])
    np.testing.assert_array_equal(checkpoint.softmax.bias, weights["softmax/b"])
    assert len(checkpoint.vocabulary) == options["n_tokens_vocab"]

    outputs = checkpoint.model(keras_elmo.character_ids(SENTENCES))
    outputs = {key: numpy(value) for key, value in outputs.items()}
    results = reference.embed(options, weights, [sentence.split() for sentence in SENTENCES])
    for i, result in enumerate(results):
        for output, expected in result.items():
            actual = outputs[output][i]
            close(actual if output == "default" else actual[: len(expected)], expected)
            if output != "default":
                assert not actual[len(expected) :].any()
