"""The command as a user types it. Most calls run in this process; what only a process has, runs in one."""

import functools
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile

import h5py
import numpy as np
import pytest
from paths import DATA

from keras_elmo import __version__, cli, load_model, tokenize_sentences
from keras_elmo.checkpoints import load_checkpoint
from keras_elmo.cli import compare

RIVER, MONEY = "the bank is near the river", "the bank is open for money"
CHINESE = ("我喜欢苹果。", "苹果公司很大。")
FIRST = ("compare", RIVER, MONEY, "--word", "bank")

# Keras' own saving asks NumPy 2 for its arrays in NumPy 1's way.
keras_saves = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy")


@functools.cache
def load_once(source):
    """A checkpoint that is loaded once, and its model not traced anew for sentences of another length."""
    checkpoint = load_checkpoint(source)
    checkpoint.model.run_eagerly = True
    return checkpoint


@pytest.fixture
def once(monkeypatch):
    """Loads each model once for all the tests that only look at the answer."""
    monkeypatch.setattr(compare, "load_checkpoint", load_once)


@pytest.fixture
def compared(command, once):
    """Runs `compare .. --json`: the object that it prints."""

    def run(*args):
        result = command("compare", "--json", *args)
        assert (result.code, result.err) == (0, "")
        return json.loads(result.out)

    return run


