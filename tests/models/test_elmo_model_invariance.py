"""ElmoModel is a pure function of each sentence: no state, no batch mates, no padding in it."""

import keras
import numpy as np
import pytest
from harness import close, to_numpy

import keras_elmo

# Keras saves TensorFlow's variables through a call that NumPy 2 warns about.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

TEXTS = [
    "so close",
    "no matter how far",
    "couldn't be much more from the heart",
    "Hello",
    "",
    "The bank is near the river , and the river is near the bank .",
    "😀 中华人民共和国 é " + "x" * 70,
]
IDS = keras_elmo.character_ids(TEXTS)
LENGTHS = np.array([len(text.split()) for text in TEXTS])
PER_TOKEN = ("word_emb", "lstm_outputs1", "lstm_outputs2", "elmo")


def outputs_of(model, inputs):
    return {name: to_numpy(value) for name, value in model(inputs).items()}


def assert_same(actual, expected):
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(actual[name], value, err_msg=name)


@pytest.fixture(scope="module")
def model(plain):
    return plain[-1]


@pytest.fixture(scope="module")
def alone(model):
    """Every sentence as a batch of its own, without padding."""
    return [outputs_of(model, IDS[i : i + 1, :length]) for i, length in enumerate(LENGTHS)]


def check_rows(outputs, which, places, alone):
    """Row by row: the vectors of `alone`, at the places where the words stand, and zeros elsewhere."""
    for row, i in enumerate(which):
        expected = alone[i]
        close(outputs["default"][row], expected["default"][0])
        assert outputs["sequence_len"][row] == LENGTHS[i]
        for name in PER_TOKEN:
            vectors = outputs[name][row]
            close(vectors[places[row]], expected[name][0])
            assert not np.delete(vectors, places[row], axis=0).any()


# JAX compiles anew for every shape: fewer there.
BATCH_SIZES = [3, 130] if keras.backend.backend() == "jax" else [1, 2, 3, 35, 36, 130, 300]


@pytest.mark.parametrize("batch_size", BATCH_SIZES)
def test_batch_mates_and_order_make_no_difference(model, alone, batch_size):
    """User problems 2, 6 and 9: any batch, one sentence included, gives what the sentence alone gives."""
    which = np.random.default_rng(batch_size).integers(len(TEXTS), size=batch_size)
    outputs = outputs_of(model, IDS[which])
    check_rows(outputs, which, [np.arange(LENGTHS[i]) for i in which], alone)


@pytest.mark.parametrize("padding", ["right", "left", "holes"])
def test_padding_may_stand_anywhere(model, alone, padding):
    """User problems 2 and 11: rows of zeros are no words, wherever they stand."""
    num_tokens = IDS.shape[1] + 5
    padded = np.zeros((len(TEXTS), num_tokens, 50), "int32")
    random = np.random.default_rng(0)
    places = []
    for i, length in enumerate(LENGTHS):
        if padding == "holes":
            place = np.sort(random.choice(num_tokens, length, replace=False))
        else:
            place = np.arange(length) + (num_tokens - length if padding == "left" else 0)
        padded[i, place] = IDS[i, :length]
        places.append(place)
    check_rows(outputs_of(model, padded), range(len(TEXTS)), places, alone)


def test_one_word(model, alone):
    """User problem 9: (1, 1, 50) keeps all its axes."""
    outputs = model(IDS[3:4, :1])
    assert tuple(outputs["elmo"].shape) == (1, 1, 12)
    assert tuple(outputs["default"].shape) == (1, 12)
    assert tuple(outputs["sequence_len"].shape) == (1,)
    close(outputs["elmo"], alone[3]["elmo"])


@pytest.mark.parametrize(
    ("sentences", "lengths"),
    [
        ([["a"], []], [1, 0]),
        ([[]], [0]),
        (["", "  "], [0, 0]),
        ([[""]], [1]),  # an empty token in a list of tokens is a word without characters
        ([], []),
    ],
)
def test_nothing_to_read(model, sentences, lengths):
    """User problem 10: empty sentences give zeros, not NaN and no error."""
    ids = keras_elmo.character_ids(sentences)
    for outputs in (outputs_of(model, ids), model.predict(ids, verbose=0) if sentences else None):
        if outputs is None:
            continue
        assert outputs["sequence_len"].tolist() == lengths
        assert outputs["elmo"].shape == (len(lengths), max(lengths, default=0), 12)
        for value in outputs.values():
            assert np.isfinite(value).all()
        for length, row in zip(lengths, outputs["default"], strict=True):
            assert row.any() == (length > 0)


# Determinism -------------------------------------------------------------------------------------


def test_calls_leave_no_trace(model):
    """User problems 1 and 4: the tenth call equals the first, bit for bit; no warming up."""
    first, first_predicted = outputs_of(model, IDS), model.predict(IDS, verbose=0)
    for i in range(4):
        model(IDS[i : i + 2])
        model.predict(IDS[i : i + 3], verbose=0)
    assert_same(outputs_of(model, IDS), first)
    assert_same({name: to_numpy(x) for name, x in model(IDS, training=False).items()}, first)
    assert_same(model.predict(IDS, verbose=0), first_predicted)
    for name, value in first.items():
        # A compiled graph may add up in another order than single calls do.
        np.testing.assert_allclose(first_predicted[name], value, rtol=0, atol=1e-5)


def test_saved_and_loaded_again_gives_the_same_bits(model, tmp_path):
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert type(loaded) is keras_elmo.ElmoModel
    assert_same(outputs_of(loaded, IDS), outputs_of(model, IDS))


# Retracing ---------------------------------------------------------------------------------------

needs_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="counts the traces of a tf.function"
)


def random_batches(number):
    random = np.random.default_rng(0)
    for _ in range(number):
        shape = random.integers(1, 9), random.integers(1, 20), 50
        yield random.integers(1, 200, shape).astype("int32")


@needs_tensorflow
def test_one_trace_for_all_shapes(model):
    """User problem 8: unknown sizes stay unknown all the way through."""
    import tensorflow as tf

    traces = []

    @tf.function(input_signature=[tf.TensorSpec((None, None, 50), tf.int32)])
    def call(ids):
        traces.append(ids)
        return model(ids)

    for ids in random_batches(20):
        outputs = call(ids)
        for name, value in outputs_of(model, ids).items():
            close(outputs[name], value, 1e-4)  # long words of random bytes: large values
    assert len(traces) == 1
    shapes = {
        name: tensor.shape
        for name, tensor in call.get_concrete_function().structured_outputs.items()
    }
    assert shapes["elmo"].as_list() == [None, None, 12]
    assert shapes["word_emb"].as_list() == [None, None, 6]
    assert shapes["default"].as_list() == [None, 12]


@needs_tensorflow
def test_predict_is_traced_no_more_than_needed(load):
    """User problem 8: 50 batches of many shapes; one trace for the first, one for all others."""
    *_, model = load()
    for ids in random_batches(50):
        model.predict(ids, verbose=0)
    assert model.predict_function.experimental_get_tracing_count() <= 2
