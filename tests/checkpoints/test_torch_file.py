"""PyTorch's files without PyTorch: arrays come out, and nothing that the file names is ever called."""

import pickle
import struct
import time
import zipfile

import numpy as np
import pytest
from paths import DATA
from torch_files import (
    call,
    integer,
    name,
    several,
    storage,
    table,
    tensor,
    text,
    whole,
    write_stream,
    write_zip,
)

from keras_elmo.checkpoints.torch_file import read_state_dict

NUMBERS = {"0": np.arange(6, dtype="<f4"), "1": np.array([7, 8], "<i8")}
WRITERS = [write_zip, write_stream]
FILES = [
    DATA / "many_langs" / model / f"{part}.pkl"
    for model in ("words_and_characters", "characters")
    for part in ("token_embedder", "encoder")
]


def refused(path, message):
    started = time.monotonic()
    with pytest.raises(ValueError, match=message) as error:
        read_state_dict(path)
    assert time.monotonic() - started < 5
    sentence = str(error.value)
    assert sentence.startswith(f"{path} ")
    assert "\n" not in sentence
    assert len(sentence) < 600


# Good files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_files_of_pytorch(path):
    """Both formats: `words_and_characters` is a zip, `characters` is of before PyTorch 1.6."""
    assert zipfile.is_zipfile(path) == (path.parent.name == "words_and_characters")
    arrays = read_state_dict(path)
    assert all(array.dtype == np.float32 and np.isfinite(array).all() for array in arrays.values())
    some = (
        "projection.weight"
        if path.stem == "token_embedder"
        else "backward_layer_1.state_projection.weight"
    )
    assert arrays[some].ndim == 2
    assert arrays[some].std() > 0


@pytest.mark.parametrize("write", WRITERS)
def test_views_and_kinds_of_numbers(write, tmp_path):
    floats, longs = storage("0", 6), storage("1", 2, "LongStorage")
    entries = {
        "plain": tensor(floats, [2, 3], [3, 1]),
        "turned": tensor(floats, [3, 2], [1, 3]),
        "part": tensor(floats, [2], [2], offset=1),
        "number": tensor(floats, [], [], offset=5),
        "empty": tensor(floats, [0, 3], [3, 1], offset=6),
        "longs": tensor(longs, [2], [1]),
        "parameter": call(
            name("torch._utils", "_rebuild_parameter"), tensor(longs, [1], [1]), b"\x88", b"}"
        ),
        "old": call(
            name("torch._utils", "_rebuild_tensor"),
            *(floats, integer(0), several(integer(1)), several(integer(1))),
        ),
    }
    # As PyTorch writes it: an OrderedDict, with version numbers hung on it.
    pairs = b"".join(text(key) + value for key, value in entries.items())
    state = table({"_metadata": table({"": table({"version": integer(1)})})})
    write(
        tmp_path / "file",
        call(name("collections", "OrderedDict")) + b"(" + pairs + b"u" + state + b"b",
        NUMBERS,
    )
    arrays = read_state_dict(tmp_path / "file")
    assert list(arrays) == list(entries)
    expected = {
        "plain": [[0, 1, 2], [3, 4, 5]],
        "turned": [[0, 3], [1, 4], [2, 5]],
        "part": [1, 3],
        "number": 5,
        "empty": np.zeros((0, 3)),
        "longs": [7, 8],
        "parameter": [7],
        "old": [0],
    }
    for key, value in expected.items():
        np.testing.assert_array_equal(arrays[key], value)
    assert arrays["longs"].dtype == np.int64
    assert not arrays["plain"].flags.writeable


