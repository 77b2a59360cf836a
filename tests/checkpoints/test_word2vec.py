"""word2vec's formats: a line for each word, in text and binary."""

import numpy as np
import pytest
import reference
from harness import to_numpy
from test_reference import VOCABULARY, options_for

from keras_elmo import character_ids
from keras_elmo.checkpoints import bilm_tf, word2vec

OPTIONS = options_for() | {"n_tokens_vocab": len(VOCABULARY)}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    weights = reference.random_model(OPTIONS, seed=1)
    folder = tmp_path_factory.mktemp("source") / "model"
    return bilm_tf.read(reference.write_model(folder, OPTIONS, weights, VOCABULARY))


def read(path, binary):
    """As the format's own program writes it (https://code.google.com/archive/p/word2vec/): words and vectors."""
    data = path.read_bytes()
    head, _, data = data.partition(b"\n")
    count, dim = map(int, head.split())
    words, vectors = [], []
    for _ in range(count):
        word, _, data = data.partition(b" ")
        words.append(word.decode())
        if binary:
            vectors.append(np.frombuffer(data[: 4 * dim], "<f4"))
            data = data[4 * dim :]
            assert data[:1] == b"\n"
            data = data[1:]
        else:
            line, _, data = data.partition(b"\n")
            vectors.append(np.array(line.split(), float))
    assert not data
    return words, np.array(vectors)


@pytest.mark.parametrize("binary", [False, True])
def test_layer_0_of_the_words(checkpoint, tmp_path, monkeypatch, binary):
    monkeypatch.setattr(word2vec, "_WORDS_PER_BATCH", 3)
    path = tmp_path / "vectors"
    word2vec.write(checkpoint, path, binary=binary)
    words, vectors = read(path, binary)
    assert words == [word for word in VOCABULARY if word not in ("<S>", "</S>", "<UNK>")]
    expected = checkpoint.model(character_ids([words], checkpoint.model.max_word_length))
    np.testing.assert_allclose(vectors, to_numpy(expected["word_emb"])[0], rtol=1e-5, atol=1e-6)


def test_another_vocabulary(checkpoint, tmp_path):
    file = tmp_path / "words.txt"
    file.write_text("bank\n银行\n\n<S>\nbank\nbnak\n", encoding="utf-8")
    word2vec.write(checkpoint, tmp_path / "vectors", file)
    words, vectors = read(tmp_path / "vectors", False)
    assert words == ["bank", "银行", "bnak"]
    assert len(np.unique(vectors, axis=0)) == 3


def test_refused(checkpoint, tmp_path):
    def refused(match, text=None, source=checkpoint):
        file = None
        if text is not None:
            file = tmp_path / "words.txt"
            file.write_text(text)
        with pytest.raises(ValueError, match=match):
            word2vec.write(source, tmp_path / "vectors", file)
        assert not (tmp_path / "vectors").exists()

    refused("words.txt has no word", "<S>\n\n")
    refused("cannot hold white space in a word. Received: 'New York'", "a\nNew York\n")
    bare = bilm_tf.Checkpoint(checkpoint.model)
    refused("no vocabulary of its own. Name a file", source=bare)
    whole_words = OPTIONS | {"n_tokens_vocab": len(VOCABULARY)}
    del whole_words["char_cnn"]
    folder = tmp_path / "words_only"
    weights = reference.random_model(whole_words, seed=1)
    source = bilm_tf.read(reference.write_model(folder, whole_words, weights, VOCABULARY))
    refused("this model reads whole words", source=source)
