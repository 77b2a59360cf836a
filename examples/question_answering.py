"""Question answering: cut the answer to a question from a passage, or say that the passage has none.

SpanSelector reads questions and Wikipedia passages by a frozen ELMo, lets each attend to the other, and picks where the
answer starts and ends. Beside its scores stand those of always saying that there is no answer.

    python examples/question_answering.py
    python examples/question_answering.py --smoke

Data: SQuAD 2.0 (https://rajpurkar.github.io/SQuAD-explorer/, CC BY-SA 4.0), of which half of the development part
serves here, in the file `dev-v2.0.json.xz`; some articles are for training, the others for the test.
"""

import json
import lzma
import sys
import zlib

from command_line import parse, progress_on_stderr, report

import keras_elmo
from keras_elmo.tasks import answer_scores

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


def main(argv=None):
    """Trains, measures and reports."""
    options = parse(__doc__, argv, "qa_squad2_dev", epochs=4)
    if options.smoke:
        training, test = SMOKE, SMOKE
    else:
        training, test = split(read_questions(options.data / "dev-v2.0.json.xz"))
    (x, y), (test_x, test_y) = (
        zip(*pairs, strict=True) for pairs in (training[: options.max_examples], test)
    )

    selector = keras_elmo.SpanSelector(options.model)
    with progress_on_stderr():
        selector.fit(x, y, epochs=1 if options.smoke else options.epochs, verbose=2)
        answers = selector.predict(test_x, verbose=0)
    right = [[answer["text"] for answer in given] for given in test_y]
    scores, no_answers = (
        {name: round(score, 4) for name, score in answer_scores(predicted, right).items()}
        for predicted in (answers, [""] * len(right))
    )
    return report(
        **scores,
        always_no_answer=no_answers,
        num_train=len(x),
        num_test=len(test_x),
    )


if __name__ == "__main__":
    main()
