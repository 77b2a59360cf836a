"""Runs what a page of the documentation shows, in order, as its reader would: `python tests/run_page.py PAGE`.

Blocks of `python` go on with the names of those before them, and blocks of `bash` run in between; with `--apart` each
block of Python begins anew. A block of `output` is what the block above it prints: numbers with a point may differ a
little, for they do so from processor to processor. Blocks that install something are left out, and so is every other
language.
"""

import contextlib
import io
import linecache
import math
import re
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"^( *)```(\w+)[^\n]*\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
DECIMAL = re.compile(r"-?\d+\.\d+")


def blocks(text):
    """Language, first line's number and content of each block; those in tabs and lists without their margin."""
    for found in BLOCK.finditer(text):
        margin, language, block = found.groups()
        block = re.sub(f"^{margin}", "", block, flags=re.MULTILINE)
        yield language, text.count("\n", 0, found.start()) + 2, block


def is_installation(block):
    return "pip install" in block


def same(printed, shown):
    """Whether two texts differ at most in white space at the ends of lines and a little in decimals."""
    printed, shown = (
        [line.rstrip() for line in text.strip().splitlines()] for text in (printed, shown)
    )
    pairs = zip(
        DECIMAL.findall("\n".join(printed)), DECIMAL.findall("\n".join(shown)), strict=False
    )
    return [DECIMAL.sub("#", line) for line in printed] == [
        DECIMAL.sub("#", line) for line in shown
    ] and all(math.isclose(float(a), float(b), rel_tol=0.05, abs_tol=0.05) for a, b in pairs)


def run(path, apart=False):
    """Runs a page in the current folder; the first thing that is wrong is raised."""
    text = path.read_text(encoding="utf-8")
    names, printed = {"__name__": "__main__"}, ""
    for language, line, block in blocks(text):
        if language == "output":
            if not same(printed, block):
                raise SystemExit(f"{path}:{line} shows\n{block}but what was printed is\n{printed}")
        elif language == "bash" and not is_installation(block):
            result = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", block],
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
            )
            printed = result.stdout
            print(printed, end="")
            if result.returncode:
                raise SystemExit(f"{path}:{line}\n{block}{result.stderr}")
        elif language == "python":
            if apart:
                names = {"__name__": "__main__"}
            # The lines above are left empty, so that an error says which line of the page it is.
            source = "\n" * (line - 1) + block
            linecache.cache[str(path)] = len(text), None, text.splitlines(keepends=True), str(path)
            with contextlib.redirect_stdout(io.StringIO()) as stdout:
                exec(compile(source, str(path), "exec"), names)
            printed = stdout.getvalue()
            print(printed, end="", flush=True)


if __name__ == "__main__":
    run(Path(sys.argv[1]), apart="--apart" in sys.argv[2:])
