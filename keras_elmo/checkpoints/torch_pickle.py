"""The pickle in a file of PyTorch weights, read without PyTorch and without calling anything that the file names.

A pickle is a program. Python's own unpickler runs it; this one knows only the instructions that a state dict is
written with, and only the names that stand for a table, a tensor or the numbers of one. All else ends it. Nothing
is looked up by a name from the file, and no memory is taken for a size that the file only claims.
"""

import pickletools
import reprlib
from collections.abc import Callable, Sequence
from typing import IO, Any, NamedTuple

import numpy as np

# A state dict's pickle has some hundred bytes for each tensor: that of ELMo has ten thousand.
MAX_PICKLE_BYTES = 2**23

_MARK = object()
_PLAIN = {
    *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINSTRING", "SHORT_BINSTRING"),
}
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


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
            ValueError, IndexError, KeyError, TypeError: If it is damaged or cut short.
        """
        # Of a file it asks for no more than these two methods.
        for opcode, argument, _ in pickletools.genops(self._file):  # type: ignore[arg-type]
            if opcode.name == "STOP":
                return self._stack.pop()
            self._run(opcode.name, argument)
        raise ValueError("no end")  # `genops` raises before

    def _run(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name in _PLAIN:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _TUPLES:
            stack[-_TUPLES[name] :] = [tuple(stack[-_TUPLES[name] :])]
        elif name in ("PROTO", "FRAME"):
            pass
        elif name == "MARK":
            stack.append(_MARK)
        elif name == "TUPLE":
            stack.append(tuple(self._above_mark()))
        elif name == "EMPTY_LIST":
            stack.append([])
        elif name == "EMPTY_DICT":
            stack.append({})
        elif name in ("BINPUT", "LONG_BINPUT"):
            self._memo[argument] = stack[-1]
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(self._memo[argument])
        elif name in ("APPEND", "APPENDS"):
            items = [stack.pop()] if name == "APPEND" else self._above_mark()
            _check_kind(stack[-1], list)
            stack[-1].extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = [stack.pop(-2), stack.pop()] if name == "SETITEM" else self._above_mark()
            _check_kind(stack[-1], dict)
            stack[-1].update(_table(zip(items[::2], items[1::2], strict=True)))
        elif name == "GLOBAL":
            stack.append(_meaning(argument.replace(" ", ".")))
        elif name == "STACK_GLOBAL":
            stack.append(_meaning(".".join([str(stack.pop(-2)), str(stack.pop())])))
        elif name == "REDUCE":
            arguments, function = stack.pop(), stack.pop()
            if not isinstance(function, _Function):
                raise Refused(f"calls {reprlib.repr(function)}, which makes no array")
            stack.append(function.call(*arguments))
        elif name == "BUILD":
            # What PyTorch hangs on a state dict besides: version numbers of its layers.
            stack.pop()
            _check_kind(stack[-1], dict)
        elif name == "BINPERSID":
            stack.append(self._storage(stack.pop()))
        else:
            what = f" of {reprlib.repr(argument)}" if isinstance(argument, str) else ""
            raise Refused(f"has the pickle instruction {name}{what}, which builds no array")

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
            raise Refused(f"describes numbers as {reprlib.repr(description)}, which is not known")
        storage = self.storages.setdefault(key, Storage(key, dtype, size))
        if storage != Storage(key, dtype, size):
            raise Refused(f"describes the numbers {key!r} in two ways")
        return storage


class _Metered:
    """A file for `genops`: a pickle of no more than some bytes, and no memory for those that are not there."""

    def __init__(self, file: IO[bytes]):
        self._file = file
        self._left = MAX_PICKLE_BYTES

    def read(self, size: int) -> bytes:
        return self._taken(self._file.read(min(size, self._left + 1)))

    def readline(self) -> bytes:
        return self._taken(self._file.readline(self._left + 1))

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


def _meaning(name: str) -> Any:
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    if name in _DTYPES:
        return np.dtype(_DTYPES[name])
    raise Refused(f"names {reprlib.repr(name)}, which builds no array, and is not loaded")


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
    if not all(map(_is_size, sizes)) or len(shape) != len(strides):
        raise Refused(f"has a tensor of the shape {reprlib.repr(shape)}, which cannot be")
    count = _product(shape)
    last = sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    if count > storage.size or (count and offset + last >= storage.size):
        raise Refused(
            f"has a tensor of the shape {reprlib.repr(shape)}, but only {storage.size} numbers for it"
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
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _product(sizes: Sequence[int]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product
