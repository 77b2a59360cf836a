import io
import json
import re
import tarfile
from collections import Counter, defaultdict
from pathlib import Path
from xml.etree import ElementTree

import keras
import nearest_sense
import numpy as np
import pytest
import word_senses

from keras_elmo import ElmoModel
from keras_elmo.text import tokenize_sentences

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
on_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="the tokenizer and Embedder need TensorFlow"
)
LAYERS = ["layer 0", "LSTM 1", "LSTM 2", "mean of all"]


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(1)
    return ElmoModel(
        filters=[[1, 4], [2, 4]], embedding_dim=4, units=8, projection_dim=4, num_highway_layers=1
    )


# --- the sentences ---


def words():
    found = defaultdict(list)
    for language in ("en", "zh"):
        for example in word_senses.read_examples(language):
            found[language, example.word].append(example)
    return found


def test_the_file_has_enough_words():
    languages = Counter(language for language, _ in words())
    assert languages["en"] >= 28
    assert languages["zh"] >= 10
    wanted = {"bank", "run", "bat", "spring", "light", "苹果", "打", "花"}
    assert wanted <= {word for _, word in words()}


def test_every_line_is_read():
    lines = word_senses.SENTENCES.read_text(encoding="utf-8").splitlines()
    assert lines[0].split("\t") == list(word_senses.Example._fields)
    assert len(lines) - 1 == sum(map(len, words().values()))
    assert all(line.count("\t") == 3 and line == line.strip() for line in lines)


@pytest.mark.parametrize(("language", "word"), words())
def test_the_sentences_of_a_word(language, word):
    examples = words()[language, word]
    senses = Counter(example.sense for example in examples)
    assert len(examples) >= 6
    assert len(senses) >= 2
    assert min(senses.values()) >= 3
    for example in examples:
        if language == "en":
            tokens = example.sentence.split(" ")
            assert tokens.count(word) == 1
            assert 6 <= len(tokens) <= 20
        else:
            assert example.sentence.count(word) == 1
            assert not re.search(r"\s", example.sentence)


def test_no_sentence_is_there_twice():
    sentences = [example.sentence for examples in words().values() for example in examples]
    assert len(sentences) == len(set(sentences))


@on_tensorflow
def test_the_english_sentences_are_cut_as_the_tokenizer_cuts():
    sentences = [example.sentence for example in word_senses.read_examples("en")]
    assert [" ".join(tokens) for tokens in tokenize_sentences(sentences)] == sentences


def test_neither_length_nor_place_tells_the_senses_apart():
    for language in ("en", "zh"):
        accuracies = []
        for (of, word), examples in words().items():
            if of != language:
                continue
            places = np.array([example.sentence.index(word) for example in examples])
            lengths = np.array([len(example.sentence) for example in examples])
            near = [-np.abs(of - of[:, None]) for of in (places, lengths, lengths - places)]
            senses = [example.sense for example in examples]
            accuracies.append(word_senses.triple_accuracy(np.array(near), senses))
        assert (np.mean(accuracies, axis=0) < 0.53).all()


@on_tensorflow
@pytest.mark.parametrize("language", ["en", "zh"])
def test_random_weights_are_at_chance(model, language):
    found = word_senses.compare_pairs(model, word_senses.read_examples(language))
    assert found["layers"]["layer 0"]["accuracy"] == 0.5
    for layer in found["layers"].values():
        assert 0.45 < layer["accuracy"] < 0.55
    assert found["p_value"] > 0.05


# --- the arithmetic ---


def test_triples():
    senses = ["a", "a", "b"]
    # Of the triples (0, 1, 2) and (1, 0, 2): both right; one right; both ties; one a tie, one wrong.
    pairs = [(0.9, 0.1, 0.2), (0.5, 0.1, 0.6), (0.3, 0.3, 0.3 + 5e-7), (0.3, 0.3, 0.4)]
    similarity = [[[1, ab, ac], [ab, 1, bc], [ac, bc, 1]] for ab, ac, bc in pairs]
    accuracy = word_senses.triple_accuracy(np.array(similarity), senses)
    assert accuracy.tolist() == [1.0, 0.5, 0.5, 0.25]


def test_bootstrap_draws_the_same_rows_for_all_columns():
    values = np.random.default_rng(0).uniform(size=(20, 1))
    means = word_senses.bootstrap_means(np.hstack([values, values + 1]), num_resamples=2000)
    assert means.shape == (2000, 2)
    np.testing.assert_allclose(means[:, 1] - means[:, 0], 1)
    np.testing.assert_allclose(means[:, 0].mean(), values.mean(), atol=0.01)
    np.testing.assert_allclose(means[:, 0].std(), values.std() / 20**0.5, rtol=0.1)


