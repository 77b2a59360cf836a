"""The tasks of `downstream.py`: their data, the head of each, and how its answers are counted.

The readers are those of the examples, on the same data, in folders of the same names.
"""

import lzma
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "examples"))

import chinese
import entailment
import named_entities
import pos_tagging
import question_answering
import semantic_roles
import sentiment
from downstream_heads import FROZEN, TUNED, run_head
from downstream_others import (
    bleu_counts,
    read_senses,
    read_translations,
    run_senses,
    run_translation,
)

import keras_elmo
from keras_elmo.corpus import read_columns
from keras_elmo.tasks import answer_scores

ENGLISH, CHINESE = "elmo_tiny_en", "elmo_tiny_zh"


@dataclass(frozen=True)
class Task:
    """One row of the table.

    Attributes:
        name: Of the row.
        folder: Of its data.
        read: From the folder to the training and the test examples, pairs of what is given and what is right.
        head: Class of the head, if there is one.
        count: From what is given, what is right and what was answered, for one example, to numbers that are summed up.
        measures: What is made of the sums, see `downstream.MEASURES`.
        model: The preset.
        epochs: How often the training examples are gone through.
        arguments: Of the head.
        max_examples: How many examples it is trained on at most.
        run: From the task, examples for training and for the test, and a column to what was counted.
        columns: What the table has of it.
        max_seeds: How many runs differ: 1 where nothing is left to chance.
        baseline: Name of a model that always answers the same, and its answer.
    """

    name: str
    folder: str
    read: Callable[[Path], tuple[Sequence, Sequence]]
    head: Any
    count: Callable[[Any, Any, Any], Sequence[float]] | None
    measures: Sequence[str] = ("accuracy",)
    model: str = ENGLISH
    epochs: int = 5
    arguments: tuple[tuple[str, Any], ...] = ()
    max_examples: int = 20_000
    run: Callable[..., dict[str, Any]] = run_head
    columns: Sequence[str] = FROZEN
    max_seeds: int | None = None
    baseline: tuple[str, str] | None = None


# === What is counted ===


def words_right(given, right, answer):
    """Of a sentence: words whose label is right, and words."""
    return sum(a == b for a, b in zip(right, answer, strict=True)), len(right)


def is_right(given, right, answer):
    """Of one answer: whether it is right."""
    return int(right == answer), 1


def spans(labels, ignored=()):
    """The entities of a sentence in IOB2: (begin, end, kind)."""
    found, begin = set(), None
    for place, label in enumerate([*labels, "O"]):
        if begin is not None and label[:2] != "I-":
            found.add((begin, place, labels[begin][2:]))
            begin = None
        if label[:2] == "B-":
            begin = place
    return {span for span in found if span[2] not in ignored}


def spans_right(given, right, answer, ignored=()):
    """Of a sentence: entities found and right, entities found, entities."""
    from keras_elmo.tasks.entities import to_iob2

    true, predicted = (spans(to_iob2(labels), ignored) for labels in (right, answer))
    return len(true & predicted), len(predicted), len(true)


def roles_right(given, right, answer):
    """As `spans_right`, of all roles but the predicate's own."""
    return spans_right(given, right, answer, ignored=("V",))


def answers_right(given, right, answer):
    """Of a question: exact match, F1, whether it has no answer, and 1."""
    scores = answer_scores([answer], [[one["text"] for one in right]])
    return scores["exact_match"], scores["f1"], float(not right), 1


# === Data ===


def by_checksum(examples, text_of, parts):
    """Training and test: one part in `parts`, chosen by checksum, is the test."""
    training, test = [], []
    for example in examples:
        chosen = zlib.crc32(text_of(example).encode()) % parts == 0
        (test if chosen else training).append(example)
    return training, test


def read_pos_english(folder):
    """UD English EWT: its training and test parts."""
    train, _, test = pos_tagging.read(folder)
    return train, test


def read_pos_chinese(folder):
    """UD Chinese GSDSimp: trained on the development part, which is all there is beside the test."""
    return tuple(
        pos_tagging.words_and_tags(
            lzma.open(folder / f"zh_gsdsimp-ud-{part}.conllu.xz", "rt", encoding="utf-8").read()
        )
        for part in ("dev", "test")
    )


