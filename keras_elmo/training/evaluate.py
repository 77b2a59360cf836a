"""evaluate: the perplexity of a biLM, exact, whatever the batches."""

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_elmo.corpus import sentence_batches
from keras_elmo.models import BidirectionalLanguageModel

DIRECTIONS = ("forward", "backward")


class Evaluation(NamedTuple):
    """How well a language model predicts text, under the full softmax.

    Attributes:
        perplexity: exp of the mean of both directions' losses per prediction.
        forward_perplexity: exp of the mean loss of the forward direction, which predicts every word and `</S>`.
        backward_perplexity: exp of the mean loss of the backward direction, which predicts every word and `<S>`.
        num_tokens: Predictions per direction.
        num_sentences: Sentences.
    """

    perplexity: float
    forward_perplexity: float
    backward_perplexity: float
    num_tokens: int
    num_sentences: int


def evaluate(
    model: BidirectionalLanguageModel,
    sentences: Iterable[Sequence[str]],
    batch_tokens: int = 1024,
    on_batch: Callable[[int, int], None] = lambda num_sentences, num_tokens: None,
) -> Evaluation:
    """Measures the perplexity of a language model.

    The softmax is the full one. Each sentence is alone: it begins with `<S>` and no state. Every prediction has the
    same weight, so that the batches make no difference. A sentence longer than `batch_tokens` is read in pieces with
    the state carried on: what is computed at a time grows neither with the text nor with its sentences.

    Args:
        model: The language model.
        sentences: The sentences, each a list of str tokens; read as they are needed. One without tokens is one
            prediction: that there is nothing.
        batch_tokens: Predictions per batch and direction at most, padding included. Defaults to 1024.
        on_batch: Called after each batch with the number of its sentences and of its predictions per direction, for
            progress.

    Returns:
        The `Evaluation`.

    Raises:
        ValueError: if there is no sentence, or something in `sentences` is none; if `model` is no
            `BidirectionalLanguageModel`, or its weights are not numbers.

    Example:
    >>> import keras_elmo
    >>> model = keras_elmo.load_language_model("elmo_tiny_en")
    >>> result = evaluate(model, [["The", "bank", "is", "near", "the", "river", "."]])
    >>> result.num_tokens, 20 < result.perplexity < 200
    (8, True)
    """
    if not isinstance(model, BidirectionalLanguageModel):
        raise ValueError(
            "`model` must be a BidirectionalLanguageModel; `keras_elmo.load_language_model` gives one. "
            f"Received: {type(model).__name__}"
        )
    losses = _losses_function(model)
    totals = dict.fromkeys(DIRECTIONS, 0.0)
    num_tokens = num_sentences = 0
    width = model.elmo_model.max_word_length
    for batch in sentence_batches(sentences, model.vocabulary, width, batch_tokens):
        state = _zero_state(model, len(batch.indices))
        for piece in _pieces(model.inputs_of(batch), batch_tokens):
            found, state = losses(piece, state)
            for direction in DIRECTIONS:
                totals[direction] += float(found[direction].numpy().sum(dtype=np.float64))
        num_predictions = int(batch.num_steps.sum())
        num_tokens += num_predictions
        num_sentences += len(batch.indices)
        on_batch(len(batch.indices), num_predictions)
    if not num_sentences:
        raise ValueError("`sentences` must hold at least one sentence. Received: none")
    forward, backward = (totals[direction] / num_tokens for direction in DIRECTIONS)
    if not np.isfinite(forward + backward):
        raise ValueError(
            "The model must give every word a probability, but some are not a number: its weights are damaged."
        )
    with np.errstate(over="ignore"):
        perplexity, forward, backward = np.exp(
            [(forward + backward) / 2, forward, backward]
        ).tolist()
    return Evaluation(perplexity, forward, backward, num_tokens, num_sentences)


# Compiled once per model and kept as long as the model is: validation calls again and again.
_COMPILED: weakref.WeakKeyDictionary[BidirectionalLanguageModel, Callable] = (
    weakref.WeakKeyDictionary()
)


def _losses_function(model: BidirectionalLanguageModel) -> Callable:
    """The model's call with state, compiled for all shapes at once."""
    if model not in _COMPILED:
        elmo, proxy = model.elmo_model, weakref.proxy(model)
        word = () if elmo.vocabulary_size is not None else (elmo.max_word_length,)
        rows = tf.TensorSpec((None, None), tf.int32)
        inputs = {"word_ids": tf.TensorSpec((None, *word), tf.int32)}
        for direction in DIRECTIONS:
            inputs |= {f"{direction}_words": rows, f"{direction}_targets": rows}
        state = tf.nest.map_structure(
            lambda zeros: tf.TensorSpec((None, zeros.shape[1]), zeros.dtype), _zero_state(model, 1)
        )

        @tf.function(input_signature=[inputs, state])
        def losses(inputs, state):
            return proxy(inputs, initial_state=state, return_state=True, training=False)

        _COMPILED[model] = losses
    return _COMPILED[model]


def _zero_state(model: BidirectionalLanguageModel, num_rows: int) -> tuple:
    bilm = model.elmo_model.bilm
    return tuple(
        [
            [tf.zeros((num_rows, size), model.elmo_model.compute_dtype) for size in cell.state_size]
            for cell in stack.cells
        ]
        for stack in (bilm.forward_stack, bilm.backward_stack)
    )


def _pieces(inputs: Mapping[str, np.ndarray], num_steps: int) -> Iterator[dict[str, Any]]:
    """A batch as it is or, if its sentence is longer than so many steps, in pieces with the words of each."""
    length = inputs["forward_words"].shape[1]
    if length <= num_steps:
        yield dict(inputs)
        return
    for start in range(0, length, num_steps):
        piece = {
            name: value[:, start : start + num_steps]
            for name, value in inputs.items()
            if name != "word_ids"
        }
        words = [piece[f"{direction}_words"] for direction in DIRECTIONS]
        # Row 0 stays the row of "no word".
        used = np.unique(np.append(0, words))
        for direction, rows in zip(DIRECTIONS, words, strict=True):
            piece[f"{direction}_words"] = np.searchsorted(used, rows).astype(np.int32)
        yield piece | {"word_ids": inputs["word_ids"][used]}