def test_p_value():
    assert word_senses.p_value(np.array([1.0, 2.0, 3.0])) == 1 / 4
    assert word_senses.p_value(np.array([1.0, 0.0, -3.0])) == 3 / 4


def test_statistics():
    random = np.random.default_rng(0)
    noise = random.normal(0, 0.1, 30)
    layer_0, good, best = np.full(30, 0.5), 0.6 + noise, 0.7 + noise
    found = word_senses._statistics(np.stack([layer_0, best, good, good], axis=1), LAYERS)
    assert found["best_layer"] == "LSTM 1"
    # Of two LSTM layers; no resample is at 0.5.
    assert found["p_value"] == 2 / (word_senses.NUM_RESAMPLES + 1)
    assert found["layers"]["layer 0"] == {
        "accuracy": 0.5,
        "interval": [0.5, 0.5],
        "p_value": 1.0,
    }
    low, high = found["layers"]["LSTM 1"]["interval"]
    assert 0.6 < low < found["layers"]["LSTM 1"]["accuracy"] < high < 0.8


def test_above_chance_is_not_enough_where_layer_0_is_above_chance_too():
    accuracies = np.random.default_rng(0).normal(0.8, 0.05, (30, 1)) + [0.0, -0.01, 0.0, 0.0]
    found = word_senses._statistics(accuracies, LAYERS)
    assert found["p_value"] == 1.0


@on_tensorflow
def test_similarities_of_the_mean_of_layers(model):
    import keras_elmo

    examples = [
        word_senses.Example("zh", "苹果", "fruit", sentence)
        for sentence in ("我喜欢吃苹果。", "苹果又脆又甜。", "一个红苹果")
    ]
    found = word_senses.similarities(model, examples)
    assert found.shape == (4, 3, 3)
    np.testing.assert_allclose(found[0], 1, atol=1e-6)
    vectors = [
        array.mean(axis=0)[place : place + 2].mean(axis=0)
        for array, place in zip(
            keras_elmo.Embedder(model).embed([example.sentence for example in examples]),
            (4, 0, 3),
            strict=True,
        )
    ]
    unit = np.array([vector / np.linalg.norm(vector) for vector in vectors])
    np.testing.assert_allclose(found[3], unit @ unit.T, atol=1e-5)


@on_tensorflow
def test_a_sentence_without_the_word(model):
    examples = [word_senses.Example("en", "bank", "money", text) for text in ("a bank", "a shop")]
    with pytest.raises(ValueError, match="The word 'bank' is not in the sentence 'a shop'"):
        word_senses.similarities(model, examples)


# --- SemCor -> MASC ---

BANK = ("bank", "NOUN")


def senses(*occurrences):
    found = nearest_sense.Senses()
    for sense, *vector in occurrences:
        found.add(nearest_sense.Occurrence(0, BANK, sense), np.array([vector], np.float32))
    return found


def test_nearest_is_the_nearest_mean():
    # One occurrence of "river" is nearest to the word, but the mean of "money" is.
    found = senses(("river", 1, 0), ("river", -1, 2), ("money", 1, 1), ("money", 2, 1))
    assert found.nearest(BANK, np.array([[1, 0.1]])) == ["money"]
    assert found.nearest(BANK, np.array([[-3, 5]])) == ["river"]


def test_every_layer_has_its_own_nearest_sense():
    found = nearest_sense.Senses()
    for sense, vectors in {"river": [[1, 0], [0, 1]], "money": [[0, 1], [1, 0]]}.items():
        found.add(nearest_sense.Occurrence(0, BANK, sense), np.array(vectors))
    assert found.nearest(BANK, np.array([[1.0, 0.0], [1.0, 0.0]])) == ["river", "money"]


def test_ties_are_broken_by_a_hash_and_not_by_order_or_number():
    vector = np.random.default_rng(0).normal(size=5).astype(np.float32)
    names = [f"sense {number}" for number in range(6)]
    first = nearest_sense._by_hash(names)[0]
    for order in (names, names[::-1]):
        equal = senses(*[(name, *vector) for name in order for _ in range(len(name))])
        assert equal.nearest(BANK, vector[None] * 3) == [first]
        assert equal.most_frequent(BANK) == first
    # So that no sense is always the first: of many words' "a" and "b", about half.
    chosen = [nearest_sense._by_hash([f"{word}.a", f"{word}.b"])[0][-1] for word in range(200)]
    assert 70 < chosen.count("a") < 130


