import math

import keras
import numpy as np
import pytest
from harness import check_layer, close, randomize, to_numpy
from keras import ops

from keras_elmo.corpus import expected_counts, random_generator, sample_negatives
from keras_elmo.layers import SampledSoftmax, sampled_softmax

VOCABULARY_SIZE, DIM = 30, 5
TARGETS = np.array([0, 3, 29, 3, 7, 12], "int32")
RANDOM = np.random.default_rng(3)
INPUTS = RANDOM.normal(size=(len(TARGETS), DIM)).astype("float32")
KERNEL = RANDOM.normal(size=(VOCABULARY_SIZE, DIM)).astype("float32")
BIAS = RANDOM.normal(size=VOCABULARY_SIZE).astype("float32")
# 3 and 12 are targets of this batch, too.
NEGATIVES = np.array([3, 1, 0, 12, 20, 5, 28], "int32")
NUM_TRIES = np.float32(11)


def built(kernel=KERNEL, bias=BIAS, **kwargs):
    layer = SampledSoftmax(len(bias), **kwargs)
    layer.build((None, kernel.shape[1]))
    layer.kernel.assign(kernel)
    layer.bias.assign(bias)
    return layer


def log_sum_exp(x):
    top = x.max(axis=-1, keepdims=True)
    return np.log(np.exp(x - top).sum(axis=-1)) + top[..., 0]


def exact_loss(inputs, targets, kernel=KERNEL, bias=BIAS):
    """The full softmax in NumPy float64."""
    logits = inputs.astype("float64") @ kernel.T.astype("float64") + bias
    return log_sum_exp(logits) - logits[np.arange(len(targets)), targets]


def sampled_loss(inputs, targets, negatives, num_tries, kernel=KERNEL, bias=BIAS):
    """The sampled softmax in NumPy float64, word by word, as TensorFlow's documentation has it."""
    inputs, kernel, bias = (x.astype("float64") for x in (inputs, kernel, bias))
    total = math.log(len(bias) + 1)

    def corrected(x, word):
        probability = math.log((word + 2) / (word + 1)) / total
        expected = 1 - (1 - probability) ** num_tries
        return x @ kernel[word] + bias[word] - math.log(expected)

    losses = []
    for x, target in zip(inputs, targets, strict=True):
        right = corrected(x, target)
        others = [corrected(x, word) for word in negatives if word != target]
        losses.append(log_sum_exp(np.array([right, *others])) - right)
    return np.array(losses)


def test_exact():
    close(built()(INPUTS, TARGETS), exact_loss(INPUTS, TARGETS))


def test_sampled_with_accidental_hits():
    assert set(NEGATIVES) & set(TARGETS)
    loss = built()(INPUTS, TARGETS, NEGATIVES, num_tries=NUM_TRIES)
    close(loss, sampled_loss(INPUTS, TARGETS, NEGATIVES, NUM_TRIES))
    # That 3 is among the negatives makes no difference where 3 is right.
    without = built()(INPUTS, TARGETS, NEGATIVES[NEGATIVES != 3], num_tries=NUM_TRIES)
    is_hit = TARGETS == 3
    close(to_numpy(loss)[is_hit], to_numpy(without)[is_hit])
    assert (to_numpy(loss) >= to_numpy(without)).all()
    assert (to_numpy(loss) > to_numpy(without) + 1e-3)[~is_hit].any()


def test_correction_is_that_of_the_sampler():
    """With all logits 0 the loss is made of expected counts alone."""
    zeros = np.zeros((len(TARGETS), DIM), "float32")
    layer = built(np.zeros_like(KERNEL), np.zeros_like(BIAS))
    right = 1 / expected_counts(TARGETS, NUM_TRIES, VOCABULARY_SIZE)
    others = 1 / expected_counts(NEGATIVES, NUM_TRIES, VOCABULARY_SIZE)
    is_other = TARGETS[:, None] != NEGATIVES
    expected = np.log(right + (is_other * others).sum(axis=1)) - np.log(right)
    close(layer(zeros, TARGETS, NEGATIVES, num_tries=NUM_TRIES), expected)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's own function")
