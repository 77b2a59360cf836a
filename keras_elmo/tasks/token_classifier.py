"""TokenClassifier: one label for every word."""

import os
import reprlib
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_elmo import presets
from keras_elmo.labelled_signatures import named_tokens
from keras_elmo.labels import check_labels
from keras_elmo.layers import CRF
from keras_elmo.layers.checks import check_choice
from keras_elmo.layers.crf import bio_transitions
from keras_elmo.models import BidirectionalLanguageModel, ElmoModel
from keras_elmo.tasks.entities import are_entities, both_kinds, entity_scores, to_iob2
from keras_elmo.tasks.labelled_task import LabelledTask
from keras_elmo.tasks.texts import (
    as_list,
    columns,
    cut_sentences,
    cut_words,
    ragged_words,
    tensors,
)


@keras.saving.register_keras_serializable(package="keras_elmo")
class TokenClassifier(LabelledTask):
    """Labels words: parts of speech, named entities.

    `fit(x, y)`, `evaluate(x, y)` and `predict(x)` take lists of words for every sentence, and lists of as many labels;
    `predict` returns such lists. A word is cut as the preset's tokenizer cuts text, and its vector is the mean of those
    of its pieces, so that there is one label for every word that was given, whatever the tokenizer: also for Chinese
    words, which are read by their characters. All other arguments are those of `Task`.

    If all labels but `O` begin with `B-` or `I-`, they are entities. They may come as IOB2 or as IOB (`I-` where an
    entity begins); what comes out is IOB2, in which `I-X` follows only `B-X` or `I-X`. `evaluate` adds precision,
    recall and F1 of whole entities.

    Reference: Lample et al. (2016), "Neural Architectures for Named Entity Recognition"
    (https://arxiv.org/abs/1603.01360), for the CRF over a bidirectional LSTM.

    Args:
        model_or_preset: See `Task`. Defaults to the bundled English preset.
        labels: The labels, two or more; of entities both kinds, `B-X` and `I-X`, are added.
        decoder: "softmax" (default), each word's label by itself; or "crf", all labels of a sentence together.
        use_word_shape: See `Task`. Defaults to `True`.
        **kwargs: Arguments of `Task`.

    Raises:
        ValueError: if an argument is out of range, see `Task`.

    Example:
    >>> tagger = TokenClassifier(labels=["NOUN", "VERB"], lstm_units=0)
    >>> history = tagger.fit([["Birds", "fly"], ["Fish", "swim", "upstream"]],
    ...     [["NOUN", "VERB"], ["NOUN", "VERB", "NOUN"]], epochs=2, verbose=0)
    >>> [len(labels) for labels in tagger.predict([["Dogs"], ["Cats", "can't", "bark"], []], verbose=0)]
    [1, 3, 0]
    """

    def __init__(
        self,
        model_or_preset: (
            ElmoModel | BidirectionalLanguageModel | str | os.PathLike
        ) = presets.DEFAULT_PRESET,
        labels: Sequence[str] = (),
        decoder: str = "softmax",
        use_word_shape: bool = True,
        **kwargs: Any,
    ):
        check_choice("decoder", decoder, ("softmax", "crf"))
        labels = check_labels(labels)
        has_entities = are_entities(labels)
        if has_entities:
            labels = both_kinds(labels)
        super().__init__(model_or_preset, labels, use_word_shape=use_word_shape, **kwargs)
        self.decoder = decoder
        self.has_entities = has_entities
        num_labels = len(self.labels)
        self.classify = keras.layers.Dense(num_labels, dtype="float32", name="classify")
        self.classify.build((None, None, self.encoder.output_dim))
        # Under a softmax it only keeps `I-X` behind `B-X` and `I-X`, and learns nothing.
        self.crf = CRF(
            bio_transitions(self.labels).tolist() if has_entities else None,
            trainable=decoder == "crf",
            dtype="float32",
            name="crf",
        )
        self.crf.build((None, None, num_labels))

    def call(self, inputs, training=False):
        vectors, mask = self.encode(inputs, self._features(inputs), training=training)
        logits = self.classify(vectors)
        if self.decoder == "crf" or (self.has_entities and not training):
            tags = self.crf(tf.stop_gradient(logits), mask=mask)
        else:
            tags = tf.argmax(logits, axis=-1, output_type=tf.int32)
        return {"logits": logits, "tags": tags, "mask": mask}

    def predict_probabilities(  # type: ignore[override]
        self, x: Any, batch_size: int = 32, verbose: str | int = "auto"
    ) -> list[np.ndarray]:
        """The probability of each label for every word, by the CRF over all labels of the others.

        Args:
            x: The sentences.
            batch_size: Sentences in a batch. Defaults to 32.
            verbose: As in Keras.

        Returns:
            float32 arrays (num_words, num_labels), one for each sentence.
        """
        outputs = self._predict(as_list("x", x), batch_size, verbose, self._with_probabilities)
        return [output["probabilities"][output["mask"]] for output in outputs]

    def _with_probabilities(self, inputs):
        outputs = self(inputs, training=False)
        probabilities = self._probabilities(outputs["logits"], outputs["mask"])
        return {**outputs, "probabilities": probabilities}

    def _features(self, inputs):
        """What is told of the words besides."""
        return None

    def _probabilities(self, logits, mask):
        if self.decoder == "crf":
            return self.crf.marginals(logits, mask)
        return tf.nn.softmax(logits)

    def _columns(self, x):
        return columns(cut_words(ragged_words(x), self.tokenizer))

    def _targets(self, x, y):
        rows = []
        for number, (sentence, labels) in enumerate(zip(x, y, strict=True)):
            words = self._words(sentence)
            if not isinstance(labels, list | tuple | np.ndarray) or len(words) != len(labels):
                raise ValueError(
                    f"`y` must have one label for every word. Received: {len(words)} words and "
                    f"{len(labels) if isinstance(labels, list | tuple | np.ndarray) else reprlib.repr(labels)} "
                    f"labels at index {number}"
                )
            # As they came, for the error to name them.
            self._labels.ids(list(labels), f"`y`, at index {number},")
            rows.append(np.array(self._labels.ids(self._in_iob2(labels)), np.int32))
        return {"labels": rows}

    def _words(self, sentence):
        """The words of an example."""
        return sentence

    def _in_iob2(self, labels):
        return to_iob2(labels) if self.has_entities else labels

    def _example_losses(self, y, outputs):
        logits, mask = outputs["logits"], outputs["mask"]
        if self.decoder == "crf":
            losses = -self.crf.log_likelihood(logits, y["labels"], mask)
        else:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y["labels"], logits)
            losses = tf.reduce_sum(tf.where(mask, losses, 0.0), axis=1)
        # A mean over words, whatever the length of their sentences.
        return losses, tf.reduce_sum(tf.cast(mask, tf.float32), axis=1)

    def _accuracy(self, y, outputs):
        # All words of the batch alike: Keras' own weights would count each sentence as one.
        return tf.boolean_mask(tf.cast(outputs["tags"] == y["labels"], tf.float32), outputs["mask"])

    def _decoded(self, outputs):
        return [[self.labels[tag] for tag in output["tags"][output["mask"]]] for output in outputs]

    def _scores(self, x, y, predictions):
        if not self.has_entities:
            return {}
        return entity_scores([self._in_iob2(labels) for labels in y], predictions())

    def serving_signatures(self) -> dict[str, Any]:
        """What a SavedModel of this tagger answers to.

        Returns:
            A dict of `tf.function`s, which return what `keras_elmo.labelled_signatures.named_tokens` says: `default`
            takes `text`, strings (batch,), and labels the tokens that it cuts; `tokens` takes `tokens`, strings (batch,
            num_tokens), and `sequence_len`, int32 (batch,), and labels these.
        """

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
        def default(text):
            found = cut_sentences(text, self.tokenizer)
            return self._answer(found["tokens"], tensors(found))

        @tf.function(
            input_signature=[
                tf.TensorSpec([None, None], tf.string, "tokens"),
                tf.TensorSpec([None], tf.int32, "sequence_len"),
            ]
        )
        def tokens(tokens, sequence_len):
            words = given_words(tokens, sequence_len)
            return self._answer(words, tensors(cut_words(words, self.tokenizer)))

        return {"default": default, "tokens": tokens}

    def _answer(self, words, inputs):
        outputs = self._with_probabilities(inputs)
        return named_tokens(words, outputs["tags"], outputs["probabilities"], self.labels)

    def get_config(self):
        return {**super().get_config(), "decoder": self.decoder}


def given_words(tokens: tf.Tensor, sequence_len: tf.Tensor) -> tf.RaggedTensor:
    """Padded tokens as ragged ones; a length that is none is an error."""
    fits = tf.debugging.Assert(
        tf.reduce_all((sequence_len >= 0) & (sequence_len <= tf.shape(tokens)[1])),
        [
            "`sequence_len` must be from 0 to the number of columns of `tokens`. Received:",
            sequence_len,
        ],
    )
    with tf.control_dependencies([fits]):
        return tf.RaggedTensor.from_tensor(tokens, tf.identity(sequence_len))
