"""ElmoModel: what comes out, equal to the oracle for every variant, and its parts called by themselves."""

import inspect

import keras
import numpy as np
import pytest
import reference
from harness import close, mask_of, to_numpy
from test_reference import VARIANTS, VOCABULARY, generated_sentences, options_for

import keras_elmo
from keras_elmo import ElmoModel, ScalarMix
from keras_elmo.vocabulary import Vocabulary

SENTENCES = [*generated_sentences(), []]
TINY = {
    "units": 8,
    "projection_dim": 4,
    "embedding_dim": 3,
    "filters": [[1, 4], [3, 5]],
    "num_highway_layers": 1,
}


def outputs_of(model, inputs):
    return {name: to_numpy(value) for name, value in model(inputs).items()}


def check_against_the_oracle(model, inputs, results, tolerance=1e-5):
    outputs = outputs_of(model, inputs)
    for i, result in enumerate(results):
        length = len(result["elmo"])
        assert outputs["sequence_len"][i] == length
        for name, expected in result.items():
            actual = outputs[name][i]
            close(actual if name == "default" else actual[:length], expected, tolerance)
            if name != "default":
                assert not actual[length:].any()
    assert outputs.keys() == results[0].keys() | {"sequence_len"}


# Equal to the oracle -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", VARIANTS)
def test_every_variant_equals_the_oracle(load, name):
    """User problem 42: no LSTM projection, no CNN projection, no highway, no skip connections."""
    options, weights, model = load(name)
    if name == "words":  # user problem 34: a biLM without characters
        inputs = Vocabulary(VOCABULARY).token_ids(SENTENCES)
    else:
        inputs = keras_elmo.character_ids(SENTENCES)
    results = reference.embed(options, weights, SENTENCES, VOCABULARY)
    check_against_the_oracle(model, inputs, results)


def random_options(seed):
    """Options drawn at random, and twice as likely as not with something odd about them."""
    random = np.random.default_rng(seed)

    def one_of(*choices):
        return choices[random.integers(len(choices))]

    width = one_of(12, 25, 50, 50)  # user problem 27: not only 50
    filters = [[int(random.integers(1, 8)), int(random.integers(1, 12))] for _ in range(4)]
    num_filters = sum(count for _, count in filters)
    projection_dim = one_of(4, 7, 10, num_filters)
    options = options_for(
        one_of("relu", "tanh"),
        filters,
        one_of(None, 0, 1, 3),
        dim=one_of(9, 24, 24, projection_dim),
        projection_dim=projection_dim,
        n_layers=one_of(1, 2, 3),
        use_skip_connections=one_of(True, False),
        cell_clip=one_of(None, 2, 3.0),
        proj_clip=one_of(None, 2, 3.0),
    )
    options["char_cnn"]["max_characters_per_token"] = width
    return options


# JAX compiles every loop of every model anew, even for a single call: fewer there.
NUM_RANDOM_MODELS = 2 if keras.backend.backend() == "jax" else 12


@pytest.mark.parametrize("seed", range(NUM_RANDOM_MODELS))
def test_random_models_equal_the_oracle(load, seed):
    options, weights, model = load(random_options(seed), seed)
    width = options["char_cnn"]["max_characters_per_token"]
    sentences = [tokens[:12] for tokens in SENTENCES]
    results = reference.embed(options, weights, sentences)
    check_against_the_oracle(model, keras_elmo.character_ids(sentences, width), results)


@pytest.mark.parametrize("layer_norm", [None, "sentence", "batch"])
def test_mix_equals_the_oracle(load, layer_norm):
    options, weights, model = load(layer_norm=layer_norm)
    w, gamma = [0.5, -1.0, 2.0], 1.7
    model.scalar_mix.scalar_weights.assign(w)
    model.scalar_mix.gamma.assign(gamma)
    results = reference.embed(
        options, weights, SENTENCES, w=np.array(w), gamma=gamma, layer_norm=layer_norm
    )
    # The statistics of a batch without any word are those of its boundaries.
    check_against_the_oracle(model, keras_elmo.character_ids(SENTENCES), results)
    for name, value in outputs_of(model, keras_elmo.character_ids([[], []])).items():
        assert np.isfinite(value).all(), name


