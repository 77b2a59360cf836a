"""Deadlines, and trying again within them."""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from keras_elmo.serving.serving_error import ServingError

Answer = TypeVar("Answer")

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0


class Deadline:
    """The time by which a call has to be done, with all its requests and pauses.

    Args:
        timeout: Seconds from now, or `None` for no end.
    """

    def __init__(self, timeout: float | None):
        self._timeout = timeout
        self._end = None if timeout is None else time.monotonic() + timeout

    def remaining(self) -> float | None:
        """Seconds that are left, below zero when it is over; `None` for no end."""
        return None if self._end is None else self._end - time.monotonic()

    def allows(self, seconds: float) -> bool:
        """Whether more than so many seconds are left."""
        remaining = self.remaining()
        return remaining is None or remaining > seconds

    def error(self) -> ServingError:
        """What to raise when it is over."""
        return ServingError(
            "DEADLINE_EXCEEDED",
            f"there was no complete answer within {self._timeout:g} s. Give a longer `timeout`, or less at once.",
        )


def with_retries(
    attempt: Callable[[float | None], Answer], deadline: Deadline, retries: int
) -> Answer:
    """Calls until it succeeds, fails for good, or there is no time left.

    The pause between two attempts doubles, and up to half of it is left to chance: clients that were refused together
    must not come back together.

    Args:
        attempt: Takes the seconds that it may use and returns the answer. It must be safe to call again.
        deadline: When to give up.
        retries: How many more times to try at most.

    Raises:
        ServingError: the last one; "DEADLINE_EXCEEDED" if it was time that ran out while an answer was waited for.
    """
    longest_pause = FIRST_PAUSE
    while True:
        if not deadline.allows(0):
            raise deadline.error()
        try:
            return attempt(deadline.remaining())
        except ServingError as error:
            if error.code == "DEADLINE_EXCEEDED" and not deadline.allows(0):
                raise deadline.error() from error
            pause = longest_pause * random.uniform(0.5, 1)
            if not error.is_transient or retries == 0 or not deadline.allows(pause):
                raise
        time.sleep(pause)
        retries -= 1
        longest_pause = min(LONGEST_PAUSE, 2 * longest_pause)
