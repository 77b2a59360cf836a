"""LanguageModelLoss: how well the biLM still predicts the words that a task trains it on."""

import tensorflow as tf

from keras_elmo.models import BidirectionalLanguageModel
from keras_elmo.text import VocabularyLookup

# So many words are drawn as negatives, with repetition; each distinct one counts once.
_NUM_TRIES = 4096


class LanguageModelLoss:
    """The loss that the biLM was trained with, of the layer outputs that a task has computed already.

        loss = -1/2 * mean(log p(w_k | w_1 .. w_k-1) + log p(w_k | w_k+1 .. w_n))

    Kept in the loss of a task, it holds the biLM back from forgetting its language. The targets are looked up in the
    vocabulary, and the negatives of the sampled softmax drawn, where the loss is computed: in the graph of the training
    step alone. The softmax itself stays as it was.

    Reference: Peters et al. (2018), section 3.1; the loss kept beside the task's: Chronopoulou et al. (2019), "An
    Embarrassingly Simple Approach for Transfer Learning from Pretrained Language Models", eq. 3
    (https://arxiv.org/abs/1902.10547).

    Args:
        language_model: The language model, whose `elmo_model` computes the layer outputs.
    """

    def __init__(self, language_model: BidirectionalLanguageModel):
        self._softmax = language_model.softmax
        self._vocabulary = language_model.vocabulary
        self._lookup = VocabularyLookup(language_model.vocabulary)

    def __call__(
        self,
        layer_outputs: list[tf.Tensor],
        tokens: tf.Tensor,
        sequence_len: tf.Tensor,
        sampled: bool = True,
    ) -> tf.Tensor:
        """The loss of a batch, a float32 scalar.

        Args:
            layer_outputs: What `ElmoModel.bilm` gives: tensors (batch, num_tokens + 2, 2 * projection_dim), of which
                the last is used; `<S>` is in the first column, `</S>` in the last.
            tokens: Strings (batch, num_tokens).
            sequence_len: int32 (batch,), how many of them are tokens.
            sampled: Whether the softmax is estimated from a sample of the vocabulary.
        """
        forward, backward = tf.split(layer_outputs[-1], 2, axis=-1)
        batch = tf.shape(tokens)[0]
        begin, end = (
            tf.fill([batch, 1], id_) for id_ in (self._vocabulary.begin_id, self._vocabulary.end_id)
        )
        ids = self._lookup(tokens)
        length = sequence_len[:, tf.newaxis]
        column = tf.range(tf.shape(tokens)[1] + 1)[tf.newaxis]
        # From `<S>` and each word the next word follows, from the last one `</S>`.
        following = tf.where(column == length, end, tf.concat([ids, end], axis=1))
        is_read = column <= length
        preceding = tf.concat([begin, ids], axis=1)
        # `</S>` stands in the last column, behind the padding, and before it the last word.
        last = tf.gather(preceding, sequence_len, batch_dims=1)[:, tf.newaxis]
        preceding = tf.concat([preceding[:, :-1], last], axis=1)
        is_preceded = tf.concat([is_read[:, 1:], tf.ones_like(begin, tf.bool)], axis=1)
        return 0.5 * (
            self._mean(forward[:, :-1], following, is_read, sampled)
            + self._mean(backward[:, 1:], preceding, is_preceded, sampled)
        )

    def _mean(self, outputs, targets, is_prediction, sampled):
        outputs, targets = (tf.boolean_mask(tensor, is_prediction) for tensor in (outputs, targets))
        losses = self._softmax(outputs, targets, *(self._negatives() if sampled else ()))
        return tf.reduce_mean(losses)

    def _negatives(self):
        """Distinct words of a log-uniform sample, and how many words were drawn for it."""
        size = float(len(self._vocabulary))
        drawn = tf.math.expm1(tf.random.uniform([_NUM_TRIES]) * tf.math.log1p(size))
        ids = tf.minimum(tf.cast(drawn, tf.int32), len(self._vocabulary) - 1)
        return tf.unique(ids)[0], tf.constant(_NUM_TRIES, tf.float32)
