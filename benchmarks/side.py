"""Side: a package that is measured, in a process and, unless it is ours, an environment of its own."""

import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path


class Side:
    """A worker process that answers a line for each line that it is asked.

    Args:
        name: What it is called.
        python: The Python that runs it.
        worker: Its script. It prints one line when it is ready.
        arguments: Those of the script behind the name.
        log: File for what it prints to standard error.
    """

    def __init__(
        self, name: str, python: str | Path, worker: Path, arguments: Sequence[object], log: Path
    ):
        self.name = name
        self._log = log.open("w+", encoding="utf-8")
        self._process = subprocess.Popen(
            list(map(str, (python, worker, name, *arguments))),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ},
        )
        self._answer()  # "ready"

    def ask(self, question: str) -> list[float]:
        """The numbers that it answers."""
        print(question, file=self._process.stdin, flush=True)
        return [float(number) for number in self._answer().split()]

    def _answer(self) -> str:
        if line := self._process.stdout.readline():
            return line
        self._log.seek(0)
        sys.exit(f"{self.name} failed:\n{self._log.read()[-3000:]}")

    def end(self) -> None:
        """Ends the process."""
        self._process.stdin.close()
        self._process.wait()
        self._log.close()


def environment(name: str, requirements: Sequence[str], folder: Path) -> Path:
    """The Python of an environment that has a peer, made unless it is there already."""
    home = folder / name
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = home / "installed"
    if not done.exists():
        print(f"Installing {name} ..", file=sys.stderr)
        venv.create(home, clear=True, with_pip=True)
        install = [python, "-m", "pip", "install", "--quiet", *requirements]
        if subprocess.run(install).returncode:
            sys.exit(f"pip could not install {name} (see above).")
        done.touch()
    return python
