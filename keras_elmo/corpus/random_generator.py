"""Random numbers that are a function of what they are for, and of nothing that happened before."""

import zlib
from numbers import Integral

import numpy as np


def random_generator(purpose: str, seed: int, *key: int) -> np.random.Generator:
    """Returns a generator for one purpose in one place of a run, the same whenever it is asked for.

    A run that draws from one long stream has to save where it stands in it. Here step 1000 has its
    own stream, and a run that resumes there has only to ask for it.

    Args:
        purpose: What the numbers are for, such as "negatives". Other purposes are independent.
        seed: Seed of the run, at least 0.
        *key: Where in the run: step, epoch, direction, ...; each at least 0.

    Returns:
        A NumPy `Generator` on a Philox stream of its own.

    Raises:
        ValueError: If `seed` or a number in `key` is no integer of at least 0.

    Example:
        >>> random_generator("negatives", 1, 1000, 0).integers(100, size=4)
        array([39, 13, 44, 84])
        >>> random_generator("negatives", 1, 1000, 0).integers(100, size=4)
        array([39, 13, 44, 84])
    """
    for number in (seed, *key):
        if not isinstance(number, Integral) or isinstance(number, bool) or number < 0:
            raise ValueError(
                "`seed` and the numbers that follow it must be integers of at least 0. "
                f"Received: seed={seed!r}, then {key!r}"
            )
    place = (zlib.crc32(purpose.encode()), *(int(number) for number in key))
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(int(seed), spawn_key=place)))
