"""embed_files: every input there is, every way it can end, and never a file that is not whole."""

import bz2
import errno
import functools
import gzip
import io
import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import textwrap

import h5py
import numpy as np
import pytest
import reference
from test_reference import VARIANTS

from keras_elmo.checkpoints import load_checkpoint
from keras_elmo.inference import Embedder, Progress, embed_files, embedder, rows, writers

# The function hides its module.
MODULE = sys.modules["keras_elmo.inference.embed_files"]
LINES = [f"The bank {k} is near" + " ." * (k % 5) for k in range(40)]


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    options = VARIANTS["plain"]
    weights = reference.random_model(options, seed=1)
    return reference.write_model(tmp_path_factory.mktemp("model"), options, weights)


@pytest.fixture(scope="module")
def make(model_folder):
    """`make(layers="top", ..)`: an Embedder, one for each set of arguments."""

    @functools.cache
    def make(layers="top", **arguments):
        return Embedder(load_checkpoint(model_folder).model, layers, **arguments)

    return make


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def small_windows(monkeypatch):
    """Five sentences a shard: 40 lines make eight."""
    monkeypatch.setattr(embedder, "SENTENCES_PER_WINDOW", 5)


@pytest.fixture
def text(folder):
    (folder / "text.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return "text.txt"


def content(path):
    """Everything in an HDF5 file."""
    with h5py.File(path, "r") as file:
        return {name: file[name][()] for name in file}


def same(one, other):
    one, other = content(one), content(other)
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name])


def names(folder):
    """All that lies in a folder, hidden files too."""
    return sorted(os.listdir(folder))


# What is in the file


@pytest.mark.parametrize(
    ("layers", "shape"),
    [("all", (3, 2, 12)), ("top", (2, 12)), ("average", (2, 12)), ("word", (2, 6))],
)
def test_layout_of_bilm_tf_and_allennlp(folder, make, layers, shape):
    # User problem 50
    (folder / "in.txt").write_text("a/b c\n\na/b c\nx\n")
    subject = make(layers)
    assert embed_files(["in.txt"], "out.hdf5", subject, "tokens") == 4
    with h5py.File("out.hdf5", "r") as file:
        assert sorted(file) == ["0", "1", "2", "3", "sentence_to_index"]
        for name, length in (("0", 2), ("1", 0), ("2", 2), ("3", 1)):
            assert file[name].shape == (*shape[:-2], length, shape[-1])
            assert file[name].dtype == np.float32
        assert file["sentence_to_index"].shape == (1,)
        index = json.loads(file["sentence_to_index"][0])
        assert index == {"a/b c": "2", "": "1", "x": "3"}
        expected = list(subject.embed([["a/b", "c"], [], ["a/b", "c"], ["x"]]))
        for k, vectors in enumerate(expected):
            np.testing.assert_allclose(file[str(k)][()], vectors, rtol=0, atol=1e-6)
    assert names(folder) == ["in.txt", "out.hdf5"]


