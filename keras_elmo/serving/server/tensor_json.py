"""Requests and responses of TensorFlow Serving's REST interface <-> arrays.

Rows: `{"instances": [..]}`, answered by `{"predictions": [..]}`, one entry for each row. Columns: `{"inputs": ..}`,
answered by `{"outputs": ..}`, whole tensors. Where a model has one input or output its name may be left out, and is.
"""

import base64
import binascii
import math
from collections.abc import Mapping
from typing import Any

import grpc
import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2

from keras_elmo.serving.server.json_text import decimals, shown, string
from keras_elmo.serving.server.request_error import RequestError, invalid

Document = Mapping[str, Any]
TensorInfos = Mapping[str, meta_graph_pb2.TensorInfo]

_INTEGERS = {
    tf.int32: (-(2**31), 2**31 - 1),
    tf.int16: (-(2**31), 2**31 - 1),  # then cut, as TensorFlow Serving does
    tf.int8: (-(2**31), 2**31 - 1),
    tf.uint8: (-(2**31), 2**31 - 1),
    tf.int64: (-(2**63), 2**63 - 1),
    tf.uint32: (0, 2**32 - 1),
    tf.uint64: (0, 2**64 - 1),
}
# Largest integer that is exact, and largest number.
_DECIMALS = {
    tf.float32: (2**24 - 1, float(np.finfo(np.float32).max)),
    tf.float64: (2**53 - 1, float(np.finfo(np.float64).max)),
}
_BYTES_SUFFIX = "_bytes"


def signature_name(document: Document) -> str:
    """The signature that a request names; "" if it names none.

    Raises:
        RequestError: if it is no string.
    """
    name = document.get("signature_name", "")
    if not isinstance(name, str):
        raise invalid(
            f"JSON Value: {shown(document)} not formatted correctly. 'signature_name' key must be a string value."
        )
    return name


def read_inputs(document: Document, infos: TensorInfos) -> tuple[dict[str, np.ndarray], bool]:
    """Reads the inputs of a predict request.

    Args:
        document: The request.
        infos: The inputs of the signature, by name.

    Returns:
        Array by name, and whether the request came in rows.

    Raises:
        RequestError: if it does not fit the signature, or is ragged.
    """
    if "instances" in document and "inputs" in document:
        raise invalid(
            f"JSON Value: {shown(document)} Not formatted correctly expecting only one of 'inputs' or 'instances' "
            "keys to exist "
        )
    if "instances" in document:
        rows = document["instances"]
        if not isinstance(rows, list):
            raise invalid(
                f"JSON Value: {shown(document)} Excepting 'instances' to be an list/array"
            )
        if not rows:
            raise invalid(f"JSON Value: {shown(document)} No values in 'instances' array")
        return _read_rows(rows, infos), True
    if "inputs" in document:
        return _read_columns(document["inputs"], infos), False
    raise invalid("Missing 'inputs' or 'instances' key")


def write_rows(outputs: Mapping[str, np.ndarray]) -> str:
    """Writes outputs by rows.

    Args:
        outputs: Array by name, all with the same first dimension.

    Raises:
        RequestError: if they have not, or a dtype has no form in JSON.

    Example:
    >>> write_rows({"label": np.array([b"a", b"b"], object), "score": np.array([0.5, 1], np.float32)})
    '{"predictions": [{"label": "a", "score": 0.5}, {"label": "b", "score": 1.0}]}'
    """
    batch_size: int | None = None
    for name, array in outputs.items():
        if array.ndim == 0:
            raise invalid(f"Tensor name: {name} has no shape information ")
        if batch_size not in (None, len(array)):
            raise invalid(
                f"Tensor name: {name} has inconsistent batch size: {len(array)} expecting: {batch_size}"
            )
        batch_size = len(array)
    columns = {
        name: _nested(_leaves(name, array), array.shape, 1) for name, array in outputs.items()
    }
    if len(columns) == 1:
        (rows,) = columns.values()
    else:
        rows = [
            _object(dict(zip(columns, row, strict=True)))
            for row in zip(*columns.values(), strict=True)
        ]
    return f'{{"predictions": [{", ".join(rows)}]}}'


