"""LanguageModelServer: a language model's vectors, and the words that it would put into a place."""

from typing import Any

import tensorflow as tf

from keras_elmo.elmo_embedding import ElmoEmbedding
from keras_elmo.layers.checks import check_positive_integer
from keras_elmo.models import BidirectionalLanguageModel
from keras_elmo.text import map_characters


class LanguageModelServer:
    """Serves what `ElmoEmbedding` serves, and `substitutes` besides.

    Args:
        model: The language model; it reads characters.
        tokenizer: "word" (default) or "whitespace", see `keras_elmo.text.tokenize`.
        top: How many substitutes. Defaults to 10.

    Raises:
        ValueError: if an argument is out of range, or the model reads token ids.

    Example:
    >>> import keras_elmo
    >>> server = LanguageModelServer(keras_elmo.load_language_model("elmo_tiny_en"), top=2)
    >>> sorted(server.serving_signatures())
    ['character_ids', 'default', 'substitutes', 'tokens']
    """

    def __init__(self, model: BidirectionalLanguageModel, tokenizer: str = "word", top: int = 10):
        self.embedding = ElmoEmbedding(model.elmo_model, tokenizer=tokenizer)
        check_positive_integer("top", top)
        self.model = model
        self.top = min(top, len(model.vocabulary) - 3)

    @property
    def variables(self) -> list[Any]:
        """All weights."""
        return [*self.embedding.variables, *self.model.softmax.variables]

    def serving_description(self) -> dict[str, Any]:
        """What `assets.extra/keras_elmo.json` says of the model."""
        return self.embedding.serving_description()

    def serving_signatures(self, word_cache: Any = None) -> dict[str, Any]:
        """The signatures of `ElmoEmbedding`, and `substitutes`.

        Args:
            word_cache: See `ElmoEmbedding.serving_signatures`. Defaults to `None`.

        Returns:
            A dict of `tf.function`s. `substitutes` takes `tokens`, strings (batch, max_len), `sequence_len` and
            `position`, int32 (batch,), the places from 0; it returns `words`, strings (batch, top), likeliest first,
            and their `log_probability` (batch, top), see `BidirectionalLanguageModel.substitutes`.
        """
        vocabulary = self.model.vocabulary
        no_words = [vocabulary.begin_id, vocabulary.end_id, vocabulary.unknown_id]

        @tf.function(
            input_signature=[
                tf.TensorSpec([None, None], tf.string, "tokens"),
                tf.TensorSpec([None], tf.int32, "sequence_len"),
                tf.TensorSpec([None], tf.int32, "position"),
            ]
        )
        def substitutes(tokens, sequence_len, position):
            is_inside = tf.logical_and(position >= 0, position < sequence_len)
            message = "`position` must be an index of the sentence's tokens, from 0."
            with tf.control_dependencies(
                [tf.debugging.Assert(tf.reduce_all(is_inside), [message])]
            ):
                position = tf.identity(position)
            log_probabilities = self._log_probabilities(tokens, sequence_len, position, word_cache)
            is_word = tf.reduce_sum(tf.one_hot(no_words, len(vocabulary)), axis=0) == 0
            combined = tf.nn.log_softmax(tf.where(is_word, log_probabilities, -float("inf")))
            log_probability, ids = tf.math.top_k(combined, self.top)
            # The words are a constant of the graph: no table, no file.
            words = tf.constant(vocabulary.tokens(range(len(vocabulary))))
            return {"words": tf.gather(words, ids), "log_probability": log_probability}

        return self.embedding.serving_signatures(word_cache) | {"substitutes": substitutes}

    def _log_probabilities(self, tokens, sequence_len, position, word_cache):
        """Of all words in a place of each sentence, (batch, num_words): the sum of both directions'."""
        elmo = self.model.elmo_model
        ids = map_characters(tokens, sequence_len, elmo.max_word_length)
        real = tf.sequence_mask(sequence_len, tf.shape(tokens)[1])
        # <S> stands in the first column, </S> in the last, whatever padding is before it.
        mask = tf.pad(real, [[0, 0], [1, 1]], constant_values=True)
        if word_cache is None:
            token_embeddings = elmo.token_encoder(ids)
        else:
            token_embeddings = word_cache.token_embeddings(tokens, ids)
        top = elmo.bilm(token_embeddings, mask=mask)[-1]
        forward, backward = tf.split(top, 2, axis=-1)
        last = tf.shape(top)[1] - 1
        before, after = position, tf.where(position + 1 < sequence_len, position + 2, last)
        return sum(
            tf.nn.log_softmax(
                tf.cast(
                    self.model.softmax.logits(tf.gather(vectors, place, batch_dims=1)), tf.float32
                )
            )
            for vectors, place in ((forward, before), (backward, after))
        )