def test_as_tensorflow():
    import tensorflow as tf

    expected = tf.nn.sampled_softmax_loss(
        weights=KERNEL,
        biases=BIAS,
        labels=TARGETS[:, None].astype("int64"),
        inputs=INPUTS,
        num_sampled=len(NEGATIVES),
        num_classes=VOCABULARY_SIZE,
        sampled_values=(
            NEGATIVES.astype("int64"),
            expected_counts(TARGETS[:, None], NUM_TRIES, VOCABULARY_SIZE).astype("float32"),
            expected_counts(NEGATIVES, NUM_TRIES, VOCABULARY_SIZE).astype("float32"),
        ),
        remove_accidental_hits=True,
    )
    close(built()(INPUTS, TARGETS, NEGATIVES, num_tries=NUM_TRIES), expected)


@pytest.mark.parametrize("shape", [(), (1,)])
def test_all_words_as_negatives_are_the_full_softmax(shape):
    negatives, num_tries = sample_negatives(
        VOCABULARY_SIZE, VOCABULARY_SIZE, random_generator("n", 0)
    )
    assert num_tries == math.inf
    loss = built()(INPUTS, TARGETS, negatives, np.full(shape, num_tries, "float32"))
    close(loss, exact_loss(INPUTS, TARGETS))


def test_nearly_all_words_are_close_to_the_full_softmax():
    """User problem 59: with the correction, and V - 1 negatives."""
    size = VOCABULARY_SIZE - 1
    losses = []
    for k in range(50):
        sample = sample_negatives(size, VOCABULARY_SIZE, random_generator("n", 0, k))
        loss = built()(INPUTS * 0.3, TARGETS, sample.ids, num_tries=sample.num_tries)
        losses.append(to_numpy(loss))
    # Not the same: the right word, which is always there, is corrected for, too.
    close(np.mean(losses, axis=0), exact_loss(INPUTS * 0.3, TARGETS), 0.2)


def test_gradient_is_that_of_the_full_softmax_on_average():
    """What the correction is for: without it frequent words would be pushed down too far."""

    def gradient(loss, x):
        steps = np.eye(DIM) * 1e-5
        return np.array([(loss(x + step) - loss(x - step)) / 2e-5 for step in steps])

    x, target, size = INPUTS[0] * 0.3, 7, 12
    exact = gradient(lambda x: exact_loss(x[None], [target])[0], x)
    total = np.zeros(DIM)
    num_samples = 400
    for k in range(num_samples):
        negatives, tries = sample_negatives(size, VOCABULARY_SIZE, random_generator("n", 1, k))
        total += gradient(lambda x: sampled_loss(x[None], [target], negatives, tries)[0], x)  # noqa: B023
    close(total / num_samples, exact, 0.1)


def gradients(layer, inputs, *args):
    """Of the sum of the losses: by inputs, kernel and bias."""
    variables = [keras.Variable(inputs), layer.kernel, layer.bias]
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(variables[0].value, *args))
        found = tape.gradient(loss, [variable.value for variable in variables])
        return [tf.convert_to_tensor(gradient).numpy() for gradient in found]
    if backend == "torch":
        value = variables[0].value
        found = ops.sum(layer(value, *args))
        layer.zero_grad()
        value.grad = None
        found.backward()
        return [x.grad.numpy() for x in (value, layer.kernel.value, layer.bias.value)]
    import jax

    def loss(inputs, kernel, bias):
        return layer.stateless_call([kernel, bias], [], inputs, *args)[0].sum()

    return list(jax.grad(loss, (0, 1, 2))(*(variable.value for variable in variables)))


