import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_elmo.corpus import (
    expected_counts,
    log_uniform_probabilities,
    random_generator,
    sample_negatives,
)


def draw(num_samples, vocabulary_size, seed=0):
    return sample_negatives(num_samples, vocabulary_size, random_generator("test", seed))


@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 100))
def test_ids_are_distinct_and_in_range_and_the_same_again(num_samples, vocabulary_size, seed):
    ids, num_tries = draw(num_samples, vocabulary_size, seed)
    assert ids.dtype == np.int32
    assert ids.shape == (min(num_samples, vocabulary_size),)
    assert len(set(ids.tolist())) == len(ids)
    assert 0 <= ids.min() <= ids.max() < vocabulary_size
    assert num_tries >= len(ids)
    again = draw(num_samples, vocabulary_size, seed)
    assert again.ids.tolist() == ids.tolist()
    assert again.num_tries == num_tries


@pytest.mark.parametrize("num_samples", [4, 5])
def test_as_many_negatives_as_words_are_all_words_once(num_samples):
    ids, num_tries = draw(num_samples, 4)
    assert ids.tolist() == [0, 1, 2, 3]
    assert num_tries == math.inf
    assert expected_counts(ids, num_tries, 4).tolist() == [1, 1, 1, 1]
    assert expected_counts(np.array([0]), math.inf, 1).tolist() == [1]


def test_tries_are_counted_one_by_one():
    """The same uniform numbers, turned into words by the definition, one after the other."""
    num_samples, vocabulary_size = 40, 60
    ids, num_tries = draw(num_samples, vocabulary_size, seed=3)
    bounds = np.cumsum(log_uniform_probabilities(vocabulary_size))
    generator, seen, tries = random_generator("test", 3), [], 0
    while len(seen) < num_samples:
        word = int(np.searchsorted(bounds, generator.random(), side="right"))
        tries += 1
        if word not in seen:
            seen.append(word)
    assert ids.tolist() == seen
    assert num_tries == tries
    assert num_tries > 2 * num_samples  # a second helping was needed


def test_probabilities():
    probabilities = log_uniform_probabilities(1000)
    np.testing.assert_allclose(probabilities.sum(), 1)
    ids = np.arange(1000)
    np.testing.assert_allclose(probabilities, np.log((ids + 2) / (ids + 1)) / np.log(1001))
    np.testing.assert_allclose(
        expected_counts(ids[:6].reshape(2, 3), 7.0, 1000),
        (1 - (1 - probabilities[:6]) ** 7).reshape(2, 3),
    )


def test_statistics_are_those_of_tensorflows_sampler():
    tf = pytest.importorskip("tensorflow")
    num_samples, vocabulary_size, num_runs = 20, 100, 4000
    counts, expected, tries = np.zeros((2, vocabulary_size)), np.zeros((2, vocabulary_size)), []
    words = np.arange(vocabulary_size)
    for run in range(num_runs):
        ids, num_tries = draw(num_samples, vocabulary_size, run)
        counts[0, ids] += 1
        expected[0] += expected_counts(words, num_tries, vocabulary_size)
        tries.append(num_tries)

    @tf.function
    def theirs():
        return tf.random.log_uniform_candidate_sampler(
            words[None],
            vocabulary_size,
            num_samples,
            unique=True,
            range_max=vocabulary_size,
            seed=5,
        )

    for _ in range(num_runs):
        ids, target_counts, sampled_counts = theirs()
        counts[1, ids] += 1
        expected[1] += target_counts[0]
    # The same number of tries gives the same expected counts: the last run, whose tries follow from one of them.
    probabilities = log_uniform_probabilities(vocabulary_size)
    num_tries = np.log1p(-float(target_counts[0, 0])) / np.log1p(-probabilities[0])
    np.testing.assert_allclose(
        sampled_counts, expected_counts(ids.numpy(), round(num_tries), vocabulary_size), rtol=1e-4
    )
    ours_rate, their_rate = counts / num_runs
    deviation = np.sqrt((ours_rate * (1 - ours_rate) + their_rate * (1 - their_rate)) / num_runs)
    assert np.all(np.abs(ours_rate - their_rate) < 5 * deviation + 1e-3)
    # And their mean is how often words are found, here and there.
    np.testing.assert_allclose(*expected / num_runs, rtol=0.01)
    np.testing.assert_allclose(expected[0] / num_runs, ours_rate, atol=0.03)


@pytest.mark.parametrize("name", ["num_samples", "vocabulary_size"])
@pytest.mark.parametrize("value", [0, 1.5, True])
def test_bad_numbers(name, value):
    arguments = {"num_samples": 5, "vocabulary_size": 10, name: value}
    with pytest.raises(ValueError, match=f"`{name}` must be an integer of at least 1"):
        sample_negatives(**arguments, generator=np.random.default_rng(0))
    with pytest.raises(ValueError, match="`vocabulary_size` must be an integer of at least 1"):
        log_uniform_probabilities(0)
    with pytest.raises(ValueError, match="`vocabulary_size` must be an integer of at least 1"):
        expected_counts(np.array([0]), 1.0, 0)