def in_process(*args, **options):
    """Runs the installed command in a process of its own."""
    program = shutil.which("keras-elmo", path=os.path.dirname(sys.executable)) or "keras-elmo"
    environment = {**os.environ, **options.pop("environment", {})}
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)
    return subprocess.Popen(
        [program, *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        **options,
    )


# --- compare ---


def test_compare_in_a_process_of_its_own():
    process = in_process(*FIRST)
    out, err = process.communicate()
    assert err == b""
    assert process.returncode == 0
    lines = out.decode().splitlines()
    assert lines[:2] == ["1  the [bank] is near the river", "2  the [bank] is open for money"]
    rows = [line.replace("│", " ").split() for line in lines if line.startswith("│")]
    assert rows[0] == ["0", "characters", "only", "1.000"]
    assert all(float(row[-1]) < 0.999 for row in rows[1:])


def test_compare_json_where_the_terminal_knows_no_letters_but_ascii():
    args = [
        *map(os.fsencode, CHINESE),
        b"--word",
        "苹果".encode(),
        b"--json",
        b"--oov",
        b"\xff",
        b"b",
    ]
    process = in_process("compare", *args, environment={"PYTHONIOENCODING": "ascii"})
    out, err = process.communicate()
    assert (process.returncode, err) == (0, b"")
    answer = json.loads(out)
    assert answer["word"] == "苹果"
    assert answer["oov"]["words"] == ["\udcff", "b"]


def test_reader_that_leaves_early():
    process = in_process(*FIRST)
    process.stdout.close()
    with process.stderr as errors:
        assert errors.read() == b""
    assert process.wait() == 1


def test_json_schema(compared):
    answer = compared(RIVER, MONEY, "the bank", "--word", "bank")
    assert list(answer) == ["word", "layers"]
    assert answer["word"] == "bank"
    assert [list(layer) for layer in answer["layers"]] == [["layer", "similarity"]] * 3
    assert [layer["layer"] for layer in answer["layers"]] == [0, 1, 2]
    matrices = np.array([layer["similarity"] for layer in answer["layers"]])
    assert matrices.shape == (3, 3, 3)
    np.testing.assert_array_equal(matrices, matrices.transpose(0, 2, 1))
    np.testing.assert_allclose(np.diagonal(matrices, axis1=1, axis2=2), 1, atol=1e-6)
    np.testing.assert_allclose(matrices[0], 1, atol=1e-6)
    assert (matrices[1:][:, ~np.eye(3, dtype=bool)] < 0.999).all()


def test_json_with_oov(compared):
    answer = compared(RIVER, MONEY, "--word", "bank", "--oov", "banker", "bankable")
    assert list(answer) == ["word", "layers", "oov"]
    assert answer["oov"]["words"] == ["banker", "bankable"]
    similarity = np.array(answer["oov"]["similarity"])
    assert similarity.shape == (2, 2)
    assert 0 < similarity[0, 1] < 0.999


def test_table_and_json_say_the_same(command, once):
    lines = command(*FIRST).out.splitlines()
    layers = json.loads(command(*FIRST, "--json").out)["layers"]
    shown = [line.replace("│", " ").split()[-1] for line in lines if line.startswith("│")]
    assert shown == [f"{layer['similarity'][0][1]:.3f}" for layer in layers]


def test_first_occurrence_counts(command, once):
    result = command("compare", "bank after bank", "the bank", "--word", "bank")
    assert result.out.startswith("1  [bank] after bank\n2  the [bank]\n")


def test_word_of_several_tokens(command, once):
    result = command("compare", "a New  York minute", "in New York", "--word", "New York")
    assert result.out.startswith("1  a [New York] minute\n2  in [New York]\n")
    assert "characters only │ 1.000" in result.out


@pytest.mark.parametrize(
    "line",
    [
        ("S1", "S2", "-w", "bank", "--oov", "a", "b", "c"),
        ("S1", "S2", "--oov", "a", "b", "c", "-w", "bank"),
        ("--oov", "a", "b", "c", "--word", "bank", "S1", "S2"),
        ("--word=bank", "--oov", "a", "b", "c", "--", "S1", "S2"),
        ("S1", "--oov=a", "b", "--word", "bank", "S2", "--oov", "c"),
    ],
    ids=" ".join,
)
def test_oov_anywhere_in_the_line(compared, line):
    answer = compared(*({"S1": RIVER, "S2": MONEY}.get(part, part) for part in line))
    assert answer["oov"]["words"] == ["a", "b", "c"]


def test_what_follows_two_dashes_is_a_sentence(command, once):
    result = command("compare", "--word=--oov", "--", "--oov x", "- --oov")
    assert result.out.startswith("1  [-- oov] x\n2  - [-- oov]\n")


@pytest.mark.parametrize("following", [(), ("-w", "bank")])
def test_oov_without_words(refused, following):
    line = refused("compare", RIVER, MONEY, "--oov", *following)
    assert "'--oov' must be followed by words" in line


def test_too_few(refused):
    assert "'--oov': must be two or more" in refused(*FIRST, "--oov", "banker")
    assert "'SENTENCE': must be two or more" in refused("compare", RIVER, "--word", "bank")


@pytest.mark.parametrize("sentence", ["", "the Bank", "banks", "ba nk", "苹果", "bank-like"])
def test_absent_word(refused, once, sentence):
    line = refused("compare", RIVER, sentence, "--word", "bank")
    assert f"The word 'bank' is not in the sentence {sentence!r}, which was cut into '" in line


@pytest.mark.parametrize("word", ["", " ", "\udcff"], ids=ascii)
def test_empty_word(refused, once, word):
    assert "`word` must be a word of the sentences" in refused(
        "compare", RIVER, MONEY, "--word", word
    )


def test_error_quotes_both_ends_of_a_long_sentence(refused, once):
    line = refused("compare", RIVER, "begin " + "x" * 10_000 + " end", "--word", "bank")
    assert "sentence 'begin xxx" in line
    assert "xxx end'." in line
    assert len(line) < 500


@pytest.mark.parametrize(
    "word",
    [
        "x" * 10_000,
        "<PAD>",
        "<S>",
        "</S>",
        "😀",
        "👩‍👩‍👧",
        "苹果",
        "[/b]",
        ":smile:",
        "\x1b[31m",
        "$x_1^",
    ],
    ids=ascii,
)
def test_odd_words(command, once, word):
    for columns in (80, 40):
        result = command("compare", f"one {word}", f"{word} two", "-w", word, columns=columns)
        assert (result.code, result.err) == (0, "")
        assert "only" in result.out
        shown = " ".join(tokenize_sentences([word])[0]) if len(word) < 30 else word[:23] + "…"
        assert f"[{shown}]".encode(errors="backslashreplace").decode() in result.out
        assert len(result.out) < 2000
    answer = json.loads(command("compare", f"one {word}", word, "-w", word, "--json").out)
    assert answer["word"] == word
    assert answer["layers"][0]["similarity"][0][1] == 1


def test_chinese(compared, command):
    layers = compared(*CHINESE, "--word", "苹果")["layers"]
    assert layers[0]["similarity"][0][1] == 1 > layers[2]["similarity"][0][1]
    result = command("compare", *CHINESE, "--word", "苹果")
    assert result.out.startswith("1  我 喜 欢 [苹 果] 。\n2  [苹 果] 公 司 很 大 。\n")


@pytest.mark.parametrize("columns", [80, 40])
def test_many_sentences_and_words_stay_readable(command, once, columns):
    sentences = [f"{word} bank" for word in "a the my your our their his her".split()]
    words = [
        "banker",
        "bankable",
        "bankrupt",
        "riverbank",
        "bnak",
        "banking",
        "banked",
        "mountebank",
    ]
    result = command("compare", *sentences, "-w", "bank", "--oov", *words, columns=columns)
    assert result.code == 0
    assert "…" not in result.out
    table, oov = result.out.split("Words by their characters")
    assert (
        len([line for line in table.splitlines() if " ~ " in line and "1.000" in line]) == 8 * 7 / 2
    )
    assert all(len(line) <= columns for line in result.out.splitlines())
    assert all(word in oov for word in words)


# --- the picture ---


@pytest.mark.parametrize(
    ("name", "magic"), [("out.png", b"\x89PNG\r\n\x1a\n"), ("new/out.svg", b"<?xml")]
)
def test_plot(command, once, tmp_path, name, magic):
    path = tmp_path / name
    result = command(*FIRST, "--plot", path)
    assert result.code == 0
    assert result.err == f"Picture: {path}\n"
    assert "1 ~ 2" in result.out
    assert path.read_bytes().startswith(magic)
    assert os.listdir(path.parent) == [path.name]


def test_plot_of_the_layers(command, once, tmp_path):
    path = tmp_path / "layers.svg"
    result = command(*FIRST, "--plot-layers", path)
    assert result.err == f"Picture: {path}\n"
    assert path.read_bytes().startswith(b"<?xml")


def test_plot_with_json(command, once, tmp_path):
    result = command(*FIRST, "--json", "--plot", tmp_path / "out.png")
    assert result.err == ""
    assert json.loads(result.out)["word"] == "bank"
    assert (tmp_path / "out.png").exists()


@pytest.mark.parametrize("name", ["out.doc", "out", "png"])
def test_plot_of_an_unknown_kind(refused, once, tmp_path, name):
    line = refused(*FIRST, "--plot", tmp_path / name)
    assert "must end in one of" in line
    assert ".png" in line
    assert not os.listdir(tmp_path)


def test_plot_over_a_folder(refused, once, tmp_path):
    folder = tmp_path / "out.png"
    (folder / "mine").mkdir(parents=True)
    assert "is a folder and no file may take its place" in refused(*FIRST, "--plot", folder)
    assert (folder / "mine").is_dir()


def test_plot_where_no_file_can_be(refused, once, tmp_path):
    (tmp_path / "file").touch()
    assert str(tmp_path / "file") in refused(*FIRST, "--plot", tmp_path / "file" / "out.png")


def test_notes_of_the_picture_go_to_standard_error(command, once, tmp_path):
    path = tmp_path / "out.png"
    result = command("compare", "a \U0001fae8\U00013080", "a", "-w", "a", "--plot", path)
    *notes, last = result.err.splitlines()
    assert last == f"Picture: {path}"
    # None, where a font has them.
    assert all(note.startswith("keras-elmo: No installed font has") for note in notes)


def test_without_matplotlib(refused, once, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    line = refused(*FIRST, "--plot", tmp_path / "out.png")
    assert "pip install matplotlib" in line


# --- --model ---


@pytest.fixture(scope="module")
def weights_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights") / "skip2"
    shutil.copytree(DATA / "generated" / "skip2", folder)
    (folder / "expected.hdf5").unlink()
    return folder


def test_model_as_folder_file_or_archive(command, weights_folder, tmp_path):
    with tarfile.open(tmp_path / "skip2.tar.gz", "w:gz") as archive:
        archive.add(weights_folder, "skip2")
    answers = [
        command(*FIRST, "--json", "--model", source).out
        for source in (
            weights_folder,
            weights_folder / "weights.hdf5",
            tmp_path / "skip2.tar.gz",
        )
    ]
    assert json.loads(answers[0])["layers"][0]["similarity"][0][1] == 1
    assert answers == answers[:1] * 3
    assert answers[0] != command(*FIRST, "--json", "-m", "elmo_tiny_en").out


def test_model_that_is_none(refused, tmp_path):
    assert "There is no file, folder or preset 'nope'. Presets: " in refused(
        *FIRST, "--model", "nope"
    )
    (tmp_path / "notes.txt").write_text("nothing")
    assert "notes.txt" in refused(*FIRST, "--model", tmp_path / "notes.txt")
    assert str(tmp_path) in refused(*FIRST, "--model", tmp_path)
    assert "File name too long" in refused(*FIRST, "--model", "x" * 300)


def test_damaged_weights(refused, weights_folder, tmp_path):
    folder = tmp_path / "cut"
    shutil.copytree(weights_folder, folder)
    with (folder / "weights.hdf5").open("r+b") as file:
        file.truncate(2000)
    assert "weights.hdf5" in refused(*FIRST, "--model", folder)
    assert "weights.hdf5" in refused("info", folder)


# --- info ---


def test_info(command):
    result = command("info")
    assert (result.code, result.err) == (0, "")
    rows = dict(
        line.strip().split("  ", 1) for line in result.out.splitlines() if "  " in line.strip()
    )
    rows = {name: value.strip() for name, value in rows.items()}
    assert rows["model"] == "elmo_tiny_en"
    assert int(rows["parameter count"].replace(",", "")) > 2_000_000
    assert rows["projection dim"] == "128"
    assert rows["license"]
    assert re.fullmatch(
        r"forward [\d.]+, backward [\d.]+, both [\d.]+", rows["validation perplexity"]
    )
    assert result.out.endswith("Presets: elmo_tiny_en, elmo_tiny_zh\n")


def test_info_json(command, weights_folder):
    result = command("info", "--json", weights_folder)
    assert (result.code, result.err) == (0, "")
    answer = json.loads(result.out)
    options = json.loads((weights_folder / "options.json").read_text())
    assert answer["model"] == str(weights_folder)
    assert answer["format"] == "bilm-tf / AllenNLP"
    assert answer["architecture"]["units"] == options["lstm"]["dim"]
    assert answer["architecture"]["filters"] == options["char_cnn"]["filters"]
    assert (answer["softmax"], answer["vocabulary_size"]) == (False, None)
    assert "elmo_tiny_en" in answer["presets"]


def test_info_of_a_folder_with_brackets(command, weights_folder, tmp_path):
    folder = tmp_path / "[/b]"
    shutil.copytree(weights_folder, folder)
    assert "[/b]" in command("info", folder, columns=200).out


# --- convert ---


def contents(path):
    """Every dataset of an HDF5 file: its dtype, shape and bytes."""
    found = {}
    with h5py.File(path) as file:
        file.visititems(
            lambda name, item: (
                found.update({name: (item.dtype.str, item.shape, item[()].tobytes())})
                if isinstance(item, h5py.Dataset)
                else None
            )
        )
    return found


@keras_saves
def test_convert_there_and_back(command, tmp_path):
    steps = [("elmo_tiny_en", "bilm"), ("1", "preset"), ("2", "bilm"), ("3", "preset")]
    for number, (source, target_format) in enumerate(steps, 1):
        source = tmp_path / source if source.isdigit() else source
        result = command("convert", source, tmp_path / str(number), "--to", target_format)
        assert (result.code, result.out) == (0, "")
        assert result.err == f"Wrote {tmp_path / str(number)} ({target_format}).\n"
    for one, two, files in (
        ("1", "3", ["model.hdf5", "options.json", "vocab.txt"]),
        ("2", "4", ["config.json", "language_model.weights.h5", "model.weights.h5", "vocab.txt"]),
    ):
        for name in files:
            first, second = tmp_path / one / name, tmp_path / two / name
            if name.endswith(("hdf5", "h5")):
                assert contents(first) == contents(second)
                assert len(contents(first)) >= 2
            elif name != "config.json":
                assert first.read_bytes() == second.read_bytes()
    assert command("info", tmp_path / "1", "--json").code == 0
    assert sorted(os.listdir(tmp_path)) == ["1", "2", "3", "4"]


@keras_saves
@pytest.mark.parametrize("name", ["skip2", "noskip1_nohighway"])
def test_convert_other_peoples_weights_and_back(command, tmp_path, name):
    source = tmp_path / "source"
    shutil.copytree(DATA / "generated" / name, source)
    for expected in source.glob("expected*"):
        expected.unlink()
    assert command("convert", source, tmp_path / "preset").code == 0
    assert command("convert", tmp_path / "preset", tmp_path / "back", "--to", "bilm").code == 0
    assert contents(tmp_path / "back" / "model.hdf5") == contents(source / "weights.hdf5")


@pytest.mark.parametrize("target_format", ["bilm", "safetensors"])
def test_convert_without_the_softmax(command, tmp_path, target_format):
    """The same arrays in both formats, and both are read."""
    for name, more in (("with", ()), ("without", ("--no-softmax",))):
        target = tmp_path / name
        arguments = ("convert", "elmo_tiny_en", target, "--to", target_format, *more)
        assert command(*arguments).code == 0
        facts = json.loads(command("info", target, "--json").out)
        assert facts["softmax"] == (name == "with")
        assert facts["vocabulary_size"] == 40000
    file = "model.hdf5" if target_format == "bilm" else "model.safetensors"
    assert (tmp_path / "without" / file).stat().st_size < (
        tmp_path / "with" / file
    ).stat().st_size / 2
    original, found = (
        load_model(source).get_weights() for source in ("elmo_tiny_en", tmp_path / "with" / file)
    )
    for one, other in zip(original, found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_convert_to_word2vec(command, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("bank\nbnak\n")
    for target_format in ("word2vec", "word2vec-binary"):
        target = tmp_path / target_format
        result = command(
            *("convert", "elmo_tiny_en", target, "--to", target_format, "--vocabulary", words)
        )
        assert result.err == f"Wrote {target} ({target_format}).\n"
        assert target.read_bytes().startswith(b"2 128\nbank ")


def test_convert_refuses_an_existing_target(refused, weights_folder, tmp_path):
    (tmp_path / "mine").write_text("mine")
    for target in (tmp_path, tmp_path / "mine", "."):
        assert f"{target} exists already" in refused("convert", weights_folder, target)
    assert os.listdir(tmp_path) == ["mine"]
    assert (tmp_path / "mine").read_text() == "mine"


def test_convert_mistakes(refused, tmp_path):
    assert "There is no file" in refused("convert", "nope", tmp_path / "x")
    assert "'--to'" in refused("convert", "elmo_tiny_en", tmp_path / "x", "--to", "onnx")
    assert "TARGET" in refused("convert", "elmo_tiny_en")
    line = refused("convert", "elmo_tiny_en", tmp_path / "x", "--no-softmax")
    assert "`--no-softmax` is for `--to bilm or safetensors`" in line
    line = refused("convert", "elmo_tiny_en", tmp_path / "x", "--vocabulary", "words.txt")
    assert "`--vocabulary` is for `--to word2vec or word2vec-binary`" in line
    assert not os.listdir(tmp_path)


# --- the command itself ---


def test_version(command):
    assert command("--version").out == f"{__version__}\n"


@pytest.mark.parametrize("columns", [80, 40])
def test_help(command, columns):
    for line in (["-h"], ["--help"]):
        result = command(*line, columns=columns)
        assert (result.code, result.err) == (0, "")
        assert all(name in result.out for name in ("compare", "info", "convert", "--version"))
    for name in ("compare", "info", "convert"):
        result = command(name, "-h", columns=columns)
        assert (result.code, result.err) == (0, "")
        assert f"keras-elmo {name}" in result.out
        assert all(len(line) <= columns for line in result.out.splitlines())


def test_no_arguments(command):
    result = command()
    assert result.code == 2
    assert "compare" in result.out + result.err


def test_usage_mistakes(refused):
    assert "No such option: --nope" in refused(*FIRST, "--nope")
    assert "See `keras-elmo compare -h`." in refused(*FIRST, "--nope")
    assert "'--word'" in refused("compare", RIVER, MONEY)
    assert "No such command 'compose'" in refused("compose")


@pytest.mark.parametrize("error", [ValueError, OSError, ModuleNotFoundError])
def test_errors_are_one_line(refused, monkeypatch, error):
    def fail(source):
        raise error("a sentence\nof two  lines")

    monkeypatch.setattr(compare, "load_checkpoint", fail)
    assert refused(*FIRST) == "keras-elmo: a sentence of two lines\n"


def test_a_bug_keeps_its_traceback(monkeypatch):
    def fail(source):
        raise ZeroDivisionError

    monkeypatch.setattr(compare, "load_checkpoint", fail)
    monkeypatch.setattr(sys, "argv", ["keras-elmo", *FIRST])
    with pytest.raises(ZeroDivisionError):
        cli.run()


def test_interrupt(command, monkeypatch):
    def interrupt(source):
        raise KeyboardInterrupt

    monkeypatch.setattr(compare, "load_checkpoint", interrupt)
    result = command(*FIRST)
    assert (result.code, result.out, result.err) == (130, "", "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
@pytest.mark.parametrize("as_json", [True, False])
def test_output_in_any_encoding(command, once, monkeypatch, encoding, as_json):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding))
    args = ("compare", "é 苹果 😀", "苹果", "-w", "苹果", "--oov", "é", "😀")
    result = command(*args, *(["--json"] if as_json else []))
    assert (result.code, result.err) == (0, "")
    text = written.getvalue().decode(encoding)
    if as_json:
        assert json.loads(text)["oov"]["words"] == ["é", "😀"]
    assert ("苹果" if encoding == "utf-8" else "\\u82f9\\u679c") in text
    assert ("┃" in text) == (encoding == "utf-8" and not as_json)


# --- the start, with an import that does something else ---


def start(on_import, environment=()):
    """Runs the command's entry point; `on_import` happens where it would import keras_elmo."""
    code = f"""
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "keras_elmo":
            os.write(2, b"noise\\n")
            {on_import}

sys.meta_path.insert(0, Finder())
# A shell that starts the tests in the background has them ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
import _keras_elmo_command
_keras_elmo_command.main()
"""
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **dict(environment)},
    )


def test_interrupt_during_the_start():
    result = start("os.kill(os.getpid(), signal.SIGINT)")
    assert (result.returncode, result.stdout, result.stderr) == (130, "", "")


def test_backend_that_is_not_there():
    result = start("raise ModuleNotFoundError('No module named jax')", {"KERAS_BACKEND": "jax"})
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        "keras-elmo: cannot start: No module named jax. KERAS_BACKEND is 'jax'. "
        "`python -c 'import keras_elmo'` tells more.\n"
    )


