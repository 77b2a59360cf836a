"""Word senses by their nearest neighbour: which "bank" is meant is told by the word's vector alone.

A sense's vector is the mean over the words that have it in SemCor, and a word of MASC gets the sense
of its lemma whose vector is nearest (cosine), as in Peters et al., 2018, section 5.3
(https://arxiv.org/abs/1802.05365). The upper layers, which have read the sentence, are far ahead of
layer 0, which knows the characters of the word alone.

    python examples/word_senses.py
    python examples/word_senses.py --smoke

Measured 2026-12-01, two cores: of 131,898 words whose lemma is in SemCor layer 0 has 0.516
right, the LSTM layers 0.694 and 0.715, the mean of all 0.687, and always the most frequent sense
0.753, which a model as small as the bundled one does not beat. It needs 4 minutes of processor time.

Data: https://github.com/google-research-datasets/word_sense_disambigation_corpora (Yuan et al., 2016,
CC BY 4.0): SemCor and MASC with the senses of the New Oxford American Dictionary. In a clone of it
`tar cJf semcor.tar.xz semcor && tar cJf masc.tar.xz masc`, and `--data` is its folder.
"""

import hashlib
import tarfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict

import numpy as np
from command_line import errors_as_one_sentence, parse, progress, report

import keras_elmo

BANKS = [
    "he sat on the bank of the river",
    "the bank lent him the money",
    "the bank paid its debts",
]
# In place of SemCor and MASC; the sense is behind the word.
SMOKE_TRAINING = [
    "he sat on the bank|river of the river .",
    "trees grow on the bank|river of the stream .",
    "the bank|money lent him the money .",
    "the bank|money paid its debts .",
    "the banks|money raised their rates .",
]
SMOKE_TEST = [
    "they walked along the bank|river of the lake .",
    "her bank|money refused to lend more .",
]


@errors_as_one_sentence()
def main(argv=None):
    """Learns the senses in SemCor and tells them apart in MASC."""
    options = parse(__doc__, argv, "wsd_semcor_masc", epochs=None, max_examples=None)
    start = time.monotonic()
    if options.smoke:
        corpora = [smoke_document(SMOKE_TRAINING)], [smoke_document(SMOKE_TEST)]
    else:
        corpora = [documents(options.data / name) for name in ("semcor.tar.xz", "masc.tar.xz")]
    training, test = (
        [sentence for document in corpus for sentence in tagged_sentences(document)]
        for corpus in corpora
    )

    embedder = keras_elmo.Embedder(options.model)
    senses = learn(occurrences(embedder, training[: options.max_examples], "SemCor"))
    num_words, right = 0, []
    for lemma, sense, vectors in occurrences(embedder, test, "MASC"):
        num_words += 1
        if lemma in senses:  # of others nothing is known
            names, means, most_frequent = senses[lemma]
            answers = [*(names[place] for place in nearest(means, vectors)), most_frequent]
            right.append([answer == sense for answer in answers])
    if not right:
        raise ValueError("No word of the test was seen in training: raise --max-examples.")

    layers = ["layer 0", *(f"LSTM {k}" for k in range(1, embedder.model.num_layers + 1))]
    rows = [*layers, "mean of all", "most frequent sense"]
    accuracy = np.sum(right, axis=0) / len(right)
    return report(
        bank=bank_similarities(embedder, layers),
        num_words=num_words,
        num_known=len(right),
        accuracy=dict(zip(rows, accuracy.round(3).tolist(), strict=True)),
        seconds=round(time.monotonic() - start),
    )


def documents(archive):
    """The documents of an archive: XML, an element for each word."""
    with tarfile.open(archive) as files:
        for member in files:
            if member.name.endswith(".xml"):
                yield ElementTree.parse(files.extractfile(member)).getroot()


def smoke_document(lines):
    """A document like those of the archives, of the lines above."""
    document = ElementTree.Element("document")
    for line in lines:
        for place, word in enumerate(line.split()):
            text, _, sense = word.partition("|")
            attributes = {"text": text, "lemma": "bank", "pos": "NOUN", "sense": sense}
            level = "SPACE_BREAK" if place else "SENTENCE_BREAK"
            ElementTree.SubElement(document, "word", attributes, break_level=level)
    return document


def tagged_sentences(document):
    """Tokens of each sentence, and (place, lemma, sense) of its words of known sense, if it has any."""
    tokens, tagged = [], []
    for word in document:
        # A break stands before its word.
        if word.get("break_level") in ("SENTENCE_BREAK", "PARAGRAPH_BREAK"):
            if tagged:
                yield tokens, tagged
            tokens, tagged = [], []
        if word.get("sense"):
            # The noun "bank" and the verb are two lemmas.
            lemma = (word.get("lemma"), word.get("pos"))
            tagged.append((len(tokens), lemma, word.get("sense")))
        tokens.append(word.get("text"))
    if tagged:
        yield tokens, tagged


def occurrences(embedder, sentences, description):
    """Lemma, sense and vectors (layers and their mean, dim) of every word of known sense."""
    arrays = embedder.embed(tokens for tokens, _ in sentences)
    pairs = zip(sentences, arrays, strict=True)
    for (_, tagged), array in progress(pairs, description, total=len(sentences)):
        for place, lemma, sense in tagged:
            vectors = array[:, place]
            yield lemma, sense, np.vstack([vectors, vectors.mean(axis=0)])


def learn(occurrences):
    """For each lemma its senses, their mean vectors (senses, layers, dim) and the most frequent of them."""
    counts, sums = defaultdict(Counter), defaultdict(float)
    for lemma, sense, vectors in occurrences:
        counts[lemma][sense] += 1
        # In float64: sums of equal vectors must point the same way, whatever their number.
        sums[lemma, sense] += np.float64(vectors)
    senses = {}
    for lemma, count in counts.items():
        # Where several are nearest or most frequent, the first is taken: in an order by chance.
        names = sorted(count, key=lambda sense: hashlib.sha256(sense.encode()).digest())
        # The length of a vector does not matter for cosines: a sum is as good as a mean.
        means = unit(np.stack([sums.pop((lemma, sense)) for sense in names]))
        senses[lemma] = names, means, max(names, key=count.get)
    return senses


def nearest(means, vectors):
    """For each layer, the place of the sense whose mean (senses, layers, dim) is nearest to the vector."""
    cosines = np.einsum("sld,ld->ls", means, unit(vectors))
    # In layer 0 a word has one vector everywhere: its senses tie, and rounding must not decide.
    return (cosines > cosines.max(axis=1, keepdims=True) - 1e-6).argmax(axis=1)


def unit(vectors):
    """The vectors at length 1."""
    vectors = np.float64(vectors)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)


def bank_similarities(embedder, layers):
    """How alike "bank" by the river and with money is, and in two sentences with money, in each layer."""
    sentences = [sentence.split() for sentence in BANKS]
    river, money, money_again = (
        unit(vectors[:, tokens.index("bank")])
        for tokens, vectors in zip(sentences, embedder.embed(sentences), strict=True)
    )
    pairs = {"river and money": (river, money), "money and money": (money, money_again)}
    return {
        name: dict(zip(layers, (a * b).sum(axis=-1).round(3).tolist(), strict=True))
        for name, (a, b) in pairs.items()
    }


if __name__ == "__main__":
    main()
