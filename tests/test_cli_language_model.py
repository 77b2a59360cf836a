"""`vocabulary`, `evaluate`, `score`, `substitutes` as a user types them."""

import functools
import io
import json
import lzma
import os
import sys

import numpy as np
import pytest
import reference
from harness import options_for

from keras_elmo.checkpoints import language_model_of, load_checkpoint
from keras_elmo.cli import language_model
from keras_elmo.cli.progress import Bar
from keras_elmo.corpus import load_counts
from keras_elmo.text import tokenize_sentences
from keras_elmo.training import evaluate
from keras_elmo.vocabulary import Vocabulary

WORDS = ["<S>", "</S>", "<UNK>", "the", "cat", "sat", "on", "mat", "."]
TEXT = "the cat sat on the mat .\n\nthe dog sat .\n"
SENTENCES = [line.split() for line in TEXT.splitlines()]


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    """A random language model of nine words."""
    options = options_for(n_layers=1) | {"n_tokens_vocab": len(WORDS)}
    weights = reference.random_model(options, 3, softmax=True)
    return reference.write_model(tmp_path_factory.mktemp("model") / "tiny", options, weights, WORDS)


@functools.cache
def load_once(source):
    checkpoint = load_checkpoint(source)
    return language_model_of(checkpoint, source), checkpoint.metadata


@pytest.fixture(autouse=True)
def once(monkeypatch):
    """Loads each model once for all tests, and so compiles it once."""
    monkeypatch.setattr(language_model, "_load", load_once)


@pytest.fixture
def answer(command):
    """Runs a line with --json: the object that it prints."""

    def run(*args):
        result = command(*args, "--json")
        assert (result.code, result.err) == (0, "")
        assert result.out.count("\n") == 1
        return json.loads(result.out)

    return run


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


