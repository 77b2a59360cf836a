"""What README and documentation show is run, and what they name is there."""

import contextlib
import importlib
import os
import re
import signal
import subprocess
import sys
import tomllib
import types
from pathlib import Path

import keras
import pytest
import run_page
import yaml
from ports import free_ports

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [README, *sorted(DOCS.rglob("*.md"))]
# `py` is code of other packages, `text` is to be read, `source` is replaced by code when the pages are built.
LANGUAGES = {"python", "bash", "output", "py", "text", "source", "json"}
RUN = [
    page
    for page in PAGES
    if {"python", "bash"} & {block[0] for block in run_page.blocks(page.read_text("utf-8"))}
]
# The commands are called by name, and not from Python.
PUBLIC_MODULES = [
    "keras_elmo",
    *(
        f"keras_elmo.{file.parent.name}"
        for file in (ROOT / "keras_elmo").glob("*/__init__.py")
        if file.parent.name != "cli"
    ),
]


def name(page):
    return str(page.relative_to(ROOT))


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="the pages are for TensorFlow")
@pytest.mark.parametrize("page", RUN, ids=name)
def test_what_a_page_shows_runs(page, tmp_path):
    # Somebody else may listen at the ports of the page.
    text = page.read_text(encoding="utf-8")
    for port, free in zip(("8500", "8501"), free_ports(2), strict=True):
        text = re.sub(rf"\b{port}\b", str(free), text)
    copy = tmp_path / page.name
    copy.write_text(text, encoding="utf-8")
    here = tmp_path / "here"
    here.mkdir()
    scripts = os.path.dirname(sys.executable)
    process = subprocess.Popen(
        [sys.executable, run_page.__file__, copy, *(["--apart"] if page == README else [])],
        cwd=here,
        env={**os.environ, "PATH": scripts + os.pathsep + os.environ["PATH"]},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(timeout=900)
    finally:
        # What a page that broke off left running.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, printed


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_blocks_of_a_page_are_of_a_kind_that_is_known(page):
    languages = {language for language, _, _ in run_page.blocks(page.read_text("utf-8"))}
    assert languages <= LANGUAGES
    assert "py" not in languages or page.stem.startswith("moving"), "other packages' code"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_that_a_page_names_are_there(page):
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    for path in re.findall(r"[`(]((?:examples|benchmarks|tests|docs)/[\w./-]*)[`)]", text):
        assert (ROOT / path).exists(), path


def test_output_is_compared():
    assert run_page.same("a 1.000 \nb 2\n", "a 1.01\nb 2")
    assert not run_page.same("a 1.000\n", "a 1.2")
    assert not run_page.same("a 1\n", "a 2")
    assert not run_page.same("a 1.0 2.0\n", "a 1.0")


def test_a_page_that_is_wrong_is_told(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("A\n\n```python\nx = 1\n```\n\n```python\nprint(x)\n```\n\n```output\n2\n```\n")
    with pytest.raises(SystemExit, match="12 shows\n2\nbut what was printed is\n1"):
        run_page.run(page)
    page.write_text("```python\nx = 1\n```\n\n```python\nprint(x)\n```\n")
    with pytest.raises(NameError):
        run_page.run(page, apart=True)
    page.write_text("```bash\npip install nothing\n```\n\n```bash\nfalse\n```\n")
    with pytest.raises(SystemExit, match="6\nfalse"):
        run_page.run(page)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="some names are for TensorFlow alone"
)
def test_reference_has_every_public_name():
    text = "\n".join(page.read_text("utf-8") for page in (DOCS / "api").glob("*.md"))
    described = re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE)
    assert len(described) == len(set(described))
    # Where a module and what is in it have the same name, the pages would describe the module.
    assert not set(described) & set(sys.modules)
    objects = []
    for path in described:
        module, _, attribute = path.rpartition(".")
        objects.append(getattr(importlib.import_module(module), attribute))
    missing = [
        f"{module}.{attribute}"
        for module in PUBLIC_MODULES
        for attribute, value in vars(importlib.import_module(module)).items()
        if not attribute.startswith("_")
        and not isinstance(value, types.ModuleType)
        and not any(value is known for known in objects)
    ]
    assert not missing


def test_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]


def test_ci_runs_the_test_command_of_the_readme():
    command = next(line for line in README.read_text("utf-8").splitlines() if "pytest -n" in line)
    assert command in (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
