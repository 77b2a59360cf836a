"""The checkpoints that bilm-tf's training leaves behind: TensorFlow's own format, softmax included."""

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from keras_elmo import presets

# What the name of a checkpoint's first file ends in.
INDEX = ".index"

# bilm-tf's variables behind their scope, and the datasets that its `dump_weights.py` makes of them. Of a model of one
# layer TensorFlow leaves out the number of the cell.
_NAMES = [
    (r"char_embed", r"char_embed"),
    (r"embedding", r"embedding"),
    (r"CNN/([Wb]_cnn_\d+)", r"CNN/\1"),
    (r"CNN_high_(\d+)/([Wb]_(?:carry|transform))", r"CNN_high_\1/\2"),
    (r"CNN_proj/([Wb]_proj)", r"CNN_proj/\1"),
    (
        r"RNN_([01])/.*?lstm_cell/(?:kernel|weights)",
        r"RNN_\1/RNN/MultiRNNCell/Cell{cell}/LSTMCell/W_0",
    ),
    (r"RNN_([01])/.*?lstm_cell/(?:bias|biases)", r"RNN_\1/RNN/MultiRNNCell/Cell{cell}/LSTMCell/B"),
    (
        r"RNN_([01])/.*?lstm_cell/projection/(?:kernel|weights)",
        r"RNN_\1/RNN/MultiRNNCell/Cell{cell}/LSTMCell/W_P_0",
    ),
    (r"softmax/W", presets.SOFTMAX_KERNEL),
    (r"softmax/b", presets.SOFTMAX_BIAS),
]
# What TensorFlow's reader raises, beside its own errors.
_DAMAGED = (RuntimeError, IndexError, ValueError)
_CELL = re.compile(r"/(?:cell_|Cell)(\d+)/")


def find(folder: Path) -> Path | None:
    """The index file of a folder's checkpoint: the one that `checkpoint` names as the last, else that of most steps."""
    indices = sorted(folder.glob(f"*{INDEX}"), key=lambda path: (_step(path), path.name))
    indices = [index for index in indices if _data_files(index)]
    if not indices:
        return None
    state = folder / "checkpoint"
    if state.is_file():
        text = state.read_text("utf-8", errors="replace")
        named = re.search(r'^model_checkpoint_path:\s*"(.*)"', text, re.M)
        # The path is that of the machine of the training, which may have been one of Windows, with \\ for \.
        last = folder / (re.split(r"[\\/]+", named[1])[-1] + INDEX) if named else None
        if last in indices:
            return last
    return indices[-1]


def read_arrays(
    index: Path, more: Mapping[str, str] = MappingProxyType({})
) -> dict[str, np.ndarray]:
    """The weights of a checkpoint under the names of bilm-tf's HDF5 files; what only training needs is left out.

    The variables may be in any scope: `lm/`, `model/lm/`, none.

    Args:
        index: The file `PREFIX.index`; `PREFIX.data-..` must be beside it.
        more: Patterns of the names of more variables, and what their arrays are called.

    Raises:
        ValueError: If the files are damaged or cut off, or hold no biLM.
    """
    import tensorflow as tf

    # TensorFlow takes brackets and stars in a path for a pattern: it gets links without any.
    with tempfile.TemporaryDirectory() as links:
        for file in [index, *_data_files(index)]:
            ending = file.name.removeprefix(index.name.removesuffix(INDEX))
            (Path(links) / f"model{ending}").symlink_to(file.resolve())
        try:
            reader = tf.train.load_checkpoint(os.path.join(links, "model"))
            names = list(reader.get_variable_to_shape_map())
        except (*_DAMAGED, tf.errors.OpError) as error:
            raise _damaged(index, error) from error
        scope = _scope(names, index)
        datasets = {
            name: _dataset(name.removeprefix(scope)) for name in names if name.startswith(scope)
        }
        for pattern, dataset in more.items():
            datasets |= {name: dataset for name in names if re.fullmatch(pattern, name)}
        try:
            return {
                dataset: reader.get_tensor(name).astype(np.float32)
                for name, dataset in datasets.items()
                if dataset is not None
            }
        except (*_DAMAGED, tf.errors.OpError) as error:
            raise _damaged(index, error) from error


def _damaged(index: Path, error: Exception) -> ValueError:
    return ValueError(
        f"{index} and its data files are no TensorFlow checkpoint, or damaged or cut off "
        f"({str(error).splitlines()[0]:.200})."
    )


def _data_files(index: Path) -> list[Path]:
    prefix = index.name.removesuffix(INDEX)
    pattern = re.compile(re.escape(prefix) + r"\.data-\d{5}-of-\d{5}")
    return [path for path in index.parent.iterdir() if pattern.fullmatch(path.name)]


def _scope(names: Any, index: Path) -> str:
    """What the names of the biLM's variables begin with."""
    for last in ("char_embed", "embedding"):
        scopes = [
            name.removesuffix(last) for name in names if re.fullmatch(f"(?:.*/)?{last}", name)
        ]
        if scopes:
            return min(scopes, key=len)
    some = ", ".join(sorted(names)[:5])
    raise ValueError(
        f"{index} holds no biLM of bilm-tf: it has neither `char_embed` nor `embedding`. Found: {some}"
    )


def _dataset(name: str) -> str | None:
    """The dataset's name for that of a variable; `None` for slots of optimizers and the like."""
    for pattern, dataset in _NAMES:
        if found := re.fullmatch(pattern, name):
            cell = _CELL.search(name)
            return found.expand(dataset).format(cell=cell[1] if cell else 0)
    return None


def _step(index: Path) -> int:
    numbers = re.findall(r"\d+", index.name)
    return int(numbers[-1]) if numbers else -1