@pytest.mark.parametrize("layers", ["all", "top"])
def test_all_formats_have_the_same_numbers(folder, make, layers):
    (folder / "in.txt").write_text("It's near.\n\nx\n")
    for name in ("out.hdf5", "out.h5", "out.npz", "out.jsonl"):
        assert embed_files("in.txt", name, make(layers)) == 3
    same("out.hdf5", "out.h5")
    vectors = [content("out.hdf5")[str(k)] for k in range(3)]
    assert [array.shape[-2] for array in vectors] == [4, 0, 1]
    with np.load("out.npz") as file:
        assert file["lengths"].tolist() == [4, 0, 1]
        np.testing.assert_array_equal(file["vectors"], np.concatenate(vectors, axis=-2))
    text = (folder / "out.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [line["tokens"] for line in lines] == [["It", "'s", "near", "."], [], ["x"]]
    for line, array in zip(lines, vectors, strict=True):
        np.testing.assert_array_equal(
            np.array(line["vectors"], np.float32).reshape(array.shape), array
        )


@pytest.mark.parametrize(("limit", "has_index"), [(4, True), (3, False)])
def test_long_files_have_no_index(folder, make, monkeypatch, limit, has_index):
    monkeypatch.setattr(writers, "MAX_SENTENCES_IN_INDEX", limit)
    (folder / "in.txt").write_text("a\nb\n\nd\n")
    embed_files("in.txt", "out.hdf5", make())
    assert ("sentence_to_index" in content("out.hdf5")) == has_index


def test_formats_of_input(folder, make):
    (folder / "plain.txt").write_text("It's near.\n")
    (folder / "tokens.txt").write_text("It 's  near .\n")
    rows = ["1-2\tIt's", "1\tIt", "2\t's", "3\tnear", "4\t."]
    (folder / "a.conllu").write_text("".join(row + "\t_" * 8 + "\n" for row in rows))
    for name, format in (("plain.txt", "plain"), ("tokens.txt", "tokens"), ("a.conllu", "conllu")):
        assert embed_files(name, f"{format}.hdf5", make(), format) == 1
    one, two, three = (content(f"{f}.hdf5") for f in ("plain", "tokens", "conllu"))
    assert one["0"].shape == (4, 12)
    np.testing.assert_array_equal(one["0"], two["0"])
    np.testing.assert_array_equal(one["0"], three["0"])
    assert one["sentence_to_index"][0] == b'{"It\'s near.": "0"}'
    assert two["sentence_to_index"][0] == three["sentence_to_index"][0] == b'{"It \'s near .": "0"}'


def test_several_files_compressed_and_not(folder, make, text):
    data = (folder / text).read_bytes()
    (folder / "a.gz").write_bytes(gzip.compress(data[:200]))
    (folder / "b").write_bytes(lzma.compress(data[200:]))
    embed_files([text], "one.hdf5", make())
    (folder / "whole.gz").write_bytes(gzip.compress(data))
    embed_files([folder / "whole.gz"], folder / "two.hdf5", make())
    same("one.hdf5", "two.hdf5")
    assert (
        embed_files(["a.gz", "b"], "three.hdf5", make()) == len(LINES) + 1
    )  # cut inside of a line


def test_standard_input_and_pipes_cannot_be_counted_beforehand(folder, make, text, monkeypatch):
    data = (folder / text).read_bytes()
    embed_files(text, "one.hdf5", make())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    told = []
    embed_files("-", "two.hdf5", make(), on_progress=told.append)
    same("one.hdf5", "two.hdf5")
    assert {progress.total_sentences for progress in told} == {None, len(LINES)}
    assert {progress.stage for progress in told} == {"embedding", "writing"}
    # As in `embed <(zcat ..)`: what was read once is gone.
    reader, writer = os.pipe()
    with open(writer, "wb") as file:
        file.write(data)
    try:
        assert embed_files([f"/dev/fd/{reader}"], "three.hdf5", make()) == len(LINES)
    finally:
        os.close(reader)
    same("one.hdf5", "three.hdf5")


def test_progress(folder, make, text, small_windows):
    told = []
    embed_files(text, "out.hdf5", make(), on_progress=told.append)
    assert told[0] == Progress(0, None, 0, "counting")
    assert told[1] == Progress(0, 40, 0, "embedding")
    assert told[-1] == Progress(40, 40, 40 * 5 + sum(k % 5 for k in range(40)), "writing")
    done = [progress.num_sentences for progress in told]
    assert done == sorted(done)
    assert len(done) >= 10


@pytest.mark.parametrize(
    ("data", "lengths"),
    [
        (b"", []),
        (b"\n", [0]),
        (b"\n\n  \n", [0, 0, 0]),
        (b"a b\r\n\r\nc\r\n", [2, 0, 1]),
        (b"a\0b\nc", [2, 1]),
        (b"\xef\xbb\xbfa", [1]),
        ("a\u2028b\u0085c".encode(), [3]),
    ],
    ids=["empty", "blank", "blanks", "CRLF", "NUL", "byte order mark", "other line ends"],
)
@pytest.mark.parametrize("output", ["out.hdf5", "out.npz", "out.jsonl"])
def test_odd_files(folder, make, data, lengths, output):
    (folder / "in.txt").write_bytes(data)
    assert embed_files("in.txt", output, make()) == len(lengths)
    if output == "out.hdf5":
        found = content(output)
        found.pop("sentence_to_index")
        assert [len(found[str(k)]) for k in range(len(found))] == lengths
    elif output == "out.npz":
        with np.load(output) as file:
            assert file["lengths"].tolist() == lengths
            assert len(file["vectors"]) == sum(lengths)
    else:
        lines = (folder / output).read_text(encoding="utf-8").split("\n")[:-1]
        assert [len(json.loads(line)["vectors"]) for line in lines] == lengths
    assert names(folder) == ["in.txt", output]


@pytest.mark.parametrize("line", ["x" * 44_000, "ab " * 14_667], ids=["one word", "words"])
def test_a_line_of_44000_characters(folder, make, line):
    # User problem 48
    (folder / "in.txt").write_text(f"short\n{line}\nshort\n")
    assert embed_files("in.txt", "out.hdf5", make()) == 3
    found = content("out.hdf5")
    assert found["1"].shape == (len(line.split()), 12)
    np.testing.assert_allclose(found["0"], found["2"], rtol=0, atol=1e-6)


def test_vectors_in_files_come_through(folder, make, monkeypatch):
    (folder / "in.txt").write_text("a\n" + "b c " * 50 + "\nd e\n")
    for layers in ("top", "all"):
        monkeypatch.setattr(make(layers), "batch_tokens", 16)
        embed_files("in.txt", f"{layers}.hdf5", make(layers))
    monkeypatch.setattr(rows, "MAX_BYTES_IN_MEMORY", 1000)
    monkeypatch.setattr(MODULE, "MAX_BYTES_IN_MEMORY", 1000)
    monkeypatch.setattr(writers, "BYTES_PER_BLOCK", 500)
    for layers in ("top", "all"):
        embed_files("in.txt", "mapped.hdf5", make(layers))
        same(f"{layers}.hdf5", "mapped.hdf5")
        os.remove("mapped.hdf5")


# Bad input: one sentence, before anything is computed, and nothing left behind


@pytest.mark.parametrize(
    ("data", "format", "message"),
    [
        (
            b"fine\n" * 9 + b"caf\xe9\n",
            "plain",
            r"in\.txt, line 10, byte 3: the text must be UTF-8",
        ),
        ("Grüße\n".encode("utf-16"), "plain", r"in\.txt, line 1, byte 0.*looks like UTF-16"),
        (b"\xed\xa0\x80", "plain", r"in\.txt, line 1, byte 0: the text must be UTF-8"),
        (b"1\tThe\n", "conllu", r"in\.txt, line 1: CoNLL-U has 10 columns"),
        (gzip.compress(b"a\n" * 5000)[:-9], "plain", r"in\.txt: the compressed file is cut short"),
        (lzma.compress(b"a\n" * 5000)[:-9], "plain", r"in\.txt: the compressed file is cut short"),
        (bz2.compress(b"a"), "plain", r"in\.txt, line 1, byte \d+: the text must be UTF-8"),
    ],
    ids=["Latin-1", "UTF-16", "surrogate", "CoNLL-U", "gzip", "xz", "bzip2"],
)
def test_bad_input(folder, make, monkeypatch, data, format, message):
    (folder / "good.txt").write_bytes(
        b"1\tThe" + b"\t_" * 8 + b"\n" if format == "conllu" else b"a"
    )
    (folder / "in.txt").write_bytes(data)
    monkeypatch.setattr(Embedder, "windows", lambda *_: pytest.fail("computed something"))
    with pytest.raises(ValueError, match=message):
        embed_files(["good.txt", "in.txt"], "out.hdf5", make(), format)
    assert names(folder) == ["good.txt", "in.txt"]


def test_bad_standard_input_leaves_nothing_if_nothing_was_done(folder, make, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\nb\n\xff")))
    with pytest.raises(ValueError, match="standard input, line 3, byte 0: the text must be UTF-8"):
        embed_files("-", "out.hdf5", make())
    assert names(folder) == []


def test_missing_files_folders_and_formats(folder, make, text):
    for inputs, format, message in (
        (["gone.txt"], "plain", "path='gone.txt', which does not exist"),
        ([text, "gone.txt"], "plain", "path='gone.txt', which does not exist"),
        (["."], "plain", "path='.', which is a folder"),
        ([text], "csv", "`format` must be one of .* Received: format='csv'"),
        (["-"], "csv", "`format` must be one of .* Received: format='csv'"),
        ([], "plain", "`inputs` must name at least one file"),
    ):
        with pytest.raises(ValueError, match=message):
            embed_files(inputs, "out.hdf5", make(), format)
    assert names(folder) == [text]


# Bad output


def test_the_output_may_not_be_an_input(folder, make):
    (folder / "sub").mkdir()
    (folder / "text.hdf5").write_text("a\n")
    (folder / "link.hdf5").symlink_to("text.hdf5")
    for output in ("text.hdf5", "link.hdf5", "sub/../text.hdf5", folder / "text.hdf5"):
        with pytest.raises(ValueError, match="output .*hdf5 is one of the inputs. Give it another"):
            embed_files(["text.hdf5"], output, make())
        with pytest.raises(ValueError, match="output .*hdf5 is one of the inputs. Give it another"):
            embed_files(["link.hdf5"], output, make())
    assert (folder / "text.hdf5").read_text() == "a\n"


@pytest.mark.parametrize("resume", [False, True])
def test_what_is_there_is_kept(folder, make, text, resume):
    (folder / "out.hdf5").write_text("precious")
    (folder / "dangling.hdf5").symlink_to("gone.hdf5")
    (folder / "folder.hdf5").mkdir()
    for output in ("out.hdf5", "dangling.hdf5", "folder.hdf5"):
        with pytest.raises(
            ValueError, match=f"{output} exists already. Remove it, or give another"
        ):
            embed_files(text, output, make(), resume=resume)
    assert (folder / "out.hdf5").read_text() == "precious"
    assert names(folder) == ["dangling.hdf5", "folder.hdf5", "out.hdf5", text]


def test_missing_folders_are_made(folder, make, text):
    embed_files(text, "a/b/out.hdf5", make())
    assert names("a/b") == ["out.hdf5"]


def test_a_file_is_no_folder(folder, make, text):
    for output in (f"{text}/out.hdf5", f"{text}/deeper/out.hdf5"):
        with pytest.raises(ValueError, match=r"cannot be written: .*text\.txt is not a folder\."):
            embed_files(text, output, make())


def test_a_write_protected_folder(folder, make, text, monkeypatch):
    (folder / "protected").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: path.name != "protected")
    for output in ("protected/out.hdf5", "protected/deeper/out.hdf5"):
        with pytest.raises(ValueError, match="cannot be written: the folder .*protected is write-"):
            embed_files(text, output, make())
    assert names("protected") == []


def test_a_folder_that_only_turns_out_to_be_write_protected(folder, make, text, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", "/some/hidden/name")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    with pytest.raises(OSError, match=r"^out\.hdf5 cannot be written: Permission denied\.$"):
        embed_files(text, "out.hdf5", make())


def test_an_unknown_ending(folder, make, text):
    with pytest.raises(
        ValueError, match=r"out\.txt must end in one of \.hdf5, \.h5, \.npz, \.jsonl"
    ):
        embed_files(text, "out.txt", make())
    assert names(folder) == [text]


# Interrupted


class Killed(BaseException):
    """Stands for the end of the process: nothing is tidied up."""


@pytest.fixture
def kill_at(monkeypatch):
    """`kill_at(n)`: the run ends before its n-th change of a file's name or content; returns whether it did."""

    def kill_at(n, run):
        count = 0

        def counted(function):
            def call(*args, **kwargs):
                nonlocal count
                count += 1
                if count > n:
                    raise Killed
                return function(*args, **kwargs)

            return call

        with monkeypatch.context() as patch:
            patch.setattr(MODULE, "open", counted(open), raising=False)
            patch.setattr(writers, "_write_dataset", counted(writers._write_dataset))
            for name in ("replace", "write_text", "mkdir"):
                patch.setattr(MODULE.Path, name, counted(getattr(MODULE.Path, name)))
            rmtree = shutil.rmtree
            patch.setattr(
                shutil,
                "rmtree",
                lambda path, **kw: counted(rmtree)(path, **kw) if count <= n else None,
            )
            patch.setattr(MODULE.Path, "unlink", lambda *_, **__: None)
            patch.setattr(MODULE._Shards, "close", lambda self: None)
            try:
                run()
            except Killed:
                return True
            return False

    return kill_at


def test_killed_anywhere_and_resumed_gives_the_same_file(
    folder, make, text, small_windows, kill_at
):
    (folder / text).write_text("\n".join(LINES[:13]))
    embed_files(text, "undisturbed.hdf5", make())
    for n in range(1000):
        output = f"out{n}.hdf5"
        killed = kill_at(n, lambda output=output: embed_files(text, output, make()))
        if os.path.exists(output):
            # Killed after the output had got its name: it is whole.
            same("undisturbed.hdf5", output)
        else:
            assert killed
            assert embed_files(text, output, make(), resume=True) == 13
            same("undisturbed.hdf5", output)
            assert not os.path.exists(f"{output}.part")
        os.remove(output)
        if not killed:
            break
    assert n > 25


def interrupt(make, text, output="out.hdf5", after=12, error=KeyboardInterrupt, **arguments):
    def stop(progress):
        if progress.num_sentences >= after:
            raise error

    with pytest.raises(error):
        embed_files(text, output, make(), on_progress=stop, **arguments)


def test_resume_does_only_what_is_left(folder, make, text, small_windows):
    embed_files(text, "undisturbed.hdf5", make())
    interrupt(make, text, after=12)
    assert names(folder) == ["out.hdf5.part", "text.txt", "undisturbed.hdf5"]
    interrupt(make, text, after=28, resume=True)
    told = []
    assert embed_files(text, "out.hdf5", make(), resume=True, on_progress=told.append) == 40
    assert told[1] == Progress(25, 40, 0, "embedding")
    words = [len(line.split()) for line in LINES]
    assert told[-1] == Progress(40, 40, sum(words[25:]), "writing")
    same("undisturbed.hdf5", "out.hdf5")
    assert names(folder) == ["out.hdf5", "text.txt", "undisturbed.hdf5"]


def test_an_unfinished_run_is_not_overrun(folder, make, text, small_windows):
    interrupt(make, text)
    with pytest.raises(
        ValueError, match=r"unfinished run in out\.hdf5\.part. Go on with it by `--res"
    ):
        embed_files(text, "out.hdf5", make())
    assert embed_files(text, "out.hdf5", make(), resume=True) == 40


def test_ctrl_c_before_the_first_shard_leaves_nothing(folder, make, text):
    interrupt(make, text, after=1)
    assert names(folder) == [text]


def test_nothing_to_resume_simply_starts(folder, make, text):
    assert embed_files(text, "out.hdf5", make(), resume=True) == 40
    with pytest.raises(
        ValueError, match="out.hdf5 exists already. Remove it, or give another name"
    ):
        embed_files(text, "out.hdf5", make(), resume=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layers": "word"}, "had layers='top'. Received: layers='word'. Give the same, or remove"),
        ({"batch_tokens": 7}, "had batch_tokens=2048. Received: batch_tokens=7. Give the same"),
        ({"tokenizer": "whitespace"}, "had tokenizer='word'. Received: tokenizer='whitespace'"),
    ],
)
def test_resume_with_other_settings_is_refused(
    folder, make, text, small_windows, arguments, message
):
    interrupt(make, text)
    with pytest.raises(ValueError, match=f"unfinished run in out.hdf5.part {message}"):
        embed_files(text, "out.hdf5", make(**arguments), resume=True)
    with pytest.raises(ValueError, match="had format='plain'. Received: format='tokens'"):
        embed_files(text, "out.hdf5", make(), "tokens", resume=True)
    assert embed_files(text, "out.hdf5", make(), resume=True) == 40


def test_resume_with_another_model_is_refused(folder, make, text, small_windows, model_folder):
    interrupt(make, text)
    other = load_checkpoint(model_folder).model
    other.scalar_mix.gamma.assign(2.0)
    mild = load_checkpoint(model_folder, layer_norm="sentence").model
    for model in (other, mild):
        with pytest.raises(
            ValueError, match="had another model. Give the same, or remove the folder"
        ):
            embed_files(text, "out.hdf5", Embedder(model, "top"), resume=True)
    # What does not change the vectors does not matter.
    again = load_checkpoint(model_folder, trainable_bilm=True).model
    assert embed_files(text, "out.hdf5", Embedder(again, "top"), resume=True) == 40


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: ["Another", *lines[1:]],
        lambda lines: [*lines[:9], lines[9] + " ", *lines[10:]],
        lambda lines: lines[1:],
        lambda lines: lines[:7],
        lambda lines: [],
    ],
    ids=["first", "space", "shifted", "shorter", "empty"],
)
def test_resume_with_other_text_is_refused(folder, make, text, small_windows, change):
    interrupt(make, text)
    (folder / text).write_text("".join(f"{line}\n" for line in change(LINES)))
    with pytest.raises(ValueError, match="text is not that of the unfinished run in out.hdf5.part"):
        embed_files(text, "out.hdf5", make(), resume=True)
    assert not os.path.exists("out.hdf5")
    (folder / text).write_text("\n".join(LINES))
    assert embed_files(text, "out.hdf5", make(), resume=True) == 40


