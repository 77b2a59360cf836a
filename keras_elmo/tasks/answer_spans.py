"""Answers as spans of a passage: as data sets give them, as places of tokens, and the likeliest one."""

import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf


def given_answers(given: Any, passage: str, number: int) -> list[Mapping[str, Any]]:
    """The right answers to a question: none, one or several.

    Args:
        given: `None`, `{"text": .., "answer_start": ..}` with the place of its first character, or a list of such.
        passage: What they are taken from.
        number: The number of the example, for the error.

    Raises:
        ValueError: if it is something else, or an answer does not stand at its place in the passage.

    Example:
        >>> given_answers({"text": "Rome", "answer_start": 3}, "In Rome", 0)
        [{'text': 'Rome', 'answer_start': 3}]
        >>> given_answers(None, "In Rome", 1)
        []
    """
    answers = list(given) if isinstance(given, list | tuple) else [given] * (given is not None)
    for answer in answers:
        is_answer = isinstance(answer, Mapping) and {"text", "answer_start"} <= set(answer)
        text, start = (answer["text"], answer["answer_start"]) if is_answer else (None, None)
        if not isinstance(text, str) or not isinstance(start, int | np.integer):
            raise ValueError(
                '`y` must hold answers, {"text": .., "answer_start": ..}, or None where there is none. '
                f"Received: {reprlib.repr(answer)} at index {number}"
            )
        if not text.strip() or start < 0 or passage[start : start + len(text)] != text:
            raise ValueError(
                "`y` must hold answers that stand in the passage at character `answer_start`. "
                f"Received: {text!r:.80} at {start} at index {number}, where the passage has "
                f"{passage[max(start, 0) : max(start, 0) + len(text)]!r:.80}"
            )
    return answers


def positions(
    answer: Mapping[str, Any], passage: str, starts: np.ndarray, ends: np.ndarray
) -> tuple[int, int]:
    """The first and the last position that an answer touches; position 0 is before the first token.

    Args:
        answer: Of `given_answers`: its place is counted in characters.
        passage: What it is taken from.
        starts: The first byte of every position, in UTF-8.
        ends: The byte behind the last of every position.

    Example:
        >>> answer = {"text": "Rome", "answer_start": 4}
        >>> positions(answer, "À  Rome", np.array([0, 0, 4]), np.array([0, 2, 8]))
        (2, 2)
    """
    begin = answer["answer_start"]
    first, behind = (
        len(passage[:place].encode("utf-8", "ignore"))
        for place in (begin, begin + len(answer["text"]))
    )
    return (
        int(np.searchsorted(ends, first, side="right")),
        int(np.searchsorted(starts, behind, side="left")) - 1,
    )


def best_span(
    start_logits: tf.Tensor, end_logits: tf.Tensor, max_length: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The likeliest span among all that are allowed.

    Allowed are `0 < start <= end < start + max_length`, and `start = end = 0`, which says that there is none. The score
    of a span is the sum of its two logits; probabilities are the softmax of the scores.

    Args:
        start_logits: float32 (batch, num_positions).
        end_logits: The same.
        max_length: How many positions a span has at most.

    Returns:
        The start and the end, int32 (batch,), and the probability, float32 (batch,).

    Example:
        >>> start, end, _ = best_span(tf.constant([[0.0, 1.0, 2.0]]), tf.constant([[0.0, 3.0, 1.0]]), max_length=9)
        >>> start.numpy(), end.numpy()
        (array([1], dtype=int32), array([1], dtype=int32))
    """
    size = tf.shape(start_logits)[1]
    max_length = tf.minimum(max_length, size)
    # For each start the logits of the ends that it may have: a passage of any length has not many.
    ends = tf.pad(end_logits, [[0, 0], [0, max_length - 1]], constant_values=end_logits.dtype.min)
    scores = start_logits[:, :, tf.newaxis] + tf.signal.frame(ends, max_length, 1)
    is_allowed = (tf.range(size)[:, tf.newaxis] > 0) | (tf.range(max_length) == 0)
    scores = tf.where(is_allowed, scores, scores.dtype.min)
    flat = tf.reshape(scores, [-1, size * max_length])
    best = tf.argmax(flat, axis=1, output_type=tf.int32)
    probability = tf.exp(tf.reduce_max(flat, axis=1) - tf.reduce_logsumexp(flat, axis=1))
    start = best // max_length
    return start, start + best % max_length, probability
