import lzma

import chinese
import pytest


def test_smoke(smoke):
    result = smoke("chinese")
    assert (result["num_train"], result["num_test"]) == (3, 3)
    assert all(0 <= result[name] <= 1 for name in ("f1", "precision", "recall", "dev_f1"))
    assert [word for word, _ in result["answer"]] == ["孙中山", "曾", "住", "在", "上海", "。"]


@pytest.fixture
def folder(tmp_path):
    text = "# sent_id = 1\n# text = 北京。\n1\t北京\tB-LOC\t-\t-\n2\t。\tO\t-\t-\n\n"
    for part in ("train", "dev", "test"):
        path = tmp_path / f"zh_gsdsimp-ud-{part}.iob2.xz"
        path.write_bytes(lzma.compress(text.encode()))
    return tmp_path


def test_read(folder):
    train, dev, test = chinese.read(folder)
    assert train == dev == test == [(["北京", "。"], ["B-LOC", "O"])]


def test_a_missing_column_is_refused(folder):
    (folder / "zh_gsdsimp-ud-dev.iob2.xz").write_bytes(lzma.compress("1\t北京\n".encode()))
    with pytest.raises(
        ValueError, match="line 1: `word=1` and `label=2` must be two of the columns"
    ):
        chinese.read(folder)
