"""Entailment: `keras_elmo.PairClassifier` says whether one sentence follows from another, contradicts it, or neither.

The words of both sentences are aligned, and each is compared with what it is aligned to. Beside the accuracy stands
that of always giving the label that is most frequent in training.

    python examples/entailment.py
    python examples/entailment.py --smoke

Data: SNLI, https://nlp.stanford.edu/projects/snli/, CC BY-SA 4.0, as tables `snli_dev.tsv.xz` and `snli_test.tsv.xz`
with the columns gold_label, sentence1 and sentence2, cut into words. Its training part, 550,000 pairs, is not used: the
development part is for training here.

Measured 2026-12-01: accuracy 0.624 on 9,824 pairs, where the most frequent label has 0.343, after 9 minutes on two
cores that had other work, too.
"""

import collections
import csv
import lzma
import sys

from command_line import errors_as_one_sentence, parse, progress_on_stderr, report

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


@errors_as_one_sentence()
def main(argv=None):
    """Trains, measures, and reports the accuracy."""
    options = parse(__doc__, argv, "nli_snli", epochs=10)
    if options.smoke:
        train, test = SMOKE, SMOKE
    else:
        train, test = (read_pairs(options.data / f"snli_{part}.tsv.xz") for part in ("dev", "test"))
    x, y = zip(*train[: options.max_examples], strict=True)
    test_x, test_y = zip(*test, strict=True)
    [(most_frequent, _)] = collections.Counter(y).most_common(1)

    with progress_on_stderr():
        # The words are parted by spaces already.
        classifier = keras_elmo.PairClassifier(
            options.model, labels=sorted(set(y)), tokenizer="whitespace"
        )
        classifier.fit(x, y, epochs=options.epochs)
        scores = classifier.evaluate(test_x, test_y)
        answers = classifier.predict([("A dog sleeps .", "An animal rests .")])
    return report(
        accuracy=scores["accuracy"],
        most_frequent_label=test_y.count(most_frequent) / len(test_y),
        num_train=len(x),
        num_test=len(test_x),
        answers=answers,
    )


if __name__ == "__main__":
    main()
