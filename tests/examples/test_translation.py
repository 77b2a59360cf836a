import itertools
import json
import lzma

import keras
import numpy as np
import pytest

pytest.importorskip("sacrebleu", reason="sacrebleu not installed (extra `examples`)")
if keras.backend.backend() != "tensorflow":
    pytest.skip("the examples need TensorFlow", allow_module_level=True)

import translation

END = 0


def test_smoke(capsys):
    result = translation.main(["--smoke", "--epochs", "2"])
    [line] = capsys.readouterr().out.splitlines()
    assert json.loads(line) == result
    assert 0 <= result["bleu"] <= 100
    assert result["num_test_sentences"] == len(result["samples"]) == 2
    for sample in result["samples"]:
        assert sample["references"] == translation.SMOKE[sample["english"]]
        assert isinstance(sample["translation"], str)


def test_a_line_without_a_tab_is_refused_in_one_sentence(tmp_path, capsys):
    write(tmp_path / "fra.txt.xz", {"a": ["b"]}, more="no tab\n")
    with pytest.raises(SystemExit, match="has a line that is not English, a tab, French: 'no tab"):
        translation.main(["--data", str(tmp_path)])
    assert capsys.readouterr().out == ""


def test_a_folder_without_the_file_is_refused_in_one_sentence(tmp_path):
    with pytest.raises(SystemExit, match=r"No such file or directory: '.*fra\.txt\.xz'"):
        translation.main(["--data", str(tmp_path)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--epochs", "0"], "argument --epochs: '0' is not a whole number from 1 up"),
        (["--max-examples", "-5"], "argument --max-examples: '-5' is not a whole number from 1 up"),
        (["--epochs", "ten"], "argument --epochs: 'ten' is not a whole number from 1 up"),
        (["--data", "nowhere"], "there is no folder nowhere. Get the data"),
    ],
)
def test_options_that_make_no_sense(options, message, capsys):
    with pytest.raises(SystemExit):
        translation.main(options)
    out, err = capsys.readouterr()
    assert out == ""
    assert f"error: {message}" in err.splitlines()[-1]


def test_a_model_that_is_not_there():
    with pytest.raises(SystemExit, match="There is no file, folder or preset 'nowhere'"):
        translation.main(["--smoke", "--model", "nowhere"])


def write(file, translations, more=""):
    pairs = [f"{e}\t{f}\n" for e, french in translations.items() for f in french]
    with lzma.open(file, "wt", encoding="utf-8") as lines:
        lines.write("".join(pairs) + more)


# --- data ---


def test_read_takes_two_columns_and_three(tmp_path):
    file = tmp_path / "fra.txt.xz"
    write(
        file, {"Run!": ["Cours\u202f!", "Courez !\tCC-BY 2.0 (France) somebody"], "Go.": ["Va !"]}
    )
    assert translation.read(file) == {"Run!": ["Cours\u202f!", "Courez !"], "Go.": ["Va !"]}


def test_no_english_sentence_is_on_both_sides():
    translations = {f"sentence {n}": [f"phrase {n}", f"ligne {n}"] for n in range(2000)}
    training, test = translation.split(translations, max_pairs=10_000)
    assert len(test) == len(set(test)) == 500
    assert not {english for english, _ in training} & set(test)
    assert len(training) == len(set(training)) == 3000
    assert all(french in translations[english] for english, french in training)
    # Neither the order in the file nor the number of examples moves a sentence to the other side.
    backwards = dict(reversed(translations.items()))
    assert translation.split(backwards, max_pairs=7) == (training[:7], test)
    # By chance: the sentences of the test are of the whole file.
    numbers = [int(sentence.split()[1]) for sentence in test]
    assert 900 < np.mean(numbers) < 1100


@pytest.mark.parametrize(
    ("french", "tokens"),
    [
        ("Qu'est-ce que c'est ?", "Qu' est -ce que c' est ?"),
        ("Oui, je l’ai vu.", "Oui , je l’ ai vu ."),
        ("Y a-t-il du thé : vert ; noir !", "Y a -t -il du thé : vert ; noir !"),
    ],
)
def test_tokens_and_back(french, tokens):
    assert translation.tokenize(french) == tokens.split()
    assert translation.detokenize(tokens.split()) == french


def test_spaces_that_do_not_break_become_plain_ones():
    assert translation.detokenize(translation.tokenize("Va\u202f! Où\xa0?")) == "Va ! Où ?"


def test_batches():
    vocabulary = ["<padding>", "<start>", "<end>", "<unknown>", "je", "dors"]
    vectors = {
        "a b c": np.full((3, 2, 4), 3, "float16"),
        "a": np.full((1, 2, 4), 1, "float16"),
        "a b": np.full((2, 2, 4), 2, "float16"),
    }
    pairs = [("a b", "je dors là"), ("a", "dors"), ("a b c", "je dors")]
    batches = translation.Batches(pairs, vectors, vocabulary, size=2)
    assert len(batches) == 2
    (read, so_far), following = batches[0]
    assert read.shape == (1, 3, 2, 4)
    assert (so_far.tolist(), following.tolist()) == ([[1, 4, 5]], [[4, 5, 2]])
    (read, so_far), following = batches[1]
    assert read.dtype == np.float32
    assert read[:, :, 0, 0].tolist() == [[1, 0], [2, 2]]
    assert so_far.tolist() == [[1, 5, 2, 0], [1, 4, 5, 3]]
    assert following.tolist() == [[5, 2, 0, 0], [4, 5, 3, 2]]


# --- model ---


