"""The datasets of bilm-tf's weights: their names, and the variables of the model that they hold."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keras_elmo.character_ids import MAX_WORD_LENGTH, NUM_CHARACTERS
from keras_elmo.models import ElmoModel

# The file has a row for each id but 0, the row of which is zero and not stored.
CHARACTER_ROWS = NUM_CHARACTERS - 1


@dataclass
class Dataset:
    """One dataset of the file: the variables in it, and how their arrays go in and out."""

    variables: list
    to_file: Callable[..., np.ndarray] = lambda array: array
    from_file: Callable[[np.ndarray], list[np.ndarray]] = lambda array: [array]

    def array(self) -> np.ndarray:
        arrays = [np.asarray(variable.numpy(), np.float32) for variable in self.variables]
        return np.ascontiguousarray(self.to_file(*arrays))

    def assign(self, array: np.ndarray) -> None:
        for variable, part in zip(self.variables, self.from_file(array), strict=True):
            variable.assign(part)


def table_of(model: ElmoModel) -> dict[str, Dataset]:
    """Every dataset of the file that a model is stored in, by name."""
    table = {}
    encoder = model.encoder
    if model.vocabulary_size is None:
        table["char_embed"] = _without_row_0(encoder.character_embedding.embeddings)
        for i, convolution in enumerate(encoder.convolutions):
            # The file's convolutions are two-dimensional, of height 1.
            table[f"CNN/W_cnn_{i}"] = Dataset(
                [convolution.kernel], lambda kernel: kernel[None], lambda array: [array[0]]
            )
            table[f"CNN/b_cnn_{i}"] = Dataset([convolution.bias])
        for i, highway in enumerate(encoder.highways):
            table[f"CNN_high_{i}/W_carry"] = Dataset([highway.carry_kernel])
            table[f"CNN_high_{i}/b_carry"] = Dataset([highway.carry_bias])
            table[f"CNN_high_{i}/W_transform"] = Dataset([highway.transform_kernel])
            table[f"CNN_high_{i}/b_transform"] = Dataset([highway.transform_bias])
        if encoder.projection is not None:
            table["CNN_proj/W_proj"] = Dataset([encoder.projection.kernel])
            table["CNN_proj/b_proj"] = Dataset([encoder.projection.bias])
    else:
        table["embedding"] = _without_row_0(encoder.embeddings)
    for direction, stack in enumerate((model.bilm.forward_stack, model.bilm.backward_stack)):
        for i, cell in enumerate(stack.cells):
            prefix = f"RNN_{direction}/RNN/MultiRNNCell/Cell{i}/LSTMCell"
            table[f"{prefix}/W_0"] = _stacked(cell.kernel, cell.recurrent_kernel)
            table[f"{prefix}/B"] = Dataset([cell.bias])
            if cell.projection_kernel is not None:
                table[f"{prefix}/W_P_0"] = Dataset([cell.projection_kernel])
    return table


def _without_row_0(embeddings) -> Dataset:
    """A table of vectors: the row of id 0, which means that there is no token, is not stored."""
    return Dataset(
        [embeddings],
        lambda rows: rows[1:],
        lambda rows: [np.concatenate([np.zeros_like(rows[:1]), rows])],
    )


def _stacked(kernel, recurrent_kernel) -> Dataset:
    """The LSTM's two kernels, one above the other."""
    input_dim = kernel.shape[0]
    return Dataset(
        [kernel, recurrent_kernel],
        lambda *kernels: np.concatenate(kernels),
        lambda rows: [rows[:input_dim], rows[input_dim:]],
    )


def architecture_of(arrays: dict[str, np.ndarray], path: Path) -> dict[str, Any]:
    """The arguments of `ElmoModel` that the weights tell, of a model that reads characters.

    Args:
        arrays: The datasets by name.
        path: Where they are from, for errors.

    Raises:
        ValueError: if a dataset that tells something is missing or misshaped.
    """
    cell = "RNN_0/RNN/MultiRNNCell/Cell{}/LSTMCell"
    try:
        convolutions = [
            arrays[f"CNN/W_cnn_{k}"] for k in range(count_numbered(arrays, "CNN/W_cnn_{}"))
        ]
        kernel, bias = (arrays[f"{cell.format(0)}/{name}"] for name in ("W_0", "B"))
        return {
            "units": len(bias) // 4,
            "projection_dim": kernel.shape[0] // 2,
            "num_layers": count_numbered(arrays, cell + "/W_0"),
            "embedding_dim": arrays["char_embed"].shape[1],
            "filters": [[array.shape[1], array.shape[3]] for array in convolutions],
            "num_highway_layers": count_numbered(arrays, "CNN_high_{}/W_carry"),
            "max_word_length": MAX_WORD_LENGTH,
        }
    except (KeyError, IndexError) as error:
        raise ValueError(
            f"{path} holds no ELMo that reads characters: {error} is missing or misshaped."
        ) from error


def count_numbered(arrays: dict[str, np.ndarray], name: str) -> int:
    """How many datasets of a name with a number there are."""
    count = 0
    while name.format(count) in arrays:
        count += 1
    return count


def assign(
    model: ElmoModel, arrays: dict[str, np.ndarray], weights_file: Path, options_file: Path
) -> None:
    """Gives a model its weights.

    Args:
        model: The model.
        arrays: The datasets by name.
        weights_file: Where they are from, for errors.
        options_file: What the model was made of, for errors.

    Raises:
        ValueError: if a dataset is missing, misshaped or has no place in the model.
    """
    table = table_of(model)
    for name, dataset in table.items():
        expected = dataset.array().shape
        if name not in arrays:
            raise ValueError(
                f"{weights_file}: the dataset `{name}` of shape {expected}, which {options_file.name} calls for, "
                "is missing."
            )
        if arrays[name].shape != expected:
            raise ValueError(
                f"{weights_file}: the dataset `{name}` must have the shape {expected}, which {options_file.name} "
                f"calls for. Received: {arrays[name].shape}"
            )
    unused = sorted(set(arrays) - set(table))
    if unused:
        raise ValueError(
            f"{weights_file}: the dataset `{unused[0]}` of shape {arrays[unused[0]].shape} has no place in the "
            f"model that {options_file.name} describes ({len(unused)} such in all). Does {options_file.name} belong "
            "to these weights?"
        )
    for name, dataset in table.items():
        dataset.assign(arrays[name])
