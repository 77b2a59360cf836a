import lzma

import pytest
import semantic_roles

CAT = "The cat wants to drink milk".split()
EXAMPLES = [
    ((CAT, 2), ["B-ARG0", "I-ARG0", "B-V", "B-ARG1", "I-ARG1", "I-ARG1"]),
    ((CAT, 4), ["O", "B-ARG0", "O", "O", "B-V", "B-ARG1"]),
    ((["Dogs", "bark"], 1), ["B-ARG0", "B-V"]),
]


def test_smoke(smoke):
    result = smoke("semantic_roles")
    assert (result["num_train"], result["num_test"]) == (3, 3)
    assert all(0 <= result[name] <= 1 for name in ("f1", "precision", "recall"))
    assert result["answer"][2][0] == "gave"


def test_read(tmp_path):
    for part in ("train", "dev", "test"):
        path = tmp_path / f"en_ewt-propbank-{part}.conll.xz"
        path.write_bytes(lzma.compress(semantic_roles.SMOKE.encode()))
    train, dev, test = semantic_roles.read(tmp_path)
    assert train == dev == test == EXAMPLES


def test_brackets():
    brackets = ["(V*", "*)", "*", "(ARGM-TMP*)", "(C-ARG1*", "*", "*)", "*"]
    labels = ["B-V", "I-V", "O", "B-ARGM-TMP", "B-C-ARG1", "I-C-ARG1", "I-C-ARG1", "O"]
    assert semantic_roles.to_bio(brackets) == labels


@pytest.mark.parametrize(
    "line", ["1\tStop\tVB\tstop\tstop.01", "1\tStop\tVB\tstop\t-\t*", "1\tStop\tVB"]
)
def test_lines_with_other_columns_than_predicates_are_refused(line):
    expected = (
        r"^some.conll: every line must have five columns, and one of brackets for each predicate .* "
        r"Received: [356] columns from \['1', 'Stop', .*\] on$"
    )
    with pytest.raises(ValueError, match=expected):
        semantic_roles.examples_of([line, ""], "some.conll")