def test_padding_changes_nothing():
    *_, model = translation.build(shape=(3, 8), vocabulary_size=11)
    random = np.random.default_rng(0)
    vectors = random.normal(size=(1, 4, 3, 8)).astype("float32")
    french = random.integers(4, 11, size=(1, 5))
    alone = model([vectors, french])
    padded = model([np.pad(vectors, [(0, 0), (0, 2), (0, 0), (0, 0)]), french])
    np.testing.assert_allclose(padded, alone, atol=1e-5)


def test_a_word_depends_on_english_and_on_the_words_before_it_only():
    *_, model = translation.build(shape=(3, 8), vocabulary_size=11)
    random = np.random.default_rng(0)
    vectors = random.normal(size=(1, 4, 3, 8)).astype("float32")
    scores = np.array(model([vectors, np.array([[1, 5, 6, 7]])]))
    others = np.array(model([vectors, np.array([[1, 5, 9, 7]])]))
    np.testing.assert_allclose(others[:, :2], scores[:, :2], atol=1e-6)
    assert np.abs(others[:, 2:] - scores[:, 2:]).max(axis=-1).min() > 1e-4
    assert (
        np.abs(np.array(model([vectors[:, ::-1], np.array([[1, 5]])])) - scores[:, :2]).max() > 1e-4
    )


def test_translate_never_answers_with_symbols_that_are_no_words():
    encoder, decoder, _ = translation.build(shape=(3, 8), vocabulary_size=6)
    vectors = np.random.default_rng(0).normal(size=(4, 3, 8)).astype("float16")
    vocabulary = ["<padding>", "<start>", "<end>", "<unknown>", "oui", "non"]
    found = translation.translate(vectors, encoder, decoder, vocabulary)
    assert set(found.split()) <= {"oui", "non"}
    assert len(found.split()) <= 2 * 4 + 5


# --- beam search ---


def random_scorer(seed, vocabulary=4, sharpness=1.0):
    """Log probabilities that depend on the whole beginning, the same whenever they are asked for."""

    def next_log_probabilities(beginnings):
        assert len({len(beginning) for beginning in beginnings}) == 1
        assert all(END not in beginning for beginning in beginnings), "a finished one goes on"
        logits = np.stack(
            [
                np.random.default_rng([seed, len(beginning), *beginning]).normal(size=vocabulary)
                for beginning in beginnings
            ]
        )
        logits *= sharpness
        return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))

    return next_log_probabilities


def mean_log_probability(scorer, sequence):
    ended = [*sequence, END]
    return np.mean([scorer([ended[:k]])[0, symbol] for k, symbol in enumerate(ended)])


def exhaustive_search(scorer, max_length, vocabulary=4):
    symbols = range(1, vocabulary)
    return max(
        (
            list(sequence)
            for length in range(max_length)
            for sequence in itertools.product(symbols, repeat=length)
        ),
        key=lambda sequence: mean_log_probability(scorer, sequence),
    )


@pytest.mark.parametrize("seed", range(20))
def test_a_wide_beam_finds_what_exhaustive_search_finds(seed):
    scorer = random_scorer(seed, sharpness=1 + seed % 3)
    found = translation.beam_search(scorer, END, max_length=5, width=4**5)
    assert found == exhaustive_search(scorer, max_length=5)


def test_a_wider_beam_is_better_on_average():
    def mean_score(width):
        scores = []
        for seed in range(60):
            scorer = random_scorer(seed, sharpness=2)
            found = translation.beam_search(scorer, END, max_length=6, width=width)
            scores.append(mean_log_probability(scorer, found) if len(found) < 6 else -10)
        return np.mean(scores)

    assert mean_score(1) < mean_score(2) < mean_score(8)


def table(rows):
    """A scorer from probabilities by the beginning; of others the end is certain."""

    def next_log_probabilities(beginnings):
        found = np.array([rows.get(tuple(beginning), [1, 0, 0]) for beginning in beginnings])
        with np.errstate(divide="ignore"):
            return np.log(found)

    return next_log_probabilities


def test_a_beam_recovers_where_greedy_search_is_led_astray():
    scorer = table({(): [0, 0.6, 0.4], (1,): [0.4, 0.3, 0.3], (2,): [1, 0, 0]})
    assert translation.beam_search(scorer, END, max_length=4, width=1) == [1]
    assert translation.beam_search(scorer, END, max_length=4, width=2) == [2]


def test_short_ones_have_no_advantage():
    # Sums: log .3 for [], log .28 for [1, 2]; means: that of [1, 2] is much higher.
    scorer = table({(): [0.3, 0.7, 0], (1,): [0.4, 0, 0.6], (1, 2): [0.7, 0, 0.3]})
    assert translation.beam_search(scorer, END, max_length=4, width=3) == [1, 2]


def test_a_finished_one_that_is_best_ends_the_search():
    asked = []

    def scorer(beginnings):
        asked.append(len(beginnings[0]))
        return np.log(np.tile([[0.98, 0.01, 0.01]], (len(beginnings), 1)))

    assert translation.beam_search(scorer, END, max_length=50, width=2) == []
    assert asked == [0]


def test_the_best_beginning_where_nothing_ends():
    scorer = table({(): [0, 0.4, 0.6], (1,): [0, 1, 0], (2,): [0, 0.5, 0.5]})
    assert translation.beam_search(scorer, END, max_length=2, width=3) == [1, 1]


def test_several_references():
    # As the example turns them: sentences' references to columns, with None where there is none.
    import sacrebleu

    references = [["le chat est là .", "un chat est là ."], ["il dort bien ce soir ."]]
    columns = list(itertools.zip_longest(*references))
    for found in references[0]:
        bleu = sacrebleu.corpus_bleu([found, references[1][0]], columns)
        assert bleu.score == pytest.approx(100)
