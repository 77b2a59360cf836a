"""Questions about a text: `keras_elmo.SpanSelector` cuts the answer from it, or says that it has none.

Question and text attend to each other, and two softmaxes choose where the answer begins and ends. Beside exact match
and F1 stands what saying "no answer" to everything would have of both.

    python examples/question_answering.py
    python examples/question_answering.py --smoke

Data: SQuAD 2.0, https://rajpurkar.github.io/SQuAD-explorer/, CC BY-SA 4.0, as `dev-v2.0.json.xz`, which `xz` makes of
the file there. What is measured below had half of it, 16 articles of Wikipedia, 6,078 questions. The test is whole
articles, chosen by checksum.

Measured 2026-12-01: exact match 0.492, F1 0.498 on 1,224 questions of four articles, where "no answer" to all of them
has 0.509. The 4,854 questions of twelve articles are few: it finds answers, and as often one where there is none.
"""

import json
import lzma
import random
import sys
import zlib

import keras
from command_line import errors_as_one_sentence, parse, progress_on_stderr, report

import keras_elmo

PASSAGE = "Ann Lee was born in Rome in 1970. She plays the violin."
SMOKE = [
    (("Where was Ann Lee born?", PASSAGE), [{"text": "Rome", "answer_start": 20}]),
    (("When was Ann Lee born?", PASSAGE), [{"text": "1970", "answer_start": 28}]),
    (("What does she play?", PASSAGE), [{"text": "the violin", "answer_start": 44}]),
    (("Whom did Ann Lee marry?", PASSAGE), []),
]


def read_questions(file):
    """By the title of each article: pairs of (question, passage) and the right answers, none if there is none."""
    content = json.loads(lzma.open(file, "rt", encoding="utf-8").read())
    articles = {}
    try:
        for article in content["data"]:
            articles[article["title"]] = [
                ((question["question"], paragraph["context"]), question["answers"])
                for paragraph in article["paragraphs"]
                for question in paragraph["qas"]
            ]
    except KeyError as error:
        sys.exit(f"{file}, article {len(articles) + 1}: there is no {error}, which SQuAD 2.0 has")
    return articles


def split(articles):
    """Training and test examples: no article is in both."""
    training, test = [], []
    for title, questions in articles.items():
        (test if zlib.crc32(title.encode()) % 4 == 0 else training).extend(questions)
    return training, test


@errors_as_one_sentence()
def main(argv=None):
    """Trains, measures, and reports exact match and F1."""
    options = parse(__doc__, argv, "qa_squad2_dev", epochs=8)
    if options.smoke:
        train, test = SMOKE, SMOKE
    else:
        train, test = split(read_questions(options.data / "dev-v2.0.json.xz"))
    train = random.sample(train, min(len(train), options.max_examples))
    x, y = zip(*train, strict=True)
    test_x, test_y = zip(*test, strict=True)

    with progress_on_stderr():
        selector = keras_elmo.SpanSelector(options.model)
        selector.compile(keras.optimizers.Adam(0.002))
        selector.fit(x, y, epochs=options.epochs)
        scores = selector.evaluate(test_x, test_y)
        answers = selector.predict([("Where was Ann Lee born?", PASSAGE)])
    return report(
        exact_match=scores["exact_match"],
        f1=scores["f1"],
        always_no_answer=sum(not given for given in test_y) / len(test_y),
        num_train=len(train),
        num_test=len(test),
        answers=answers,
    )


if __name__ == "__main__":
    main()
