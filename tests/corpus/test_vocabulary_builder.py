import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paths import shared

from keras_elmo.corpus import (
    SentenceStream,
    TrainingStream,
    build_vocabulary,
    count_words,
    counts_of,
    counts_path,
    frequencies_fall,
    load_counts,
    save_counts,
)
from keras_elmo.vocabulary import Vocabulary

SPECIALS = ["<S>", "</S>", "<UNK>"]


@pytest.fixture
def write(tmp_path):
    def write(content, name="text.txt"):
        path = tmp_path / name
        path.write_bytes(content.encode())
        return path

    return write


def test_words_are_counted_over_files_and_boundaries_once_a_sentence(write, tmp_path):
    write("the cat\nthe\n\n", "a.txt")
    write("", "b.txt")
    write("cat the", "c.txt")
    assert count_words(str(tmp_path / "*.txt")) == {"the": 3, "cat": 2, "<S>": 4, "</S>": 4}


def test_special_words_in_the_text_add_to_the_specials(write):
    counts = count_words(write("<S> the <UNK> <UNK>\n</S>\n"))
    assert counts == {"<S>": 3, "</S>": 3, "<UNK>": 2, "the": 1}
    vocabulary, kept = build_vocabulary(counts)
    assert list(vocabulary) == [*SPECIALS, "the"]
    assert kept.tolist() == [3, 3, 2, 1]


@pytest.mark.parametrize(
    "line",
    ["ภาษาไทยสวยงาม", "中华人民共和国 成立 了 。", "اللغة العربية جميلة .", "हिन्दी भाषा है ।"],
)
def test_any_script_survives_the_way_to_ids_and_back(write, line):
    """User problem 31."""
    vocabulary, _ = build_vocabulary(count_words(write(line + "\n")))
    tokens = line.split()
    assert vocabulary.tokens(vocabulary.ids(tokens)) == tokens
    plain = count_words(write(line + "\n"), "plain", lambda lines: [list(line) for line in lines])
    vocabulary, _ = build_vocabulary(plain)
    characters = [character for character in line if character != " "]
    assert vocabulary.tokens(vocabulary.ids(characters)) == characters
    assert " " not in vocabulary


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 5), max_size=20), st.randoms())
def test_order_is_by_frequency_then_word_whatever_order_they_come_in(words, random):
    counts = {"<S>": 3, "</S>": 3, "word": 4, **words}
    items = list(counts.items())
    random.shuffle(items)
    vocabulary, kept = build_vocabulary(counts)
    again, kept_again = build_vocabulary(dict(items))
    assert vocabulary == again
    assert kept.tolist() == kept_again.tolist()
    tokens = list(vocabulary)
    assert tokens[:3] == SPECIALS
    ranked = [(-counts[token], token) for token in tokens[3:]]
    assert ranked == sorted(ranked)
    assert kept.sum() == sum(counts.values())
    assert frequencies_fall(vocabulary, kept)


def test_sizes_and_what_is_outside():
    counts = Counter({"<S>": 9, "</S>": 9, "b": 5, "a": 5, "c": 3, "d": 1})
    cases = [
        ({}, "abcd", 0),
        ({"max_size": 5}, "ab", 4),
        ({"max_size": 4}, "a", 9),
        ({"min_count": 3}, "abc", 1),
        ({"min_count": 5, "max_size": 100}, "ab", 4),
    ]
    for arguments, words, unknown in cases:
        vocabulary, kept = build_vocabulary(counts, **arguments)
        assert list(vocabulary) == [*SPECIALS, *words]
        assert kept.dtype == np.int64
        assert kept.tolist() == [9, 9, unknown, *(counts[word] for word in words)]


def test_what_a_vocabulary_cannot_hold_is_unknown():
    bad = ["", " ", "\t", "a\nb", "a\r", "\ud800", "!!!MAXTERMID"]
    vocabulary, kept = build_vocabulary(
        {**dict.fromkeys(bad, 5), "a\u00a0b": 2, "\u3000": 1}, max_size=5
    )
    assert list(vocabulary) == [*SPECIALS, "a\u00a0b", "\u3000"]
    assert kept.tolist() == [0, 0, 35, 2, 1]


def test_the_counts_are_the_predictions_of_an_epoch(write):
    path = write("the cat sat\n\nthe end\nyes\n")
    vocabulary, kept = build_vocabulary(count_words(path), max_size=5)
    stream = TrainingStream(SentenceStream(path), vocabulary, 1, 2, num_epochs=1)
    targets = np.concatenate([batch.forward_targets for batch in stream]).ravel()
    assert stream.num_dropped == 0
    assert kept.sum() - kept[vocabulary.begin_id] == targets.size
    found = np.bincount(targets, minlength=len(vocabulary))
    found[vocabulary.begin_id] = kept[vocabulary.begin_id]
    assert found.tolist() == kept.tolist()