def standard_input(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


# --- vocabulary ---


def test_vocabulary(command, text, tmp_path):
    output = tmp_path / "new" / "vocab.txt"
    result = command("vocabulary", text, "-o", output)
    assert (result.code, result.out) == (0, "")
    words = ["<S>", "</S>", "<UNK>", "the", ".", "sat", "cat", "dog", "mat", "on"]
    assert output.read_text().split("\n") == [*words, ""]
    counts = load_counts(tmp_path / "new" / "vocab.counts.tsv", Vocabulary(words))
    assert counts.tolist() == [3, 3, 0, 3, 2, 2, 1, 1, 1, 1]
    assert result.err == (
        f"Wrote {output}: 10 words with the three specials, and vocab.counts.tsv.\n"
        "The corpus has 11 tokens in 3 lines, 7 distinct words; 100.00% of the tokens are in the vocabulary.\n"
    )
    assert sorted(os.listdir(output.parent)) == ["vocab.counts.tsv", "vocab.txt"]


@pytest.mark.parametrize("option", [("--max-size", 6), ("--min-count", 2)])
def test_size_of_the_vocabulary(command, text, tmp_path, option):
    result = command("vocabulary", text, "-o", tmp_path / "vocab.txt", *option)
    assert result.code == 0
    assert (tmp_path / "vocab.txt").read_text().split() == WORDS[:3] + ["the", ".", "sat"]
    assert "7 distinct words; 63.64% of the tokens are in the vocabulary" in result.err
    assert (
        (tmp_path / "vocab.counts.tsv").read_text().startswith("3\t<S>\n3\t</S>\n4\t<UNK>\n3\tthe")
    )


def test_vocabulary_of_patterns_compressed_and_of_standard_input(command, tmp_path, monkeypatch):
    for k in range(2):
        (tmp_path / f"train-{k}.xz").write_bytes(lzma.compress(f"a b{k}\n".encode()))
    (tmp_path / "train-empty.xz").write_bytes(lzma.compress(b""))
    result = command("vocabulary", tmp_path / "train-*.xz", "-o", tmp_path / "1.txt.gz")
    assert result.code == 0
    assert list(Vocabulary.load(tmp_path / "1.txt.gz"))[3:] == ["a", "b0", "b1"]
    assert (tmp_path / "1.counts.tsv").is_file()
    standard_input(monkeypatch, "苹果 x\r\n".encode())
    assert command("vocabulary", "-", "-o", tmp_path / "2.txt").code == 0
    assert list(Vocabulary.load(tmp_path / "2.txt"))[3:] == ["x", "苹果"]


def test_vocabulary_of_plain_text(command, tmp_path):
    """User problem 31: text that nobody tokenized; lines of several scripts go in and come out whole."""
    lines = ["It's here.", "他买了苹果。", "สวัสดี ครับ", "السلام عليكم", "नमस्ते दुनिया", ""]
    (tmp_path / "raw.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = command(
        "vocabulary", tmp_path / "raw.txt", "-o", tmp_path / "v.txt", "--format", "plain"
    )
    assert result.code == 0
    vocabulary = Vocabulary.load(tmp_path / "v.txt")
    for tokens in tokenize_sentences(lines):
        assert vocabulary.tokens(vocabulary.ids(tokens)) == tokens
    assert "'s" in vocabulary
    assert "苹" in vocabulary
    assert "ครับ" in vocabulary


def test_many_lines(command, tmp_path):
    (tmp_path / "many.txt").write_text("a b c\n" * 1000)
    result = command("vocabulary", tmp_path / "many.txt", "-o", tmp_path / "v.txt")
    assert "3,000 tokens in 1,000 lines, 3 distinct words" in result.err


def test_vocabulary_is_never_overwritten(refused, text, tmp_path):
    (tmp_path / "v.txt").write_text("mine")
    assert "v.txt exists already" in refused("vocabulary", text, "-o", tmp_path / "v.txt")
    (tmp_path / "w.counts.tsv").write_text("mine")
    assert "w.counts.tsv exists already" in refused("vocabulary", text, "-o", tmp_path / "w.txt")
    assert "exists already" in refused("vocabulary", text, "-o", tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["text.txt", "v.txt", "w.counts.tsv"]
    assert (tmp_path / "v.txt").read_text() == "mine"


def test_vocabulary_mistakes(refused, text, tmp_path):
    output = ("-o", tmp_path / "v.txt")
    assert "'none*.txt', which matches none" in refused("vocabulary", "none*.txt", *output)
    assert "which is a folder" in refused("vocabulary", tmp_path, *output)
    (tmp_path / "empty.txt").write_text("\n \n")
    line = refused("vocabulary", tmp_path / "empty.txt", *output)
    assert "must have at least one word" in line
    (tmp_path / "bad.txt").write_bytes(b"good\nbad \xff\n")
    line = refused("vocabulary", tmp_path / "bad.txt", *output)
    assert "bad.txt, line 2, byte 4: the text must be UTF-8" in line
    assert "(`min_count`), and none does" in refused("vocabulary", text, *output, "--min-count", 9)
    for mistake in (("--max-size", 3), ("--min-count", 0), ("--format", "conllu")):
        assert mistake[0] in refused("vocabulary", text, *output, *mistake)
    assert "'--output'" in refused("vocabulary", text)
    assert "CORPUS" in refused("vocabulary", *output)
    assert "text.txt" in refused("vocabulary", text, "-o", text / "v.txt")
    assert sorted(os.listdir(tmp_path)) == ["bad.txt", "empty.txt", "text.txt"]


# --- evaluate ---


def test_evaluate(answer, command, text, model_folder):
    expected = evaluate(load_once(str(model_folder))[0], SENTENCES)
    found = answer("evaluate", text, "--model", model_folder)
    assert list(found) == ["perplexity", "forward_perplexity", "backward_perplexity", "num_tokens"]
    assert found["num_tokens"] == 14
    assert list(found.values())[:3] == pytest.approx(expected[:3], rel=1e-6)
    result = command("evaluate", text, "-m", model_folder)
    assert (result.code, result.err) == (0, "")
    assert result.out == (
        f"perplexity  {expected.perplexity:.2f}\n"
        f"forward     {expected.forward_perplexity:.2f}\n"
        f"backward    {expected.backward_perplexity:.2f}\n"
        "14 predictions in each direction, 3 sentences\n"
    )


def test_evaluate_several_files_and_standard_input(answer, text, model_folder, monkeypatch):
    twice = answer("evaluate", text, text, "--model", model_folder)
    assert twice["num_tokens"] == 28
    standard_input(monkeypatch, TEXT.encode())
    found = answer("evaluate", "-", "--model", model_folder)
    assert found["num_tokens"] == 14
    assert found["perplexity"] == pytest.approx(twice["perplexity"], rel=1e-6)


# Keras' own saving asks NumPy 2 for its arrays in NumPy 1's way.
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
@pytest.mark.parametrize(("tokenizer", "num_tokens"), [("word", 5), ("whitespace", 3), (None, 5)])
def test_plain_text_is_cut_as_the_training_text_was(
    answer, model_folder, tmp_path, tokenizer, num_tokens
):
    load_once(str(model_folder))[0].save_to_preset(
        tmp_path / "preset", metadata={"tokenizer": tokenizer} if tokenizer else {}
    )
    assert load_checkpoint(tmp_path / "preset").metadata.get("tokenizer") == tokenizer
    (tmp_path / "raw.txt").write_text("It's here.\n")
    args = (tmp_path / "raw.txt", "--model", tmp_path / "preset", "--format", "plain")
    assert answer("evaluate", *args)["num_tokens"] == num_tokens
    (sentence,) = answer("score", *args)["sentences"]
    assert len(sentence["tokens"]) == num_tokens + 1


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_the_format_is_that_of_the_training_text(answer, refused, model_folder, tmp_path):
    metadata = {"tokenizer": "word", "text_format": "plain"}
    model = load_once(str(model_folder))[0]
    model.save_to_preset(tmp_path / "preset", metadata=metadata)
    (tmp_path / "raw.txt").write_text("It's here.\n")
    args = (tmp_path / "raw.txt", "--model", tmp_path / "preset")
    assert answer("evaluate", *args)["num_tokens"] == 5
    assert answer("evaluate", *args, "--format", "tokens")["num_tokens"] == 3
    args = ("the cat sat.", "--model", tmp_path / "preset", "--word")
    assert answer("substitutes", *args, "sat")["tokens"] == ["the", "cat", "sat", "."]
    assert "which was cut into 'the cat sat .'. Give a word" in refused(
        "substitutes", *args, "sat."
    )


def test_evaluate_tiny_and_empty_files(answer, refused, model_folder, tmp_path, monkeypatch):
    (tmp_path / "empty.txt").touch()
    line = refused("evaluate", tmp_path / "empty.txt", "--model", model_folder)
    assert "must be at least one line of text" in line
    assert "empty.txt" in line
    standard_input(monkeypatch, b"")
    line = refused("evaluate", "-", "--json", "--model", model_folder)
    assert "must hold at least one sentence" in line
    (tmp_path / "tiny.txt").write_text("\n")
    found = answer(
        "evaluate", tmp_path / "empty.txt", tmp_path / "tiny.txt", "--model", model_folder
    )
    assert found["num_tokens"] == 1
    assert np.isfinite(found["perplexity"])


@pytest.mark.parametrize("name", ["evaluate", "score"])
def test_bad_files_come_before_the_model(refused, tmp_path, monkeypatch, name):
    monkeypatch.setattr(language_model, "_load", None)
    assert "which does not exist" in refused(name, tmp_path / "none.txt")
    assert "which is a folder" in refused(name, tmp_path)
    (tmp_path / "bad.txt").write_bytes(b"good\nbad \xff\n")
    assert "bad.txt, line 2, byte 4: the text must be UTF-8" in refused(name, tmp_path / "bad.txt")
    assert "'--format'" in refused(name, tmp_path / "bad.txt", "--format", "conllu")
    assert "INPUT" in refused(name)


@pytest.mark.parametrize("name", ["evaluate", "score", "substitutes"])
def test_models_that_are_no_language_models(
    refused, text, model_folder, tmp_path, monkeypatch, name
):
    monkeypatch.undo()
    line = ["the cat", "--word", "cat"] if name == "substitutes" else [text]
    assert "There is no file, folder or preset 'nope'" in refused(name, *line, "--model", "nope")
    options = options_for(n_layers=1)
    weights = reference.random_model(options, 3)
    reference.write_model(tmp_path / "vectors", options, weights)
    message = refused(name, *line, "--model", tmp_path / "vectors")
    assert "has no softmax, so it is no language model; it still gives vectors" in message


# --- score ---


def test_score_json(answer, text, model_folder):
    found = answer("score", text, "--model", model_folder)
    assert list(found) == ["sentences"]
    expected = load_once(str(model_folder))[0].score(SENTENCES)
    for sentence, tokens, score in zip(found["sentences"], SENTENCES, expected, strict=True):
        assert sentence["tokens"] == ["<S>", *tokens, "</S>"]
        assert sentence["forward"][0] is sentence["backward"][-1] is None
        assert sentence["forward"][1:] == pytest.approx(score.forward.tolist(), abs=1e-5)
        assert sentence["backward"][:-1] == pytest.approx(score.backward.tolist(), abs=1e-5)
        for direction in ("forward", "backward"):
            total = getattr(score, direction).sum()
            assert sentence[f"{direction}_log_probability"] == pytest.approx(total, abs=1e-4)
    assert [sentence["unknown"] for sentence in found["sentences"]] == [[], [], [2]]


def test_score(command, text, model_folder):
    result = command("score", text, "--model", model_folder)
    assert (result.code, result.err) == (0, "")
    scores = load_once(str(model_folder))[0].score(SENTENCES)
    lines = result.out.splitlines()
    assert len(lines) == 3 + sum(len(tokens) + 2 for tokens in SENTENCES)
    assert lines[0] == (
        f"sentence 1: forward {scores[0].forward.sum():.3f}, backward {scores[0].backward.sum():.3f}"
    )
    assert lines[1].split() == [f"{scores[0].backward[0]:.3f}", "<S>"]
    assert lines[3].split() == [
        f"{scores[0].forward[1]:.3f}",
        f"{scores[0].backward[2]:.3f}",
        "cat",
    ]
    assert lines[9].split() == [f"{scores[0].forward[-1]:.3f}", "</S>"]
    assert [line for line in lines if "<UNK>" in line] == [lines[-4]]
    assert lines[-4].endswith("  dog  (as <UNK>)")


def test_score_of_many_sentences(answer, model_folder, tmp_path, monkeypatch):
    """More than are scored together."""
    monkeypatch.setattr(language_model, "LINES_TOGETHER", 2)
    (tmp_path / "many.txt").write_text("the\nthe cat\n\nthe cat sat\nmat\n")
    found = answer("score", tmp_path / "many.txt", "--model", model_folder)["sentences"]
    assert [len(sentence["tokens"]) for sentence in found] == [3, 4, 2, 5, 3]


def test_score_of_nothing(command, answer, model_folder, tmp_path):
    (tmp_path / "empty.txt").touch()
    assert answer("score", tmp_path / "empty.txt", "--model", model_folder) == {"sentences": []}
    result = command("score", tmp_path / "empty.txt", "--model", model_folder)
    assert (result.code, result.out, result.err) == (0, "", "")


# --- substitutes ---


def test_substitutes_json(answer, model_folder):
    found = answer("substitutes", "the cat sat .", "--word", "cat", "--model", model_folder)
    assert list(found) == ["tokens", "word", "position", "substitutes"]
    assert found["tokens"] == ["the", "cat", "sat", "."]
    assert (found["word"], found["position"]) == ("cat", 1)
    expected = load_once(str(model_folder))[0].substitutes(found["tokens"], 1)
    assert len(expected) == 6
    for one, other in zip(found["substitutes"], expected, strict=True):
        assert list(one) == ["word", "log_probability", "forward", "backward"]
        assert one["word"] == other.word
        assert list(one.values())[1:] == pytest.approx(other[1:], abs=1e-5)


def test_substitutes(command, model_folder):
    args = ("substitutes", "the cat sat the", "-w", "the", "--top", 3, "--model", model_folder)
    result = command(*args)
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0] == "[the] cat sat the"
    rows = [line.replace("│", " ").split() for line in lines if line.startswith("│")]
    expected = load_once(str(model_folder))[0].substitutes(["the", "cat", "sat", "the"], 0, 3)
    assert rows == [
        [s.word, f"{np.exp(s.log_probability):.2%}", f"{s.forward:.2f}", f"{s.backward:.2f}"]
        for s in expected
    ]


def test_substitutes_mistakes(refused, model_folder):
    line = refused("substitutes", "the cat sat", "--word", "dog", "--model", model_folder)
    assert "The word 'dog' is not in the sentence 'the cat sat', which was cut into" in line
    for word in ("the cat", "", "Cat"):
        assert "is not in the sentence" in refused("substitutes", "the cat", "--word", word)
    assert "is not in the sentence" in refused("substitutes", "", "--word", "a")
    assert len(refused("substitutes", "x " * 10_000, "--word", "y")) < 500
    assert "'--top'" in refused("substitutes", "the cat", "--word", "cat", "--top", 0)
    assert "'--word'" in refused("substitutes", "the cat")


# --- the frame ---


@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.parametrize("name", ["vocabulary", "evaluate", "score", "substitutes"])
def test_help(command, name, columns):
    result = command(name, "-h", columns=columns)
    assert (result.code, result.err) == (0, "")
    assert f"keras-elmo {name}" in " ".join(result.out.split())
    assert all(len(line) <= columns for line in result.out.splitlines())


def test_interrupt_leaves_nothing(command, text, tmp_path, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(language_model, "build_vocabulary", interrupt)
    result = command("vocabulary", text, "-o", tmp_path / "v.txt")
    assert (result.code, result.out, result.err) == (130, "", "")
    assert os.listdir(tmp_path) == ["text.txt"]


def test_bar(monkeypatch, capsys):
    """On a terminal it shows what is done, at what rate; it does not take standard output with it."""
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    with Bar() as bar:
        bar.show("scoring", 0, 2000, 0)
        bar.show("scoring", 1000, 2000, 50_000)
        bar._progress.refresh()
        print("an answer")
    out, err = capsys.readouterr()
    assert out == "an answer\n"
    assert "scoring" in err
    assert "1000/2000" in err
    assert "words/s" in err
    with Bar(hidden=True) as bar:
        bar.show("scoring", 0, None, 0)
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    with Bar() as bar:
        bar.show("scoring", 0, None, 0)
    assert capsys.readouterr() == ("", "")
