"""Runs a SavedModel by TensorFlow's C API alone, in the C++ loader that TensorFlow Serving has, too.

    python saved_model_in_c.py LIBRARY_FOLDER < request.json > answer.json

The request has `folder`, and `runs`: lists of `inputs` {tensor name: nested list} with `dtypes`, and `outputs` (tensor
names). Strings travel as Latin-1, a character a byte. No Python module of TensorFlow is imported.
"""

import ctypes
import json
import sys
from ctypes import Structure, c_char_p, c_int, c_int64, c_size_t, c_void_p
from pathlib import Path

import numpy as np

STRING_SIZE = 24  # of a TF_TString
CODES = {"float32": 1, "int32": 3, "string": 7}
DTYPES = {code: dtype for dtype, code in CODES.items()}


class Output(Structure):
    """TF_Output: the output of an operation."""

    _fields_ = [("operation", c_void_p), ("index", c_int)]


def load_library(folder):
    """The C API, with what its functions return."""
    ctypes.CDLL(str(folder / "libtensorflow_framework.so.2"), ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(folder / "libtensorflow_cc.so.2"), ctypes.RTLD_GLOBAL)
    for name in (
        "TF_NewStatus TF_NewGraph TF_NewSessionOptions TF_LoadSessionFromSavedModel TF_TensorData "
        "TF_GraphOperationByName TF_AllocateTensor"
    ).split():
        getattr(library, name).restype = c_void_p
    library.TF_Message.restype = c_char_p
    library.TF_Dim.restype = c_int64
    library.TF_StringGetSize.restype = c_size_t
    library.TF_StringGetDataPointer.restype = c_void_p
    return library


class SavedModel:
    """A SavedModel in a session."""

    def __init__(self, library, folder):
        self.library = library
        self.status = c_void_p(library.TF_NewStatus())
        self.graph = c_void_p(library.TF_NewGraph())
        tags = (c_char_p * 1)(b"serve")
        self.session = c_void_p(
            library.TF_LoadSessionFromSavedModel(
                c_void_p(library.TF_NewSessionOptions()),
                None,
                str(folder).encode(),
                tags,
                1,
                self.graph,
                None,
                self.status,
            )
        )
        self.check()

    def check(self):
        """Raises what the last call complained of."""
        if self.library.TF_GetCode(self.status):
            raise RuntimeError(self.library.TF_Message(self.status).decode())

    def run(self, inputs, dtypes, outputs):
        """Values of outputs, as nested lists."""
        fed = [
            self.tensor(np.array(value, dtypes[name] if dtypes[name] != "string" else object))
            for name, value in inputs.items()
        ]
        found = (c_void_p * len(outputs))()
        self.library.TF_SessionRun(
            self.session,
            None,
            (Output * len(fed))(*map(self.output, inputs)),
            (c_void_p * len(fed))(*fed),
            len(fed),
            (Output * len(outputs))(*map(self.output, outputs)),
            found,
            len(outputs),
            None,
            0,
            None,
            self.status,
        )
        self.check()
        return [self.value(c_void_p(tensor)) for tensor in found]

    def output(self, name):
        operation, _, index = name.partition(":")
        return Output(
            self.library.TF_GraphOperationByName(self.graph, operation.encode()), int(index)
        )

    def tensor(self, value):
        is_string = value.dtype == object
        size = value.size * (STRING_SIZE if is_string else value.itemsize)
        code = CODES["string" if is_string else value.dtype.name]
        dims = (c_int64 * value.ndim)(*value.shape)
        tensor = self.library.TF_AllocateTensor(code, dims, value.ndim, c_size_t(size))
        data = self.library.TF_TensorData(c_void_p(tensor))
        if is_string:
            for place, text in enumerate(value.ravel()):
                string = c_void_p(data + place * STRING_SIZE)
                self.library.TF_StringInit(string)
                raw = text.encode("latin-1")
                self.library.TF_StringCopy(string, raw, c_size_t(len(raw)))
        elif size:
            ctypes.memmove(data, np.ascontiguousarray(value).ctypes.data, size)
        return tensor

    def value(self, tensor):
        library = self.library
        shape = [library.TF_Dim(tensor, axis) for axis in range(library.TF_NumDims(tensor))]
        count = int(np.prod(shape))
        dtype = DTYPES[library.TF_TensorType(tensor)]
        data = library.TF_TensorData(tensor)
        if dtype == "string":
            values = []
            for place in range(count):
                string = c_void_p(data + place * STRING_SIZE)
                start, size = (
                    library.TF_StringGetDataPointer(string),
                    library.TF_StringGetSize(string),
                )
                values.append(ctypes.string_at(start, size).decode("latin-1"))
            found = np.array(values, object)
        else:
            raw = ctypes.string_at(data, count * np.dtype(dtype).itemsize)
            found = np.frombuffer(raw, dtype)
        return found.reshape(shape).tolist()


def main():
    """Answers the request on standard input."""
    request = json.load(sys.stdin)
    model = SavedModel(load_library(Path(sys.argv[1])), request["folder"])
    answers = [model.run(**run) for run in request["runs"]]
    if any(name.partition(".")[0] in ("tensorflow", "keras", "keras_elmo") for name in sys.modules):
        raise RuntimeError("TensorFlow's Python was imported")
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
