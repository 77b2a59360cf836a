"""Files of PyTorch weights, read without PyTorch: a state dict as arrays.

Both of PyTorch's formats: since 1.6 a zip of a pickle and one member for each run of numbers; before, pickles
one after the other and the numbers behind them.
"""

import errno
import os
import struct
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from keras_elmo.checkpoints.torch_pickle import Refused, Storage, Tensor, Unpickler

_ZIP = b"PK"
_PICKLED = b"\x80\x02"
_DAMAGED = "is no file of PyTorch weights, or is damaged or cut short ({})"
_PICKLE = "data.pkl"
_BYTE_ORDER = "byteorder"
# `zipfile` raises these on a broken zip, and on one that is encrypted or packed in an unknown way; the others come from
# numbers that are read from broken bytes: sizes that nothing has, ends too early, names of nothing.
_RAISED_ON_BROKEN_BYTES = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    EOFError,
    StopIteration,
    MemoryError,
    OverflowError,
    ValueError,
    TypeError,
    LookupError,
    struct.error,
)
# What begins a file of the older format, as pickles.
_MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
_PROTOCOL_VERSION = 1001


def read_state_dict(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Reads the state dict that `torch.save(module.state_dict(), path)` wrote, with any version of PyTorch.

    Nothing that the file names is called or imported: it can hold arrays of numbers by name, or it is refused.

    Args:
        path: The file.

    Returns:
        The arrays, read-only, by name.

    Raises:
        ValueError: If the file is something else, is damaged or cut short, names anything but arrays, or claims
            more numbers than it has; the sentence names the file and what is wrong in it.
        OSError: If it cannot be opened.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            magic = file.read(2)
            file.seek(0)
            if magic not in (_ZIP, _PICKLED):
                raise ValueError(f"it begins with {magic!r}" if magic else "it is empty")
            read = _read_zip if magic == _ZIP else _read_stream
            return read(file, path.stat().st_size)
    except Refused as error:
        problem = str(error)
    except OSError as error:
        # A zip that points to before its beginning; with any other number it comes from the disk.
        if error.errno != errno.EINVAL:
            raise
        problem = _DAMAGED.format(error)
    except _RAISED_ON_BROKEN_BYTES as error:
        problem = _DAMAGED.format(error)
    raise ValueError(
        f"{path} {problem}. It must be a state dict, as `torch.save(module.state_dict(), path)` writes it: get the "
        "file again from where it came."
    )


def _read_zip(file: IO[bytes], num_bytes: int) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(file) as archive:

        def opened(name: str) -> IO[bytes]:
            # PyTorch stores its members as they are: one that is packed could be of any size.
            if archive.getinfo(name).compress_type != zipfile.ZIP_STORED:
                raise Refused(f"has packed its member {name!r}, which PyTorch never does")
            return archive.open(name)

        def read(name: str) -> bytes:
            with opened(name) as member:
                return member.read()

        pickles = [
            name for name in archive.namelist() if name == _PICKLE or name.endswith(f"/{_PICKLE}")
        ]
        if len(pickles) != 1:
            raise Refused(f"is a zip with {len(pickles)} members {_PICKLE!r} instead of one")
        folder = pickles[0].removesuffix(_PICKLE)
        if folder + _BYTE_ORDER in archive.namelist():
            _check_byte_order(read(folder + _BYTE_ORDER) == b"little")
        with opened(pickles[0]) as member:
            unpickler = Unpickler(member)
            state_dict = unpickler.load()
        numbers = {}
        for storage in _storages(unpickler, num_bytes):
            data = read(f"{folder}data/{storage.key}")
            if len(data) != storage.size * storage.dtype.itemsize:
                raise Refused(
                    f"has {len(data)} bytes for the {storage.size} numbers {storage.key!r}"
                )
            numbers[storage.key] = np.frombuffer(data, storage.dtype)
    return _arrays(state_dict, numbers)


def _read_stream(file: IO[bytes], num_bytes: int) -> dict[str, np.ndarray]:
    if Unpickler(file).load() != _MAGIC_NUMBER or Unpickler(file).load() != _PROTOCOL_VERSION:
        raise Refused("is a pickle, but not one of PyTorch's files")
    system = Unpickler(file).load()
    _check_byte_order(not isinstance(system, dict) or system.get("little_endian") is not False)
    unpickler = Unpickler(file)
    state_dict = unpickler.load()
    _storages(unpickler, num_bytes)
    numbers = {}
    for key in Unpickler(file).load():
        storage = unpickler.storages[key]
        (size,) = struct.unpack("<q", file.read(8))
        if size != storage.size:
            raise Refused(f"has {size} numbers {key!r} where {storage.size} have to be")
        data = file.read(size * storage.dtype.itemsize)
        numbers[key] = np.frombuffer(data, storage.dtype, size)
    return _arrays(state_dict, numbers)


def _check_byte_order(is_little: bool) -> None:
    if not is_little:
        raise Refused("was written on a big-endian machine, the numbers of which are not read here")


def _storages(unpickler: Unpickler, num_bytes: int) -> list[Storage]:
    """The storages, which have to have room in the file, also together."""
    storages = list(unpickler.storages.values())
    claimed = sum(storage.size * storage.dtype.itemsize for storage in storages)
    if claimed > num_bytes:
        raise Refused(
            f"is cut short or damaged: it has {num_bytes} bytes, but claims {claimed} bytes of numbers"
        )
    return storages


def _arrays(state_dict: Any, numbers: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    if not isinstance(state_dict, dict):
        raise Refused(f"holds a {type(state_dict).__name__}, not arrays by name")
    arrays = {}
    for name, tensor in state_dict.items():
        if not isinstance(tensor, Tensor):
            raise Refused(f"holds a {type(tensor).__name__} by the name {name!r}, not an array")
        itemsize = tensor.storage.dtype.itemsize
        arrays[name] = np.lib.stride_tricks.as_strided(
            numbers[tensor.storage.key][tensor.offset :],
            tensor.shape,
            [step * itemsize for step in tensor.strides],
            writeable=False,
        )
    return arrays
