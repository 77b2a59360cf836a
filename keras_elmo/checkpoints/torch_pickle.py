"""The pickle in a file of PyTorch weights, read without PyTorch and without calling anything that the file names.

A pickle is a program. Python's own unpickler runs it; this one knows only the instructions that a state dict is
written with, and only the names that stand for a table, a tensor or the numbers of one. All else ends it. Nothing
is looked up by a name from the file, and no memory is taken for a size that the file only claims.
"""

import reprlib
import struct
from collections.abc import Callable, Sequence
from typing import IO, Any, NamedTuple

import numpy as np

# A state dict's pickle has some hundred bytes for each tensor: that of ELMo has ten thousand.
MAX_PICKLE_BYTES = 2**20

# Their product is reckoned before anything else is known of them.
_MAX_AXES = 32

_MARK = object()

# The instructions, by their bytes: what they push, or how the number behind them is written.
_CONSTANTS: dict[bytes, Any] = {b"N": None, b"\x88": True, b"\x89": False, b")": ()}
_NUMBERS = {b"K": "<B", b"M": "<H", b"J": "<i", b"G": ">d"}
_STRINGS = {b"X": "<I", b"\x8c": "<B", b"T": "<I", b"U": "<B"}
_TUPLES = {b"\x85": 1, b"\x86": 2, b"\x87": 3}
_PUTS = {b"q": "<B", b"r": "<I"}
_GETS = {b"h": "<B", b"j": "<I"}
_SKIPPED = {b"\x80": "<B", b"\x95": "<Q"}  # the protocol's version, and the length of a part
_STOP = b"."

_quoting = reprlib.Repr()
_quoting.maxstring = _quoting.maxother = 120
_quote = _quoting.repr


class Refused(Exception):
    """What is wrong, as the end of a sentence that begins with the file."""


class Storage(NamedTuple):
    """A run of numbers in the file, which tensors are views of."""

    key: str
    dtype: np.dtype
    size: int  # in numbers


