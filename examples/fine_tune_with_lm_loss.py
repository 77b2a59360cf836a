"""Fine-tuning the biLM itself on film reviews, with and without the language model's loss beside the task's.

Layers are unfrozen one by one from the top, and the lower ones learn more slowly; the report shows what each of the two
ways costs in accuracy and in perplexity, on reviews and on general English, which the biLM was trained on.

    python examples/fine_tune_with_lm_loss.py
    python examples/fine_tune_with_lm_loss.py --smoke

Data: sentence polarity dataset v1.0 of Pang and Lee (2005), as in `sentiment.py`. The general English is below.

Measured 2026-12-01, on 2,000 sentences, one run each: accuracy 0.633 without and 0.624 with the loss, no difference to
speak of. The perplexity on reviews goes from 266 to 345 without and to 189 with it, on general English from 49.2 to
51.9 and to 59.7: the loss keeps the biLM a language model of the text that it is taken on, and not of other text. Ten
minutes on two cores.
"""

import random

import keras
from command_line import errors_as_one_sentence, parse, progress_on_stderr, report
from sentiment import SMOKE, read, split

import keras_elmo
from keras_elmo.tasks import ForgettingReport, GradualUnfreezing

# By how much the updates of the character CNN and of the two LSTM layers are multiplied.
UPDATE_MULTIPLIERS = [0.25, 0.5, 1.0]
LANGUAGE_MODEL_LOSS_WEIGHTS = [0.0, 0.1]
# Of the test, on which the perplexity is measured.
NUM_REVIEWS = 200

GENERAL = """\
The river rises in the mountains and flows into the sea near the old harbour.
In 1921 the company moved its offices to a larger building in the centre of the city.
Water boils at a lower temperature when the pressure of the air is lower.
The king died in the following year and was succeeded by his eldest son.
Most of the plants in this region flower between March and June.
She opened the door, looked down the dark street and saw nobody.
The committee will publish its report at the end of the month.
There are about two thousand people in the village, many of whom work in the fields.
He was born in a small town in the north, where his father was a teacher.
The cells of the body need oxygen to turn sugar into energy.
"I do not believe a word of it," said the old man, and put down his glass.
The army crossed the border in the spring, but was driven back before the winter.
Prices rose faster than wages in almost every country of Europe.
The museum has a large collection of coins, maps and early printed books.
A new bridge was built across the valley to carry the railway.
The law gives every citizen the right to a fair trial.
They walked for an hour along the beach without saying anything.
The planet moves around the sun in a little more than eleven years.
Students should read the first two chapters before the next class.
The ship left the port at night and was never seen again.
Heavy rain caused floods in several parts of the country last week.
The theory explains why some metals conduct electricity better than others.
He took the letter from his pocket and read it once more.
The university was founded in 1876 and has more than twenty thousand students.
The president met the leaders of both parties to discuss the budget.
Birds of this kind build their nests in tall trees close to water.
It was already dark when we came to the house at the end of the road.
The disease is caused by a virus that spreads from animals to people.
The church was destroyed by fire, and only the tower is left.
Farmers in the south grow rice, cotton and sugar.
"""


def fine_tune(options, train, test, weight):
    """Accuracy on the test, and the perplexity of the language model before and after, on two kinds of text."""
    keras.utils.set_random_seed(options.seed)
    language_model = keras_elmo.load_language_model(options.model, trainable_bilm=True)
    classifier = keras_elmo.TextClassifier(
        language_model,
        labels=["negative", "positive"],
        update_multipliers=UPDATE_MULTIPLIERS,
        language_model_loss_weight=weight,
    )
    # What has been learned already is easily lost: smaller steps than those of a head alone.
    classifier.compile(keras.optimizers.Adam(3e-4))
    texts = {"reviews": [text for text, _ in test[:NUM_REVIEWS]], "general": GENERAL.splitlines()}
    reports = {
        kind: ForgettingReport(language_model, keras_elmo.tokenize_sentences(sentences))
        for kind, sentences in texts.items()
    }
    classifier.fit(
        *zip(*train, strict=True),
        epochs=options.epochs,
        callbacks=[GradualUnfreezing(), *reports.values()],
    )
    return {
        "language_model_loss_weight": weight,
        "accuracy": classifier.evaluate(*zip(*test, strict=True))["accuracy"],
        "perplexity": {
            kind: {"before": found.before, "after": found.after} for kind, found in reports.items()
        },
    }


@errors_as_one_sentence()
def main(argv=None):
    """Fine-tunes twice, and reports accuracy and perplexities of both."""
    options = parse(__doc__, argv, "sentiment_mr_sentence_polarity", epochs=4, max_examples=2_000)
    train, test = (SMOKE, SMOKE) if options.smoke else split(read(options.data))
    test = random.sample(test, len(test))
    train = random.sample(train, min(len(train), options.max_examples))
    with progress_on_stderr():
        runs = [fine_tune(options, train, test, weight) for weight in LANGUAGE_MODEL_LOSS_WEIGHTS]
    return report(runs=runs, num_train=len(train), num_test=len(test))


if __name__ == "__main__":
    main()
