import lzma

import new_domain


def test_smoke(smoke):
    result = smoke("new_domain")
    assert (result["num_train"], result["num_test"]) == (4, {"tweets": 4, "old": 3})
    before, *after = result["perplexity"].values()
    assert len(after) == 3
    # It has learned what it was trained on.
    assert all(row["tweets"] < before["tweets"] for row in after)


def test_first_lines(tmp_path):
    (tmp_path / "x.xz").write_bytes(lzma.compress("a b\nc\u2028d\ne\n".encode()))
    assert new_domain.first_lines(tmp_path / "x.xz", 2) == ["a b", "c\u2028d"]
