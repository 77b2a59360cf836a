"""Negatives: the words that a sampled softmax sets against the right one.

They are drawn log-uniformly: P(id) = log((id + 2) / (id + 1)) / log(vocabulary_size + 1), close to how
often words occur if the vocabulary is in the order of falling frequency, and drawn by one power, not
by a table. Words are drawn until there are enough distinct ones; how many tries that took gives how
often each word was to be expected in the sample, which the loss corrects for.

Source: `log_uniform_candidate_sampler(unique=True)` of TensorFlow, and Jean et al. 2015,
https://arxiv.org/abs/1412.2007
"""

import math
from typing import NamedTuple

import numpy as np

from keras_elmo.corpus.checks import check_integer


class Negatives(NamedTuple):
    """A sample of words.

    Attributes:
        ids: Distinct ids in the order they were drawn, int32 (num_samples,).
        num_tries: How many words were drawn until there were so many distinct ones; infinite if all
            words of the vocabulary are in the sample.
    """

    ids: np.ndarray
    num_tries: float


def sample_negatives(
    num_samples: int, vocabulary_size: int, generator: np.random.Generator
) -> Negatives:
    """Draws distinct words, log-uniformly.

    Args:
        num_samples: How many. From `vocabulary_size` on, every word is in the sample once.
        vocabulary_size: Number of words.
        generator: Where the random numbers come from, for example
            `random_generator("negatives", seed, step, direction)`: then no state has to be saved.

    Returns:
        The `Negatives`.

    Raises:
        ValueError: If a number is no positive integer.

    Example:
        >>> from keras_elmo.corpus import random_generator
        >>> sample_negatives(5, 1000, random_generator("negatives", 0, 7, 0))
        Negatives(ids=array([ 1,  4, 19, 10,  3], dtype=int32), num_tries=5.0)
        >>> sample_negatives(3, 3, random_generator("negatives", 0, 7, 0))
        Negatives(ids=array([0, 1, 2], dtype=int32), num_tries=inf)
    """
    check_integer("num_samples", num_samples)
    check_integer("vocabulary_size", vocabulary_size)
    if num_samples >= vocabulary_size:
        return Negatives(np.arange(vocabulary_size, dtype=np.int32), math.inf)
    ids = np.empty(0, np.int32)
    num_new = 2 * num_samples
    while True:
        ids = np.concatenate([ids, _draw(num_new, vocabulary_size, generator)])
        firsts = np.flatnonzero(_is_first(ids, vocabulary_size))
        if len(firsts) >= num_samples:
            firsts = firsts[:num_samples]
            return Negatives(ids[firsts], float(firsts[-1] + 1))
        num_new = len(ids)


def log_uniform_probabilities(vocabulary_size: int) -> np.ndarray:
    """Returns how likely each word is to be drawn in one try.

    Args:
        vocabulary_size: Number of words.

    Returns:
        float64 array of shape (vocabulary_size,), falling, of sum 1.

    Raises:
        ValueError: If `vocabulary_size` is no positive integer.

    Example:
        >>> log_uniform_probabilities(3)
        array([0.5       , 0.29248125, 0.20751875])
    """
    check_integer("vocabulary_size", vocabulary_size)
    return _probabilities(np.arange(vocabulary_size), vocabulary_size)


def expected_counts(ids: np.ndarray, num_tries: float, vocabulary_size: int) -> np.ndarray:
    """Returns how often words are expected in a sample: the chance that they are in it.

    Args:
        ids: Integer array of any shape.
        num_tries: Of `Negatives`.
        vocabulary_size: Number of words.

    Returns:
        float64 array of the shape of `ids`: 1 - (1 - P(id)) ** num_tries.

    Raises:
        ValueError: If `vocabulary_size` is no positive integer.

    Example:
        >>> expected_counts(np.array([0, 2]), num_tries=2, vocabulary_size=3)
        array([0.75      , 0.37197347])
    """
    check_integer("vocabulary_size", vocabulary_size)
    with np.errstate(divide="ignore"):  # one word in all: it is always drawn
        return -np.expm1(num_tries * np.log1p(-_probabilities(ids, vocabulary_size)))


def _probabilities(ids: np.ndarray, vocabulary_size: int) -> np.ndarray:
    return np.log1p(1 / (np.asarray(ids) + 1.0)) / np.log1p(vocabulary_size)


def _draw(size: int, vocabulary_size: int, generator: np.random.Generator) -> np.ndarray:
    """Log-uniform ids: the inverse of P(up to id) = log(id + 2) / log(vocabulary_size + 1)."""
    ids = np.expm1(generator.random(size) * np.log1p(vocabulary_size)).astype(np.int32)
    return np.minimum(ids, vocabulary_size - 1)  # a power that was rounded up


def _is_first(ids: np.ndarray, vocabulary_size: int) -> np.ndarray:
    """Whether no earlier id is the same, without sorting."""
    places = np.arange(len(ids))
    # Of several values for one place the last written stays: from the back, that of the first id.
    # Nothing else is read, so it need not be filled.
    first_place = np.empty(vocabulary_size, np.intp)
    first_place[ids[::-1]] = places[::-1]
    return first_place[ids] == places