def test_start_that_fails_shows_what_was_held_back():
    result = start("raise RuntimeError('broken')")
    assert result.returncode == 1
    assert result.stderr.startswith("noise\n")
    assert result.stderr.endswith("RuntimeError: broken\n")


# --- info --plot, projector ---


def test_the_curves_of_a_run(command, refused, tmp_path):
    line = refused("info", "elmo_tiny_en", "--plot", tmp_path / "out.png")
    assert "elmo_tiny_en is no folder of one" in line
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    (run / "run.json").write_text("{}")
    entry = {"step": 1, "loss": 2.0, "gradient_norm": 1.0, "learning_rate": 0.1}
    (run / "log.jsonl").write_text(json.dumps(entry) + "\n")
    # A run of one step has no checkpoint to tell of, but curves.
    result = command("info", run, "--plot", tmp_path / "out.png")
    assert result.err.startswith(f"Picture: {tmp_path / 'out.png'}\n")
    assert "has no checkpoint yet" in result.err
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


def test_projector(command, refused, tmp_path):
    text, folder = tmp_path / "text.txt", tmp_path / "cloud"
    text.write_text("The bank is near.\nMy bank, my money.\n")
    result = command("projector", text, "-o", folder, "--word", "bank", "money")
    assert result.code == 0
    assert result.err.startswith(f"Wrote {folder}: 3 words, 3 layers.\n")
    assert len((folder / "metadata.tsv").read_text().splitlines()) == 4
    assert "exists already" in refused("projector", text, "-o", folder)
    line = refused("projector", text, "-o", tmp_path / "other", "--word", "Bank")
    assert "None of the words Bank is in the text" in line
    assert not (tmp_path / "other").exists()
