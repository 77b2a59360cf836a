"""WordEncoder: text to one vector a word, that has read the sentence: what all heads stand on."""

import functools
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_elmo.layers import RemoveSentenceBoundaries, ScalarMix
from keras_elmo.models import ElmoModel
from keras_elmo.tasks.table import LAYER_OUTPUTS
from keras_elmo.tasks.word_pieces import mean_of_pieces
from keras_elmo.tasks.word_shape import WordShape
from keras_elmo.text import map_characters


class WordEncoder(keras.layers.Layer):
    """The mix of the biLM's layers, beside other features of the words, read by a bidirectional LSTM.

        inputs = dropout([mix; word vectors; word shape; features])
        outputs = dropout([BiLSTM(inputs); second mix])

    Args:
        elmo_model: The `ElmoModel`; one run of its biLM serves both mixes.
        lstm_units: Width of each direction of the LSTM; 0: none.
        mix_at_output: Whether a second mix stands beside the LSTM's outputs.
        dropout: Rate of dropout.
        mix_l2: `l2` of the mixes, see `ScalarMix`.
        word_vocabulary: Words that have a learned vector of their own, or `None`.
        word_dim: Size of such a vector.
        use_word_shape: Whether a `WordShape` is beside the mix.
        features_dim: Size of further features that come with the inputs.

    Call arguments:
        inputs: A dict of `tokens`, strings (batch, num_tokens), and their number, `sequence_len` (batch,). If words
            were given that the tokens are pieces of: `token_words` (batch, num_tokens), the word of each, -1 for
            padding; `words`, strings (batch, num_words), and `num_words` (batch,). Instead of being computed,
            `layer_outputs` (batch, num_tokens + 2, num_values) may be given, as `flat_layer_outputs` made them.
        features: (batch, num_words, features_dim), if there are any.

    Output shape:
        The vectors (batch, num_words, output_dim), zero for padding; the mask (batch, num_words); and the biLM's layer
        outputs, sentence boundaries included.
    """

    def __init__(
        self,
        elmo_model: ElmoModel,
        lstm_units: int = 0,
        mix_at_output: bool = False,
        dropout: float = 0.0,
        mix_l2: float | None = None,
        word_vocabulary: Sequence[str] | None = None,
        word_dim: int = 100,
        use_word_shape: bool = False,
        features_dim: int = 0,
        **kwargs: Any,
    ):
        super().__init__(dtype=elmo_model.dtype_policy, **kwargs)
        self.elmo_model = elmo_model
        dtype = self.dtype_policy
        self.input_mix, *output_mix = (
            ScalarMix(elmo_model.layer_norm, l2=mix_l2, dtype=dtype, name=name)
            for name in ("input_mix", "output_mix")[: 2 if mix_at_output else 1]
        )
        self.output_mix = output_mix[0] if output_mix else None
        self.remove_boundaries = RemoveSentenceBoundaries(dtype=dtype, name="words_only")
        self.drop_input, self.drop_output = (
            keras.layers.Dropout(dropout, dtype=dtype, name=f"drop_{place}")
            for place in ("input", "output")
        )
        elmo_dim = 2 * elmo_model.projection_dim
        input_dim = elmo_dim + features_dim
        self.word_lookup: Any = None
        self.word_embedding: Any = None
        self.word_shape: Any = None
        self.lstm: Any = None
        if word_vocabulary is not None:
            self.word_lookup = keras.layers.StringLookup(
                vocabulary=list(word_vocabulary), name="word_lookup"
            )
            self.word_embedding = keras.layers.Embedding(
                self.word_lookup.vocabulary_size(), word_dim, dtype=dtype, name="word_embedding"
            )
            self.word_embedding.build(None)
            input_dim += word_dim
        if use_word_shape:
            self.word_shape = WordShape(dtype=dtype, name="word_shape")
            self.word_shape.build((None, None))
            input_dim += self.word_shape.dim
        if lstm_units:
            self.lstm = keras.layers.Bidirectional(
                keras.layers.LSTM(lstm_units, return_sequences=True, dtype=dtype),
                dtype=dtype,
                name="lstm",
            )
            self.lstm.build((None, None, input_dim))
        self.output_dim = (2 * lstm_units or input_dim) + elmo_dim * mix_at_output
        layers = [(None, None, elmo_dim)] * (elmo_model.num_layers + 1)
        for mix in (self.input_mix, *output_mix):
            mix.build(layers)
        self.remove_boundaries.build((None, None, elmo_dim))
        self.supports_jit = False
        self.built = True

    def call(self, inputs, features=None, training=False):
        layer_outputs, mask = self.layer_outputs(inputs)
        words, num_words = inputs["tokens"], inputs["sequence_len"]
        if "token_words" in inputs:
            words, num_words = inputs["words"], inputs["num_words"]
        word_mask = tf.sequence_mask(num_words, tf.shape(words)[1])

        def mixed(mix):
            vectors = self.remove_boundaries(mix(layer_outputs, mask=mask), mask=mask)
            if "token_words" in inputs:
                vectors = mean_of_pieces(vectors, inputs["token_words"], tf.shape(words)[1])
            return vectors

        found = [mixed(self.input_mix)]
        if self.word_embedding is not None:
            found.append(self.word_embedding(self.word_lookup(words)))
        if self.word_shape is not None:
            found.append(self.word_shape(words))
        if features is not None:
            found.append(tf.cast(features, self.compute_dtype))
        vectors = self.drop_input(tf.concat(found, axis=-1), training=training)
        if self.lstm is not None:
            vectors = self.lstm(vectors, mask=word_mask, training=training)
        if self.output_mix is not None:
            vectors = tf.concat([vectors, mixed(self.output_mix)], axis=-1)
        if self.lstm is not None or self.output_mix is not None:
            vectors = self.drop_output(vectors, training=training)
        return tf.where(word_mask[:, :, tf.newaxis], vectors, 0), word_mask, layer_outputs

    def layer_outputs(self, inputs: dict[str, tf.Tensor]) -> tuple[list[tf.Tensor], tf.Tensor]:
        """The layer outputs of the biLM, sentence boundaries included, and their mask."""
        elmo = self.elmo_model
        mask = tf.sequence_mask(inputs["sequence_len"] + 1, tf.shape(inputs["tokens"])[1] + 1)
        mask = tf.concat([mask, tf.ones_like(mask[:, :1])], axis=1)
        if LAYER_OUTPUTS in inputs:
            sizes = [elmo.projection_dim, *[2 * elmo.projection_dim] * elmo.num_layers]
            flat = tf.cast(inputs[LAYER_OUTPUTS], self.compute_dtype)
            token_embeddings, *found = tf.split(flat, sizes, axis=-1)
            return [tf.concat([token_embeddings] * 2, axis=-1), *found], mask
        ids = map_characters(inputs["tokens"], inputs["sequence_len"], elmo.max_word_length)
        found = elmo.bilm(elmo.token_encoder(ids), mask=mask)
        if not elmo.trainable_bilm:
            found = [tf.stop_gradient(layer) for layer in found]
        return found, mask

    @functools.cached_property
    def flat_layer_outputs(self) -> Any:
        """A graph from `tokens` and `sequence_len` to what may be given as `layer_outputs` afterwards."""
        return tf.function(
            self._flat_layer_outputs,
            input_signature=[
                {
                    "tokens": tf.TensorSpec([None, None], tf.string),
                    "sequence_len": tf.TensorSpec([None], tf.int32),
                }
            ],
        )

    def _flat_layer_outputs(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """The layer outputs side by side, layer 0 once, float32 (batch, num_tokens + 2, num_values)."""
        layers, _ = self.layer_outputs(inputs)
        half = layers[0][..., : self.elmo_model.projection_dim]
        return tf.cast(tf.concat([half, *layers[1:]], axis=-1), tf.float32)