def test_blank_lines_that_are_gone_are_other_text(folder, make, small_windows):
    (folder / "in.txt").write_text("a\n" + "\n" * 14)
    interrupt(make, "in.txt", after=12)
    (folder / "in.txt").write_text("a\n")
    with pytest.raises(ValueError, match="something in the first 10 sentences has changed"):
        embed_files("in.txt", "out.hdf5", make(), resume=True)


def test_text_behind_what_was_done_may_change(folder, make, text, small_windows):
    interrupt(make, text)
    (folder / text).write_text("\n".join(LINES[:20]))
    assert embed_files(text, "out.hdf5", make(), resume=True) == 20


def test_a_shard_that_lost_its_end_is_done_again(folder, make, text, small_windows):
    embed_files(text, "undisturbed.hdf5", make())
    interrupt(make, text, after=28)
    os.truncate("out.hdf5.part/00000002.vectors", 100)
    told = []
    embed_files(text, "out.hdf5", make(), resume=True, on_progress=told.append)
    assert told[1].num_sentences == 10
    same("undisturbed.hdf5", "out.hdf5")


def test_a_folder_of_that_name_is_not_touched(folder, make, text):
    (folder / "out.hdf5.part").mkdir()
    (folder / "out.hdf5.part" / "mine.txt").write_text("precious")
    for resume, message in (
        (False, "unfinished run in out.hdf5.part"),
        (True, "is not an unfinished"),
    ):
        with pytest.raises(ValueError, match=message):
            embed_files(text, "out.hdf5", make(), resume=resume)
    assert names("out.hdf5.part") == ["mine.txt"]


