"""The layer outputs of a frozen biLM, computed once for all epochs."""

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence

import keras
import numpy as np

from keras_elmo.tasks.table import LAYER_OUTPUTS, Table
from keras_elmo.tasks.word_encoder import WordEncoder

# So many tokens, padding included, are computed at a time.
_BATCH_TOKENS = 2048


def with_cached_vectors(
    table: Table, prefixes: Sequence[str], encoder: WordEncoder, verbose: bool
) -> Table:
    """A table with the layer outputs of its texts beside them: the same numbers, without the biLM.

    A sentence that occurs several times is computed once. The vectors lie in an unnamed temporary file, which goes
    with the table.

    Args:
        table: The examples.
        prefixes: What the names of the columns of each text begin with.
        encoder: What computes the vectors.
        verbose: Whether a progress bar is shown.
    """
    texts = [text for prefix in prefixes for text in table.columns[f"{prefix}tokens"]]
    places: dict[tuple, int] = {}
    index = [places.setdefault(tuple(text), len(places)) for text in texts]
    rows = _rows([np.array(text, object) for text in places], encoder, verbose)
    columns = dict(table.columns)
    for number, prefix in enumerate(prefixes):
        start = number * len(table)
        columns[f"{prefix}{LAYER_OUTPUTS}"] = [
            rows[place] for place in index[start : start + len(table)]
        ]
    return Table(columns, table.sizes)


def _rows(texts: list[np.ndarray], encoder: WordEncoder, verbose: bool) -> list[np.ndarray]:
    lengths = np.array([len(text) for text in texts])
    elmo = encoder.elmo_model
    num_values = elmo.projection_dim * (1 + 2 * elmo.num_layers)
    ends = np.cumsum(lengths + 2)
    _check_room(int(ends[-1]) * num_values * np.dtype(np.float32).itemsize)
    # It has no name and goes away with the last of its views.
    with tempfile.TemporaryFile() as file:
        vectors = np.memmap(file, np.float32, shape=(int(ends[-1]), num_values))
    rows = [vectors[end - length - 2 : end] for end, length in zip(ends, lengths, strict=True)]
    bar = keras.utils.Progbar(len(texts), unit_name="sentence", verbose=int(verbose))
    if verbose:
        print("Vectors of the frozen biLM, once for all epochs:", file=sys.stdout)
    table = Table({"tokens": texts, "sequence_len": lengths.astype(np.int32)}, lengths)
    for batch in _batches(lengths):
        found = encoder.flat_layer_outputs(table.batch(batch)).numpy()
        for place, values in zip(batch, found, strict=True):
            rows[place][:-1] = values[: len(rows[place]) - 1]
            rows[place][-1] = values[-1]
        bar.add(len(batch))
    return rows


def _check_room(num_bytes: int) -> None:
    """Raises `OSError` if the vectors do not fit: to write beyond a full disk would end the process."""
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    if num_bytes > free:
        raise OSError(
            f"The vectors of the texts need {num_bytes / 1e9:.1f} GB, and {folder} has {free / 1e9:.1f} GB free. Name "
            "another folder in the environment variable TMPDIR, or give `cache_vectors=False`."
        )


def _batches(lengths: np.ndarray) -> Iterator[np.ndarray]:
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = max(1, _BATCH_TOKENS // (int(lengths[order[start]]) + 2))
        yield order[start : start + size]
        start += size
