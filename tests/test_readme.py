"""What the README shows is run: its Python, and its commands but for those that install the package."""

import os
import re
import subprocess
import sys
from pathlib import Path

import keras
import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="README is for TensorFlow")
def test_readme(tmp_path):
    blocks = re.findall(
        r"```(python|bash)\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL
    )
    scripts = os.path.dirname(sys.executable)
    environment = {**os.environ, "PATH": scripts + os.pathsep + os.environ["PATH"]}
    run = {"python": [sys.executable, "-c"], "bash": ["bash", "-euo", "pipefail", "-c"]}
    done = 0
    for language, block in blocks:
        if "venv" in block:
            continue
        result = subprocess.run(
            [*run[language], block],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        assert result.returncode == 0, f"{block}\n{result.stdout}\n{result.stderr}"
        done += 1
    assert done >= 4


def test_ci_runs_the_test_command_of_the_readme():
    command = next(
        line for line in README.read_text(encoding="utf-8").splitlines() if "pytest -n" in line
    )
    script = README.parent / ".ci" / "run"
    assert command in script.read_text(encoding="utf-8").splitlines()
