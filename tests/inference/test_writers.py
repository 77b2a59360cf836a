"""Writers: what the files hold and how other programs find it."""

import errno
import io
import json
import zipfile

import h5py
import numpy as np
import pytest

from keras_elmo.inference import writers
from keras_elmo.inference.writers import Embedded, row_blocks, writer_for


def embedded(lengths, layers=None, dim=4, text="line {}"):
    random = np.random.default_rng(0)
    return [
        Embedded(
            text.format(k),
            [f"t{i}" for i in range(n)],
            random.normal(size=(n, dim) if layers is None else (layers, n, dim)).astype("float32"),
        )
        for k, n in enumerate(lengths)
    ]


def write(path, sentences):
    writer_for(path)(path, lambda: iter(sentences), len(sentences))
    return path


def test_hdf5_is_as_h5py_itself_would_write_it(tmp_path):
    sentences = embedded([2, 0, 3] + [1] * 9, layers=3)
    with h5py.File(write(tmp_path / "a.hdf5", sentences), "r") as file:
        # As strings: "10" comes before "2".
        assert list(file) == sorted([*map(str, range(12)), "sentence_to_index"])
        for k, sentence in enumerate(sentences):
            dataset = file[str(k)]
            assert dataset.dtype == np.float32
            assert dataset.dtype.byteorder in "<="
            assert dataset.shape == sentence.vectors.shape
            np.testing.assert_array_equal(dataset[()], sentence.vectors)
        index = file["sentence_to_index"]
        assert index.shape == (1,)
        assert h5py.check_string_dtype(index.dtype).encoding == "utf-8"
        assert json.loads(index[0])["line 11"] == "11"


def test_hdf5_is_the_same_at_any_time(tmp_path):
    one, two = (write(tmp_path / name, embedded([2, 0, 1])) for name in ("a.h5", "b.h5"))
    assert one.read_bytes() == two.read_bytes()


def test_any_text_is_found_in_the_index(tmp_path):
    texts = ["a/b c", "", "猫 🐈", 'quote " \\', "nul \0 and \u2028", "a/b c"]
    sentences = [
        sentence._replace(text=text)
        for sentence, text in zip(embedded([1] * len(texts)), texts, strict=True)
    ]
    with h5py.File(write(tmp_path / "a.hdf5", sentences), "r") as file:
        index = json.loads(file["sentence_to_index"][0])
    assert index == {text: str(k) for k, text in enumerate(texts)}
    assert index["a/b c"] == "5"


@pytest.mark.parametrize(("count", "has_index"), [(3, True), (4, False)])
def test_the_index_is_left_out_of_long_files(tmp_path, monkeypatch, count, has_index):
    monkeypatch.setattr(writers, "MAX_SENTENCES_IN_INDEX", 3)
    with h5py.File(write(tmp_path / "a.hdf5", embedded([1] * count)), "r") as file:
        assert len(file) == count + has_index
        assert ("sentence_to_index" in file) == has_index


@pytest.mark.parametrize("layers", [None, 3])
def test_npz_is_one_array_and_the_lengths(tmp_path, layers):
    sentences = embedded([2, 0, 3, 1], layers)
    with np.load(write(tmp_path / "a.npz", sentences)) as file:
        assert sorted(file) == ["lengths", "vectors"]
        assert file["lengths"].dtype == np.int64
        assert file["lengths"].tolist() == [2, 0, 3, 1]
        assert file["vectors"].dtype == np.float32
        expected = np.concatenate([sentence.vectors for sentence in sentences], axis=-2)
        np.testing.assert_array_equal(file["vectors"], expected)
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        assert archive.testzip() is None


@pytest.mark.parametrize("layers", [None, 3])
def test_jsonl_keeps_every_bit(tmp_path, layers):
    sentences = embedded([2, 0, 3], layers)
    sentences[0].vectors[..., 0, 0] = np.float32(1e-42)
    sentences[2].tokens[:] = ["猫", 'a"b', "\0"]
    lines = write(tmp_path / "a.jsonl", sentences).read_text(encoding="utf-8").split("\n")
    assert lines.pop() == ""
    for line, sentence in zip(lines, sentences, strict=True):
        content = json.loads(line)
        assert content.keys() == {"tokens", "vectors"}
        assert content["tokens"] == sentence.tokens
        vectors = np.array(content["vectors"], np.float32).reshape(sentence.vectors.shape)
        np.testing.assert_array_equal(vectors, sentence.vectors)


