"""Sentiment of film reviews: a head of `keras_elmo.TextClassifier` learns whether a sentence praises or pans.

The biLM stays as it is (the default): it runs once over the reviews, and only the mix of its layers, an LSTM and the
classifier on top are trained.

    python examples/sentiment.py
    python examples/sentiment.py --smoke

Data: sentence polarity dataset v1.0 of Pang and Lee (2005), 5,331 sentences of each kind,
https://www.cs.cornell.edu/people/pabo/movie-review-data/, CC BY 4.0: `rt-polarity.pos` and `rt-polarity.neg`. It has
no split: a tenth, chosen by checksum, is the test.

Measured 2026-12-01: accuracy 0.685 on 1,096 sentences, after 5 minutes of processor time on two cores.
"""

import random
import zlib

from command_line import errors_as_one_sentence, parse, progress_on_stderr, report

import keras_elmo

SMOKE = [
    ("a warm and funny film , beautifully played .", "positive"),
    ("the cast is wonderful and the story moves you .", "positive"),
    ("one of the best thrillers in years .", "positive"),
    ("a dull and endless mess without a single joke .", "negative"),
    ("the plot is thin and the acting is worse .", "negative"),
    ("a waste of time , money and talent .", "negative"),
]


def read(folder):
    """The sentences and their labels, as pairs; the files are in Latin-1."""
    return [
        (line.strip(), label)
        for label, name in (("positive", "rt-polarity.pos"), ("negative", "rt-polarity.neg"))
        for line in (folder / name).read_text("latin-1").split("\n")
        if line.strip()
    ]


def split(examples):
    """Training and test: the same for everyone, and whatever the order of the examples."""
    is_test = [zlib.crc32(text.encode()) % 10 == 0 for text, _ in examples]
    return (
        [example for example, chosen in zip(examples, is_test, strict=True) if not chosen],
        [example for example, chosen in zip(examples, is_test, strict=True) if chosen],
    )


@errors_as_one_sentence()
def main(argv=None):
    """Trains, measures, and reports the accuracy."""
    options = parse(__doc__, argv, "sentiment_mr_sentence_polarity", epochs=8)
    train, test = (SMOKE, SMOKE) if options.smoke else split(read(options.data))
    train = random.sample(train, min(len(train), options.max_examples))
    texts, labels = zip(*train, strict=True)
    test_texts, test_labels = zip(*test, strict=True)

    with progress_on_stderr():
        classifier = keras_elmo.TextClassifier(options.model, labels=["negative", "positive"])
        classifier.fit(texts, labels, epochs=options.epochs)
        scores = classifier.evaluate(test_texts, test_labels)
        answers = classifier.predict(["a joy from start to end .", "a dull and lifeless film ."])
    return report(
        accuracy=scores["accuracy"],
        num_train=len(train),
        num_test=len(test),
        answers=answers,
    )


if __name__ == "__main__":
    main()
