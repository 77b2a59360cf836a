"""`keras-elmo embed` as far as it is more than `embed_files`: what it says, and how it ends."""

import sys

import h5py
import keras
import pytest

from keras_elmo import ElmoModel, cli
from keras_elmo.cli import embed

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="the command needs the TensorFlow backend"
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    keras.utils.set_random_seed(1)
    folder = tmp_path_factory.mktemp("preset") / "tiny"
    ElmoModel(
        units=8, projection_dim=4, filters=[[1, 4], [2, 4]], num_highway_layers=0
    ).save_to_preset(folder)
    return folder


@pytest.fixture
def run(monkeypatch, capsys, tmp_path, model):
    """Runs `keras-elmo embed text.txt ..` in an empty folder: exit code and standard error."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("The bank is near.\n\n" + "a" * 60 + "\n", encoding="utf-8")

    def run(*args):
        line = ["keras-elmo", "embed", "text.txt", "--model", str(model), *args]
        monkeypatch.setattr(sys, "argv", line)
        with pytest.raises(SystemExit) as end:
            cli.run()
        out, err = capsys.readouterr()
        assert out == ""
        assert "Traceback" not in err
        return end.value.code or 0, err

    return run


def test_embed_says_what_it_did(run):
    code, err = run("-o", "out.hdf5")
    assert code == 0
    assert "Wrote out.hdf5: 3 sentences, 6 words embedded in" in err
    assert "Words cut: 1 (16.67%), for the model reads 48 bytes of a word. Such as: aaaa" in err
    with h5py.File("out.hdf5") as file:
        assert [file[name].shape for name in "012"] == [(3, 5, 8), (3, 0, 8), (3, 1, 8)]


def test_what_cannot_be_written_is_said_once(run):
    code, err = run("-o", "/proc/out.hdf5")
    assert code == 2
    assert err.count("keras-elmo:") == 1
    assert "/proc/out.hdf5 cannot be written" in err
    assert ".." not in err.replace("../", "")
    assert "kept" not in err


@pytest.mark.parametrize("is_begun", [True, False])
def test_interrupt(run, monkeypatch, tmp_path, is_begun):
    def interrupted(*_):
        if is_begun:
            (tmp_path / "out.hdf5.part").mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(embed, "embed_files", interrupted)
    code, err = run("-o", "out.hdf5")
    assert code == 130
    assert ("go on with --resume" in err) == is_begun


def test_warnings_are_notes(run, monkeypatch, model):
    import warnings

    def warn(*_):
        warnings.warn("beware", stacklevel=1)
        raise ValueError("enough")

    monkeypatch.setattr(embed, "Embedder", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        code, err = run("-o", "out.hdf5")
    assert (code, err) == (2, "keras-elmo: note: beware\nkeras-elmo: enough\n")


def test_a_picture_of_the_lengths(run, tmp_path):
    code, err = run("-o", "out.npz", "--plot", "lengths.png")
    assert code == 0
    assert err.endswith("Picture: lengths.png\n")
    assert (tmp_path / "lengths.png").read_bytes().startswith(b"\x89PNG")


def test_no_picture_without_matplotlib(run, monkeypatch, tmp_path):
    """Said before the work."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, err = run("-o", "out.npz", "--plot", "lengths.png")
    assert code == 2
    assert "pip install matplotlib" in err
    assert not (tmp_path / "out.npz").exists()