def test_too_little_room_for_the_output(folder, make, text, small_windows, monkeypatch):
    embed_files(text, "undisturbed.hdf5", make())
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9, 8, 1))
        with pytest.raises(
            OSError, match=r"the disk has 0 MB free and the output needs 0 MB\. What is"
        ):
            embed_files(text, "out.hdf5", make())
    assert names("out.hdf5.part")[-1] == "settings.json"
    assert embed_files(text, "out.hdf5", make(), resume=True) == 40
    same("undisturbed.hdf5", "out.hdf5")


# Other processes

PROGRAM = textwrap.dedent(
    """
    import resource, sys
    from keras_elmo.inference import Embedder, embed_files, embedder, rows
    def run(input, output, model, window=5, layers="top", on_progress=lambda progress: None, **arguments):
        embedder.SENTENCES_PER_WINDOW = window
        resume = arguments.pop("resume", False)
        subject = Embedder(model, layers, **arguments)
        return embed_files(input, output, subject, resume=resume, on_progress=on_progress)
    """
)


def start(program, *args, **options):
    command = [sys.executable, "-c", PROGRAM + textwrap.dedent(program), *map(str, args)]
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, env=environment, **options
    )


def finish(process):
    output, errors = process.communicate(timeout=500)
    assert process.returncode == 0, errors
    return output


