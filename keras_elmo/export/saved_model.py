"""export_saved_model: a versioned SavedModel that needs nothing but TensorFlow to be served."""

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_elmo import presets
from keras_elmo.elmo_embedding import ElmoEmbedding
from keras_elmo.export.keras_signatures import keras_signatures, tables_of
from keras_elmo.export.language_model_server import LanguageModelServer
from keras_elmo.export.warmup import CLASSIFY, example_request, write_warmup_requests
from keras_elmo.export.word_cache import WordCache, make_word_cache
from keras_elmo.models import BidirectionalLanguageModel, ElmoModel
from keras_elmo.models.reads_bytes import check_reads_bytes
from keras_elmo.vocabulary import Vocabulary

DESCRIPTION_FILE = "keras_elmo.json"
WEIGHTS_DTYPES = ("float32", "float16")
DEFAULT = "default"

# What TensorFlow Serving takes for a version: an int64.
_VERSION = re.compile("[0-9]{1,18}")
_PYTHON = ("EagerPyFunc", "PyFunc", "PyFuncStateless")
_WRITING = ("Assign", "ResourceApply", "ResourceScatter", "ResourceSparseApply")


def export_saved_model(
    model: Any,
    folder: str | os.PathLike,
    outputs: Sequence[str] | None = None,
    weights_dtype: str = "float32",
    metadata: Mapping[str, Any] | None = None,
    word_cache: int | None = None,
    vocabulary: Vocabulary | None = None,
) -> Path:
    """Writes a model as the next version of a SavedModel, which TensorFlow Serving loads as it is.

    Tokenizer, character ids and model are in the graph. It keeps no state (what a layer assigns to its Keras variables
    in a call is forgotten after it) and looks into no file, and neither keras_elmo nor Keras is needed to load it. A
    version gets its name when it is whole: a server that watches the folder never sees half a model.

    What is served: of a model with a method `serving_signatures()` (`ElmoEmbedding`, `LanguageModelServer`,
    `LabelledClassifier`, `LabelledTagger`) what that says; an `ElmoModel` as `ElmoEmbedding(model)`; a
    `BidirectionalLanguageModel` as `LanguageModelServer(model)`; of any other Keras model that knows its inputs,
    `default` with the model's own names of inputs and outputs. `default` is `serving_default`, too, which answers to
    requests that name no signature.
    All floats come out as float32.

    Args:
        model: The model.
        folder: The model's folder, such as `saved_models/elmo`: its name is the name of the served model, and its
            versions are folders 1, 2, .. in it. It is made if it is not there.
        outputs: Names of the outputs to serve; signatures that have none of them are left as they are. `None`
            (default): all, which for ELMo are large: 25 MB of JSON for 32 sentences of 20 words.
        weights_dtype: "float32" (default) or "float16", of the stored weights: half the size. They are computed with
            as before, which takes a conversion with every request.
        metadata: More that is known of the model, such as a preset's, for `assets.extra/keras_elmo.json`.
        word_cache: How many words' token vectors are stored, the first ones of the vocabulary, so that the character
            CNN reads only the other words; the answers stay the same. All words of a smaller vocabulary are taken, with
            a warning. Only for models that serve the vectors of words. `None` (default): none.
        vocabulary: The words for `word_cache`, most frequent first. `None` (default): those of a language model.

    Returns:
        The folder of the version.

    Raises:
        ValueError: if the model reads the ids of a vocabulary or a lexicon, if its inputs are unknown, an output is,
            `weights_dtype` is another or too narrow, the folder holds something else, the model writes TensorFlow
            variables or runs Python code, which no server can, or `word_cache` is no positive integer, has no
            vocabulary or goes with another model.

    Example:
    >>> import tempfile
    >>> path = export_saved_model(ElmoEmbedding(), Path(tempfile.mkdtemp()) / "elmo", outputs=["elmo"])
    >>> elmo = tf.saved_model.load(path)
    >>> path.name, elmo.signatures["default"](tf.constant(["The bank", "Hello"]))["elmo"].shape.as_list()
    ('1', [2, 2, 256])
    """
    folder = Path(os.path.abspath(folder))
    if weights_dtype not in WEIGHTS_DTYPES:
        raise ValueError(
            f"`weights_dtype` must be one of {', '.join(map(repr, WEIGHTS_DTYPES))}. "
            f"Received: weights_dtype={weights_dtype!r}"
        )
    _check_folder(folder)
    if isinstance(model, ElmoModel):
        check_reads_bytes("A SavedModel that takes strings", model)
        model = ElmoEmbedding(model)
    elif isinstance(model, BidirectionalLanguageModel):
        model = LanguageModelServer(model)
    if vocabulary is not None and word_cache is None:
        raise ValueError(
            f"`vocabulary` has the words for `word_cache`. Received: {vocabulary!r} without it. Give both or neither."
        )
    functions = _signatures(model)
    module = tf.Module()
    stored = _stored_weights(model.variables, weights_dtype)
    cache: WordCache | None = None
    if word_cache is not None:
        with _computing_with(stored):
            cache = make_word_cache(model, word_cache, vocabulary)
        functions = dict(model.serving_signatures(cache))
    signatures = {
        name: _concrete(function, outputs, stored) for name, function in functions.items()
    }
    _check_outputs(outputs, functions, signatures)
    for name, signature in signatures.items():
        _check_servable(name, signature)
    for mapping in (functions, signatures):
        mapping[tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY] = mapping[DEFAULT]
    requests = {
        name: example_request(function.input_signature) for name, function in functions.items()
    }
    for name, request in requests.items():
        # What fails here would fail when the server warms up.
        signatures[name](*map(tf.constant, request.values()))
    # Only what the graphs read is saved: no optimizer, nothing twice.
    module.weights = list(
        {id(v): v for s in signatures.values() for v in s.graph.variables}.values()
    )
    module.tables = [*tables_of(model), *([cache.table] if cache else [])]
    description = {
        "model": folder.name,
        "signatures": {
            name: {
                "inputs": list(requests[name]),
                "outputs": sorted(signatures[name].structured_outputs),
            }
            for name in sorted(signatures)
        },
        "weights_dtype": weights_dtype,
        **({"word_cache": cache.num_words} if cache else {}),
        **getattr(model, "serving_description", dict)(),
        **(metadata or {}),
        "versions": {
            name: version(name) for name in ("keras-elmo", "keras", "tensorflow", "tensorflow-text")
        },
    }

    folder.mkdir(parents=True, exist_ok=True)
    workplace = Path(tempfile.mkdtemp(prefix=".", suffix=".part", dir=folder))
    try:
        beside = workplace / "version"
        _save(module, beside, signatures)
        if CLASSIFY in signatures:
            _name_classify(beside)
        extra = beside / "assets.extra"
        extra.mkdir()
        presets.write_json(extra / DESCRIPTION_FILE, description)
        write_warmup_requests(extra, folder.name, requests)
        return _as_next_version(beside, folder)
    finally:
        shutil.rmtree(workplace, ignore_errors=True)