def write_columns(outputs: Mapping[str, np.ndarray]) -> str:
    """Writes outputs as whole tensors.

    Args:
        outputs: Array by name.

    Raises:
        RequestError: if a dtype has no form in JSON.

    Example:
    >>> write_columns({"raw_bytes": np.array([b"hi"], object)})
    '{"outputs": [{"b64": "aGk="}]}'
    """
    tensors = {
        name: _nested(_leaves(name, array), array.shape)[0] for name, array in outputs.items()
    }
    text = next(iter(tensors.values())) if len(tensors) == 1 else _object(tensors)
    return f'{{"outputs": {text}}}'


def _read_rows(rows: list[Any], infos: TensorInfos) -> dict[str, np.ndarray]:
    if not isinstance(rows[0], dict) and len(infos) > 1:
        raise invalid(
            "instances is a plain list, but expecting list of objects as multiple input tensors required as per "
            "tensorinfo_map"
        )
    named = _is_named(rows[0])
    leaves: dict[str, list[Any]] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for number, row in enumerate(rows):
        if named and not _is_named(row):
            raise invalid(f"Expecting object but got list at item {number} of input list")
        if not named and _is_named(row):
            raise invalid(f"Expecting value/list but got object at item {number} of input list")
        for name, item in row.items() if named else [(next(iter(infos)), row)]:
            try:
                _add_row(name, item, infos, leaves, shapes)
            except RequestError as error:
                key = f" key: {name}" if named else ""
                raise invalid(
                    f"Failed to process element: {number}{key} of 'instances' list. "
                    f"Error: {error.code.name}: {error.message}"
                ) from error
        if named and set(row) != set(infos):
            raise invalid(
                f"Failed to process element: {number} of 'instances' list. JSON object: {shown(row)} keys must be "
                f"equal to: {','.join(sorted(infos))}"
            )
    return {
        name: _to_array(leaves[name], (len(rows), *shapes[name]), tf.as_dtype(infos[name].dtype))
        for name in leaves
    }


def _add_row(
    name: str,
    item: Any,
    infos: TensorInfos,
    leaves: dict[str, list[Any]],
    shapes: dict[str, tuple[int, ...]],
) -> None:
    if name not in infos:
        raise invalid(f"JSON object: does not have named input: {name}")
    shape = _shape(item)
    found: list[Any] = []
    _fill(item, 0, shape, tf.as_dtype(infos[name].dtype), found)
    expected = shapes.setdefault(name, shape)
    if math.prod(expected) != len(found):
        raise invalid(f"Expecting tensor size: {math.prod(expected)} but got: {len(found)}")
    if expected != shape:
        raise invalid(f"Expecting shape {_brackets(expected)} but got: {_brackets(shape)}")
    leaves.setdefault(name, []).extend(found)


def _read_columns(value: Any, infos: TensorInfos) -> dict[str, np.ndarray]:
    if not _is_named(value):
        if len(infos) > 1:
            raise invalid(
                "inputs is a plain value/list, but expecting an object as multiple input tensors required as per "
                "tensorinfo_map"
            )
        value = {next(iter(infos)): value}
    arrays = {}
    for name in sorted(infos):
        if name not in value:
            raise invalid(f"Missing named input: {name} in 'inputs' object.")
        shape, dtype = _shape(value[name]), tf.as_dtype(infos[name].dtype)
        leaves: list[Any] = []
        _fill(value[name], 0, shape, dtype, leaves)
        arrays[name] = _to_array(leaves, shape, dtype)
    return arrays


def _shape(value: Any) -> tuple[int, ...]:
    """The shape, if it is not ragged: the lengths of the first lists."""
    sizes = []
    while isinstance(value, list):
        sizes.append(len(value))
        value = value[0] if value else None
    return tuple(sizes)


def _fill(value: Any, level: int, shape: tuple[int, ...], dtype: tf.DType, leaves: list) -> None:
    if not isinstance(value, list):
        if level != len(shape):
            raise invalid(
                f"JSON Value: {shown(value)} found at incorrect level: {level + 1} in the JSON DOM. "
                f"Expected at level: {len(shape)}"
            )
        leaves.append(_leaf(value, dtype))
        return
    if level >= len(shape):
        raise invalid(f"Encountered list at unexpected level: {level} expected < {len(shape)}")
    if len(value) != shape[level]:
        raise invalid(
            f"Encountered list at unexpected size: {len(value)} at level: {level} expected size: {shape[level]}"
        )
    for entry in value:
        _fill(entry, level + 1, shape, dtype, leaves)


