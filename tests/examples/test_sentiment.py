import pytest
import sentiment


def test_it_learns_its_own_sentences(smoke):
    result = smoke("sentiment")
    assert (result["num_train"], result["num_test"]) == (6, 6)
    assert 0 <= result["accuracy"] <= 1
    assert set(result["answers"]) <= {"negative", "positive"}


def test_the_files_are_in_latin_1_and_only_line_feeds_end_sentences(tmp_path):
    (tmp_path / "rt-polarity.pos").write_bytes(b"a caf\xe9 scene\x85 lovely . \n\nfine .\n")
    (tmp_path / "rt-polarity.neg").write_bytes(b"dull .\n")
    assert sentiment.read(tmp_path) == [
        ("a café scene\x85 lovely .", "positive"),
        ("fine .", "positive"),
        ("dull .", "negative"),
    ]


def test_the_split_goes_by_the_sentence():
    examples = [(f"film {number}", "positive") for number in range(500)]
    train, test = sentiment.split(examples)
    assert sorted(train + test) == sorted(examples)
    assert 25 < len(test) < 75
    assert sentiment.split(test)[0] == []


def test_a_folder_that_is_not_there_is_said_in_a_sentence(tmp_path, capsys):
    with pytest.raises(SystemExit):
        sentiment.main(["--data", str(tmp_path / "nowhere")])
    assert "there is no folder" in capsys.readouterr().err
