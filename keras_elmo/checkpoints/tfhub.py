"""The modules of TensorFlow Hub: `google/elmo/1` to `3`, and what DeepPavlov exports in the same form.

A module has no options beside it. The shapes of its variables tell most of them; activation, clips and skip connections
are read off its graph.
"""

from pathlib import Path
from typing import Any

import numpy as np

from keras_elmo.checkpoints import tensorflow_checkpoint
from keras_elmo.checkpoints.bilm_tf_weights import CHARACTER_ROWS, architecture_of, assign
from keras_elmo.checkpoints.checkpoint import Checkpoint
from keras_elmo.models import ElmoModel

GRAPH_FILE = "saved_model.pb"
_INDEX = Path("variables") / "variables.index"
_WEIGHTS, _GAMMA = "mix/weights", "mix/gamma"
# Google's names, and DeepPavlov's.
_MIX = {
    r"(?:.*/)?aggregation/weights|(?:.*/)?[^/]*_ELMo_W": _WEIGHTS,
    r"(?:.*/)?aggregation/scaling|(?:.*/)?[^/]*_ELMo_gamma": _GAMMA,
}


def recognizes(folder: Path) -> bool:
    """Whether a folder is a module, or another SavedModel."""
    return (folder / GRAPH_FILE).is_file() and (folder / _INDEX).is_file()


def read(folder: Path, **overrides: Any) -> Checkpoint:
    """Reads a module: the biLM and, as the model's own mix, the weights and the scale of its `elmo` output.

    The modules cut text at spaces, so that is the tokenizer that goes with the model.

    Args:
        folder: The folder with `saved_model.pb` and `variables/`.
        **overrides: Arguments of `ElmoModel` that change no weights, such as `trainable_bilm=True`.

    Returns:
        The model; modules have neither softmax nor vocabulary.

    Raises:
        ValueError: if the files are damaged or hold no ELMo, or if an override changes the weights.
    """
    index = folder / _INDEX
    try:
        arrays = tensorflow_checkpoint.read_arrays(index, _MIX)
    except ValueError as error:
        raise ValueError(
            f"{error} A SavedModel is read here if it is a TF-Hub module of ELMo; what `keras-elmo export` wrote is "
            "for serving: load the model that it was made of."
        ) from error
    mix = [arrays.pop(name, None) for name in (_WEIGHTS, _GAMMA)]
    # The graph has a row for id 0; the files of weights have none.
    if len(arrays["char_embed"]) == CHARACTER_ROWS + 1:
        arrays["char_embed"] = arrays["char_embed"][1:]
    arguments = {**architecture_of(arrays, index), **_of_graph(folder / GRAPH_FILE), **overrides}
    try:
        model = ElmoModel(**arguments)
    except ValueError as error:
        raise ValueError(f"No ElmoModel can be made of {folder}: {error}") from error
    assign(model, arrays, index, folder / GRAPH_FILE)
    for variable, values in zip(
        (model.scalar_mix.scalar_weights, model.scalar_mix.gamma), mix, strict=True
    ):
        if values is not None:
            if values.size != np.prod(variable.shape, dtype=int):
                raise ValueError(
                    f"{index}: the mix must have a weight for each of {model.num_layers + 1} layers and one scale. "
                    f"Received: shapes {[None if part is None else part.shape for part in mix]}"
                )
            variable.assign(values.reshape(variable.shape))
    return Checkpoint(model, metadata={"tokenizer": "whitespace"}, format="TF-Hub module")


def _of_graph(path: Path) -> dict[str, Any]:
    """The arguments that only the graph tells."""
    import tensorflow as tf
    from google.protobuf.message import DecodeError
    from tensorflow.core.protobuf import saved_model_pb2

    try:
        graph = saved_model_pb2.SavedModel.FromString(path.read_bytes()).meta_graphs[0].graph_def
    except (DecodeError, IndexError) as error:
        raise ValueError(f"{path} is no SavedModel, or damaged or cut off.") from error
    nodes = {node.name: node for node in graph.node}
    arguments = {
        "activation": "relu",
        "use_skip_connections": False,
        "cell_clip": None,
        "projection_clip": None,
    }
    for name, node in nodes.items():
        if "/CNN/" in f"/{name}" and node.op == "Tanh":
            arguments["activation"] = "tanh"
        if "/RNN_0/" not in f"/{name}":
            continue
        inputs = " ".join(node.input)
        if node.op in ("Add", "AddV2") and "TensorArrayRead" in inputs and "lstm_cell" in inputs:
            arguments["use_skip_connections"] = True
        if node.op == "Minimum" and "lstm_cell/clip_by_value" in name:
            # What is clipped is a sum, the memory, or a product, the projection.
            which = "projection_clip" if "MatMul" in node.input[0] else "cell_clip"
            limit = nodes[node.input[1]].attr["value"].tensor
            arguments[which] = round(float(tf.make_ndarray(limit)), 6)
    return arguments
