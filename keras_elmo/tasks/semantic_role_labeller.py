"""SemanticRoleLabeller: who did what to whom, around a given predicate."""

import os
import reprlib
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_elmo import presets
from keras_elmo.labels import check_labels
from keras_elmo.models import BidirectionalLanguageModel, ElmoModel
from keras_elmo.tasks.entities import are_entities, entity_scores
from keras_elmo.tasks.texts import columns, cut_sentences, cut_words, ragged_words, tensors
from keras_elmo.tasks.token_classifier import TokenClassifier, given_words

_INDICATOR_DIM = 100
# The predicate itself, which is given and so counts for nothing.
_PREDICATE_ROLE = "V"


@keras.saving.register_keras_serializable(package="keras_elmo")
class SemanticRoleLabeller(TokenClassifier):
    """Labels the words of a sentence with the roles that they have for one of its words, the predicate.

    `fit(x, y)`, `evaluate(x, y)` and `predict(x)` take pairs of a list of words and the predicate's place among them,
    from 0, and lists of as many labels: `B-ARG0`, `I-ARG0`, .., `B-V` and `O`. A sentence with several predicates is
    several examples. An embedding tells the LSTM which word is the predicate; the labels are decoded such that `I-X`
    follows only `B-X` and `I-X`. The scores that `evaluate` adds leave the predicate out.

    Reference: He et al. (2017), "Deep Semantic Role Labeling: What Works and What's Next", section 2
    (https://aclanthology.org/P17-1044).

    Args:
        model_or_preset: See `Task`. Defaults to the bundled English preset.
        labels: The labels, two or more; both kinds, `B-X` and `I-X`, are added.
        decoder: "softmax" (default) or "crf", see `TokenClassifier`.
        use_word_shape: See `Task`. Defaults to `False`.
        **kwargs: Arguments of `Task`.

    Raises:
        ValueError: if an argument is out of range, see `Task`.

    Example:
    >>> labeller = SemanticRoleLabeller(labels=["O", "B-V", "B-ARG0", "I-ARG0", "B-ARG1"], lstm_units=8)
    >>> x = [(["The", "cat", "drinks", "milk"], 2)]
    >>> history = labeller.fit(x, [["B-ARG0", "I-ARG0", "B-V", "B-ARG1"]], verbose=0)
    >>> len(labeller.predict(x, verbose=0)[0])
    4
    """

    _FEATURES_DIM = _INDICATOR_DIM

    def __init__(
        self,
        model_or_preset: (
            ElmoModel | BidirectionalLanguageModel | str | os.PathLike
        ) = presets.DEFAULT_PRESET,
        labels: Sequence[str] = (),
        decoder: str = "softmax",
        use_word_shape: bool = False,
        **kwargs: Any,
    ):
        labels = check_labels(labels)
        if not are_entities(labels):
            raise ValueError(
                "`labels` must be `O` and roles that begin with `B-` and `I-`. "
                f"Received: labels={reprlib.repr(labels)}"
            )
        super().__init__(model_or_preset, labels, decoder, use_word_shape, **kwargs)
        self.indicator = keras.layers.Embedding(
            2, _INDICATOR_DIM, dtype=self.dtype_policy, name="indicator"
        )
        self.indicator.build(None)

    def _features(self, inputs):
        words = tf.range(tf.shape(inputs["words"])[1])
        return self.indicator(tf.cast(words == inputs["predicate"][:, tf.newaxis], tf.int32))

    def _columns(self, x):
        for number, example in enumerate(x):
            is_pair = isinstance(example, list | tuple) and len(example) == 2
            words, place = example if is_pair else ((), -1)
            is_place = isinstance(place, int | np.integer) and not isinstance(place, bool)
            if not is_place or not 0 <= place < len(words):
                raise ValueError(
                    "`x` must hold pairs of a list of words and the place of the predicate among them, from 0. "
                    f"Received: {reprlib.repr(example)} at index {number}"
                )
        sentences = ragged_words([words for words, _ in x])
        predicates = [np.int32(place) for _, place in x]
        return {**columns(cut_words(sentences, self.tokenizer)), "predicate": predicates}

    def _words(self, sentence):
        return sentence[0]

    def _scores(self, x, y, predictions):
        true, predicted = (
            [[_without_predicate(label) for label in labels] for labels in rows]
            for rows in (map(self._in_iob2, y), predictions())
        )
        return entity_scores(true, predicted)

    def serving_signatures(self) -> dict[str, Any]:
        """What a SavedModel of this labeller answers to.

        Returns:
            A dict of `tf.function`s as of `TokenClassifier`, which take besides `predicate`, int32 (batch,), the place
            of the predicate among the tokens, from 0.
        """
        predicate_spec = tf.TensorSpec([None], tf.int32, "predicate")

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text"), predicate_spec])
        def default(text, predicate):
            found = cut_sentences(text, self.tokenizer)
            inputs = tensors({**found, "words": found["tokens"]})
            _check_places(predicate, found["tokens"])
            return self._answer(found["tokens"], {**inputs, "predicate": predicate})

        @tf.function(
            input_signature=[
                tf.TensorSpec([None, None], tf.string, "tokens"),
                tf.TensorSpec([None], tf.int32, "sequence_len"),
                predicate_spec,
            ]
        )
        def tokens(tokens, sequence_len, predicate):
            words = given_words(tokens, sequence_len)
            inputs = tensors(cut_words(words, self.tokenizer))
            _check_places(predicate, words)
            return self._answer(words, {**inputs, "predicate": predicate})

        return {"default": default, "tokens": tokens}


def _check_places(predicate: tf.Tensor, words: tf.RaggedTensor) -> None:
    """Lets the graph fail if a sentence has no word at the predicate's place; one without words needs none."""
    lengths = tf.cast(words.row_lengths(), tf.int32)
    tf.debugging.Assert(
        tf.reduce_all((predicate >= 0) & (predicate < tf.maximum(lengths, 1))),
        ["`predicate` must be the place of a word among the tokens, from 0. Received:", predicate],
    )


def _without_predicate(label: str) -> str:
    return "O" if label[2:] == _PREDICATE_ROLE else label