class Tensor(NamedTuple):
    """A view of a storage; offset and strides count numbers, not bytes."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class Unpickler:
    """Reads one pickle of tables, tuples, numbers, strings and tensors.

    Args:
        file: The file, at the first byte of the pickle.

    Attributes:
        storages: The storages of the tensors, by key.
    """

    def __init__(self, file: IO[bytes]):
        self._file = _Metered(file)
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self.storages: dict[str, Storage] = {}

    def load(self) -> Any:
        """The object, and the file behind its last byte.

        Raises:
            Refused: If the pickle does anything else.
            ValueError, IndexError, KeyError, TypeError, StopIteration: If it is damaged or cut short.
        """
        while (instruction := self._file.read(1)) != _STOP:
            self._run(instruction)
        return self._stack.pop()

    def _run(self, instruction: bytes) -> None:
        stack, file = self._stack, self._file
        if instruction in _CONSTANTS:
            stack.append(_CONSTANTS[instruction])
        elif instruction in _NUMBERS:
            stack.append(file.number(_NUMBERS[instruction]))
        elif instruction == b"\x8a":
            stack.append(int.from_bytes(file.read(file.number("<B")), "little", signed=True))
        elif instruction in _STRINGS:
            stack.append(file.read(file.number(_STRINGS[instruction])).decode("utf-8"))
        elif instruction in _TUPLES:
            count = _TUPLES[instruction]
            stack[-count:] = [tuple(stack[-count:])]
        elif instruction in _SKIPPED:
            file.number(_SKIPPED[instruction])
        elif instruction == b"(":
            stack.append(_MARK)
        elif instruction == b"t":
            stack.append(tuple(self._above_mark()))
        elif instruction == b"]":
            stack.append([])
        elif instruction == b"}":
            stack.append({})
        elif instruction in _PUTS:
            self._memo[file.number(_PUTS[instruction])] = stack[-1]
        elif instruction == b"\x94":
            self._memo[len(self._memo)] = stack[-1]
        elif instruction in _GETS:
            stack.append(self._memo[file.number(_GETS[instruction])])
        elif instruction in (b"a", b"e"):
            items = [stack.pop()] if instruction == b"a" else self._above_mark()
            _check_kind(stack[-1], list)
            stack[-1].extend(items)
        elif instruction in (b"s", b"u"):
            items = [stack.pop(-2), stack.pop()] if instruction == b"s" else self._above_mark()
            _check_kind(stack[-1], dict)
            stack[-1].update(_table(zip(items[::2], items[1::2], strict=True)))
        elif instruction in (b"c", b"i"):
            stack.append(_meaning(file.line(), file.line()))
            if instruction == b"i":
                raise Refused("makes an object of an old class, which is no array")
        elif instruction == b"\x93":
            stack.append(_meaning(stack.pop(-2), stack.pop()))
        elif instruction == b"R":
            arguments, function = stack.pop(), stack.pop()
            if not isinstance(function, _Function):
                raise Refused(f"calls {_quote(function)}, which makes no array")
            stack.append(function.call(*arguments))
        elif instruction == b"b":
            # What PyTorch hangs on a state dict besides: version numbers of its layers.
            stack.pop()
            _check_kind(stack[-1], dict)
        elif instruction == b"Q":
            stack.append(self._storage(stack.pop()))
        else:
            raise Refused(f"has the pickle instruction {instruction!r}, which builds no array")

    def _above_mark(self) -> list[Any]:
        stack = self._stack
        # Compared by identity: an array's or a table's `==` is none of this.
        place = next(i for i in reversed(range(len(stack))) if stack[i] is _MARK)
        items = stack[place + 1 :]
        del stack[place:]
        return items

    def _storage(self, description: Any) -> Storage:
        kind, dtype, key, _, size, *view = description
        right = isinstance(dtype, np.dtype) and isinstance(key, str) and _is_size(size)
        if kind != "storage" or not right or any(part is not None for part in view):
            raise Refused(f"describes numbers as {_quote(description)}, which is not known")
        storage = self.storages.setdefault(key, Storage(key, dtype, size))
        if storage != Storage(key, dtype, size):
            raise Refused(f"describes the numbers {key!r} in two ways")
        return storage


class _Metered:
    """The bytes of a pickle: no more than some, and no memory for those that are not there."""

    def __init__(self, file: IO[bytes]):
        self._file = file
        self._left = MAX_PICKLE_BYTES

    def read(self, size: int) -> bytes:
        data = self._taken(self._file.read(min(size, self._left + 1)))
        if len(data) < size:
            raise ValueError("it ends within its pickle")
        return data

    def number(self, layout: str) -> Any:
        return struct.unpack(layout, self.read(struct.calcsize(layout)))[0]

    def line(self) -> str:
        data = self._taken(self._file.readline(self._left + 1))
        if not data.endswith(b"\n"):
            raise ValueError("it ends within its pickle")
        return data[:-1].decode("utf-8")

    def _taken(self, data: bytes) -> bytes:
        self._left -= len(data)
        if self._left < 0:
            raise Refused(
                f"has a pickle of more than {MAX_PICKLE_BYTES} bytes, which no state dict has"
            )
        return data


class _Function(NamedTuple):
    """What a name in the file stands for: a function of this module, never one that the file could choose."""

    call: Callable[..., Any]


def _meaning(module: Any, attribute: Any) -> Any:
    name = f"{module}.{attribute}"
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    if name in _DTYPES:
        return np.dtype(_DTYPES[name])
    raise Refused(f"names {_quote(name)}, which builds no array, and is not loaded")


def _table(pairs: Any = ()) -> dict[str, Any]:
    table = {}
    for key, value in pairs:
        # Of nested tuples even the hash could take for ever.
        _check_kind(key, str)
        table[key] = value
    return table


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, *_unused: Any) -> Tensor:
    """A tensor: whether it is a parameter and what hooks it had is of no interest."""
    _check_kind(storage, Storage)
    sizes = [offset, *shape, *strides]
    if not all(map(_is_size, sizes)) or len(shape) != len(strides) or len(shape) > _MAX_AXES:
        raise Refused(f"has a tensor of the shape {_quote(shape)}, which cannot be")
    count = _product(shape)
    last = sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    if count > storage.size or (count and offset + last >= storage.size):
        raise Refused(
            f"has a tensor of the shape {_quote(shape)}, but only {storage.size} numbers for it"
        )
    return Tensor(storage, offset, tuple(shape), tuple(strides))


def _parameter(tensor: Any, *_unused: Any) -> Tensor:
    _check_kind(tensor, Tensor)
    return tensor


_FUNCTIONS = {
    "collections.OrderedDict": _Function(_table),
    "torch._utils._rebuild_tensor": _Function(_tensor),
    "torch._utils._rebuild_tensor_v2": _Function(_tensor),
    "torch._utils._rebuild_parameter": _Function(_parameter),
}
_DTYPES = {
    "torch.HalfStorage": "<f2",
    "torch.FloatStorage": "<f4",
    "torch.DoubleStorage": "<f8",
    "torch.BoolStorage": "?",
    "torch.ByteStorage": "u1",
    "torch.CharStorage": "i1",
    "torch.ShortStorage": "<i2",
    "torch.IntStorage": "<i4",
    "torch.LongStorage": "<i8",
}


def _check_kind(value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        raise Refused(f"has a {type(value).__name__} where a {kind.__name__} has to be")


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _product(sizes: Sequence[int]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product
