"""A biLM goes on with a new domain: tweets. What it learns of them, and what it forgets of the text that it knew.

Three ways: on the tweets alone; with as much of the old text among them; and the same with a vocabulary of the tweets'
own, whose softmax keeps the words that it knew. The perplexity on both domains is measured before and after. That of
another vocabulary is no matter of better or worse: what is not in it counts as one word, `<UNK>`.

    python examples/new_domain.py
    python examples/new_domain.py --smoke

Data: tweets of WNUT-17, as in `named_entities.py`; the old text is English cut into words, a sentence a line, in the
files `train-00.txt.xz` and `valid.txt.xz` of the folder `lm` that lies beside the folder of the tweets' folder.

Measured 2026-12-01, 3,394 tweets, five times: the perplexity on other tweets falls from 382 to 187, on the old text it
rises from 101 to 153, with old text among the tweets only to 114. Twenty minutes on two cores that had other work.
"""

import itertools
import lzma
import sys
import tempfile
from pathlib import Path

import keras
from command_line import errors_as_one_sentence, parse, progress_on_stderr, report
from named_entities import SMOKE, read

import keras_elmo
from keras_elmo.corpus import build_vocabulary, count_words
from keras_elmo.training import (
    OptimizerConfig,
    PretrainConfig,
    TrainingCorpus,
    evaluate,
    pretrain,
)

NUM_OLD_TEST = 1000
SMOKE_OLD = ["The cat sat on the mat .", "A dog ran to the old tree .", "It was late ."]
# Text and vocabulary of each way.
WAYS = {
    "tweets alone": ("tweets", "old"),
    "tweets and old text": ("both", "old"),
    "new vocabulary": ("both", "new"),
}


@errors_as_one_sentence()
def main(argv=None):
    """Trains in three ways, and reports the perplexities."""
    options = parse(__doc__, argv, "ner_wnut17", epochs=5)
    smoke = options.smoke
    parts = [SMOKE] * 3 if smoke else read(options.data)
    tweets, test = ([" ".join(words) for words, _ in part] for part in (parts[0], parts[2]))
    tweets = tweets[: options.max_examples]
    folder = options.data.parents[1] / "lm"
    old = SMOKE_OLD if smoke else first_lines(folder / "train-00.txt.xz", len(tweets))
    old_test = SMOKE_OLD if smoke else first_lines(folder / "valid.txt.xz", NUM_OLD_TEST)
    domains = {"tweets": test, "old": old_test}

    model = keras_elmo.load_language_model(options.model)
    found = {"before": perplexities(model, domains)}
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        (work / "tweets.txt").write_text("\n".join(tweets) + "\n", "utf-8")
        (work / "both.txt").write_text("\n".join(tweets + old) + "\n", "utf-8")
        model.vocabulary.save(work / "old.vocabulary")
        counts = count_words(work / "both.txt")
        vocabulary, _ = build_vocabulary(counts, min_count=1 if smoke else 2)
        vocabulary.save(work / "new.vocabulary")
        # The rates are a fifth of those that a new model begins with, for it is not to forget all at once.
        config = PretrainConfig(
            num_epochs=options.epochs,
            batch_size=2 if smoke else 32,
            unroll_steps=5 if smoke else 20,
            dropout=0.1,
            seed=options.seed,
            network_optimizer=OptimizerConfig("adam", 0.0006, beta_2=0.99, epsilon=1e-8),
            softmax_optimizer=OptimizerConfig("rowwise_adagrad", 0.02, initial_accumulator=1e-4),
        )
        for way, (text, words) in WAYS.items():
            output = work / f"{text}-{words}"
            print(f"{way}:", file=sys.stderr)
            with progress_on_stderr():
                pretrain(
                    config,
                    TrainingCorpus.of(work / f"{text}.txt"),
                    work / f"{words}.vocabulary",
                    output,
                    start_from=options.model,
                    new_vocabulary=words == "new",
                    report=bar(),
                    say=print,
                )
            found[way] = perplexities(keras_elmo.load_language_model(output), domains)
    table(found)
    return report(
        perplexity=found,
        num_train=len(tweets),
        num_test={name: len(sentences) for name, sentences in domains.items()},
    )


def first_lines(file, number):
    """The first lines of a compressed file."""
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        return [line.rstrip("\n") for line in itertools.islice(lines, number)]


def perplexities(model, domains):
    """Of each domain's sentences."""
    return {
        name: round(evaluate(model, map(str.split, sentences)).perplexity, 1)
        for name, sentences in domains.items()
    }


def bar():
    """Shows the progress of a training."""
    shown = None

    def show(progress):
        nonlocal shown
        shown = shown or keras.utils.Progbar(progress.total_steps, stateful_metrics=["loss"])
        shown.update(progress.step, [("loss", progress.loss)])

    return show


def table(found):
    """Prints the perplexities for people."""
    print(f"\n{'perplexity on':22}{'tweets':>10}{'old text':>10}", file=sys.stderr)
    for way, row in found.items():
        print(f"{way:22}{row['tweets']:10.1f}{row['old']:10.1f}", file=sys.stderr)


if __name__ == "__main__":
    main()
