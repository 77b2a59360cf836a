"""Bar: how far long work is, on standard error."""

import time

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class Bar:
    """A bar on standard error with sentences, words per second and the time that is left.

    It is drawn on a terminal alone, and gone when the work is done.

    Args:
        hidden: Whether to draw nothing at all. Defaults to `False`.
    """

    def __init__(self, hidden: bool = False) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            # What is printed to standard output belongs there, not above the bar.
            redirect_stdout=False,
            disable=hidden or not console.is_terminal,
        )
        self._task = self._progress.add_task("", total=None, speed="")
        self._started = 0.0

    def __enter__(self) -> "Bar":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Removes the bar."""
        self._progress.stop()

    def show(
        self, stage: str, num_sentences: int, total_sentences: int | None, num_words: int
    ) -> None:
        """Draws the bar.

        Args:
            stage: What is being done, for people.
            num_sentences: Sentences done.
            total_sentences: All sentences, or `None` if nobody knows.
            num_words: Words done since the last call in which it was 0.
        """
        speed = ""
        if not num_words:
            self._started = time.monotonic()
        else:
            rate = num_words / max(time.monotonic() - self._started, 1e-9)
            speed = f"{rate:,.0f} words/s"
        self._progress.update(
            self._task,
            description=stage,
            completed=num_sentences,
            total=total_sentences,
            speed=speed,
        )