@pytest.mark.parametrize("name", ["a.hdf5", "a.npz", "a.jsonl"])
def test_no_sentence_at_all(tmp_path, name):
    path = write(tmp_path / name, [])
    if name == "a.hdf5":
        with h5py.File(path, "r") as file:
            assert list(file) == ["sentence_to_index"]
            assert file["sentence_to_index"][0] == b"{}"
    elif name == "a.npz":
        with np.load(path) as file:
            assert file["vectors"].size == 0
            assert file["lengths"].tolist() == []
    else:
        assert path.read_bytes() == b""


@pytest.mark.parametrize("layers", [None, 3])
@pytest.mark.parametrize("name", ["a.hdf5", "a.npz", "a.jsonl"])
def test_large_arrays_are_copied_in_blocks(tmp_path, monkeypatch, name, layers):
    sentences = embedded([2, 40, 0, 17], layers)
    # The large one lies in a file.
    values = np.memmap(tmp_path / "vectors", np.float32, "w+", shape=sentences[1].vectors.shape)
    values[:] = sentences[1].vectors
    mapped = [sentence._replace(vectors=sentence.vectors) for sentence in sentences]
    mapped[1] = mapped[1]._replace(vectors=values)
    whole = write(tmp_path / f"whole{name}", sentences)
    monkeypatch.setattr(writers, "BYTES_PER_BLOCK", 100)
    blocks = write(tmp_path / name, mapped)
    if name == "a.hdf5":
        with h5py.File(whole, "r") as one, h5py.File(blocks, "r") as other:
            assert list(one) == list(other)
            for k in range(4):
                np.testing.assert_array_equal(one[str(k)][()], other[str(k)][()])
    elif name == "a.npz":
        with np.load(whole) as one, np.load(blocks) as other:
            np.testing.assert_array_equal(one["vectors"], other["vectors"])
    else:
        assert whole.read_bytes() == blocks.read_bytes()


def test_row_blocks_are_contiguous_and_in_order(monkeypatch):
    monkeypatch.setattr(writers, "BYTES_PER_BLOCK", 64)
    array = np.arange(2 * 7 * 4, dtype=np.float32).reshape(2, 7, 4)
    blocks = list(row_blocks(array))
    assert [len(block) for block in blocks] == [2, 2, 2, 1] * 2
    assert all(block.flags.c_contiguous for block in blocks)
    np.testing.assert_array_equal(np.concatenate(blocks), array.reshape(14, 4))
    assert list(row_blocks(array[:, :0])) == []
    assert len(list(row_blocks(np.zeros((3, 100), np.float32)))) == 3


@pytest.mark.parametrize("room", [0, 100, 1000, 50_000])
def test_hdf5_on_a_full_disk_is_one_error(tmp_path, monkeypatch, room):
    # The HDF5 library itself crashes the process then: it must never hear of it.
    class SmallDisk(io.FileIO):
        left = room

        def write(self, data):
            self.left -= len(data)
            if self.left < 0:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(data)

    def open_there(path, mode, buffering):
        return SmallDisk(path, mode)

    monkeypatch.setattr(writers, "open", open_there, raising=False)
    taken = []

    def sentences():
        for k, sentence in enumerate(embedded([3] * 2000)):
            taken.append(k)
            yield sentence

    with pytest.raises(OSError, match="No space left on device") as caught:
        writers.write_hdf5(tmp_path / "a.hdf5", sentences, 2000)
    assert caught.value.errno == errno.ENOSPC
    assert len(taken) < 2000


@pytest.mark.parametrize("name", ["a", "a.txt", "a.HDF5", "hdf5", ".npz", "a.hdf5.gz"])
def test_unknown_endings_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"must end in one of \.hdf5, \.h5, \.npz, \.jsonl\."):
        writer_for(tmp_path / name)