def _leaf(value: Any, dtype: tf.DType) -> Any:
    if dtype == tf.string:
        if isinstance(value, str):
            return value.encode("utf-8", "surrogateescape")
        if isinstance(value, dict):
            return from_base64(value)
    elif dtype in _INTEGERS:
        least, most = _INTEGERS[dtype]
        if type(value) is int and least <= value <= most:
            return value
    elif dtype in _DECIMALS:
        if type(value) in (int, float):
            exact, largest = _DECIMALS[dtype]
            if math.isfinite(value) and abs(value) > (exact if type(value) is int else largest):
                raise invalid(
                    f"Cannot convert JSON value: {shown(value)} to {_type_name(dtype)} without loss of precision."
                )
            return value
    elif dtype == tf.bool:
        if isinstance(value, bool):
            return value
    else:
        raise RequestError(
            grpc.StatusCode.UNIMPLEMENTED,
            f"Conversion of JSON Value: {shown(value)} to type: {_type_name(dtype)}",
        )
    raise invalid(
        f"JSON Value: {shown(value)} Type: {json_type(value)} is not of expected type: {_type_name(dtype)}"
    )


def _to_array(leaves: list[Any], shape: tuple[int, ...], dtype: tf.DType) -> np.ndarray:
    if dtype == tf.string:
        array = np.empty(len(leaves), object)
        array[:] = leaves
    elif dtype in (tf.int8, tf.int16, tf.uint8):
        array = np.array(leaves, np.int64).astype(dtype.as_numpy_dtype)
    else:
        array = np.array(leaves, dtype.as_numpy_dtype)
    return array.reshape(shape)


def is_base64(value: Any) -> bool:
    """Whether a JSON value is `{"b64": ".."}`, bytes in base64."""
    return isinstance(value, dict) and list(value) == ["b64"] and isinstance(value["b64"], str)


def from_base64(value: Any) -> bytes:
    """The bytes of `{"b64": ".."}`; white space and missing padding do not matter.

    Raises:
        RequestError: if it is anything else.

    Example:
    >>> from_base64({"b64": "aGk"})
    b'hi'
    """
    if not is_base64(value):
        raise invalid(f"JSON Value: {shown(value)} not formatted correctly for base64 data")
    text = "".join(value["b64"].split())
    try:
        return base64.b64decode(
            text + "=" * (-len(text) % 4 if "=" not in text else 0), validate=True
        )
    except (binascii.Error, ValueError) as error:
        raise invalid("Unable to base64 decode") from error


def json_type(value: Any) -> str:
    """The name of a JSON value's type in an error."""
    names: dict[type, str] = {
        type(None): "Null",
        dict: "Object",
        list: "Array",
        str: "String",
        int: "Number",
        float: "Number",
    }
    return str(value) if isinstance(value, bool) else names[type(value)]


def _type_name(dtype: tf.DType) -> str:
    names = {tf.float32: "float", tf.float64: "double", tf.float16: "half"}
    return names.get(dtype, dtype.name)


def _is_named(value: Any) -> bool:
    return isinstance(value, dict) and not is_base64(value)


def _brackets(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"


def _leaves(name: str, array: np.ndarray) -> list[str]:
    """The text of every value."""
    values = array.ravel()
    dtype = tf.as_dtype(array.dtype)
    if dtype in _DECIMALS:
        return decimals(values)
    if dtype in _INTEGERS:
        return list(map(str, values.tolist()))
    if dtype == tf.bool:
        return ["true" if value else "false" for value in values.tolist()]
    if dtype == tf.string and name.endswith(_BYTES_SUFFIX):
        return [f'{{"b64": "{base64.b64encode(value).decode()}"}}' for value in values]
    if dtype == tf.string:
        return [string(value) for value in values]
    raise invalid(f"Failed to write JSON value for tensor type: {_type_name(dtype)}")


def _nested(texts: list[str], shape: tuple[int, ...], first_axis: int = 0) -> list[str]:
    """Joins values to lists, from the last dimension to the first that is to be joined."""
    for axis in reversed(range(first_axis, len(shape))):
        size, count = shape[axis], math.prod(shape[:axis])
        texts = [f"[{', '.join(texts[size * k : size * (k + 1)])}]" for k in range(count)]
    return texts


def _object(members: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{string(key.encode())}: {text}" for key, text in members.items()) + "}"