@pytest.mark.parametrize("sampled", [True, False])
def test_gradients_by_finite_differences(sampled):
    args = (NEGATIVES, NUM_TRIES) if sampled else ()
    function = sampled_loss if sampled else exact_loss
    values = [INPUTS.astype("float64"), KERNEL.astype("float64"), BIAS.astype("float64")]
    found = gradients(built(), INPUTS, TARGETS, *args)
    for k, (value, gradient) in enumerate(zip(values, found, strict=True)):
        expected = np.zeros(value.size)
        for i in range(value.size):
            sides = []
            for step in (1e-6, -1e-6):
                moved = [x.copy() for x in values]
                moved[k].flat[i] += step
                inputs, kernel, bias = moved
                sides.append(function(inputs, TARGETS, *args, kernel=kernel, bias=bias).sum())
            expected[i] = (sides[0] - sides[1]) / 2e-6
        close(gradient, expected.reshape(value.shape), 1e-4)


@pytest.mark.parametrize("num_positions", [1, 2, 6, 0])
@pytest.mark.parametrize("pieces_of", [1, 2, 4, 5])
def test_exact_in_pieces(monkeypatch, pieces_of, num_positions):
    inputs, targets = INPUTS[:num_positions], TARGETS[:num_positions]
    monkeypatch.setattr(sampled_softmax, "MAX_LOGITS", pieces_of * VOCABULARY_SIZE + 3)
    layer = built()
    close(layer(inputs, targets), exact_loss(inputs, targets))
    # And where the number of positions is not known while the graph is made.
    x, y = keras.Input((DIM,)), keras.Input((), dtype="int32")
    model = keras.Model([x, y], layer(x, y))
    if num_positions:
        close(model.predict_on_batch([inputs, targets]), exact_loss(inputs, targets))


def test_a_vocabulary_larger_than_a_piece(monkeypatch):
    monkeypatch.setattr(sampled_softmax, "MAX_LOGITS", 7)
    close(built()(INPUTS, TARGETS), exact_loss(INPUTS, TARGETS))


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="graphs of unknown size")
def test_exact_in_pieces_has_gradients_in_a_graph(monkeypatch):
    import tensorflow as tf

    layer = built()

    @tf.function(input_signature=[tf.TensorSpec((None, DIM)), tf.TensorSpec((None,), tf.int32)])
    def graph(inputs, targets):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = layer(inputs, targets)
        return loss, tape.gradient(loss, inputs)

    monkeypatch.setattr(sampled_softmax, "MAX_LOGITS", 4 * VOCABULARY_SIZE)
    loss, gradient = graph(INPUTS, TARGETS)
    close(loss, exact_loss(INPUTS, TARGETS))
    close(gradient, gradients(layer, INPUTS, TARGETS)[0])
    assert graph(INPUTS[:0], TARGETS[:0])[0].shape == (0,)


def test_uniform():
    """User problem 59: weights of 0 give every word the same probability."""
    zeros = np.zeros((4, DIM), "float32")
    layer = built(np.zeros_like(KERNEL), np.zeros_like(BIAS))
    close(layer(zeros, TARGETS[:4]), np.full(4, math.log(VOCABULARY_SIZE)), 1e-6)


def test_all_negatives_are_hits():
    targets = np.array([4, 4], "int32")
    close(built()(INPUTS[:2], targets, np.array([4], "int32"), np.float32(1)), np.zeros(2))


def test_large_logits_do_not_overflow():
    layer = built(KERNEL * 1000)
    close(layer(INPUTS, TARGETS) / 1e4, exact_loss(INPUTS, TARGETS, KERNEL * 1000) / 1e4)
    loss = layer(INPUTS, TARGETS, NEGATIVES, num_tries=NUM_TRIES)
    expected = sampled_loss(INPUTS, TARGETS, NEGATIVES, NUM_TRIES, KERNEL * 1000)
    close(loss / 1e4, expected / 1e4)