# Names, shapes, dtypes, masks --------------------------------------------------------------------


def test_names_and_shapes_are_known_before_any_call():
    """User problem 14: the ranks are right, so that an LSTM or a Dense can stand on top."""
    model = ElmoModel(**TINY, num_layers=3)
    (ids,) = model.inputs
    assert (ids.name, ids.dtype, ids.shape) == ("character_ids", "int32", (None, None, 50))
    shapes = {
        "word_emb": (None, None, 4),
        "lstm_outputs1": (None, None, 8),
        "lstm_outputs2": (None, None, 8),
        "lstm_outputs3": (None, None, 8),
        "elmo": (None, None, 8),
        "default": (None, 8),
        "sequence_len": (None,),
    }
    assert {name: tensor.shape for name, tensor in model.output.items()} == shapes
    for name, tensor in model.output.items():
        assert tensor.dtype == ("int32" if name == "sequence_len" else "float32")


@pytest.mark.parametrize("keep", [False, True])
def test_symbolic_and_real_outputs_agree(keep):
    model = ElmoModel(**TINY, keep_sentence_boundaries=keep)
    ids = keras_elmo.character_ids(["The bank is near", "Hello", ""])
    outputs = model(ids)
    expected = {"word_emb": 4, "lstm_outputs1": 8, "lstm_outputs2": 8, "elmo": 8}
    words = np.arange(4 + 2 * keep) < np.array([[4], [1], [0]]) + 2 * keep
    for name, dim in expected.items():
        assert tuple(outputs[name].shape) == (3, 4 + 2 * keep, dim)
        np.testing.assert_array_equal(mask_of(outputs[name]), words)
        symbol = model.output[name]
        assert symbol.shape == (None, None, dim)
        assert symbol.dtype == keras.backend.standardize_dtype(outputs[name].dtype)
    assert to_numpy(outputs["sequence_len"]).tolist() == [4, 1, 0]
    assert keras.backend.standardize_dtype(outputs["sequence_len"].dtype) == "int32"
    assert tuple(outputs["default"].shape) == (3, 8)
    assert mask_of(outputs["default"]) is None
    # A user's functional model gets the shapes, too.
    inputs = keras.Input((None, 50), dtype="int32")
    for name, symbol in model(inputs).items():
        assert symbol.shape == model.output[name].shape


def test_signature_is_the_config():
    model = ElmoModel(**TINY, name="some_name", layer_norm="sentence")
    config = model.get_config()
    assert list(config)[:3] == ["name", "trainable", "dtype"]
    parameters = list(inspect.signature(ElmoModel.__init__).parameters)
    assert set(config) == set(parameters[1:-1]) | {"name", "trainable"}
    for name, value in TINY.items():
        assert config[name] == value
    assert ElmoModel.from_config(config).get_config() == config


def test_mean_is_default(plain):
    """User problem 15: `default` is the mean of `elmo` over the words, whatever gamma is."""
    *_, model = plain
    ids = keras_elmo.character_ids(["The bank is", "Hello"])
    model.scalar_mix.gamma.assign(2.0)
    doubled = outputs_of(model, ids)
    model.scalar_mix.gamma.assign(1.0)
    outputs = outputs_of(model, ids)
    close(doubled["elmo"], 2 * outputs["elmo"])
    for result in (outputs, doubled):
        close(result["default"][0], result["elmo"][0].mean(axis=0))
        close(result["default"][1], result["elmo"][1, 0])


def test_mask_reaches_the_layers_on_top(plain):
    """User problem 13: layers on top skip the padding, however much there is."""
    *_, model = plain
    ids = keras_elmo.character_ids(["The bank is near the river", "Hello you", "Hello"])
    lengths = [6, 2, 1]
    elmo = model(ids)["elmo"]
    expected = [to_numpy(elmo)[i, :n].mean(axis=0) for i, n in enumerate(lengths)]
    close(keras.layers.GlobalAveragePooling1D()(elmo), np.array(expected))
    top = keras.layers.Bidirectional(keras.layers.LSTM(3))
    state = to_numpy(top(elmo))
    close(top(model(np.pad(ids, [(0, 0), (0, 7), (0, 0)]))["elmo"]), state)
    close(top(model(ids[2:, :1])["elmo"]), state[2:])


