"""The example of question answering."""

import json
import lzma

import pytest
import question_answering


def test_it_runs_on_its_own_questions(smoke):
    result = smoke("question_answering")
    assert (result["num_train"], result["num_test"]) == (4, 4)
    assert result["always_no_answer"] == 0.25


def write(file, content):
    file.write_bytes(lzma.compress(json.dumps(content).encode()))
    return file


def article(title, **question):
    paragraph = {"context": "Ann is in Rome.", "qas": [question]}
    return {"title": title, "paragraphs": [paragraph]}


def test_reader_and_split(tmp_path):
    answers = [{"text": "Rome", "answer_start": 10}]
    titles = [f"Title {number}" for number in range(12)]
    content = {"data": [article(title, question="Where?", answers=answers) for title in titles]}
    articles = question_answering.read_questions(write(tmp_path / "dev.json.xz", content))
    assert articles["Title 3"] == [(("Where?", "Ann is in Rome."), answers)]
    training, test = question_answering.split(articles)
    assert len(training) + len(test) == 12
    assert training
    assert test


def test_reader_says_what_is_wrong(tmp_path):
    content = {"data": [article("A", question="Who?", answers=[]), article("B", question="Who?")]}
    file = write(tmp_path / "dev.json.xz", content)
    with pytest.raises(SystemExit, match="dev.json.xz, article 2: there is no 'answers'"):
        question_answering.read_questions(file)
