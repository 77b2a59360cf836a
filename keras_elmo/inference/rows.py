"""Rows: the vectors of a long sentence, in memory or in a temporary file."""

import tempfile

import numpy as np

# The vectors of one sentence that take more room than this are kept in a temporary file.
MAX_BYTES_IN_MEMORY = 2**26


class Rows:
    """The vectors of a long sentence, added from its beginning: in memory, or if too large in a temporary file."""

    def __init__(self, shape: tuple[int, ...]):
        self._shape = shape
        self._count = 0
        self._array: np.ndarray | None = None
        if np.prod(shape, dtype=np.int64) * 4 <= MAX_BYTES_IN_MEMORY:
            self._array = np.empty(shape, np.float32)
        else:
            # The file has no name: it is gone when nobody uses the array any more.
            self._file = tempfile.TemporaryFile()

    def add(self, rows: np.ndarray) -> None:
        """Adds vectors (.., num_tokens, dim) behind those that are there."""
        num_tokens, dim = self._shape[-2:]
        start, self._count = self._count, self._count + rows.shape[-2]
        if self._array is not None:
            self._array[..., start : self._count, :] = rows
            return
        # Written as a file, not through the map: a full disk is an error then and not the end of the process.
        for k, layer in enumerate(rows.reshape(-1, *rows.shape[-2:])):
            self._file.seek((k * num_tokens + start) * dim * 4)
            self._file.write(np.ascontiguousarray(layer).data)

    def array(self) -> np.ndarray:
        """All of them."""
        if self._array is not None:
            return self._array
        with self._file as file:
            file.flush()
            return np.memmap(file, np.float32, "r+", shape=self._shape)
