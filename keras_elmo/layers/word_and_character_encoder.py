"""WordAndCharacterEncoder: ids of words and of their characters -> token vectors."""

from collections.abc import Sequence

import keras
from keras import ops

from keras_elmo.layers.char_cnn_encoder import ORIGINAL_FILTERS, CharCNNEncoder, check_filters
from keras_elmo.layers.checks import check_positive_integer
from keras_elmo.layers.masked_layer import zero_where_masked
from keras_elmo.layers.token_embedding import TokenEmbedding


@keras.saving.register_keras_serializable(package="keras_elmo")
class WordAndCharacterEncoder(keras.layers.Layer):
    """A word's vector from itself and from its characters: `project([embed(word), char_cnn(characters)])`.

    The token vectors of ELMoForManyLangs: a table has a vector for each known word, a `CharCNNEncoder` without
    projection makes another from the characters, and a linear projection of both, side by side, is the token's
    vector. Either part may be missing.

    Reference: Che et al. (2018), "Towards Better UD Parsing: Deep Contextualized Word Embeddings, Ensemble, and
    Treebank Concatenation", section 2.1 (https://arxiv.org/abs/1807.03121).

    Args:
        projection_dim: int, size of a token vector.
        num_words: int, number of word ids, 0 (no word here) included; `None` (default): words are not looked up.
        word_dim: int, size of a word's own vector. Defaults to 100.
        num_characters: int, number of character ids, 0 included; `None` (default): words are not spelled.
        word_padding: int, the character id that stands behind the end of a word, and nowhere else. Defaults to 1.
        embedding_dim: int, size of a character vector. Defaults to 50.
        filters: pairs (width, number of filters), see `CharCNNEncoder`. Defaults to the original's seven.
        num_highway_layers: int, see `CharCNNEncoder`. Defaults to 2.
        activation: "relu" (default) or "tanh", see `CharCNNEncoder`.
        **kwargs: Arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        ids: dict of those that the layer reads: `character_ids`, int tensor (batch, num_tokens, max_word_length),
            and `word_ids`, int tensor (batch, num_tokens), as `keras_elmo.Lexicon.ids` makes them.

    Output shape:
        (batch, num_tokens, projection_dim), zero where there is no word.

    Masking:
        Makes the mask (batch, num_tokens): `True` where an id is above 0.

    Raises:
        ValueError: if an argument is out of range, if both numbers are `None`, or if the input lacks ids.

    Example:
    >>> import numpy as np
    >>> encoder = WordAndCharacterEncoder(8, num_words=5, num_characters=9, word_padding=8, filters=[[1, 4], [3, 8]])
    >>> ids = {"character_ids": np.array([[[6, 2, 7, 8], [6, 7, 8, 8]]]), "word_ids": np.array([[4, 1]])}
    >>> tuple(encoder(ids).shape)
    (1, 2, 8)
    """

    def __init__(
        self,
        projection_dim: int,
        num_words: int | None = None,
        word_dim: int = 100,
        num_characters: int | None = None,
        word_padding: int = 1,
        embedding_dim: int = 50,
        filters: Sequence[Sequence[int]] = ORIGINAL_FILTERS,
        num_highway_layers: int = 2,
        activation: str = "relu",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_positive_integer("projection_dim", projection_dim)
        if num_words is None and num_characters is None:
            raise ValueError(
                "A WordAndCharacterEncoder needs `num_words` or `num_characters`. Received: None for both"
            )
        self.projection_dim = projection_dim
        self.num_words = num_words
        self.word_dim = word_dim
        self.num_characters = num_characters
        self.word_padding = word_padding
        self.embedding_dim = embedding_dim
        self.filters = check_filters(filters)
        self.num_highway_layers = num_highway_layers
        self.activation = activation
        self.supports_masking = True

        self.word_embedding = self.char_cnn_encoder = None
        if num_words is not None:
            check_positive_integer("num_words", num_words)
            check_positive_integer("word_dim", word_dim)
            self.word_embedding = TokenEmbedding(
                num_words, word_dim, dtype=self.dtype_policy, name="word_embedding"
            )
        if num_characters is not None:
            self.char_cnn_encoder = CharCNNEncoder(
                sum(count for _, count in self.filters),
                embedding_dim,
                self.filters,
                num_highway_layers,
                activation,
                use_projection=False,
                num_characters=num_characters,
                word_padding=word_padding,
                dtype=self.dtype_policy,
                name="char_cnn_encoder",
            )
            self.supports_jit = self.char_cnn_encoder.supports_jit
        self.projection = keras.layers.Dense(
            projection_dim, dtype=self.dtype_policy, name="projection"
        )

    def _parts(self):
        """The layers by the name of what they read, in the order of their outputs."""
        parts = {"word_ids": self.word_embedding, "character_ids": self.char_cnn_encoder}
        return {name: part for name, part in parts.items() if part is not None}

    def build(self, input_shape):
        parts = self._parts()
        self._check_input(input_shape)
        for name, part in parts.items():
            part.build(input_shape[name])
        dim = sum(part.projection_dim for part in parts.values())
        self.projection.build((None, dim))

    def call(self, ids, training=False):
        self._check_input(ids)
        vectors = []
        for name, part in self._parts().items():
            options = {"training": training} if part is self.char_cnn_encoder else {}
            vectors.append(part(ids[name], **options))
        projected = self.projection(ops.concatenate(vectors, axis=-1))
        return zero_where_masked(projected, self.compute_mask(ids))

    def _check_input(self, ids):
        if not isinstance(ids, dict) or set(ids) != set(self._parts()):
            received = sorted(ids) if isinstance(ids, dict) else type(ids).__name__
            raise ValueError(
                f"The input must be a dict of {' and '.join(map(repr, self._parts()))}. Received: {received}"
            )

    def compute_mask(self, inputs, mask=None):
        masks = [part.compute_mask(inputs[name]) for name, part in self._parts().items()]
        return masks[0] if len(masks) == 1 else ops.logical_or(*masks)

    def compute_output_shape(self, input_shape):
        self._check_input(input_shape)
        shape = min(input_shape.values(), key=len)
        return (*shape[:2], self.projection_dim)

    def get_config(self):
        return {
            **super().get_config(),
            "projection_dim": self.projection_dim,
            "num_words": self.num_words,
            "word_dim": self.word_dim,
            "num_characters": self.num_characters,
            "word_padding": self.word_padding,
            "embedding_dim": self.embedding_dim,
            "filters": self.filters,
            "num_highway_layers": self.num_highway_layers,
            "activation": self.activation,
        }