def test_counts_of_a_vocabulary_from_elsewhere():
    vocabulary = Vocabulary(["the", "<UNK>", "dog", "</S>", "<S>"])
    counts = {"<S>": 2, "</S>": 2, "the": 3, "cat": 2, "sat": 1}
    assert counts_of(vocabulary, counts).tolist() == [3, 3, 0, 2, 2]


def test_counts_are_kept_beside_the_vocabulary(tmp_path):
    vocabulary = Vocabulary([*SPECIALS, "the", "a\tb", "a\u2028b", "日本語"])
    counts = np.array([5, 5, 2**40, 3, 2, 1, 0])
    path = counts_path(tmp_path / "new" / "vocab.txt")
    assert path == tmp_path / "new" / "vocab.counts.tsv"
    for _ in range(2):  # the second time over the first
        save_counts(path, vocabulary, counts)
    loaded = load_counts(path, vocabulary)
    assert loaded.dtype == np.int64
    assert loaded.tolist() == counts.tolist()
    assert path.read_bytes().startswith(b"5\t<S>\n5\t</S>\n")
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_counts_that_do_not_fit(tmp_path, write):
    vocabulary = Vocabulary([*SPECIALS, "the"])
    with pytest.raises(ValueError, match="Received: 3 counts and 4 words"):
        save_counts(tmp_path / "counts.tsv", vocabulary, np.arange(3))
    save_counts(tmp_path / "counts.tsv", vocabulary, np.arange(4))
    for other in (["the", *SPECIALS], [*SPECIALS, "the", "cat"]):
        with pytest.raises(ValueError, match=r"counts\.tsv must have the words of the vocabulary"):
            load_counts(tmp_path / "counts.tsv", Vocabulary(other))
    with pytest.raises(ValueError, match="does not exist"):
        load_counts(tmp_path / "none.tsv", vocabulary)


@pytest.mark.parametrize("line", ["the\t5", "5", "-5\tthe", "5\t", "²\tthe", "5 the", ""])
def test_a_broken_counts_file(write, line):
    path = write(f"9\t<S>\n{line}\n")
    sentence = f"line 2: must be a count, a tab and a word. Received: {line!r}"
    with pytest.raises(ValueError, match=re.escape(sentence)):
        load_counts(path, Vocabulary(SPECIALS))


def test_words_in_another_order_are_noticed():
    """User problem 59."""
    words = [f"w{n:03}" for n in range(500)]
    counts = {word: 10_000 // (n + 1) for n, word in enumerate(words)}
    shuffled = np.random.default_rng(0).permutation(words).tolist()
    cases = [(words, True), (words[::-1], False), (shuffled, False)]
    for order, expected in cases:
        for vocabulary in (Vocabulary([*SPECIALS, *order]), Vocabulary([*order, *SPECIALS])):
            assert frequencies_fall(vocabulary, counts_of(vocabulary, counts)) is expected
    assert frequencies_fall(Vocabulary(SPECIALS), np.array([1, 1, 1]))
    assert frequencies_fall(Vocabulary([*SPECIALS, "a", "b"]), np.array([1, 1, 1, 4, 4]))


@pytest.mark.large
def test_real_vocabularies_in_and_out_of_order():
    vocabulary = Vocabulary.load(shared("models", "tiny_en", "vocab.txt"))
    counts = count_words(shared("data", "lm", "valid.txt.xz"))
    assert frequencies_fall(vocabulary, counts_of(vocabulary, counts))
    by_letter = Vocabulary(sorted(vocabulary))
    assert not frequencies_fall(by_letter, counts_of(by_letter, counts))
    chinese = count_words(shared("data", "lm-zh", "valid.txt.xz"))
    assert not frequencies_fall(vocabulary, counts_of(vocabulary, chinese))


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_no_word_at_all(write, text):
    with pytest.raises(
        ValueError, match="The corpus must have at least one word. Received: 1 empty"
    ):
        count_words(write(text))


def test_bad_arguments(write):
    with pytest.raises(ValueError, match="which matches none"):
        count_words("no-such-file*")
    with pytest.raises(ValueError, match='`format` must be "tokens" or "plain"'):
        count_words(write("a"), "conllu")
    with pytest.raises(ValueError, match="`tokenize` must be a function"):
        count_words(write("a"), "plain")
    with pytest.raises(
        ValueError, match="at least 4: three specials and a word. Received: max_size=3"
    ):
        build_vocabulary({"a": 1}, max_size=3)
    with pytest.raises(ValueError, match="`min_count` must be an integer of at least 1"):
        build_vocabulary({"a": 1}, min_count=0)
    with pytest.raises(
        ValueError, match=r"must occur at least 2 times \(`min_count`\), and none does"
    ):
        build_vocabulary({"a": 1, "<S>": 7}, min_count=2)


def test_a_bad_byte_is_named(tmp_path):
    (tmp_path / "bad.txt").write_bytes(b"a\nb\n\xe9t\xe9\n")
    with pytest.raises(ValueError, match=r"bad\.txt, line 3, byte 0: the text must be UTF-8"):
        count_words(tmp_path / "bad.txt")
