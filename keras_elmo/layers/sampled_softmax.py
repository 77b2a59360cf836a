"""SampledSoftmax: the output layer of a language model, against a sample of the vocabulary or all of it."""

import keras
import numpy as np
from keras import ops

from keras_elmo.layers.checks import check_positive_integer

# The exact softmax computes no more logits than this at once (256 MiB).
MAX_LOGITS = 2**26


@keras.saving.register_keras_serializable(package="keras_elmo")
class SampledSoftmax(keras.layers.Layer):
    """Negative log-likelihood of words under a softmax, estimated from a sample of negatives, or exact.

    With `negatives`, the target's logit is set against those of the sample, each less the logarithm of how often it
    is expected in such a sample, so that the gradient is, on average, that of the full softmax; a negative that is
    the target itself does not count. Without, the sum runs over the whole vocabulary. One layer serves both
    directions of a biLM.

    The sample is log-uniform over ids: P(id) = log((id + 2) / (id + 1)) / log(vocabulary_size + 1), which fits a
    vocabulary in the order of falling frequency. The sampled value is a training loss, no perplexity comes of it.

    Reference: Jean et al. (2015), "On Using Very Large Target Vocabulary for Neural Machine Translation", eq. 8 to 11
    (https://arxiv.org/abs/1412.2007), with the correction of TensorFlow's `sampled_softmax_loss`.

    Args:
        vocabulary_size: int, number of words.
        kernel_initializer: initializer of the words' vectors. Defaults to a normal distribution of deviation
            `dim ** -0.5`, as in bilm-tf.
        bias_initializer: initializer of the words' biases. Defaults to "zeros".
        **kwargs: Arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        inputs: float tensor (num_positions, dim).
        targets: int tensor (num_positions,), the id of the word that is right at each position.
        negatives: int tensor (num_negatives,) of distinct ids, or `None` (default) for the full softmax.
        num_tries: float scalar, how many ids were drawn, with repetition, until so many distinct ones were found.

    Output shape:
        (num_positions,), in float32.

    Raises:
        ValueError: if an argument is out of range, or `num_tries` is missing beside `negatives`.

    Example:
    >>> import numpy as np
    >>> layer = SampledSoftmax(vocabulary_size=5)
    >>> losses = layer(np.zeros((2, 3), "float32"), np.array([0, 4])).numpy()
    >>> [round(loss, 4) for loss in losses.tolist()]
    [1.6094, 1.6094]
    """

    def __init__(
        self, vocabulary_size: int, kernel_initializer=None, bias_initializer="zeros", **kwargs
    ):
        # In mixed precision Keras would cast the whole kernel, so that the gradient of a few rows is a whole matrix,
        # and round biases and `num_tries`. Here, and where the weights are made, it does not: only what is multiplied
        # is cast.
        super().__init__(autocast=False, **kwargs)
        check_positive_integer("vocabulary_size", vocabulary_size)
        self.vocabulary_size = vocabulary_size
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.bias_initializer = keras.initializers.get(bias_initializer)

    def build(self, inputs_shape):
        dim = inputs_shape[-1]
        kernel = self.kernel_initializer or keras.initializers.RandomNormal(stddev=dim**-0.5)
        self.kernel = self.add_weight(
            (self.vocabulary_size, dim), kernel, name="kernel", autocast=False
        )
        self.bias = self.add_weight(
            (self.vocabulary_size,), self.bias_initializer, name="bias", autocast=False
        )

    def call(self, inputs, targets, negatives=None, num_tries=None):
        inputs = ops.cast(inputs, self.compute_dtype)
        if negatives is None:
            return self._exact(inputs, targets)
        if num_tries is None:
            raise ValueError(
                "`num_tries` must be given beside `negatives`. Received: num_tries=None"
            )
        target_vectors, target_biases = self._rows(targets, num_tries)
        target_logits = ops.cast(inputs, "float32") * ops.cast(target_vectors, "float32")
        target_logits = ops.sum(target_logits, axis=1) + target_biases
        log_sum = _log_sum_exp(inputs, *self._rows(negatives, num_tries))
        # A target that is among the negatives has its logit in the sum already.
        ones = ops.ones(ops.shape(negatives), "int32")
        is_negative = ops.scatter(negatives[:, None], ones, (self.vocabulary_size,))
        is_counted = ops.take(is_negative, targets, axis=0) > 0
        return ops.where(is_counted, log_sum, ops.logaddexp(log_sum, target_logits)) - target_logits

    def _rows(self, ids, num_tries):
        """Vectors of words, and their biases less the logarithms of their expected counts."""
        vectors = ops.cast(ops.take(self.kernel, ids, axis=0), self.compute_dtype)
        biases = ops.cast(ops.take(self.bias, ids, axis=0), "float32")
        return vectors, biases - self._log_expected(ids, num_tries)

    def _exact(self, inputs, targets):
        """The full softmax, a bounded number of positions at a time."""
        num_positions = ops.shape(targets)[0]
        size = max(MAX_LOGITS // self.vocabulary_size, 1)
        if isinstance(num_positions, int):
            pieces = [
                self._exact_piece((inputs[start : start + size], targets[start : start + size]))
                for start in range(0, max(num_positions, 1), size)
            ]
            return ops.concatenate(pieces) if len(pieces) > 1 else pieces[0]
        # In a graph that does not know the number: in pieces of one size, the last one filled up.
        num_pieces = ops.maximum((num_positions + size - 1) // size, 1)
        size = ops.maximum((num_positions + num_pieces - 1) // num_pieces, 1)
        rest = num_pieces * size - num_positions
        inputs = ops.reshape(ops.pad(inputs, [[0, rest], [0, 0]]), (-1, size, self.kernel.shape[1]))
        targets = ops.reshape(ops.pad(targets, [[0, rest]]), (-1, size))
        losses = ops.map(self._exact_piece, (inputs, targets))
        return ops.reshape(losses, (-1,))[:num_positions]

    def _exact_piece(self, piece):
        inputs, targets = piece
        logits = self.logits(inputs)
        target_logits = ops.take_along_axis(logits, targets[:, None], axis=1)[:, 0]
        return ops.logsumexp(logits, axis=1) - target_logits

    def logits(self, inputs):
        """The logits of all words, (num_positions, vocabulary_size), in float32."""
        logits = ops.matmul(inputs, ops.transpose(ops.cast(self.kernel, self.compute_dtype)))
        return ops.cast(logits, "float32") + ops.cast(self.bias, "float32")

    def _log_expected(self, ids, num_tries):
        """Log of how often an id is expected in the sample: 1 - (1 - P(id)) ** num_tries."""
        ids = ops.cast(ids, "float32")
        probabilities = ops.log1p(1.0 / (ids + 1.0)) / np.log(self.vocabulary_size + 1.0)
        num_tries = ops.cast(num_tries, "float32")
        return ops.log(-ops.expm1(num_tries * ops.log1p(-probabilities)))

    def compute_output_shape(self, inputs_shape, targets_shape=None):
        return (inputs_shape[0],)

    def compute_output_spec(self, inputs, targets, negatives=None, num_tries=None):
        return keras.KerasTensor((inputs.shape[0],), dtype="float32")

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
        }


@ops.custom_gradient
def _log_sum_exp(inputs, vectors, biases):
    """`logsumexp(inputs @ vectors.T + biases)` of every row.

    The matrix of logits is by far the largest array of a training step, so that the time goes with how often it is gone
    through. In float32, biases and all sums over it are parts of the matrix products here, forwards and backwards.
    """
    ones = ops.ones((ops.shape(inputs)[0], 1), inputs.dtype)
    inputs_and_one = ops.concatenate([inputs, ones], axis=1)
    if keras.backend.standardize_dtype(inputs.dtype) == "float32":
        vectors_and_bias = ops.concatenate([vectors, biases[:, None]], axis=1)
        logits = ops.matmul(inputs_and_one, ops.transpose(vectors_and_bias))
    else:
        # Rounded, the biases would be far off.
        logits = ops.cast(ops.matmul(inputs, ops.transpose(vectors)), "float32") + biases
    # With something to begin with, also no rows at all have maxima.
    maxima = ops.max(logits, axis=1, keepdims=True, initial=float("-inf"))
    powers = ops.exp(logits - maxima)
    sums = ops.matmul(powers, ops.ones((ops.shape(vectors)[0], 1), "float32"))

    def gradient(*args, upstream=None):
        (upstream,) = args if upstream is None else (upstream,)
        scales = upstream[:, None] / sums
        low = ops.cast(powers, inputs.dtype)
        to_inputs = ops.cast(ops.matmul(low, vectors), "float32") * scales
        scaled = ops.cast(ops.cast(inputs_and_one, "float32") * scales, inputs.dtype)
        # Not the large matrix is turned around, but the small ones.
        to_rows = ops.transpose(ops.matmul(ops.transpose(scaled), low))
        return (
            ops.cast(to_inputs, inputs.dtype),
            to_rows[:, :-1],
            ops.cast(to_rows[:, -1], "float32"),
        )

    return ops.squeeze(maxima + ops.log(sums), axis=1), gradient
