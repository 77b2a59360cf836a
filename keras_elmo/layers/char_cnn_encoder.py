"""CharCNNEncoder: character ids -> token vectors."""

import itertools
from collections.abc import Sequence

import keras
from keras import ops

from keras_elmo.character_ids import NUM_CHARACTERS, WORD_PADDING
from keras_elmo.layers.checks import (
    check_choice,
    check_not_negative_integer,
    check_positive_integer,
    check_rank,
    is_integer,
)
from keras_elmo.layers.highway import Highway
from keras_elmo.layers.masked_layer import zero_where_masked
from keras_elmo.layers.shortcuts import takes_shortcut

ORIGINAL_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))
# A word of the shortest fourth needs a third of the columns of the longest one.
NUM_TRAINING_GROUPS = 4


@keras.saving.register_keras_serializable(package="keras_elmo")
class CharCNNEncoder(keras.layers.Layer):
    """A word's vector from its characters: `project(highways(activation(max_t(conv_w(embed(ids))))))`.

    The characters are embedded; for every filter width a convolution without padding runs over all positions
    of the word, the maximum over the positions is taken, then the activation; the widths are concatenated
    and go through the highway layers and a linear projection. The vector depends on the word alone, so that
    words never seen have one as well.

    Under TensorFlow and PyTorch each distinct word of a batch is encoded once and columns that hold nothing but
    padding are left out; in training, whose batches are large, words of about the same length go together. All
    this is exact. JAX, which needs fixed shapes, encodes every word in full.

    Reference: Peters et al. (2018), "Deep contextualized word representations", section 3.4
    (https://arxiv.org/abs/1802.05365), after Kim et al. (2015), "Character-Aware Neural Language Models",
    eq. 5 and 6 (https://arxiv.org/abs/1508.06615).

    Args:
        projection_dim: int, size of a token vector. Defaults to 512.
        embedding_dim: int, size of a character vector. Defaults to 16.
        filters: pairs (width in characters, number of filters). Defaults to the seven of the original ELMo
            model, 2048 filters in all.
        num_highway_layers: int, 0 or more. Defaults to 2.
        activation: "relu" (default) or "tanh", of the convolutions; highway layers are always relu.
        use_projection: bool, whether the linear projection exists. Without it the number of filters must be
            `projection_dim`. Defaults to `True`.
        num_characters: int, number of character ids, 0 (no word here) included. Defaults to 262.
        word_padding: int, the id that stands behind the end of a word, and nowhere else. Defaults to 261.
        **kwargs: Arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        character_ids: int tensor (batch, num_tokens, max_word_length), as
            `keras_elmo.character_ids` makes it; a row of zeros stands where there is no word.
        training: bool. Defaults to `False`.

    Output shape:
        (batch, num_tokens, projection_dim), zero where there is no word.

    Masking:
        Makes the mask (batch, num_tokens): `True` where any id of the row is above 0.

    Raises:
        ValueError: if an argument is out of range, if `max_word_length` is smaller than the widest filter or
            unknown, or if the input has not three axes.

    Example:
    >>> import keras_elmo
    >>> ids = keras_elmo.character_ids(["The bank is near", "Hello"])
    >>> encoder = CharCNNEncoder(projection_dim=8, filters=[[1, 4], [3, 8]], num_highway_layers=1)
    >>> tuple(encoder(ids).shape)
    (2, 4, 8)
    """

    def __init__(
        self,
        projection_dim: int = 512,
        embedding_dim: int = 16,
        filters: Sequence[Sequence[int]] = ORIGINAL_FILTERS,
        num_highway_layers: int = 2,
        activation: str = "relu",
        use_projection: bool = True,
        num_characters: int = NUM_CHARACTERS,
        word_padding: int = WORD_PADDING,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive_integer("projection_dim", projection_dim)
        check_positive_integer("embedding_dim", embedding_dim)
        check_not_negative_integer("num_highway_layers", num_highway_layers)
        check_choice("activation", activation, ("relu", "tanh"))
        check_positive_integer("num_characters", num_characters)
        check_positive_integer("word_padding", word_padding)
        filters = check_filters(filters)
        num_filters = sum(count for _, count in filters)
        if not use_projection and num_filters != projection_dim:
            raise ValueError(
                f"`use_projection=False` needs as many filters as `projection_dim`. Received: {num_filters} "
                f"filters and projection_dim={projection_dim}"
            )
        self.projection_dim = projection_dim
        self.embedding_dim = embedding_dim
        self.filters = filters
        self.num_highway_layers = num_highway_layers
        self.activation = activation
        self.use_projection = use_projection
        self.num_characters = num_characters
        self.word_padding = word_padding
        self.supports_masking = True
        # XLA under TensorFlow has no operation for the distinct rows of a batch.
        self.supports_jit = keras.backend.backend() != "tensorflow"

        self.character_embedding = keras.layers.Embedding(
            num_characters,
            embedding_dim,
            embeddings_initializer=_with_zero_row(keras.initializers.RandomUniform(-1.0, 1.0)),
            dtype=self.dtype_policy,
            name="character_embedding",
        )
        self.convolutions = [
            keras.layers.Conv1D(
                count,
                width,
                kernel_initializer=self._convolution_initializer(width),
                dtype=self.dtype_policy,
                name=f"convolution_{i}",
            )
            for i, (width, count) in enumerate(filters)
        ]
        self.highways = [
            Highway(dtype=self.dtype_policy, name=f"highway_{i}") for i in range(num_highway_layers)
        ]
        self.projection = None
        if use_projection:
            self.projection = keras.layers.Dense(
                projection_dim,
                kernel_initializer=keras.initializers.RandomNormal(stddev=num_filters**-0.5),
                dtype=self.dtype_policy,
                name="projection",
            )

    @property
    def widest_filter(self) -> int:
        """Width of the widest filter in characters: no word may be narrower."""
        return max(width for width, _ in self.filters)

    def _convolution_initializer(self, width: int):
        if self.activation == "relu":
            return keras.initializers.RandomUniform(-0.05, 0.05)
        return keras.initializers.RandomNormal(stddev=(width * self.embedding_dim) ** -0.5)

    def build(self, input_shape):
        self._check_input(input_shape)
        max_word_length = input_shape[-1]
        self.character_embedding.build((None, max_word_length))
        for convolution in self.convolutions:
            convolution.build((None, max_word_length, self.embedding_dim))
        num_filters = sum(count for _, count in self.filters)
        for highway in self.highways:
            highway.build((None, num_filters))
        if self.projection is not None:
            self.projection.build((None, num_filters))

    def call(self, character_ids, training=False):
        self._check_input(character_ids.shape)
        batch, num_tokens, _ = ops.shape(character_ids)
        max_word_length = character_ids.shape[-1]
        words = ops.reshape(character_ids, (-1, max_word_length))
        if keras.backend.backend() == "jax":
            vectors = self._transform(self._features(words))
        elif not takes_shortcut("distinct_words"):
            vectors = self._encode(words, num_groups=1)
        else:
            # One row of zeros more: an empty batch has a maximum as well.
            words = ops.pad(words, [[0, 1], [0, 0]])
            distinct, positions = ops.unique(words, sorted=False, return_inverse=True, axis=0)
            distinct = ops.reshape(distinct, (-1, max_word_length))
            num_groups = NUM_TRAINING_GROUPS if training else 1
            vectors = ops.take(self._encode(distinct, num_groups), positions[:-1], axis=0)
        vectors = ops.reshape(vectors, (batch, num_tokens, self.projection_dim))
        return zero_where_masked(vectors, self.compute_mask(character_ids))

    def _encode(self, words, num_groups):
        """Words of about the same length together, so that short ones are not as wide as the longest."""
        if not takes_shortcut("trimmed_words"):
            return self._transform(self._features(words))
        if num_groups == 1:
            return self._transform(self._features(self._trim(words)))
        # Rows of zeros at the end, that no group is empty: nothing has no maximum.
        words = ops.pad(words, [[0, num_groups - 1], [0, 0]])
        order = ops.argsort(ops.sum(ops.cast(self._is_character(words), "int32"), axis=1))
        words = ops.take(words, order, axis=0)
        num_words = ops.shape(words)[0]
        ends = [num_words * k // num_groups for k in range(num_groups + 1)]
        features = [
            self._features(self._trim(words[start:end])) for start, end in itertools.pairwise(ends)
        ]
        vectors = self._transform(ops.concatenate(features))
        return ops.take(vectors, ops.argsort(order), axis=0)

    def _trim(self, words):
        """Leaves out the columns beyond the longest word but for one full window of padding.

        All windows further right would see the same padding, and a maximum does not count how often it sees
        a value.
        """
        max_word_length = words.shape[-1]
        places = ops.arange(1, max_word_length + 1)
        columns = ops.max(ops.where(self._is_character(words), places, 0), initial=0)
        return words[:, : ops.minimum(columns + self.widest_filter, max_word_length)]

    def _is_character(self, ids):
        return (ids != 0) & (ids != self.word_padding)

    def _features(self, words):
        characters = self.character_embedding(words)
        activation = keras.activations.get(self.activation)
        # Adding the bias, relu and tanh never turn an order around: after the maximum they give what they give
        # before it, and are cheaper.
        features = [
            ops.max(_convolve(characters, convolution.kernel), axis=1) + convolution.bias
            for convolution in self.convolutions
        ]
        return activation(ops.concatenate(features, axis=-1))

    def _transform(self, vectors):
        for highway in self.highways:
            vectors = highway(vectors)
        return vectors if self.projection is None else self.projection(vectors)

    def _check_input(self, shape):
        check_rank("`character_ids`", shape, 3, "(batch, num_tokens, max_word_length)")
        if shape[-1] is None or shape[-1] < self.widest_filter:
            raise ValueError(
                "The last axis of `character_ids`, the word length, must be known and no smaller than the "
                f"widest filter, {self.widest_filter}. Received a tensor of shape {tuple(shape)}"
            )

    def compute_mask(self, inputs, mask=None):
        return ops.any(ops.not_equal(inputs, 0), axis=-1)

    def compute_output_shape(self, input_shape):
        self._check_input(input_shape)
        return (*input_shape[:-1], self.projection_dim)

    def get_config(self):
        return {
            **super().get_config(),
            "projection_dim": self.projection_dim,
            "embedding_dim": self.embedding_dim,
            "filters": self.filters,
            "num_highway_layers": self.num_highway_layers,
            "activation": self.activation,
            "use_projection": self.use_projection,
            "num_characters": self.num_characters,
            "word_padding": self.word_padding,
        }


def _convolve(characters, kernel):
    """A convolution of (words, columns, dim) as one product: with so few channels that is a third faster."""
    width, dim, count = kernel.shape
    num_windows = ops.shape(characters)[1] - width + 1
    shifted = [characters[:, k : num_windows + k] for k in range(width)]
    return ops.matmul(ops.concatenate(shifted, axis=-1), ops.reshape(kernel, (width * dim, count)))


def _with_zero_row(initializer):
    """Id 0 means that there is no word: its vector is zero and stays so, for such rows are masked out."""

    def initialize(shape, dtype=None):
        table = initializer(shape, dtype)
        return ops.concatenate([ops.zeros_like(table[:1]), table[1:]])

    return initialize


def check_filters(filters: Sequence[Sequence[int]]) -> list[list[int]]:
    """`filters` as a list of [width, count]; raises `ValueError` if it is anything else."""
    try:
        pairs = [list(pair) for pair in filters]
    except TypeError:
        pairs = []
    good = all(len(pair) == 2 and all(is_integer(n) and n > 0 for n in pair) for pair in pairs)
    if not pairs or not good:
        raise ValueError(
            "`filters` must be a list of pairs of positive integers (width, number of filters), such as "
            f"[[1, 32], [2, 32]]. Received: filters={filters!r}"
        )
    return pairs