def _check_folder(folder: Path) -> None:
    if ":" in folder.name:
        raise ValueError(
            "`folder` must have a name without a colon: it is the model's name, and servers' addresses have colons of "
            f"their own. Received: folder={str(folder)!r}"
        )
    if _VERSION.fullmatch(folder.name):
        raise ValueError(
            f"`folder` must be the model's folder, in which its versions are made: its name is the model's. Give "
            f"{str(folder.parent)!r} for versions of {folder.parent.name!r}. Received: folder={str(folder)!r}"
        )
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"`folder` must be a folder. Received: {str(folder)!r}, which is a file")
    strange = [
        path.name for path in (folder.iterdir() if folder.is_dir() else ()) if not _is_version(path)
    ]
    if strange:
        raise ValueError(
            f"`folder` must be new or have nothing but versions of a SavedModel, 1, 2, .. Received: {str(folder)!r}, "
            f"which has {min(strange)!r}. Give another name."
        )


def _is_version(path: Path) -> bool:
    return path.name.startswith(".") or (
        _VERSION.fullmatch(path.name) is not None and path.is_dir()
    )


def _signatures(model: Any) -> dict[str, Any]:
    if hasattr(model, "serving_signatures"):
        return dict(model.serving_signatures())
    if isinstance(model, keras.Model):
        return keras_signatures(model)
    raise ValueError(
        "`model` must be a Keras model or have a method `serving_signatures()`. "
        f"Received: {type(model).__name__}. Put a layer into a `keras.Model` first."
    )


