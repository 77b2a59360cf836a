"""Named entities in tweets and forum posts: `keras_elmo.TokenClassifier` with a CRF over the labels of a sentence.

ELMo reads the words, capitals and digits are told beside it (the default), and a bidirectional LSTM and the CRF are
trained; the score counts whole entities.

    python examples/named_entities.py
    python examples/named_entities.py --smoke

Data: WNUT-17, emerging and rare entities of six kinds, https://github.com/leondz/emerging_entities_17, CC BY 4.0:
`wnut17train.conll`, `emerging.dev.conll` and `emerging.test.annotated`.

Measured 2026-12-01: F1 0.249 (precision 0.488, recall 0.167) on the test, 0.318 on the development set, whose entities
are rare and unseen by design, after 3 minutes of processor time on two cores.
"""

import random

from command_line import errors_as_one_sentence, parse, progress_on_stderr, report

import keras_elmo
from keras_elmo.corpus import LabelledSentence, read_columns

SMOKE = [
    LabelledSentence(
        ["Ada", "Lovelace", "lives", "in", "London"], "B-person I-person O O B-location".split()
    ),
    LabelledSentence(["I", "flew", "to", "Lima", "yesterday"], "O O O B-location O".split()),
    LabelledSentence(
        ["Is", "#Paris", "nice", ",", "Grace", "?"], "O B-location O O B-person O".split()
    ),
    LabelledSentence(["so", "tired", "today", ":("], "O O O O".split()),
]


def read(folder):
    """The sentences for training, for choosing settings, and for the test."""
    names = "wnut17train.conll", "emerging.dev.conll", "emerging.test.annotated"
    return [read_columns(folder / name) for name in names]


@errors_as_one_sentence()
def main(argv=None):
    """Trains, measures, and reports precision, recall and F1 of whole entities."""
    options = parse(__doc__, argv, "ner_wnut17", epochs=8)
    train, dev, test = [SMOKE] * 3 if options.smoke else read(options.data)
    # All that occur: a rare label may be in the test alone.
    kinds = sorted({label for part in (train, dev, test) for _, row in part for label in row})
    train = random.sample(train, min(len(train), options.max_examples))
    words, labels = zip(*train, strict=True)

    with progress_on_stderr():
        tagger = keras_elmo.TokenClassifier(options.model, labels=kinds, decoder="crf")
        tagger.fit(words, labels, epochs=options.epochs)
        dev_scores = tagger.evaluate(*zip(*dev, strict=True))
        scores = tagger.evaluate(*zip(*test, strict=True))
        sentence = ["Just", "landed", "in", "Berlin", "with", "Anna", "Schmidt", "!"]
        [answer] = tagger.predict([sentence])
    return report(
        f1=scores["f1"],
        precision=scores["precision"],
        recall=scores["recall"],
        dev_f1=dev_scores["f1"],
        num_train=len(train),
        num_test=len(test),
        answer=[list(pair) for pair in zip(sentence, answer, strict=True)],
    )


if __name__ == "__main__":
    main()
