import os
import stat
from pathlib import Path

import pytest

from keras_elmo.files import written_beside


def write(path, text="new", **options):
    with written_beside(path, **options) as beside:
        assert not beside.exists()
        beside.write_text(text)


def write_folder(path, **options):
    with written_beside(path, **options) as beside:
        beside.mkdir()
        (beside / "file").write_text("new")


def tree(folder):
    """Every file below a folder, hidden ones too, with what is in it; folders are None."""
    return {
        str(path.relative_to(folder)): path.read_text() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def test_a_new_file(tmp_path):
    with written_beside(str(tmp_path / "a.txt")) as beside:
        beside.write_text("new")
        assert beside.suffix == ".txt"
        assert not (tmp_path / "a.txt").exists()
        # On the same disk: else the last step could not be a mere renaming.
        assert tmp_path in beside.parents
    assert tree(tmp_path) == {"a.txt": "new"}


def test_a_new_folder(tmp_path):
    write_folder(tmp_path / "a")
    assert tree(tmp_path) == {"a": None, "a/file": "new"}


def test_parents_are_made(tmp_path):
    write(tmp_path / "b" / "c" / "a.txt")
    assert tree(tmp_path) == {"b": None, "b/c": None, "b/c/a.txt": "new"}


def test_relative_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("a.txt")
    write_folder(Path("b/../c"))
    assert {"a.txt": "new", "c": None, "c/file": "new"}.items() <= tree(tmp_path).items()


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_nothing(tmp_path, error):
    def fail(path, **options):
        with written_beside(path, **options) as beside:
            beside.write_text("half")
            (beside.parent / "litter").write_text("more")
            raise error("mine")

    with pytest.raises(error, match="mine"):
        fail(tmp_path / "a.txt")
    assert tree(tmp_path) == {}
    (tmp_path / "a.txt").write_text("old")
    with pytest.raises(error, match="mine"):
        fail(tmp_path / "a.txt", overwrite=True)
    assert tree(tmp_path) == {"a.txt": "old"}


def test_an_error_leaves_the_old_folder(tmp_path):
    def fail():
        with written_beside(tmp_path / "a", overwrite=True) as beside:
            beside.mkdir()
            raise ValueError("mine")

    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_text("old")
    with pytest.raises(ValueError, match="mine"):
        fail()
    assert tree(tmp_path) == {"a": None, "a/file": "old"}


@pytest.mark.parametrize("writing", [write, write_folder])
def test_what_is_there_is_not_replaced_unasked(tmp_path, writing):
    (tmp_path / "file").write_text("old")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    for name in ("file", "folder", "dangling"):
        with pytest.raises(
            ValueError, match=f"{name} exists already. Remove it, or give another name"
        ):
            writing(tmp_path / name)
    with pytest.raises(ValueError, match="exists already"):
        writing(tmp_path / "folder" / ".." / "new" / "..")
    assert not (tmp_path / "nothing").exists()
    assert (tmp_path / "file").read_text() == "old"


def test_a_file_is_replaced_when_asked(tmp_path):
    (tmp_path / "a.txt").write_text("old")
    write(tmp_path / "a.txt", overwrite=True)
    assert tree(tmp_path) == {"a.txt": "new"}


@pytest.mark.parametrize("name", ["a", "old"])
def test_a_folder_is_replaced_when_asked(tmp_path, name):
    (tmp_path / name / "inner").mkdir(parents=True)
    (tmp_path / name / "inner" / "file").write_text("old")
    write_folder(tmp_path / name, overwrite=True)
    assert tree(tmp_path) == {name: None, f"{name}/file": "new"}


def test_a_folder_comes_back_if_the_last_step_fails(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_text("old")
    rename = Path.rename

    def fail_for_the_new_one(path, target):
        if path.name == "a" and path.parent != tmp_path:
            raise OSError("the disk is gone")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail_for_the_new_one)
    with pytest.raises(OSError, match="the disk is gone"):
        write_folder(tmp_path / "a", overwrite=True)
    assert tree(tmp_path) == {"a": None, "a/file": "old"}


def test_a_block_that_writes_nothing(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").write_text("old")
    (tmp_path / "file").write_text("old")
    before = tree(tmp_path)
    for name in ("folder", "file", "new"):
        with (
            pytest.raises((OSError, ValueError), match=name),
            written_beside(tmp_path / name, overwrite=True),
        ):
            pass
    assert tree(tmp_path) == before


def test_a_file_takes_no_folders_place_nor_the_reverse(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").write_text("old")
    (tmp_path / "file").write_text("old")
    before = tree(tmp_path)
    with pytest.raises(ValueError, match="folder is a folder and no file may take its place"):
        write(tmp_path / "folder", overwrite=True)
    with pytest.raises(ValueError, match="file is a file and no folder may take its place"):
        write_folder(tmp_path / "file", overwrite=True)
    assert tree(tmp_path) == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_neither_a_file_nor_a_folder(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe is neither a file nor a folder"):
        write(tmp_path / "pipe", overwrite=True)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize("writing", [write, write_folder])
def test_a_link_stays_and_its_target_is_written(tmp_path, writing):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "real", tmp_path / "link"
    link.symlink_to(target)
    writing(link, overwrite=True)
    assert link.is_symlink()
    writing(link, overwrite=True)
    assert link.is_symlink()
    assert not target.is_symlink()
    assert (target / "file" if target.is_dir() else target).read_text() == "new"
    assert os.listdir(tmp_path / "there") == ["real"]
    assert sorted(os.listdir(tmp_path)) == ["link", "there"]


def test_permissions_are_the_usual_ones(tmp_path):
    (tmp_path / "usual").touch()
    (tmp_path / "usual folder").mkdir()
    write(tmp_path / "a.txt")
    write_folder(tmp_path / "a")
    for one, other in (("a.txt", "usual"), ("a", "usual folder")):
        assert (tmp_path / one).stat().st_mode == (tmp_path / other).stat().st_mode


@pytest.mark.parametrize("name", ["n" * 255, "名" * 85, " ", "-", ".hidden"], ids=ascii)
def test_odd_names(tmp_path, name):
    write(tmp_path / name)
    assert tree(tmp_path) == {name: "new"}


def test_a_parent_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("old")
    with pytest.raises(OSError, match="file"):
        write(tmp_path / "file" / "a.txt")
    assert tree(tmp_path) == {"file": "old"}


def test_two_at_once(tmp_path):
    with (
        written_beside(tmp_path / "a", overwrite=True) as one,
        written_beside(tmp_path / "a", overwrite=True) as two,
    ):
        assert one != two
        one.write_text("first")
        two.write_text("second")
    assert tree(tmp_path) == {"a": "first"}