def test_killed_by_the_system_and_resumed(folder, make, text, model_folder, small_windows):
    embed_files(text, "undisturbed.hdf5", make())
    program = """
        import time
        moment = int(sys.argv[3])
        def show(progress):
            global moment
            print(progress.stage, progress.num_sentences, flush=True)
            moment -= 1
            if moment == 0:
                time.sleep(600)  # here it is killed
        run(sys.argv[1], "out.hdf5", sys.argv[2], on_progress=show, resume=True)
    """
    done = 0
    for moment in np.random.default_rng().integers(3, 8, 2):
        process = start(program, text, model_folder, str(moment))
        for _, line in zip(range(moment), process.stdout, strict=False):
            done = max(done, int(line.split()[1]))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert not os.path.exists("out.hdf5")
    told = []
    assert embed_files(text, "out.hdf5", make(), resume=True, on_progress=told.append) == 40
    assert told[1].num_sentences >= done - 5
    same("undisturbed.hdf5", "out.hdf5")
    assert names(folder) == ["out.hdf5", text, "undisturbed.hdf5"]


def test_full_disk(folder, make, text, model_folder, small_windows):
    embed_files(text, "undisturbed.hdf5", make())
    program = """
        import os, shutil
        for size, output in ((8000, "output.hdf5"), (600, "shard.hdf5")):
            def limit(progress):
                if progress.num_sentences >= 12:
                    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
            try:
                run(sys.argv[1], output, sys.argv[2], on_progress=limit)
            except OSError as error:
                print(error)
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    """
    process = start(program, text, model_folder)
    lines = finish(process).splitlines()
    assert lines == [
        f"{name}.hdf5 cannot be written: File too large. What is done is kept in {name}.hdf5.part: "
        "`--resume` goes on from there."
        for name in ("output", "shard")
    ]
    assert "output.hdf5" not in names("output.hdf5.part")
    for name, done in (("output.hdf5", 40), ("shard.hdf5", 10)):
        told = []
        assert embed_files(text, name, make(), resume=True, on_progress=told.append) == 40
        assert told[1].num_sentences == done
        same("undisturbed.hdf5", name)


