"""What a served model takes and gives, as the server tells it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from keras_elmo.serving.serving_error import ServingError

# The names of TensorFlow's types that NumPy has, too.
_DTYPES = {
    "DT_FLOAT": "float32",
    "DT_DOUBLE": "float64",
    "DT_HALF": "float16",
    "DT_BOOL": "bool",
    "DT_STRING": "string",
    **{
        f"DT_{kind}{bits}": f"{kind}{bits}".lower()
        for kind in ("INT", "UINT")
        for bits in (8, 16, 32, 64)
    },
}


class TensorSpec(NamedTuple):
    """One input or output.

    Attributes:
        dtype: A name of NumPy's, or "string".
        shape: The size of each axis, `None` where it varies; or `None` if not even the number of axes is known.
    """

    dtype: str
    shape: tuple[int | None, ...] | None

    @property
    def numpy_dtype(self) -> np.dtype:
        """The type of an array of it. Strings are objects.

        Raises:
            ValueError: if NumPy has no such type.
        """
        try:
            return np.dtype(object if self.dtype == "string" else self.dtype)
        except TypeError as error:
            raise ValueError(
                f"NumPy has no type {self.dtype}: export the model with another one."
            ) from error


@dataclass(frozen=True)
class ModelSignature:
    """One of the functions that a model serves.

    Attributes:
        inputs: Name -> `TensorSpec`.
        outputs: Name -> `TensorSpec`.
        method_name: "tensorflow/serving/predict", or "tensorflow/serving/classify".
    """

    inputs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]
    method_name: str


def tensor_spec(dtype: str, sizes: list[int] | None) -> TensorSpec:
    """Makes a `TensorSpec` of what the server writes.

    Args:
        dtype: TensorFlow's name, such as "DT_FLOAT".
        sizes: The size of each axis, -1 where it varies; `None` if unknown.
    """
    shape = None if sizes is None else tuple(None if size < 0 else size for size in sizes)
    return TensorSpec(_DTYPES.get(dtype, dtype.removeprefix("DT_").lower()), shape)


def as_input(name: str, value: Any, spec: TensorSpec) -> np.ndarray:
    """Makes an array of the type that a model takes; strings become UTF-8.

    Lone surrogates, which UTF-8 cannot write, are dropped, as `keras_elmo.as_strings` does.

    Raises:
        ValueError: if the value is of another kind, or ragged.
    """
    dtype = spec.numpy_dtype
    try:
        array = np.asarray(value, object if spec.dtype == "string" else None)
    except ValueError as error:
        raise ValueError(f"The input `{name}` must be a full array, not a ragged one.") from error
    if spec.dtype == "string":
        return map_objects(lambda item: _encode(name, item), array)
    # No elements, no type: an empty list is float64 to NumPy. Whole numbers are looked at one by one.
    is_whole = dtype.kind in "iu" and array.dtype.kind in "iu"
    if array.size and not is_whole and not np.can_cast(array.dtype, dtype, "same_kind"):
        raise ValueError(
            f"The input `{name}` must be of type {spec.dtype}. Received: {array.dtype}"
        )
    cast = array.astype(dtype)
    if is_whole and not np.array_equal(cast, array):
        raise ValueError(f"The input `{name}` holds numbers that {spec.dtype} cannot.")
    return cast


def as_output(name: str, value: Any, spec: TensorSpec) -> np.ndarray:
    """Makes an array of what a server answered; strings become `str`, but for outputs that are named `.._bytes`.

    Raises:
        ServingError: "INTERNAL" if it is not a full array of its type.
    """
    try:
        array = np.array(value, spec.numpy_dtype)
        if spec.dtype == "string":
            array = map_objects(lambda item: _decode(item, name.endswith("_bytes")), array)
    except (TypeError, ValueError) as error:
        raise ServingError(
            "INTERNAL", f"the server's output `{name}` is no full array of {spec.dtype}: {error}."
        ) from error
    if spec.shape is None:
        return array
    if array.size == 0:
        # JSON ends where an axis is empty.
        array = array.reshape(*array.shape, *(size or 0 for size in spec.shape[array.ndim :]))
    # The sizes of the axes may be others: those of a version that has taken this one's place.
    if array.ndim != len(spec.shape):
        raise ServingError(
            "INTERNAL",
            f"the server's output `{name}` has the shape {array.shape}, where the model has {spec.shape}.",
        )
    return array


def map_objects(function: Callable[[Any], Any], array: np.ndarray) -> np.ndarray:
    """An array of what a function makes of each element."""
    return np.asarray(np.frompyfunc(function, 1, 1)(array), object)


def _decode(value: Any, is_binary: bool) -> str | bytes:
    if not isinstance(value, str | bytes):
        raise ValueError(f"one of its strings is {value!r:.60}")
    if is_binary or isinstance(value, str):
        return value
    return value.decode("utf-8", "surrogateescape")


def _encode(name: str, value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "ignore")
    if isinstance(value, bytes):
        return value
    raise ValueError(
        f"The input `{name}` must be a full array of strings. "
        f"Received: {value!r:.60} of type {type(value).__name__}"
    )