def _stored_weights(variables: Sequence[Any], dtype: str) -> list[tuple[Any, Any]] | None:
    """Pairs of a Keras variable and the narrower one that is stored in its place; `None`: all as they are."""
    if dtype == "float32":
        return None
    pairs = []
    for variable in variables:
        if keras.backend.standardize_dtype(variable.dtype) == "float32":
            with np.errstate(over="ignore"):
                value = variable.numpy().astype(dtype)
            if not np.isfinite(value).all():
                raise ValueError(
                    f"`weights_dtype` {dtype!r} is too narrow for the weights of {variable.path!r}: the largest is "
                    f"{np.abs(variable.numpy()).max():g}. Give 'float32'."
                )
            pairs.append((variable, tf.Variable(value, trainable=False, name=variable.path)))
    return pairs


def _computing_with(stored: list[tuple[Any, Any]] | None) -> keras.StatelessScope:
    """Inside, the model computes with what is stored; what it assigns is forgotten."""
    narrow = [(variable, tf.cast(value, variable.dtype)) for variable, value in stored or ()]
    return keras.StatelessScope(state_mapping=narrow)


def _concrete(function: Any, outputs: Sequence[str] | None, stored: Any) -> Any:
    """A signature's graph: the outputs that were asked for, floats as float32, from the stored weights."""

    @tf.function(input_signature=function.input_signature, autograph=False)
    def signature(*inputs):
        with _computing_with(stored):
            found = function.python_function(*inputs)
        wanted = set(found) & set(outputs or found) or set(found)
        return {
            name: tf.cast(found[name], tf.float32)
            if found[name].dtype.is_floating
            else tf.identity(found[name])
            for name in sorted(wanted)
        }

    return signature.get_concrete_function()


def _check_outputs(outputs: Sequence[str] | None, functions: Any, signatures: Any) -> None:
    if outputs is None:
        return
    names = sorted(
        {n for f in functions.values() for n in f.get_concrete_function().structured_outputs}
    )
    if isinstance(outputs, str) or not outputs or not set(outputs) <= set(names):
        raise ValueError(
            f"`outputs` must be names of outputs: {', '.join(names)}. Received: outputs={outputs!r}"
        )


def _check_servable(name: str, signature: Any) -> None:
    graph = signature.graph.as_graph_def()
    nodes = [
        *graph.node,
        *(node for function in graph.library.function for node in function.node_def),
    ]
    for node in nodes:
        if node.op in _PYTHON:
            raise ValueError(
                f"The signature `{name}` runs Python code ({node.name}), which no server has. Write it with "
                "`keras.ops` or TensorFlow's operations."
            )
        if node.op.startswith(_WRITING):
            raise ValueError(
                f"The signature `{name}` writes a variable ({node.name}): its answers would depend on earlier "
                "requests. Keep state out of `call` when `training` is False."
            )


def _save(module: tf.Module, folder: Path, signatures: dict[str, Any]) -> None:
    try:
        tf.saved_model.save(module, str(folder), signatures)
    except AssertionError as error:
        raise ValueError(
            "The model uses a lookup table that TensorFlow does not find to save it. Keep it, or the layer that has "
            f"it, as an attribute of a layer, not in a list ({str(error).splitlines()[0][:300]})."
        ) from error


def _name_classify(folder: Path) -> None:
    """Gives the signature the method that TensorFlow Serving's Classify asks for."""
    updater = tf.compat.v1.saved_model.signature_def_utils.MethodNameUpdater(str(folder))
    updater.replace_method_name(
        CLASSIFY, tf.compat.v1.saved_model.signature_constants.CLASSIFY_METHOD_NAME, tags="serve"
    )
    updater.save()


def _as_next_version(written: Path, folder: Path) -> Path:
    while True:
        taken = [int(path.name) for path in folder.iterdir() if _VERSION.fullmatch(path.name)]
        path = folder / str(max(taken, default=0) + 1)
        try:
            return written.rename(path)
        except OSError as error:
            # Another export took the number in the meantime.
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