# Sentence boundaries -----------------------------------------------------------------------------


def test_keep_sentence_boundaries(load):
    """User problem 21: two more rows, `</S>` right behind the last word, all else the same."""
    options, weights, kept = load(keep_sentence_boundaries=True)
    sentences = [["The", "bank", "is"], ["Hello"], []]
    ids = keras_elmo.character_ids(sentences)
    outputs, inner = outputs_of(kept, ids), outputs_of(load()[2], ids)
    for i, tokens in enumerate(sentences):
        rows = reference.character_rows(tokens)
        vectors = reference.token_embeddings(options, weights, rows)
        layers, _ = reference.bilm(options, weights, vectors)
        length = len(tokens) + 2
        close(outputs["word_emb"][i, :length], layers[0][:, :6])
        for k in (1, 2):
            close(outputs[f"lstm_outputs{k}"][i, :length], layers[k])
        close(outputs["elmo"][i, :length], sum(layers) / 3)
        for name in ("word_emb", "lstm_outputs1", "lstm_outputs2", "elmo"):
            assert not outputs[name][i, length:].any()
            close(outputs[name][i, 1 : length - 1], inner[name][i, : length - 2])
    for name in ("default", "sequence_len"):
        np.testing.assert_array_equal(outputs[name], inner[name])


def test_typed_boundaries_are_rows_like_any_word(plain):
    """User problem 21: whoever types `<S>` has it twice: the model adds its own."""
    *_, model = plain
    ids = keras_elmo.character_ids([["<S>", "a", "</S>"]])
    outputs = model(ids)
    assert tuple(outputs["elmo"].shape) == (1, 3, 12)
    token_embeddings = to_numpy(model.token_encoder(ids))[0]
    np.testing.assert_array_equal(token_embeddings[0], token_embeddings[1])
    np.testing.assert_array_equal(token_embeddings[3], token_embeddings[4])


# The parts by themselves -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain", "words", "no LSTM projection"])
def test_parts_compose_to_the_model(load, name):
    """User problems 16 and 18: all layers, their sizes, and the mix made of them by hand."""
    *_, model = load(name)
    sentences = [["The", "bank"], ["near"], []]
    ids = keras_elmo.character_ids(sentences)
    if name == "words":
        ids = Vocabulary(VOCABULARY).token_ids(sentences)
    outputs = outputs_of(model, ids)
    token_embeddings = model.token_encoder(ids)
    mask = mask_of(token_embeddings)
    assert mask.tolist() == [[True] * 4, [True, True, False, True], [True, False, False, True]]
    layers = model.bilm(token_embeddings, mask)  # by position
    values = [to_numpy(layer) for layer in layers]
    for masks in ({}, {"mask": mask}):
        for layer, value in zip(model.bilm(token_embeddings, **masks), values, strict=True):
            np.testing.assert_array_equal(to_numpy(layer), value)
    assert [value.shape for value in values] == [(3, 4, 12)] * 3
    np.testing.assert_array_equal(values[0][..., :6], values[0][..., 6:])
    np.testing.assert_array_equal(values[0][:, 1:-1, :6], outputs["word_emb"])
    for k in (1, 2):
        close(values[k][:, 1:-1], outputs[f"lstm_outputs{k}"])
    model.scalar_mix.scalar_weights.assign([1.0, 0.0, -1.0])
    model.scalar_mix.gamma.assign(0.5)
    mixed = to_numpy(model.scalar_mix(layers))
    weights = np.exp([1.0, 0.0, -1.0]) / np.exp([1.0, 0.0, -1.0]).sum()
    close(mixed, 0.5 * sum(w * value for w, value in zip(weights, values, strict=True)))
    close(mixed[:, 1:-1], outputs_of(model, ids)["elmo"])


