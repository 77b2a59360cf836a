"""StopSignals: a signal to end becomes a wish that is granted at the next good moment."""

import signal
import threading
from types import FrameType
from typing import Any


class StopSignals:
    """Within its `with` block, SIGTERM and SIGINT are noted instead of ending the process.

    A second SIGINT ends the block by `KeyboardInterrupt`: for who will not wait. Outside of the main thread, where
    Python allows no handlers, nothing is changed.

    Attributes:
        received: The number of the first signal that came, or `None`.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.received is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = self.received or number