@pytest.mark.parametrize("sampled", [True, False])
def test_mixed_bfloat16(sampled):
    """Products are rough; biases, sums and losses are not."""
    args = (NEGATIVES, NUM_TRIES) if sampled else ()
    layer = built(dtype="mixed_bfloat16", bias=BIAS - 30)
    assert {weight.dtype for weight in layer.weights} == {"float32"}
    loss = layer(ops.cast(INPUTS, "bfloat16"), TARGETS, *args)
    assert keras.backend.standardize_dtype(loss.dtype) == "float32"
    close(loss, built()(INPUTS, TARGETS, *args), 0.06)
    # A bias as such, whatever bfloat16 would make of it.
    fine = np.linspace(-10, -9, VOCABULARY_SIZE, dtype="float32")
    layer = built(np.zeros_like(KERNEL), fine, dtype="mixed_bfloat16")
    close(layer(INPUTS, TARGETS), exact_loss(INPUTS * 0, TARGETS, bias=fine))
    close(layer.logits(ops.cast(INPUTS, "bfloat16"))[0], fine, 1e-6)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="rows are TensorFlow's")
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_gradient_is_of_rows(dtype):
    """The kernel's gradient is a set of rows, not a matrix of the vocabulary's size."""
    import tensorflow as tf

    layer = built(dtype=dtype)
    with tf.GradientTape() as tape:
        loss = layer(INPUTS, TARGETS, NEGATIVES, num_tries=NUM_TRIES)
    for gradient in tape.gradient(loss, [layer.kernel.value, layer.bias.value]):
        assert isinstance(gradient, tf.IndexedSlices)
        assert gradient.indices.shape == (len(TARGETS) + len(NEGATIVES),)


@pytest.mark.parametrize("negatives", [None, NEGATIVES])
def test_as_a_layer(negatives):
    """The checks that all layers go through; the target is made of the input here."""

    def call(layer, inputs, mask):
        targets = ops.cast(ops.argmax(inputs, axis=1), "int32")
        args = (
            ()
            if negatives is None
            else (ops.convert_to_tensor(negatives), ops.convert_to_tensor(NUM_TRIES))
        )
        # The loss is in float32 whatever the policy: the harness wants the policy's type.
        return ops.cast(layer(inputs, targets, *args), layer.compute_dtype)

    check_layer(
        SampledSoftmax,
        {"vocabulary_size": VOCABULARY_SIZE},
        INPUTS,
        num_weights=2,
        call=call,
        input_shape=(None, DIM),
    )


def test_initializers():
    layer = SampledSoftmax(2000, bias_initializer=keras.initializers.Constant(0.5))
    layer.build((None, 64))
    kernel = to_numpy(layer.kernel)
    assert abs(kernel.std() - 64**-0.5) < 0.001
    assert (to_numpy(layer.bias) == 0.5).all()
    again = SampledSoftmax.from_config(layer.get_config())
    assert isinstance(again.bias_initializer, keras.initializers.Constant)
    given = SampledSoftmax(5, kernel_initializer="ones")
    given.build((None, 2))
    assert (to_numpy(given.kernel) == 1).all()


def test_symbolic_shape():
    x, y = keras.Input((DIM,)), keras.Input((), dtype="int32")
    loss = randomize(built())(x, y)
    assert (loss.shape, loss.dtype) == ((None,), "float32")
    assert built().compute_output_shape((7, DIM), (7,)) == (7,)


@pytest.mark.parametrize("size", [0, -1, 2.0, True, "5"])
def test_vocabulary_size_that_is_none(size):
    with pytest.raises(ValueError, match="`vocabulary_size` must be a positive integer. Received"):
        SampledSoftmax(size)


def test_negatives_without_tries():
    with pytest.raises(ValueError, match="`num_tries` must be given beside `negatives`"):
        built()(INPUTS, TARGETS, NEGATIVES)
