"""SpanSelector: the answer to a question, cut from a passage."""

import os
import warnings
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_elmo import presets
from keras_elmo.layers.checks import check_positive_integer
from keras_elmo.models import BidirectionalLanguageModel, ElmoModel
from keras_elmo.tasks.answer_scores import answer_scores
from keras_elmo.tasks.answer_spans import best_span, given_answers, positions
from keras_elmo.tasks.attention import attended
from keras_elmo.tasks.pooling import mean_and_max
from keras_elmo.tasks.task import Task
from keras_elmo.tasks.texts import check_pairs, columns, string_tensor, tensors, two_texts
from keras_elmo.text import tokenize, tokenize_with_offsets


@keras.saving.register_keras_serializable(package="keras_elmo")
class SpanSelector(Task):
    """Answers questions about a passage with words of the passage, or says that it has no answer.

    Each word of the passage attends to the question, and the question to the passage:

        s_ij = F(p_i) . F(q_j)
        asked_i = sum over j of softmax over j(s_ij) q_j
        found = sum over i of softmax over i(max over j of s_ij) p_i
        g_i = relu(W [p_i; asked_i; p_i * asked_i; p_i * found] + c)

    A second LSTM reads `g`; start and end have a logit for each word, from `[g_i; LSTM(g)_i]`, and one more for there
    being no answer, from mean and maximum over the LSTM's outputs. `p` and `q` are the outputs of the same LSTM, which
    reads the mix of ELMo's layers and whether a word stands in the other text, too.

    `fit(x, y)` and `evaluate(x, y)` take pairs of strings, (question, passage), and for each its answer,
    `{"text": .., "answer_start": ..}` with the place of its first character, or `None` if there is none; a list of
    answers means that any is right, of which the first is learned. `predict` returns strings that stand in the passage,
    and "" for no answer. `evaluate` gives the accuracy, start and end both right, and `exact_match` and `f1` as
    `keras_elmo.tasks.answer_scores` measures them: for Chinese over characters. All other arguments are those of
    `Task`.

    Reference: Seo et al. (2017), "Bidirectional Attention Flow for Machine Comprehension"
    (https://arxiv.org/abs/1611.01603); Chen et al. (2017), "Reading Wikipedia to Answer Open-Domain Questions", section
    3.2 (https://arxiv.org/abs/1704.00051), for `F` and the words of the other text; Levy et al. (2017), "Zero-Shot
    Relation Extraction via Reading Comprehension", section 4 (https://arxiv.org/abs/1706.04115), for no answer.

    Args:
        model_or_preset: See `Task`. Defaults to the bundled English preset.
        hidden_units: int, width of the layers that attend and compare, and of each direction of the second LSTM.
            Defaults to 128.
        max_answer_length: int, how many tokens an answer has at most. Defaults to 30.
        **kwargs: Arguments of `Task`.

    Raises:
        ValueError: if an argument is out of range, see `Task`; in training, if an answer does not stand in the passage
            at its place.

    Example:
    >>> selector = SpanSelector(lstm_units=8, hidden_units=8)
    >>> x = [("Where is Ann?", "Ann is in Rome."), ("Who is Bob?", "Ann is in Rome.")]
    >>> history = selector.fit(x, [{"text": "Rome", "answer_start": 10}, None], epochs=2, verbose=0)
    >>> answer = selector.predict([("Where is he?", "He is at home.")], verbose=0)[0]
    >>> answer in "He is at home."
    True
    """

    _PREFIXES = ("question_", "passage_")
    # Whether the word stands in the other text.
    _FEATURES_DIM = 1

    def __init__(
        self,
        model_or_preset: (
            ElmoModel | BidirectionalLanguageModel | str | os.PathLike
        ) = presets.DEFAULT_PRESET,
        hidden_units: int = 128,
        max_answer_length: int = 30,
        **kwargs: Any,
    ):
        check_positive_integer("hidden_units", hidden_units)
        check_positive_integer("max_answer_length", max_answer_length)
        super().__init__(model_or_preset, **kwargs)
        self.hidden_units = hidden_units
        self.max_answer_length = max_answer_length
        dim, dtype = self.encoder.output_dim, self.dtype_policy
        self.attend, self.compare = (
            keras.layers.Dense(hidden_units, "relu", dtype=dtype, name=name)
            for name in ("attend", "compare")
        )
        self.attend.build((None, None, dim))
        self.compare.build((None, None, 4 * dim))
        self.modelling_lstm = keras.layers.Bidirectional(
            keras.layers.LSTM(hidden_units, return_sequences=True, dtype=dtype),
            dtype=dtype,
            name="modelling_lstm",
        )
        self.modelling_lstm.build((None, None, hidden_units))
        self.drop = keras.layers.Dropout(self.dropout, dtype=dtype, name="drop")
        # Two logits each: start and end.
        self.choose = keras.layers.Dense(2, dtype="float32", name="choose")
        self.choose.build((None, None, 3 * hidden_units))
        self.no_answer = keras.layers.Dense(2, dtype="float32", name="no_answer")
        self.no_answer.build((None, 4 * hidden_units))

    def call(self, inputs, training=False):
        (question, question_mask), (passage, passage_mask) = (
            self.encode(inputs, self._features(inputs, *prefixes), training, prefixes[0])
            for prefixes in (self._PREFIXES, self._PREFIXES[::-1])
        )
        # Where nothing is asked, nothing answers.
        passage_mask &= tf.reduce_any(question_mask, axis=1, keepdims=True)
        compared = self._compared(question, question_mask, passage, passage_mask)
        read = self.modelling_lstm(compared, mask=passage_mask, training=training)
        read = tf.where(passage_mask[:, :, tf.newaxis], read, 0)
        words = self.drop(tf.concat([compared, read], axis=-1), training=training)
        whole = self.drop(mean_and_max(read, passage_mask), training=training)
        logits = self.choose(words)
        logits = tf.where(passage_mask[:, :, tf.newaxis], logits, logits.dtype.min)
        logits = tf.concat([self.no_answer(whole)[:, tf.newaxis], logits], axis=1)
        start_logits, end_logits = tf.unstack(logits, axis=-1)
        first, last, probability = best_span(start_logits, end_logits, self.max_answer_length)
        start, end = (
            tf.cast(tf.gather(inputs[name], position, batch_dims=1), tf.int32)
            for name, position in (("starts", first), ("ends", last))
        )
        return {
            "start_logits": start_logits,
            "end_logits": end_logits,
            "first": first,
            "last": last,
            "answer": tf.strings.substr(inputs["text"], start, end - start),
            "probability": probability,
            "start": start,
            "end": end,
        }

    def _features(self, inputs, prefix, other_prefix):
        words, others = (
            tf.strings.lower(inputs[f"{name}tokens"], "utf-8") for name in (prefix, other_prefix)
        )
        is_same = words[:, :, tf.newaxis] == others[:, tf.newaxis]
        return tf.cast(tf.reduce_any(is_same, axis=2, keepdims=True), tf.float32)

    def _compared(self, question, question_mask, passage, passage_mask):
        scores = tf.matmul(self.attend(passage), self.attend(question), transpose_b=True)
        asked = attended(scores, question, question_mask)
        scores = tf.where(question_mask[:, tf.newaxis], scores, scores.dtype.min)
        found = attended(tf.reduce_max(scores, axis=2)[:, tf.newaxis], passage, passage_mask)
        both = tf.concat([passage, asked, passage * asked, passage * found], axis=-1)
        return self.compare(both)

    def _read(self, question, passage):
        """What is read of texts, strings (batch,), and the bytes where each position begins and ends."""
        tokens, *offsets = tokenize_with_offsets(passage, self.tokenizer)
        # Position 0: no answer.
        starts, ends = (
            tf.concat([tf.zeros([tf.size(passage), 1], tf.int64), places], axis=1)
            for places in offsets
        )
        return {
            "question_": {"tokens": tokenize(question, self.tokenizer)},
            "passage_": {"tokens": tokens},
            "": {"starts": starts, "ends": ends},
        }

    def _columns(self, x):
        question, passage = map(string_tensor, two_texts(x, "question", "passage"))
        made = {"text": passage.numpy()}
        for prefix, found in self._read(question, passage).items():
            made |= columns(found, prefix)
        return made

    def _targets(self, x, y):
        read = self._columns(x)
        rows = []
        for number, ((_, passage), given) in enumerate(zip(x, y, strict=True)):
            answers = given_answers(given, passage, number)
            starts, ends = read["starts"][number], read["ends"][number]
            rows.append(positions(answers[0], passage, starts, ends) if answers else (0, 0))
        first, last = np.array(rows, np.int32).T
        if num_long := int(np.sum(last - first >= self.max_answer_length)):
            warnings.warn(
                f"{num_long} of {len(rows)} answers are longer than `max_answer_length`, {self.max_answer_length} "
                "tokens: no prediction will be so long.",
                stacklevel=4,
            )
        return {"first": first, "last": last}

    def _example_losses(self, y, outputs):
        start_losses, end_losses = (
            tf.nn.sparse_softmax_cross_entropy_with_logits(y[position], outputs[logits])
            for position, logits in (("first", "start_logits"), ("last", "end_logits"))
        )
        return 0.5 * (start_losses + end_losses), tf.ones_like(start_losses)

    def _accuracy(self, y, outputs):
        is_right = (outputs["first"] == y["first"]) & (outputs["last"] == y["last"])
        return tf.cast(is_right, tf.float32)

    def _decoded(self, outputs):
        return [output["answer"].decode("utf-8", "replace") for output in outputs]

    def _scores(self, x, y, predictions):
        right = [
            [answer["text"] for answer in given_answers(given, passage, number)]
            for number, ((_, passage), given) in enumerate(zip(x, y, strict=True))
        ]
        return answer_scores(predictions(), right)

    def serving_signatures(self) -> dict[str, Any]:
        """What a SavedModel of this head answers to.

        Returns:
            A dict of one `tf.function`: `default` takes `question` and `passage`, strings (batch,), and returns
            `answer`, strings (batch,), "" if there is none; its `probability` among all possible answers, float32
            (batch,); and `start` and `end`, int32 (batch,), where it stands in the passage, counted in bytes of UTF-8:
            `passage[start:end]`, both 0 if there is none.
        """

        @tf.function(
            input_signature=[
                tf.TensorSpec([None], tf.string, "question"),
                tf.TensorSpec([None], tf.string, "passage"),
            ]
        )
        def default(question, passage):
            check_pairs(question, passage)
            inputs = {"text": passage}
            for prefix, found in self._read(question, passage).items():
                inputs |= tensors(found, prefix)
            outputs = self(inputs, training=False)
            return {name: outputs[name] for name in ("answer", "probability", "start", "end")}

        return {"default": default}

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_units": self.hidden_units,
            "max_answer_length": self.max_answer_length,
        }
