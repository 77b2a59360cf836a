import named_entities
import pytest


def test_smoke(smoke):
    result = smoke("named_entities")
    assert (result["num_train"], result["num_test"]) == (4, 4)
    assert all(0 <= result[name] <= 1 for name in ("f1", "precision", "recall", "dev_f1"))
    words, labels = zip(*result["answer"], strict=True)
    assert words[3] == "Berlin"
    assert all(label == "O" or label[:2] in ("B-", "I-") for label in labels)


@pytest.fixture
def folder(tmp_path):
    for name in ("wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated"):
        (tmp_path / name).write_text("#Lima\tB-location\n:)\tO\n\t\nhi\tO\n")
    return tmp_path


def test_read(folder):
    train, dev, test = named_entities.read(folder)
    assert train == dev == test == [(["#Lima", ":)"], ["B-location", "O"]), (["hi"], ["O"])]


def test_a_missing_label_is_refused(folder):
    (folder / "emerging.dev.conll").write_text("hi\tO\nLima\n")
    with pytest.raises(ValueError, match=r"emerging.dev.conll, line 2: there must be 2 columns"):
        named_entities.read(folder)
