"""WordCache: the vectors of frequent words in the graph, so that the character CNN reads only the other ones."""

import warnings
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_elmo.character_ids import (
    BEGIN_OF_SENTENCE_WORD,
    END_OF_SENTENCE_WORD,
    character_ids,
)
from keras_elmo.elmo_embedding import ElmoEmbedding
from keras_elmo.export.language_model_server import LanguageModelServer
from keras_elmo.layers.checks import check_positive_integer
from keras_elmo.models import ElmoModel
from keras_elmo.vocabulary import UNKNOWN_TOKEN, Vocabulary

BOUNDARIES = (BEGIN_OF_SENTENCE_WORD, END_OF_SENTENCE_WORD)
# Rows of the table: the words follow.
_NO_WORD, _BEGIN, _END = range(3)
_NOT_CACHED = -1
# So many words of about the same length are encoded together.
_WORDS_PER_BATCH = 512


class WordCache:
    """Token vectors (layer 0) by the tokens' strings: from a table if a word is in it, else from the character CNN.

    A token's vector depends on its characters alone, so the numbers are those of `model.token_encoder`. If all words
    of a batch are in the table, the character CNN does not run; else it reads each distinct other word once. The
    sentence boundaries are always in the table, typed ones as well.

    Args:
        model: The `ElmoModel`; it reads characters. The table is made of the weights that it has now.
        words: The words, each once.

    Attributes:
        num_words: int, how many words were given.
        table: The TensorFlow lookup table, for `tf.saved_model.save` to find.

    Example:
    >>> import keras_elmo
    >>> model = keras_elmo.load_model("elmo_tiny_en")
    >>> cache, tokens = WordCache(model, ["the", "bank"]), [["the", "riverbank"]]
    >>> ids = tf.constant(character_ids(tokens))
    >>> found = cache.token_embeddings(tf.constant(tokens), ids)
    >>> tuple(found.shape), float(abs(found - model.token_encoder(ids)).numpy().max()) < 1e-6
    ((1, 4, 128), True)
    """

    def __init__(self, model: ElmoModel, words: Sequence[str]):
        rows = [*BOUNDARIES, *words]
        self.num_words = len(words)
        self.table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                rows, tf.range(_BEGIN, _BEGIN + len(rows), dtype=tf.int64)
            ),
            default_value=_NOT_CACHED,
        )
        vectors = tf.pad(_encoded(model, rows), [[1, 0], [0, 0]])
        # A variable, not a constant: a graph has no room for more than 2 GB.
        self._vectors = tf.Variable(vectors, trainable=False, name="word_cache")
        self._encoder = model.encoder
        # The model's own graph from the token vectors on; the ids go on to say what is a word.
        self._rest = keras.Model([model.input, model.bilm.input], model.output)

    def outputs(self, tokens: tf.Tensor | tf.RaggedTensor, ids: tf.Tensor) -> dict[str, tf.Tensor]:
        """All outputs of the model.

        Args:
            tokens: Strings (batch, num_tokens), dense or ragged.
            ids: Their character ids (batch, num_tokens or more, max_word_length), 0 where there is no word.

        Returns:
            What `model(ids)` returns.
        """
        mask = tf.pad(_is_word(ids), [[0, 0], [1, 1]], constant_values=True)
        # `call` itself: Keras warns of a functional model that is given masks and passes none on as a whole.
        return self._rest.call(
            [ids, self.token_embeddings(tokens, ids)], training=False, mask=[None, mask]
        )

    def token_embeddings(self, tokens: tf.Tensor | tf.RaggedTensor, ids: tf.Tensor) -> tf.Tensor:
        """The token vectors, with those of the sentence boundaries.

        Args:
            tokens: Strings (batch, num_tokens), dense or ragged.
            ids: Their character ids (batch, num_tokens or more, max_word_length), 0 where there is no word.

        Returns:
            What `model.token_encoder(ids)` returns, (batch, num_tokens + 2, projection_dim), without its mask.
        """
        if isinstance(tokens, tf.RaggedTensor):
            tokens = tokens.to_tensor()
        rows = self.table.lookup(tokens)
        # An empty batch has a column of ids, though no tokens.
        rows = tf.pad(rows, [[0, 0], [0, tf.shape(ids)[1] - tf.shape(rows)[1]]])
        rows = tf.where(_is_word(ids), rows, _NO_WORD)
        is_other = tf.equal(rows, _NOT_CACHED)
        found = tf.where(is_other, tf.constant(_NO_WORD, tf.int64), rows)
        found = tf.pad(found, [[0, 0], [1, 0]], constant_values=_BEGIN)
        found = tf.pad(found, [[0, 0], [0, 1]], constant_values=_END)
        vectors = tf.gather(self._vectors, found)

        def with_others():
            # The encoder finds the distinct ones among them.
            others = self._encoder(tf.boolean_mask(ids, is_other)[tf.newaxis])[0]
            behind_begin = tf.constant([0, 1], tf.int64)
            return tf.tensor_scatter_nd_update(vectors, tf.where(is_other) + behind_begin, others)

        return tf.cond(tf.reduce_any(is_other), with_others, lambda: vectors)


