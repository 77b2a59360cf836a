"""What SavedModels of models with named labels answer to, whoever computes the probabilities."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf


def classifier_signatures(
    probabilities_of: Callable[[tf.Tensor], tf.Tensor], labels: Sequence[str]
) -> dict[str, Any]:
    """The signatures of a classifier of texts.

    Args:
        probabilities_of: Takes strings (batch,), returns float32 (batch, num_labels).
        labels: The labels.

    Returns:
        A dict of `tf.function`s. `default` takes `text`, strings (batch,), and returns `label` (batch,), the
        likeliest one, `labels` (batch, num_labels), all of them in order, and their `probabilities` (batch,
        num_labels). `classify`, for TensorFlow Serving's Classify, takes `inputs` (batch,), serialized `tf.Example`s
        with the text as feature `text`, and returns `classes` and `scores`, each (batch, num_labels).
    """

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def default(text):
        return named(probabilities_of(text), labels)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def classify(inputs):
        features = {"text": tf.io.FixedLenFeature([], tf.string)}
        answer = default.python_function(tf.io.parse_example(inputs, features)["text"])
        return {"classes": answer["labels"], "scores": answer["probabilities"]}

    return {"default": default, "classify": classify}


def named(probabilities: tf.Tensor, labels: Sequence[str]) -> dict[str, tf.Tensor]:
    """The likeliest `label` (batch,), all `labels` (batch, num_labels) and their `probabilities`."""
    return {
        "label": tf.gather(labels, tf.argmax(probabilities, axis=-1)),
        "labels": tf.tile([labels], [tf.shape(probabilities)[0], 1]),
        "probabilities": probabilities,
    }


def named_tokens(
    tokens: tf.RaggedTensor, ids: tf.Tensor, probabilities: tf.Tensor, labels: Sequence[str]
) -> dict[str, tf.Tensor]:
    """The answer of a tagger.

    Args:
        tokens: Ragged strings (batch, num_tokens).
        ids: int (batch, num_tokens), the label of each; there may be a column of padding where there are no tokens.
        probabilities: float32 (batch, num_tokens, num_labels).
        labels: The labels.

    Returns:
        A dict of the `tokens`, padded with "", the `label` of each, (batch, num_tokens), all `labels` in order (batch,
        num_labels), their `probabilities` (batch, num_tokens, num_labels), and `sequence_len` (batch,).
    """
    size = tf.shape(probabilities, tf.int64)[:2]
    is_token = tf.sequence_mask(tokens.row_lengths(), size[1])
    return {
        "tokens": tokens.to_tensor(shape=size),
        "label": tf.where(is_token, tf.gather(labels, ids), ""),
        "labels": tf.tile([labels], [size[0], 1]),
        "probabilities": tf.where(is_token[..., tf.newaxis], probabilities, 0.0),
        "sequence_len": tf.cast(tokens.row_lengths(), tf.int32),
    }