def read_wikigold(folder):
    """Wikigold: a fifth, chosen by checksum, is the test."""
    sentences = read_columns(folder / "wikigold.conll.txt")
    return by_checksum(sentences, lambda sentence: " ".join(sentence.words), 5)


def read_subjectivity(folder):
    """SUBJ: plots are objective, quotations of reviews subjective; a tenth, chosen by checksum, is the test."""
    examples = [
        (line.strip(), label)
        for label, name in (("objective", "plot"), ("subjective", "quote"))
        for line in (folder / f"{name}.tok.gt9.5000").read_text("latin-1").split("\n")
        if line.strip()
    ]
    return by_checksum(examples, lambda example: example[0], 10)


def first_and_last(read):
    """Training and test of a reader that has the development part between."""

    def first_and_last_of(folder):
        first, *_, last = read(folder)
        return first, last

    return first_and_last_of


TAGS = {"head": keras_elmo.TokenClassifier, "count": words_right}
ENTITIES = {
    "head": keras_elmo.TokenClassifier,
    "count": spans_right,
    "measures": ["F1"],
    "epochs": 8,
    "arguments": (("decoder", "crf"),),
}
TEXTS = {"head": keras_elmo.TextClassifier, "count": is_right, "epochs": 6}
TUNED_TOO = {"columns": FROZEN + TUNED}

TASKS = [
    Task(
        "part of speech, English",
        "pos_ud_english_ewt",
        read_pos_english,
        epochs=3,
        **TAGS,
        **TUNED_TOO,
    ),
    Task(
        "part of speech, Chinese",
        "pos_ud_chinese_gsdsimp",
        read_pos_chinese,
        model=CHINESE,
        epochs=15,
        **TAGS,
    ),
    Task(
        "entities, WNUT-17",
        "ner_wnut17",
        first_and_last(named_entities.read),
        **ENTITIES,
        **TUNED_TOO,
    ),
    Task("entities, wikigold", "ner_wikigold", read_wikigold, **ENTITIES | {"epochs": 12}),
    Task(
        "entities, Chinese",
        "ner_uner_chinese_gsdsimp",
        first_and_last(chinese.read),
        model=CHINESE,
        **ENTITIES,
    ),
    Task(
        "semantic roles",
        "srl_propbank_english_ewt",
        semantic_roles.read,
        keras_elmo.SemanticRoleLabeller,
        roles_right,
        ["F1"],
        epochs=4,
        max_examples=10_000,
    ),
    Task(
        "word senses",
        "wsd_semcor_masc",
        read_senses,
        None,
        None,
        ["F1"],
        run=run_senses,
        columns=["layer 0", "top", "mix"],
        max_seeds=1,
    ),
    Task(
        "sentiment, MR",
        "sentiment_mr_sentence_polarity",
        lambda folder: sentiment.split(sentiment.read(folder)),
        **TEXTS,
        **TUNED_TOO,
    ),
    Task("subjectivity", "subjectivity", read_subjectivity, **TEXTS),
    Task(
        "entailment, SNLI",
        "nli_snli",
        lambda folder: tuple(
            entailment.read_pairs(folder / f"snli_{part}.tsv.xz") for part in ("dev", "test")
        ),
        keras_elmo.PairClassifier,
        is_right,
        epochs=8,
        arguments=(("tokenizer", "whitespace"),),
        baseline=("always the most frequent label", "entailment"),
    ),
    Task(
        "translation, English-French",
        "mt_tatoeba_en_fr",
        read_translations,
        None,
        bleu_counts,
        ["BLEU"],
        run=run_translation,
    ),
    Task(
        "questions, SQuAD 2",
        "qa_squad2_dev",
        lambda folder: question_answering.split(
            question_answering.read_questions(folder / "dev-v2.0.json.xz")
        ),
        keras_elmo.SpanSelector,
        answers_right,
        ["exact match", "F1 of answers"],
        epochs=4,
        arguments=(("hidden_units", 64),),
        max_examples=3_000,
        baseline=("always no answer", ""),
    ),
]
