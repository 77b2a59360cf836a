"""The archives that AllenNLP leaves behind (`model.tar.gz`) of a model that reads ELMo, fine-tuned or not.

The archive holds the parameters of the whole model. Those of its ELMo are found by their names; the rest, which is
AllenNLP's own, is left out.
"""

from pathlib import Path
from typing import Any

import numpy as np

from keras_elmo import presets
from keras_elmo.checkpoints import torch_file
from keras_elmo.checkpoints.bilm_tf_weights import architecture_of, assign, count_numbered
from keras_elmo.checkpoints.checkpoint import Checkpoint
from keras_elmo.models import ElmoModel

WEIGHTS_FILE = "weights.th"
CONFIG_FILE = "config.json"
_FIRST = "_elmo_lstm._token_embedder._char_embedding_weights"
_ENCODER = "_elmo_lstm._token_embedder."
_LAYERS = "_elmo_lstm._elmo_lstm."
_MIX = "scalar_mix_0."


def recognizes(folder: Path) -> bool:
    """Whether a folder is an unpacked archive of AllenNLP."""
    return (folder / WEIGHTS_FILE).is_file() and (folder / CONFIG_FILE).is_file()


def read(folder: Path, **overrides: Any) -> Checkpoint:
    """Reads the ELMo of a model of AllenNLP: the biLM and, as the model's own mix, the first of its mixes.

    What the parameters do not tell is that of AllenNLP's published weights: relu, clips at 3, 50 characters a word.

    Args:
        folder: The folder with `config.json` and `weights.th`.
        **overrides: Arguments of `ElmoModel` that change no weights, such as `activation="tanh"` or
            `trainable_bilm=True`.

    Returns:
        The model; the softmax and the vocabulary of the language model are no part of such an archive.

    Raises:
        ValueError: if a file is damaged, or the model has no ELMo that reads characters.
    """
    presets.read_json(folder / CONFIG_FILE)
    path = folder / WEIGHTS_FILE
    parameters = _of_elmo(torch_file.read_state_dict(path), path)
    num_layers = count_numbered(parameters, _LAYERS + "forward_layer_{}.state_linearity.bias")
    try:
        arrays = _arrays(parameters)
        mix_weights = _mix(parameters, num_layers)
    except KeyError as error:
        raise ValueError(f"{path}: the ELMo in it has no parameter {error}.") from error
    try:
        model = ElmoModel(**{**architecture_of(arrays, path), **overrides})
    except ValueError as error:
        raise ValueError(f"No ElmoModel can be made of {path}: {error}") from error
    assign(model, arrays, path, path)
    if mix_weights is not None:
        mix: Any = model.scalar_mix
        for variable, values in zip((mix.scalar_weights, mix.gamma), mix_weights, strict=True):
            variable.assign(np.reshape(values, variable.shape))
    return Checkpoint(model, format="AllenNLP archive")


def _of_elmo(state: dict[str, np.ndarray], path: Path) -> dict[str, np.ndarray]:
    """The parameters of the first ELMo in a model, without what their names begin with."""
    prefixes = [name.removesuffix(_FIRST) for name in state if name.endswith(_FIRST)]
    if not prefixes:
        some = ", ".join(sorted(state)[:5])
        raise ValueError(
            f"{path} holds no ELMo that reads characters: no parameter's name ends in `{_FIRST}`. Found: {some}"
        )
    prefix = min(prefixes, key=len)
    return {
        name.removeprefix(prefix): array.astype(np.float32)
        for name, array in state.items()
        if name.startswith(prefix)
    }


def _arrays(parameters: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """AllenNLP's parameters as the datasets of bilm-tf: other axes, other order of the gates, other signs."""
    # The row of id 0, which means that there is no character.
    arrays = {"char_embed": parameters[_FIRST][1:]}
    for k in range(count_numbered(parameters, _ENCODER + "char_conv_{}.weight")):
        convolution = f"{_ENCODER}char_conv_{k}"
        arrays[f"CNN/W_cnn_{k}"] = parameters[f"{convolution}.weight"].transpose(2, 1, 0)[None]
        arrays[f"CNN/b_cnn_{k}"] = parameters[f"{convolution}.bias"]
    for k in range(count_numbered(parameters, _ENCODER + "_highways._layers.{}.weight")):
        for kind in ("weight", "bias"):
            # AllenNLP's gate is how much of the input stays, where bilm-tf's is how much of it goes.
            transform, carry = np.split(parameters[f"{_ENCODER}_highways._layers.{k}.{kind}"], 2)
            letter = kind[0] if kind == "bias" else "W"
            arrays[f"CNN_high_{k}/{letter}_transform"] = transform.T
            arrays[f"CNN_high_{k}/{letter}_carry"] = -carry.T
    arrays["CNN_proj/W_proj"] = parameters[f"{_ENCODER}_projection.weight"].T
    arrays["CNN_proj/b_proj"] = parameters[f"{_ENCODER}_projection.bias"]
    for direction, name in enumerate(("forward", "backward")):
        for k in range(
            count_numbered(parameters, _LAYERS + name + "_layer_{}.state_linearity.bias")
        ):
            layer = f"{_LAYERS}{name}_layer_{k}"
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{k}/LSTMCell"
            kernels = [
                parameters[f"{layer}.{part}_linearity.weight"] for part in ("input", "state")
            ]
            arrays[f"{cell}/W_0"] = np.concatenate([_gates(kernel).T for kernel in kernels])
            bias = _gates(parameters[f"{layer}.state_linearity.bias"])
            units = len(bias) // 4
            # The forget bias of 1, which bilm-tf's cell adds by itself.
            bias[2 * units : 3 * units] -= 1
            arrays[f"{cell}/B"] = bias
            arrays[f"{cell}/W_P_0"] = parameters[f"{layer}.state_projection.weight"].T
    return arrays


def _mix(parameters: dict[str, np.ndarray], num_layers: int) -> tuple[Any, Any] | None:
    """The weights of the first mix before its softmax, and its scale; a model may have none."""
    if f"{_MIX}gamma" not in parameters:
        return None
    weights = [parameters[f"{_MIX}scalar_parameters.{k}"] for k in range(num_layers + 1)]
    return weights, parameters[f"{_MIX}gamma"]


def _gates(rows: np.ndarray) -> np.ndarray:
    """From input, forget, memory, output, in which order PyTorch has the gates, to bilm-tf's."""
    gate, forget, memory, output = np.split(rows, 4)
    return np.concatenate([gate, memory, forget, output])
