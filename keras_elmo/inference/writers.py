"""Writers: the file formats of vectors.

- `.hdf5`, `.h5`: as bilm-tf and `allennlp elmo` write it. A float32 dataset for each line, named by its number from 0;
  and `sentence_to_index`, a JSON object from sentence to number (the last of equal ones), for up to 100,000 lines.
  HDF5 lists names as strings: "10" comes before "2".
- `.npz`: `vectors`, the tokens of all lines one behind the other; `lengths`, the number of tokens of each line (int64).
- `.jsonl`: for each line an object with `tokens` and `vectors`.

A blank line is there, with no token.
"""

import json
import mmap
import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import h5py
import numpy as np

MAX_SENTENCES_IN_INDEX = 100_000

# Large arrays are copied in blocks of about this size.
BYTES_PER_BLOCK = 2**22


class Embedded(NamedTuple):
    """A sentence and its vectors.

    Attributes:
        text: The sentence as it was given; tokens parted by spaces if they were given.
        tokens: Its tokens.
        vectors: float32 array (num_tokens, dim) or (num_layers + 1, num_tokens, dim).
    """

    text: str
    tokens: list[str]
    vectors: np.ndarray


Sentences = Callable[[], Iterator[Embedded]]


def write_hdf5(path: Path, sentences: Sentences, count: int) -> None:
    """Writes the layout of bilm-tf and `allennlp elmo`."""
    with open(path, "w+b", buffering=0) as raw:
        guarded = _Guarded(raw)
        try:
            _write_hdf5(guarded, sentences, count)
        except Exception as error:
            raise (guarded.error or error) from error
        if guarded.error is not None:
            raise guarded.error


def _write_hdf5(guarded: "_Guarded", sentences: Sentences, count: int) -> None:
    index: dict[str, str] = {}
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_obj_track_times(False)
    with h5py.File(guarded, "w") as file:
        for number, sentence in enumerate(sentences()):
            _write_dataset(file, str(number), sentence.vectors, properties)
            if count <= MAX_SENTENCES_IN_INDEX:
                index[sentence.text] = str(number)
            if guarded.error is not None:
                return
        if count <= MAX_SENTENCES_IN_INDEX:
            text = h5py.string_dtype("utf-8")
            file.create_dataset("sentence_to_index", (1,), text, data=json.dumps(index))


def write_npz(path: Path, sentences: Sentences, count: int) -> None:
    """Writes all vectors as one array and the lengths of the sentences as another, readable by `numpy.load`."""
    lengths = np.zeros(count, np.int64)
    shape: tuple[int, ...] = ()
    for number, sentence in enumerate(sentences()):
        lengths[number] = len(sentence.tokens)
        shape = sentence.vectors.shape
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        with archive.open("lengths.npy", "w") as file:
            np.lib.format.write_array(file, lengths)
        with archive.open("vectors.npy", "w", force_zip64=True) as file:
            if shape:
                shape = (*shape[:-2], int(lengths.sum()), shape[-1])
            else:
                shape = (0, 0)
            _write_header(file, shape)
            # An array (layers, tokens, dim) lies layer by layer: the sentences are gone through once for each.
            for layer in range(shape[0]) if len(shape) == 3 else [...]:
                for sentence in sentences():
                    for rows in row_blocks(sentence.vectors[layer]):
                        file.write(rows.data)


def write_jsonl(path: Path, sentences: Sentences, count: int) -> None:
    """Writes a JSON object a line; numbers have the nine digits that a float32 needs."""
    with open(path, "w", encoding="utf-8") as file:
        for sentence in sentences():
            tokens = json.dumps(sentence.tokens, ensure_ascii=False)
            file.write(f'{{"tokens": {tokens}, "vectors": ')
            _write_numbers(file, sentence.vectors)
            file.write("}\n")


WRITERS = {".hdf5": write_hdf5, ".h5": write_hdf5, ".npz": write_npz, ".jsonl": write_jsonl}


def writer_for(path: Path) -> Callable[[Path, Sentences, int], None]:
    """The writer for a file's ending.

    Raises:
        ValueError: if there is none.
    """
    if path.suffix not in WRITERS:
        raise ValueError(f"The output {path} must end in one of {', '.join(WRITERS)}.")
    return WRITERS[path.suffix]


def row_blocks(array: np.ndarray) -> Iterator[np.ndarray]:
    """The rows of all layers in order, in contiguous blocks of bounded size.

    What was read of an array that lies in a file does not stay in memory.
    """
    step = max(1, BYTES_PER_BLOCK // max(1, array[..., :1, :].nbytes))
    for layer in array if array.ndim == 3 else [array]:
        for start in range(0, len(layer), step):
            yield layer[start : start + step]
            forget_pages(array)


def forget_pages(array: np.ndarray) -> None:
    """Lets go of the memory into which an array of a file was read; any other is left alone."""
    base: Any = array
    while isinstance(base, np.memmap) and base.mode != "c":
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


class _Guarded:
    """A file for h5py that never fails: the first error is kept, and nothing is written any more.

    The HDF5 library takes an error in writing badly: a full disk crashes the whole process when the file is closed.
    """

    def __init__(self, file: Any):
        self._file = file
        self._size = 0
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        self._size = max(self._size, self._file.tell() + size)
        while self.error is None and len(rest):
            try:
                rest = rest[self._file.write(rest) :]
            except OSError as error:
                self.error = error
        return size

    def truncate(self, size: int) -> None:
        self._size = size
        try:
            self._file.truncate(size)
        except OSError as error:
            self.error = self.error or error

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        # The library looks for the end that the file ought to have.
        return self._file.seek(offset + self._size if whence == os.SEEK_END else offset)

    def tell(self) -> int:
        return self._file.tell()

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size)

    def readinto(self, buffer: Any) -> int:
        return self._file.readinto(buffer)

    def flush(self) -> None:
        pass


def _write_dataset(file: h5py.File, name: str, array: np.ndarray, properties: Any) -> None:
    """As `file.create_dataset(name, data=array)`, with less work for each of many small ones."""
    space = h5py.h5s.create_simple(array.shape)
    kind = h5py.h5t.IEEE_F32LE
    dataset = h5py.h5d.create(file.id, name.encode(), kind, space, properties)
    if array.nbytes <= BYTES_PER_BLOCK:
        if array.size:
            dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, array, h5py.h5t.NATIVE_FLOAT)
        return
    whole = h5py.Dataset(dataset)
    start = 0
    for rows in row_blocks(array):
        place = divmod(start, array.shape[-2])
        end = place[1] + len(rows)
        whole[(place[0],) * (array.ndim - 2) + (slice(place[1], end),)] = rows
        start += len(rows)


def _write_header(file: IO[bytes], shape: tuple[int, ...]) -> None:
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_2_0(file, header)


def _write_numbers(file: IO[str], array: np.ndarray) -> None:
    """Nested lists, written row by row: a long sentence is never one string."""
    if array.ndim == 3:
        file.write("[")
        for i, layer in enumerate(array):
            file.write(", " if i else "")
            _write_numbers(file, layer)
        file.write("]")
        return
    file.write("[")
    is_first = True
    for rows in row_blocks(array):
        for row in rows.tolist():
            file.write("[" if is_first else ", [")
            file.write(", ".join([f"{value:.9g}" for value in row]))
            file.write("]")
            is_first = False
    file.write("]")
