"""Entailment: does a sentence follow from another one, contradict it, or neither?

PairClassifier aligns the words of both sentences, which a frozen ELMo has read, and compares each with what it is
aligned to. Beside its accuracy stands that of always giving the most frequent label.

    python examples/entailment.py
    python examples/entailment.py --smoke

Data: SNLI (https://nlp.stanford.edu/projects/snli/, CC BY-SA 4.0) with its two evaluation parts alone, `dev` to train
on and `test`, as files `snli_dev.tsv.xz` and `snli_test.tsv.xz` with the columns gold_label, sentence1 and sentence2;
the training part, 56 times as large, would give more.
"""

import collections
import csv
import lzma
import sys

from command_line import parse, progress_on_stderr, report

import keras_elmo

COLUMNS = ("gold_label", "sentence1", "sentence2")
SMOKE = [
    (("A man plays a guitar .", "A man plays an instrument ."), "entailment"),
    (("A man plays a guitar .", "A man is asleep ."), "contradiction"),
    (("A man plays a guitar .", "A man plays for money ."), "neutral"),
    (("Two dogs run on grass .", "Two animals are outside ."), "entailment"),
    (("Two dogs run on grass .", "Two cats sit inside ."), "contradiction"),
    (("Two dogs run on grass .", "Two dogs chase a ball ."), "neutral"),
]


def read_pairs(file):
    """Pairs of (sentence, sentence) and label; those on whose label people did not agree are left out."""
    with lzma.open(file, "rt", encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
        if missing:
            sys.exit(f"{file}, line 1: there is no column {missing[0]}, but {rows.fieldnames}")
        pairs = []
        for row in rows:
            label, first, second = (row[name] for name in COLUMNS)
            if second is None:
                sys.exit(f"{file}, line {rows.line_num}: there are fewer than three columns")
            if label != "-":
                pairs.append(((first, second), label))
    return pairs


def main(argv=None):
    """Trains, measures and reports."""
    options = parse(__doc__, argv, "nli_snli", epochs=10)
    if options.smoke:
        training, test = SMOKE, SMOKE
    else:
        training = read_pairs(options.data / "snli_dev.tsv.xz")[: options.max_examples]
        test = read_pairs(options.data / "snli_test.tsv.xz")
    (x, y), (test_x, test_y) = (zip(*pairs, strict=True) for pairs in (training, test))

    classifier = keras_elmo.PairClassifier(
        options.model, labels=sorted(set(y)), tokenizer="whitespace", dropout=0.3
    )
    with progress_on_stderr():
        classifier.fit(x, y, epochs=1 if options.smoke else options.epochs, verbose=2)
        scores = classifier.evaluate(test_x, test_y, verbose=0)
    most_frequent = collections.Counter(y).most_common(1)[0][0]
    return report(
        accuracy=round(scores["accuracy"], 4),
        most_frequent_label=round(test_y.count(most_frequent) / len(test_y), 4),
        num_train=len(x),
        num_test=len(test_x),
    )


if __name__ == "__main__":
    main()