def test_several_mixes_of_one_bilm(plain):
    """User problem 20: fixed weights go through the softmax unless `normalized`; they do not move."""
    options, weights, model = plain
    inputs = keras.Input((None, 50), dtype="int32")
    layers = model.bilm(model.token_encoder(inputs))
    mixes = [
        ScalarMix(fixed_weights=[0, 0, 1]),
        ScalarMix(fixed_weights=[0, 0, 1], normalized=True),
        ScalarMix(top_only=True),
        ScalarMix(),
    ]
    both = keras.Model(inputs, [mix(layers) for mix in mixes])
    assert len(both.trainable_variables) == 1 + 2
    tokens = ["The", "bank", "."]
    outputs = [to_numpy(output) for output in both(keras_elmo.character_ids([tokens]))]
    rows = reference.character_rows(tokens)
    expected, _ = reference.bilm(
        options, weights, reference.token_embeddings(options, weights, rows)
    )
    close(
        outputs[0][0],
        sum(w * x for w, x in zip([0.2119416, 0.2119416, 0.5761169], expected, strict=True)),
    )
    close(outputs[1][0], expected[2])
    close(outputs[2][0], expected[2])
    close(outputs[3][0], sum(expected) / 3)
    with pytest.raises(ValueError, match="one number for each of the 3 layers"):
        ScalarMix(fixed_weights=[0, 1])(layers)


def test_parts_take_and_give_state(plain):
    """User problem 47: state goes in and comes out by hand; one of another batch is refused."""
    options, weights, model = plain
    ids = keras_elmo.character_ids([["The", "bank", "is"], ["a", "b", "c"]])
    first, state = model.bilm(model.token_encoder(ids), return_state=True)
    second, _ = model.bilm(model.token_encoder(ids), initial_state=state, return_state=True)
    again, _ = model.bilm(model.token_encoder(ids), return_state=True)
    np.testing.assert_array_equal(to_numpy(again[2]), to_numpy(first[2]))
    # Without states its loops see no mask: another graph, which may round otherwise.
    stateless = model.bilm(model.token_encoder(ids))
    np.testing.assert_allclose(to_numpy(stateless[2]), to_numpy(first[2]), rtol=0, atol=2e-6)
    assert np.abs(to_numpy(second[2]) - to_numpy(first[2])).max() > 1e-3
    for i, tokens in enumerate([["The", "bank", "is"], ["a", "b", "c"]]):
        vectors = reference.token_embeddings(options, weights, reference.character_rows(tokens))
        _, carried = reference.bilm(options, weights, vectors)
        layers, _ = reference.bilm(options, weights, vectors, carried)
        close(to_numpy(second[2])[i], layers[2])


# Characters --------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [12, 25, 50])
def test_words_are_cut_at_the_width(load, width):
    """User problems 26 and 27: what is beyond `max_word_length - 2` bytes makes no difference."""
    options = options_for()
    options["char_cnn"]["max_characters_per_token"] = width
    options, weights, model = load(options)
    assert model.max_word_length == width
    words = ["a" * (width - 2), "a" * 10_000, "中" * 30 + "x", "中" * 30 + "y"]
    outputs = outputs_of(model, keras_elmo.character_ids([[word] for word in words], width))
    for i in (0, 2):
        close(outputs["elmo"][i], outputs["elmo"][i + 1])
    assert np.abs(outputs["elmo"][0] - outputs["elmo"][2]).max() > 0.01
    results = reference.embed(options, weights, [[word] for word in words])
    close(outputs["elmo"], np.array([result["elmo"] for result in results]))


def test_unknown_token_leaves_no_hole(load):
    """User problem 32: in a model of words an unknown one is `<UNK>`, not padding."""
    *_, model = load("words")
    ids = Vocabulary(VOCABULARY).token_ids([["The", "Zweig", "is"], ["The", "<UNK>", "is"]])
    outputs = model(ids)
    assert mask_of(outputs["elmo"]).all()
    assert to_numpy(outputs["sequence_len"]).tolist() == [3, 3]
    elmo = to_numpy(outputs["elmo"])
    close(elmo[0], elmo[1])


