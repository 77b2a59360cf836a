"""What `import keras_elmo` gives, and what it does not load."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import keras
import pytest

import keras_elmo

PACKAGE = Path(keras_elmo.__file__).parent
# No file of these imports a backend, but the one that exists for it.
WITHOUT_BACKEND = (
    "layers",
    "models",
    "presets",
    "corpus",
    "vocabulary",
    "checkpoints",
    "character_ids",
)
BACKENDS = {"tensorflow", "tensorflow_text", "jax", "torch"}


def relative(path):
    return str(path.relative_to(PACKAGE))


def imports(path):
    """Every import statement of a file, those inside of functions too, as pairs of statement and module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node, node.module or ""


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("__init__.py")), ids=relative)
def test_public_names_are_written_twice(path):
    for node, module in imports(path):
        if isinstance(node, ast.ImportFrom) and module.startswith("keras_elmo"):
            for alias in node.names:
                is_private = (alias.asname or "").startswith("_")
                assert is_private or alias.asname == alias.name, (
                    f"{relative(path)}, line {node.lineno}: {alias.name}"
                )


def test_nothing_else_is_public():
    written = {
        alias.asname
        for node, module in imports(PACKAGE / "__init__.py")
        if module.startswith("keras_elmo")
        for alias in node.names
    }
    public = {
        name
        for name, value in vars(keras_elmo).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    if keras.backend.backend() == "tensorflow":
        assert public == written
    assert public | set(keras_elmo._TENSORFLOW_ONLY) == written


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="module 'keras_elmo' has no attribute 'ElmoModle'"):
        _ = keras_elmo.ElmoModle


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=relative)
def test_the_core_names_no_backend(path):
    modules = {module.partition(".")[0] for _, module in imports(path)}
    core = path.relative_to(PACKAGE).with_suffix("").parts[0] in WITHOUT_BACKEND
    if core and path.name not in ("tensorflow_checkpoint.py", "tfhub.py"):
        assert not modules & BACKENDS
    assert not any(module.startswith("keras.src") for _, module in imports(path))


def test_import_loads_nothing_heavy():
    code = """
import json, sys
import h5py, keras, numpy, tensorflow, tensorflow_text
before = set(sys.modules)
import keras_elmo
print(json.dumps(sorted(set(sys.modules) - before)))
"""
    process = subprocess.run(
        [sys.executable, "-W", "error:::keras_elmo", "-c", code],
        env={**os.environ, "KERAS_BACKEND": "tensorflow"},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    loaded = json.loads(process.stdout)
    assert "keras_elmo.models.elmo_model" in loaded
    packages = {name.partition(".")[0] for name in loaded} - sys.stdlib_module_names
    # Parts of NumPy that it loads when they are used, and what Cython calls itself.
    packages = {name for name in packages if not name.startswith("_cython")}
    assert packages <= {"keras_elmo", "numpy"}
    assert not {"keras_elmo.cli", "keras_elmo.plot"} & set(loaded)
