"""Draws the pictures of the documentation into `docs/pictures`: `python docs/pictures.py`, before the site is built.

The texts are those of the tutorials: the first block of each makes them.
"""

import contextlib
import re
import tempfile
from pathlib import Path

import keras

import keras_elmo
from keras_elmo.corpus import build_vocabulary, count_words
from keras_elmo.inference import compare
from keras_elmo.plot import (
    plot_layer_similarity,
    plot_layer_weights,
    plot_occurrences,
    plot_token_similarity,
    plot_training,
)
from keras_elmo.training import PretrainConfig, TrainingCorpus, pretrain

DOCS = Path(__file__).resolve().parent
PICTURES = DOCS / "pictures"


def main():
    """Draws all of them."""
    PICTURES.mkdir(exist_ok=True)
    similarity()
    occurrences()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        layer_weights()
        training()


def similarity():
    """Two banks, word against word, in every layer."""
    model = keras_elmo.load_model("elmo_tiny_en")
    sentences = ["he sat on the bank of the river", "the bank lent him the money"]
    found = compare(model, sentences, "bank")
    plot_token_similarity(found.sentences, found.token_layers, PICTURES / "similarity.png", "bank")
    sentences.append("the bank paid its debts")
    found = compare(model, sentences, "bank")
    plot_layer_similarity(sentences, found.layers, PICTURES / "layers.png", "bank")


def occurrences():
    """The two senses of a word in the sentences of the benchmarks, by its vectors in the top layer."""
    table = (DOCS.parent / "benchmarks" / "word_senses.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in table.splitlines()]
    chosen = [(sense, sentence.split()) for _, word, sense, sentence in rows if word == "board"]
    vectors = [
        layer[words.index("board")]
        for (_, words), layer in zip(
            chosen,
            keras_elmo.Embedder(layers="top").embed([words for _, words in chosen]),
            strict=True,
        )
    ]
    senses = [sense for sense, _ in chosen]
    plot_occurrences(vectors, senses, PICTURES / "occurrences.png", "board")


def layer_weights():
    """What two small heads make of the layers."""
    reviews, names = data_of("keras_classifier"), data_of("tagging_words")
    texts = [*reviews["good"], *reviews["bad"]]
    answers = ["good"] * len(reviews["good"]) + ["bad"] * len(reviews["bad"])
    keras.utils.set_random_seed(1)
    classifier = keras_elmo.TextClassifier(labels=["bad", "good"], lstm_units=32)
    classifier.fit(texts, answers, batch_size=8, epochs=60, verbose=0)
    tagger = keras_elmo.TokenClassifier(labels=["O", "B-PER", "I-PER", "B-LOC"], decoder="crf")
    tagger.fit(names["sentences"], names["labels"], batch_size=3, epochs=60, verbose=0)
    weights = {"reviews": classifier.encoder, "names": tagger.encoder}
    weights = {
        name: keras.ops.convert_to_numpy(keras.ops.softmax(encoder.input_mix.scalar_weights))
        for name, encoder in weights.items()
    }
    plot_layer_weights(weights, PICTURES / "layer_weights.png")


def training():
    """A short run on the toy of Esperanto."""
    data_of("training_on_your_language")
    corpus, validation = (
        TrainingCorpus(("train.txt",), "plain"),
        TrainingCorpus(("valid.txt",), "plain"),
    )
    counts = count_words("train.txt", "plain", keras_elmo.tokenize_sentences)
    build_vocabulary(counts)[0].save("vocab.txt")
    config = PretrainConfig(batch_size=16, unroll_steps=10, max_steps=160, validate_every=10)
    pretrain(config, corpus, "vocab.txt", "run", validation)
    plot_training("run", PICTURES / "training.png")


def data_of(tutorial):
    """The names that the first block of a tutorial makes."""
    page = (DOCS / "tutorials" / f"{tutorial}.md").read_text(encoding="utf-8")
    names = {}
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1], names)
    return names


if __name__ == "__main__":
    main()
