import pytest

from keras_elmo.serving.server.model_dir import check_model_dir, fingerprint, version_folders


def test_a_folder_of_versions(model_dir, monkeypatch):
    assert check_model_dir(model_dir) == model_dir
    monkeypatch.chdir(model_dir)
    assert check_model_dir(".") == model_dir
    (model_dir / "12").mkdir()
    (model_dir / "x3").mkdir()
    (model_dir / "٣").mkdir()
    (model_dir / "9").write_text("a file")
    assert version_folders(model_dir) == {1: model_dir / "1", 12: model_dir / "12"}


def test_what_is_no_folder_of_versions(model_dir, tmp_path):
    with pytest.raises(ValueError, match=r"nowhere is not a folder. Give the folder that holds"):
        check_model_dir(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="has no version folders: .* `keras-elmo export MODEL "):
        check_model_dir(tmp_path)
    with pytest.raises(
        ValueError, match=f"is a SavedModel, .* Give the folder that it is in: {model_dir}"
    ):
        check_model_dir(model_dir / "1")
    (model_dir / "1").rename(model_dir / "mine")
    with pytest.raises(ValueError, match=f"is a SavedModel, .* Move it to {model_dir}/mine/1"):
        check_model_dir(model_dir / "mine")


def test_a_name_that_no_request_can_have(model_dir):
    odd = model_dir.rename(model_dir.with_name("a:b"))
    with pytest.raises(ValueError, match="'a:b' has a colon, which .* Rename the folder"):
        check_model_dir(odd)


def test_a_folder_that_is_gone(tmp_path):
    assert version_folders(tmp_path / "gone") == {}
    assert fingerprint(tmp_path / "gone") == ()


def test_fingerprints(model_dir):
    before = fingerprint(model_dir / "1")
    assert fingerprint(model_dir / "1") == before
    (model_dir / "1" / "link").symlink_to("nowhere")
    (model_dir / "1" / "more").write_text("")
    assert fingerprint(model_dir / "1") != before