MEMORY = """
    BEFORE
    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    for number, input in enumerate(sys.argv[2:]):
        run(input, f"{number}.hdf5", MODEL, WINDOW, LAYERS)
        print(peak(), flush=True)
"""


def peaks(folder, model, inputs, window=8192, layers="top", before=""):
    program = MEMORY.replace("MODEL", repr(str(model))).replace("BEFORE", before)
    program = program.replace("WINDOW", str(window)).replace("LAYERS", repr(layers))
    output = finish(start(program, "-", *inputs))
    for number in range(len(inputs)):
        (folder / f"{number}.hdf5").unlink()
    return list(map(int, output.split()))


@pytest.fixture(scope="module")
def wide_model(tmp_path_factory):
    """Few weights and much output: 1 KiB per token and layer."""
    options = VARIANTS["plain"] | {
        "lstm": {"dim": 16, "projection_dim": 128, "n_layers": 1},
    }
    weights = reference.random_model(options, seed=1)
    return reference.write_model(tmp_path_factory.mktemp("model"), options, weights)


def short_lines(path, count):
    path.write_text("".join(f"line {k} is short\n" for k in range(count)))
    return path


def test_memory_does_not_grow_with_the_number_of_lines(folder, wide_model):
    inputs = [short_lines(folder / f"{n}.txt", n) for n in (3000, 3000, 15_000)]
    _, few, many = peaks(folder, wide_model, inputs, window=500)
    # The vectors of the lines more take 47 MiB.
    assert many - few < 20


def test_memory_does_not_grow_with_the_length_of_a_line(folder, wide_model):
    inputs = []
    for number, count in enumerate((3000, 3000, 21_000)):
        inputs.append(folder / f"{number}.txt")
        inputs[-1].write_text("The bank is " * (count // 3))
    limit = (
        f"rows.MAX_BYTES_IN_MEMORY = sys.modules['{MODULE.__name__}'].MAX_BYTES_IN_MEMORY = 2**20"
    )
    _, short, long = peaks(folder, wide_model, inputs, layers="all", before=limit)
    # The vectors of the tokens more take 35 MiB.
    assert long - short < 20


@pytest.mark.large
def test_memory_with_the_bundled_model(folder):
    inputs = [short_lines(folder / f"{n}.txt", n) for n in (25_000, 100_000)]
    for number, count in enumerate((10_000, 10_000, 100_000)):
        inputs.append(folder / f"long{number}.txt")
        inputs[-1].write_text("The bank is near it " * (count // 5))
    few, many, _, short, long = peaks(folder, "elmo_tiny_en", inputs, layers="all")
    assert many - few < 150
    # The vectors of the tokens more take 264 MiB.
    assert long - short < 60