def test_most_frequent():
    found = senses(("river", 1, 0), ("money", 1, 0), ("money", 0, 1))
    assert found.most_frequent(BANK) == "money"
    assert found.is_ambiguous(BANK)
    assert BANK in found
    assert ("bank", "VERB") not in found


def document(*words):
    root = ElementTree.Element("SimpleWsdDoc")
    for text, break_level, *tag in words:
        attributes = dict(zip(("lemma", "pos", "sense"), tag, strict=False))
        ElementTree.SubElement(root, "word", text=text, break_level=break_level, **attributes)
    return root


def test_sentences_end_at_breaks_of_sentences_and_paragraphs_only():
    root = document(
        ("No", "NO_BREAK"),
        ("sense", "SPACE_BREAK"),
        ("A", "SENTENCE_BREAK"),
        ("bank", "LINE_BREAK", "bank", "NOUN", "b.1"),
        ("Banks", "PARAGRAPH_BREAK", "bank", "NOUN", "b.2"),
        (".", "NO_BREAK"),
    )
    assert list(nearest_sense.tagged_sentences(root)) == [
        (["A", "bank"], [(1, BANK, "b.1")]),
        (["Banks", "."], [(0, BANK, "b.2")]),
    ]


def write_archive(path, *documents):
    with tarfile.open(path, "w:xz") as archive:
        for number, root in enumerate(documents):
            content = ElementTree.tostring(root)
            member = tarfile.TarInfo(f"folder/{number}.xml")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


@on_tensorflow
def test_main(tmp_path, model, capsys):
    pytest.importorskip("matplotlib", reason="matplotlib not installed (extra `plot`)")
    river = document(
        ("The", "NO_BREAK"),
        ("bank", "SPACE_BREAK", "bank", "NOUN", "b.river"),
        ("of", "SPACE_BREAK"),
        ("rivers", "SPACE_BREAK", "river", "NOUN", "r.1"),
    )
    money = document(
        ("Banks", "NO_BREAK", "bank", "NOUN", "b.money"),
        ("fail", "SPACE_BREAK", "fail", "VERB", "f.1"),
    )
    semcor_masc = tmp_path / "semcor_masc"
    semcor_masc.mkdir()
    write_archive(semcor_masc / "semcor.tar.xz", river, money, money)
    unknown = document(("Cows", "NO_BREAK", "cow", "NOUN", "c.1"))
    write_archive(semcor_masc / "masc.tar.xz", money, unknown, river)
    weights = str(tmp_path / "weights")
    model.save_to_preset(weights)
    outputs = {"--json": tmp_path / "numbers.json", "--plot": tmp_path / "picture.png"}

    word_senses.main(
        ["--model", weights, "--semcor-masc", str(semcor_masc)]
        + [str(argument) for pair in outputs.items() for argument in pair]
    )

    report = json.loads(outputs["--json"].read_text(encoding="utf-8"))
    pairs = report["pairs"]
    assert list(pairs["layers"]) == LAYERS
    assert pairs["layers"]["layer 0"]["accuracy"] == 0.5
    assert pairs["num_words"] == len(pairs["words"]) >= 28
    found = report["semcor_masc"]
    assert found["num_test_words"] == 5
    assert found["coverage"] == 4 / 5
    # The test has the very vectors of the training.
    assert found["known"]["layers"] == dict.fromkeys(LAYERS, 1.0)
    assert found["known"]["most_frequent_sense"] == 3 / 4
    assert found["ambiguous"]["num_words"] == 2
    assert found["ambiguous"]["most_frequent_sense"] == 1 / 2
    assert outputs["--plot"].read_bytes().startswith(b"\x89PNG")
    assert "most frequent sense" in capsys.readouterr().out


@on_tensorflow
def test_a_folder_without_the_archives(tmp_path):
    with pytest.raises(SystemExit, match="must have semcor.tar.xz and masc.tar.xz: give"):
        word_senses.main(["--semcor-masc", str(tmp_path)])


@on_tensorflow
def test_a_model_that_is_not_there():
    with pytest.raises(SystemExit, match="There is no file, folder or preset 'nowhere'"):
        word_senses.main(["--model", "nowhere", "--no-semcor-masc"])