@pytest.mark.parametrize("write", WRITERS)
def test_pairs_and_memo(write, tmp_path):
    """As Python 2 wrote an OrderedDict: of a list of pairs; and what stands twice is written once."""
    one = tensor(storage("0", 6), [6], [1]) + b"q\x05"
    two = b"h\x05"
    pairs = b"](" + b"](" + text("a") + one + b"e" + b"](" + text("b") + two + b"e" + b"e"
    write(tmp_path / "file", call(name("collections", "OrderedDict"), pairs), {"0": NUMBERS["0"]})
    arrays = read_state_dict(tmp_path / "file")
    np.testing.assert_array_equal(arrays["a"], NUMBERS["0"])
    np.testing.assert_array_equal(arrays["b"], NUMBERS["0"])


# Pickles that want more than arrays --------------------------------------------------------------


class Calls:
    """Pickles as a call of anything."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def pickled(value, protocol):
    data = pickle.dumps(value, protocol)
    return data[2:-1] if protocol >= 2 else data[:-1]


TOUCH = Calls(exec, "open('touched', 'w')")
BAD = {
    "os.system": (
        name("os", "system") + several(text("touch touched")) + b"R",
        r"names 'os\.system'",
    ),
    "eval": (pickled(Calls(eval, "open('touched', 'w')"), 2), r"names '__builtin__\.eval'"),
    "exec, protocol 0": (pickled(TOUCH, 0), r"names '__builtin__\.exec'"),
    "exec, protocol 4": (pickled(TOUCH, 4), r"names 'builtins\.exec'"),
    "nested name": (
        text("builtins") + text("getattr.__call__") + b"\x93",
        "names 'builtins.getattr.__call__'",
    ),
    "in a tensor": (
        table({"a": tensor(call(name("os", "getcwd")), [1], [1])}),
        r"names 'os\.getcwd', which builds no array, and is not loaded",
    ),
    "numpy": (pickled(Calls(np.load, "touched"), 2), "names 'numpy.*load'"),
    "a NumPy array": (pickled(np.arange(3), 2), "names 'numpy.*_reconstruct'"),
    "torch.load": (call(name("torch", "load"), text("touched")), r"names 'torch\.load'"),
    "a whole module": (
        name("torch.nn.modules.linear", "Linear") + b")\x81",
        r"names 'torch\.nn\.modules\.linear\.Linear'",
    ),
    "an old class": (b"(" + text("true") + b"ios\nsystem\n", "names 'os.system'"),
    "a class of the stack": (b"(" + name("collections", "OrderedDict") + b"o", "instruction b'o'"),
    "a new object": (name("collections", "OrderedDict") + b")\x81", r"instruction b'\\x81'"),
    "an extension": (b"\x82\x01", r"instruction b'\\x82'"),
    "a call of a string": (text("os.system") + several(text("true")) + b"R", "calls 'os.system'"),
    "a call of a storage": (name("torch", "FloatStorage") + b")R", "calls dtype"),
    "attributes of a tensor": (
        tensor(storage("0", 6), [6], [1]) + table({"shape": integer(1)}) + b"b",
        "has a Tensor where a dict has to be",
    ),
    "items of a string": (text("a") + text("b") + integer(1) + b"s", "has a str where a dict"),
    "more of a tuple": (b")" + integer(1) + b"a", "has a tuple where a list has to be"),
    "a key that is no string": (
        b"}" + several(integer(1)) + b"N" + b"s",
        "has a tuple where a str",
    ),
    "a persistent string": (b"Pos.system\n", "instruction b'P'"),
    "another persistent object": (
        several(text("module"), name("torch", "FloatStorage"), text("0"), text("cpu"), integer(1))
        + b"Q",
        r"describes numbers as \('module'",
    ),
    "no array": (table({"a": integer(1)}), "holds a int by the name 'a', not an array"),
    "no names": (b"]", "holds a list, not arrays by name"),
    "a list in itself": (b"]q\x00h\x00a", "holds a list, not arrays by name"),
    "a table in itself": (b"}q\x00" + text("a") + b"h\x00s", "holds a dict by the name 'a'"),
    "a tower": (b")" + b"\x85" * 200_000, "holds a tuple"),
    "a tuple of tuples, doubled": (b"}" + b"N" + b"2\x86" * 60 + b"Ns", "instruction b'2'"),
    "a memo as large as memory": (b"]r\xff\xff\xff\xff", "holds a list"),
    "bytes as many as memory": (b"\x96" + struct.pack("<Q", 2**40), r"instruction b'\\x96'"),
    "a string as long as memory": (b"X\xff\xff\xff\xff", "ends within its pickle"),
    "a name without end": (b"cos", "ends within its pickle"),
    "a number of many digits": (b"I" + b"9" * 100_000 + b"\n", "instruction b'I'"),
    "a frame as large as memory": (b"\x95" + struct.pack("<Q", 2**62) + b"]", "holds a list"),
    "nothing to take": (b"R", "damaged or cut short"),
    "no mark": (b"t", "damaged or cut short"),
    "nothing remembered": (b"h\x07", "damaged or cut short"),
    "no instruction": (b"\xff", r"instruction b'\\xff'"),
    "a known old class": (b"(icollections\nOrderedDict\n", "makes an object of an old class"),
}


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(("instructions", "message"), BAD.values(), ids=BAD)
def test_bad_pickles(write, instructions, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "file.pkl", instructions)
    refused(tmp_path / "file.pkl", message)
    assert not (tmp_path / "touched").exists()


def test_doubled_tuples_as_a_key_are_not_hashed(tmp_path):
    """2 ** 60 leaves, by way of the memo: its hash would take for ever."""
    doubled = b"N" + b"".join(b"q%ch%c\x86" % (k, k) for k in range(60))
    write_zip(tmp_path / "file", b"}" + doubled + b"Ns")
    refused(tmp_path / "file", "has a tuple where a str has to be")


def test_a_pickle_longer_than_any(tmp_path):
    write_zip(tmp_path / "file", b"N" * 2**20)
    refused(tmp_path / "file", "has a pickle of more than 1048576 bytes, which no state dict has")


def test_a_plain_pickle(tmp_path):
    (tmp_path / "file").write_bytes(pickle.dumps({"a": 1}, 2))
    refused(tmp_path / "file", "is a pickle, but not one of PyTorch's files")
    (tmp_path / "file").write_bytes(pickle.dumps(TOUCH, 2))
    refused(tmp_path / "file", "names '__builtin__.exec'")


# Sizes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (tensor(storage("0", 6), [7], [1]), r"tensor of the shape \(7,\), but only 6 numbers"),
        (tensor(storage("0", 6), [2**40], [0]), "but only 6 numbers for it"),
        (tensor(storage("0", 6), [2, 3], [2**40, 1]), "but only 6 numbers for it"),
        (tensor(storage("0", 6), [3], [1], offset=4), "but only 6 numbers for it"),
        (tensor(storage("0", 6), [-1], [1]), r"shape \(-1,\), which cannot be"),
        (tensor(storage("0", 6), [2], [-1], offset=3), "which cannot be"),
        (tensor(storage("0", 6), [2], []), "which cannot be"),
        (tensor(storage("0", 6), [1] * 33, [1] * 33), "which cannot be"),
        (tensor(storage("0", 6), [2**64], [1]), "which cannot be"),
        (tensor(integer(3), [1], [1]), "has a int where a Storage has to be"),
        (tensor(storage("0", -6), [1], [1]), "describes numbers as .*-6"),
        (tensor(storage("0", 2**40), [1], [1]), r"has \d+ bytes, but claims 4398046511104 bytes"),
        (tensor(storage("0", 5), [1], [1]), "24 bytes for the 5 numbers|6 numbers '0' where 5"),
        (tensor(storage("9", 6), [1], [1]), "damaged or cut short"),
        (tensor(storage("0", 6, "BFloat16Storage"), [1], [1]), r"names 'torch\.BFloat16Storage'"),
        (
            several(tensor(storage("0", 6), [1], [1]), tensor(storage("0", 5), [1], [1])),
            "describes the numbers '0' in two ways",
        ),
        (call(name("torch._utils", "_rebuild_parameter"), integer(1)), "has a int where a Tensor"),
    ],
)
def test_sizes(write, entry, message, tmp_path):
    write(tmp_path / "file", table({"a": entry}), {"0": NUMBERS["0"]})
    refused(tmp_path / "file", message)


# Files that are not whole, or not PyTorch's ------------------------------------------------------


@pytest.mark.parametrize("path", FILES[:1] + FILES[2:3], ids=["zip", "stream"])
def test_cut_short_anywhere(path, tmp_path):
    data = path.read_bytes()
    for end in [0, 1, 2, 10, *range(40, len(data), 97), len(data) - 1]:
        (tmp_path / "file").write_bytes(data[:end])
        refused(tmp_path / "file", "cut short|claims")


@pytest.mark.parametrize("path", FILES[:1] + FILES[2:3], ids=["zip", "stream"])
def test_any_byte_may_be_wrong(path, tmp_path):
    """Whatever was damaged, there is one kind of error, or arrays."""
    data = path.read_bytes()
    random = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(data)
        for place in random.integers(0, len(data), 3):
            damaged[place] = random.integers(256)
        (tmp_path / "file").write_bytes(damaged)
        try:
            arrays = read_state_dict(tmp_path / "file")
        except ValueError as error:
            # Not `pytest.raises`: of some damage nothing can be noticed.
            assert str(error).startswith(str(tmp_path / "file"))  # noqa: PT017
        else:
            assert all(isinstance(array, np.ndarray) for array in arrays.values())


def test_packed_members(tmp_path):
    """PyTorch packs nothing, so that no member is larger than the file: a zip bomb is seen by that."""
    entries = table({"a": tensor(storage("0", 10**6), [10**6], [1])})
    numbers = {"0": np.zeros(10**6, "f4")}
    write_zip(tmp_path / "file", entries, numbers, compression=zipfile.ZIP_DEFLATED)
    refused(tmp_path / "file", "has packed its member 'archive/data.pkl', which PyTorch never does")
    with zipfile.ZipFile(tmp_path / "file", "w") as archive:
        archive.writestr("archive/data.pkl", whole(entries))
        archive.writestr("archive/data/0", numbers["0"].tobytes(), zipfile.ZIP_DEFLATED)
    refused(tmp_path / "file", "claims 4000000 bytes of numbers")
    with zipfile.ZipFile(tmp_path / "file", "w") as archive:
        # Room for the claim.
        archive.writestr("archive/data.pkl", whole(entries))
        archive.writestr("archive/data/0", numbers["0"].tobytes(), zipfile.ZIP_DEFLATED)
        archive.writestr("archive/more", bytes(4_000_000))
    refused(tmp_path / "file", "has packed its member 'archive/data/0'")


def test_other_zips(tmp_path):
    with zipfile.ZipFile(tmp_path / "file", "w") as archive:
        archive.writestr("readme", "hello")
    refused(tmp_path / "file", "is a zip with 0 members 'data.pkl' instead of one")
    with zipfile.ZipFile(tmp_path / "file", "w") as archive:
        archive.writestr("a/data.pkl", whole(b"}"))
        archive.writestr("b/data.pkl", whole(b"}"))
    refused(tmp_path / "file", "is a zip with 2 members")


def test_big_endian(tmp_path):
    message = "was written on a big-endian machine"
    write_zip(tmp_path / "file", b"}", byteorder=b"big")
    refused(tmp_path / "file", message)
    write_zip(tmp_path / "file", b"}", byteorder=b"little")
    assert read_state_dict(tmp_path / "file") == {}
    write_stream(tmp_path / "file", b"}", system=table({"little_endian": b"\x89"}))
    refused(tmp_path / "file", message)


def test_a_page_in_place_of_the_file(tmp_path):
    (tmp_path / "file").write_bytes(b"<!DOCTYPE html><html>Too many requests</html>")
    refused(tmp_path / "file", "is no file of PyTorch weights")


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_state_dict(tmp_path / "file")