# Precision ---------------------------------------------------------------------------------------


def test_mixed_bfloat16(load):
    *_, model = load()
    *_, mixed = load(dtype="mixed_bfloat16")
    ids = keras_elmo.character_ids(SENTENCES)
    outputs = mixed(ids)
    for name, expected in outputs_of(model, ids).items():
        dtype = keras.backend.standardize_dtype(outputs[name].dtype)
        assert dtype == mixed.output[name].dtype
        assert dtype == ("int32" if name == "sequence_len" else "bfloat16")
        actual = to_numpy(outputs[name])
        assert np.abs(actual - expected).mean() < 0.03
        if name not in ("default", "sequence_len"):
            assert not actual[~mask_of(outputs[name])].any()
    for variable in mixed.variables:
        assert variable.dtype == "float32"
    assert mixed.get_config()["dtype"]["config"] == {"name": "mixed_bfloat16"}
    assert ElmoModel.from_config(mixed.get_config()).dtype_policy.name == "mixed_bfloat16"


# Errors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"units": 0}, r"`units` must be a positive integer. Received: units=0"),
        ({"units": "8"}, r"`units` must be a positive integer. Received: units='8'"),
        ({"projection_dim": 2.0}, r"`projection_dim` must be .* projection_dim=2.0"),
        ({"num_layers": 0}, r"`num_layers` must be a positive integer. Received: num_layers=0"),
        ({"cell_clip": 0}, r"`cell_clip` must be a positive number.*cell_clip=0"),
        ({"projection_clip": -3}, r"`projection_clip` must be a positive number.*-3"),
        ({"max_word_length": 2}, r"`max_word_length` must be an integer of 3 or more"),
        ({"max_word_length": 2.5}, r"Received: max_word_length=2.5"),
        ({"filters": [[7, 4]], "max_word_length": 6}, r"no smaller than the widest filter, 7"),
        ({"filters": []}, r"`filters` must be a list of pairs of positive integers"),
        ({"filters": 3}, r"`filters` must be .* Received: filters=3"),
        ({"filters": [[1, 2, 3]]}, r"`filters` must be a list of pairs"),
        ({"embedding_dim": None}, r"`embedding_dim` must be a positive integer"),
        ({"num_highway_layers": -1}, r"`num_highway_layers` must be zero or a positive integer"),
        ({"activation": "gelu"}, r"`activation` must be one of 'relu', 'tanh'.*'gelu'"),
        ({"layer_norm": "layer"}, r"`layer_norm` must be one of None, 'sentence', 'batch'"),
        ({"vocabulary_size": 0}, r"`vocabulary_size` must be a positive integer"),
        ({"boundary_token_ids": (1,)}, r"two different token ids between 1 and 9.*\(1,\)"),
        ({"boundary_token_ids": (1, 1)}, r"`boundary_token_ids` must be two different"),
        ({"boundary_token_ids": (0, 1)}, r"`boundary_token_ids` must be two different"),
        ({"boundary_token_ids": (1, 10)}, r"between 1 and 9"),
        ({"boundary_token_ids": None}, r"`boundary_token_ids` must be two different"),
        ({"unitz": 8}, r"ElmoModel has no argument `unitz`. It has: units, projection_dim"),
    ],
)
def test_arguments_out_of_range(arguments, message):
    if "boundary_token_ids" in arguments:
        arguments = {**arguments, "vocabulary_size": 9}
    with pytest.raises(ValueError, match=message):
        ElmoModel(**{**TINY, **arguments})


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 40), (2, 3, 4, 50)])
def test_inputs_of_another_shape(plain, shape):
    *_, model = plain
    with pytest.raises(ValueError, match="(?s)50"):
        model(np.zeros(shape, "int32"))


@pytest.mark.parametrize("text", [["a b"], np.array(["a b"]), np.array(["a b"], object)])
def test_text_is_pointed_to_character_ids(plain, text):
    with pytest.raises(
        ValueError, match="reads character ids, not text.*`keras_elmo.ElmoEmbedding`"
    ):
        plain[2](text)
