"""SemCor -> MASC: whether the sense of a word whose vector is nearest is the right one, layer by layer.

The data are those of Yuan et al., 2016 (https://arxiv.org/abs/1603.07012): both corpora with the
senses of one dictionary. The method is that of Peters et al., 2018, section 5.3: a sense's vector is
the mean over its occurrences in SemCor, and a word of MASC has the nearest (cosine) of its lemma's
senses. A lemma is told by its part of speech too. Words whose lemma does not occur in SemCor are
left out, as nothing is known of them: `coverage` is the share of the others, and `ambiguous` are
those of them whose lemma has several senses in SemCor.

Beside it: the sense that is most frequent in SemCor, and layer 0, which knows no context, but may
know a sense by its inflection or capitals. Ties are broken by a hash of the sense, which knows
nothing of it.

`word_senses.py` runs it.
"""

import hashlib
import itertools
import tarfile
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track

SEMCOR, MASC = "semcor.tar.xz", "masc.tar.xz"
# Cosines nearer than this are equal. Those of layer 0, which gives a word one vector everywhere, are
# up to 3e-7 apart in float32, and rounding must not decide.
TOLERANCE = 1e-6

# A word's base form and its part of speech.
Lemma = tuple[str, str]


class Occurrence(NamedTuple):
    """A word with a known sense, and its place in the sentence."""

    position: int
    lemma: Lemma
    sense: str


class TaggedSentence(NamedTuple):
    """The tokens of a sentence, and those of them whose sense is known."""

    tokens: list[str]
    occurrences: list[Occurrence]


def nearest_sense(embedder, names: list[str], training: Path, test: Path) -> dict:
    """Accuracy of the nearest sense and of the most frequent one.

    Args:
        embedder: An `Embedder` of all layers.
        names: Of the layers from 0 up, and of their mean.
        training: Archive of documents that the senses are learned from.
        test: Archive of documents whose words are to be told apart.
    """
    senses = Senses()
    for occurrence, vectors in occurrence_vectors(embedder, read_tagged(training)):
        senses.add(occurrence, vectors)

    total, known, ambiguous = 0, Tally(len(names)), Tally(len(names))
    for occurrence, vectors in occurrence_vectors(embedder, read_tagged(test)):
        total += 1
        if occurrence.lemma not in senses:
            continue
        right = [sense == occurrence.sense for sense in senses.nearest(occurrence.lemma, vectors)]
        most_frequent_right = senses.most_frequent(occurrence.lemma) == occurrence.sense
        known.add(right, most_frequent_right)
        if senses.is_ambiguous(occurrence.lemma):
            ambiguous.add(right, most_frequent_right)
    return {
        "num_test_words": total,
        "coverage": known.count / max(total, 1),
        "known": known.report(names),
        "ambiguous": ambiguous.report(names),
    }


def read_tagged(archive: Path) -> Iterator[TaggedSentence]:
    """The sentences of all documents of an archive that have a word with a known sense."""
    with tarfile.open(archive) as files:
        documents = [member for member in files if member.name.endswith(".xml")]
        for document in progress(documents, archive.name.partition(".")[0]):
            root = ElementTree.parse(files.extractfile(document)).getroot()
            yield from tagged_sentences(root)


def tagged_sentences(document: Iterable) -> Iterator[TaggedSentence]:
    """The sentences of a document, an XML element for each word, that have a word with a known sense."""
    sentence = TaggedSentence([], [])
    for word in document:
        # A break stands before its word. Lines break inside of sentences.
        if word.get("break_level") in ("SENTENCE_BREAK", "PARAGRAPH_BREAK"):
            if sentence.occurrences:
                yield sentence
            sentence = TaggedSentence([], [])
        if sense := word.get("sense"):
            lemma = (word.get("lemma"), word.get("pos"))
            sentence.occurrences.append(Occurrence(len(sentence.tokens), lemma, sense))
        sentence.tokens.append(word.get("text"))
    if sentence.occurrences:
        yield sentence