def make_word_cache(model: Any, num_words: int, vocabulary: Vocabulary | None = None) -> WordCache:
    """The word cache of a model that is to be served.

    Args:
        model: An `ElmoEmbedding` or `LanguageModelServer`.
        num_words: The number of words, the first ones of the vocabulary; its special tokens do not count. All are
            taken, with a warning, if there are fewer.
        vocabulary: The words, most frequent first. `None` (default): those of a language model.

    Raises:
        ValueError: if the model is another, `num_words` is no positive integer, or there is no vocabulary.
    """
    if not isinstance(model, ElmoEmbedding | LanguageModelServer):
        raise ValueError(
            "`word_cache` goes with models that serve the vectors of words: an `ElmoModel`, `ElmoEmbedding`, "
            f"`BidirectionalLanguageModel` or `LanguageModelServer`. Received: {type(model).__name__}. Leave "
            "`word_cache` out."
        )
    check_positive_integer("word_cache", num_words)
    if vocabulary is None and isinstance(model, LanguageModelServer):
        vocabulary = model.model.vocabulary
    if not isinstance(vocabulary, Vocabulary):
        raise ValueError(
            f"`word_cache` takes the first words of a `Vocabulary`, and {type(model).__name__} has none. Received: "
            f"vocabulary={vocabulary!r}. Give `vocabulary=Vocabulary.load(..)` of `keras_elmo.vocabulary`, the words "
            "of the model's training text, or export the language model."
        )
    words = [word for word in vocabulary if word not in (*BOUNDARIES, UNKNOWN_TOKEN)]
    if num_words > len(words):
        warnings.warn(
            f"The vocabulary has {len(words):,} words, fewer than the {num_words:,} of the word cache: all of them "
            "are cached.",
            stacklevel=3,
        )
    embedding = model if isinstance(model, ElmoEmbedding) else model.embedding
    return WordCache(embedding.model, words[:num_words])


def _is_word(ids: tf.Tensor) -> tf.Tensor:
    return tf.reduce_any(ids != 0, axis=-1)


def _encoded(model: ElmoModel, words: Sequence[str]) -> tf.Tensor:
    """The words' vectors, (num_words, projection_dim)."""

    # In a graph, as it is served: there TensorFlow joins operations, which in bfloat16 round less often.
    @tf.function(input_signature=[tf.TensorSpec([1, None, model.max_word_length], tf.int32)])
    def encode(ids):
        return model.encoder(ids)[0]

    # Columns beyond the longest word of a batch are left out: of words of one length, most.
    order = sorted(range(len(words)), key=lambda k: len(words[k].encode()))
    vectors = []
    for start in range(0, len(order), _WORDS_PER_BATCH):
        batch = [words[k] for k in order[start : start + _WORDS_PER_BATCH]]
        vectors.append(encode(character_ids([batch], model.max_word_length)))
    return tf.gather(tf.concat(vectors, axis=0), tf.argsort(order))