def occurrence_vectors(
    embedder, sentences: Iterator[TaggedSentence]
) -> Iterator[tuple[Occurrence, np.ndarray]]:
    """Every occurrence with its vectors (layers and their mean, dim)."""
    # The embedder reads ahead, a window of sentences: `tee` keeps so many and no more.
    sentences, embedded = itertools.tee(sentences)
    arrays = embedder.embed(sentence.tokens for sentence in embedded)
    for sentence, layers in zip(sentences, arrays, strict=True):
        for occurrence in sentence.occurrences:
            vectors = layers[:, occurrence.position]
            yield occurrence, np.vstack([vectors, vectors.mean(axis=0)])


class Senses:
    """The senses of every lemma: how often each occurred, and its mean vector in every layer."""

    def __init__(self):
        self._counts: dict[Lemma, Counter[str]] = defaultdict(Counter)
        self._sums: dict[tuple[Lemma, str], np.ndarray] = {}
        self._unit_means: dict[Lemma, np.ndarray] = {}

    def __contains__(self, lemma: Lemma) -> bool:
        return lemma in self._counts

    def add(self, occurrence: Occurrence, vectors: np.ndarray) -> None:
        """Counts an occurrence in; all of them come before the first question."""
        lemma, sense = occurrence.lemma, occurrence.sense
        self._counts[lemma][sense] += 1
        # In float64: sums of equal vectors must point the same way, whatever their number.
        self._sums[lemma, sense] = self._sums.get((lemma, sense), 0.0) + np.float64(vectors)

    def is_ambiguous(self, lemma: Lemma) -> bool:
        """Whether the lemma occurred with several senses."""
        return len(self._counts[lemma]) > 1

    def most_frequent(self, lemma: Lemma) -> str:
        """The lemma's sense that occurred most often."""
        counts = self._counts[lemma]
        return max(_by_hash(counts), key=counts.__getitem__)

    def nearest(self, lemma: Lemma, vectors: np.ndarray) -> list[str]:
        """For each layer, the lemma's sense whose mean vector is nearest."""
        senses = _by_hash(self._counts[lemma])
        if lemma not in self._unit_means:
            # Scaled to length 1, a sum is what the mean is.
            sums = np.stack([self._sums[lemma, sense] for sense in senses])
            self._unit_means[lemma] = _unit(sums)
        cosines = np.einsum("sld,ld->ls", self._unit_means[lemma], _unit(np.float64(vectors)))
        is_nearest = cosines > cosines.max(axis=1, keepdims=True) - TOLERANCE
        return [senses[k] for k in is_nearest.argmax(axis=1)]  # the first of those that tie


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors of length 1, or 0 where they were 0."""
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(lengths == 0, 1.0, lengths)


def _by_hash(senses: Iterable[str]) -> list[str]:
    """Senses in an order that has nothing to do with them, always the same."""
    return sorted(senses, key=lambda sense: hashlib.sha256(sense.encode("utf-8")).digest())


class Tally:
    """How many words were right, by each layer and by the most frequent sense."""

    def __init__(self, num_layers: int):
        self.count = 0
        self._right = np.zeros(num_layers, int)
        self._most_frequent_right = 0

    def add(self, right: list[bool], most_frequent_right: bool) -> None:
        """Counts a word."""
        self.count += 1
        self._right += right
        self._most_frequent_right += most_frequent_right

    def report(self, names: list[str]) -> dict:
        """The shares that were right."""
        count = max(self.count, 1)
        return {
            "num_words": self.count,
            "layers": dict(zip(names, (self._right / count).tolist(), strict=True)),
            "most_frequent_sense": self._most_frequent_right / count,
        }


def progress(items: Iterable, description: str) -> Iterator:
    """The items, with a bar on standard error."""
    console = Console(stderr=True)
    return track(items, description, console=console, transient=True)
