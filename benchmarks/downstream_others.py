"""The numbers of `downstream.py` that need no head: word senses, and translation with an attention decoder."""

import collections
import functools

import nearest_sense
import numpy as np
import translation
from keras import layers, ops

import keras_elmo

WORD_DIM = 256

# === Word senses ===


def read_senses(folder):
    """SemCor, and MASC: the archives."""
    return (folder / nearest_sense.SEMCOR,), (folder / nearest_sense.MASC,)


def run_senses(task, train, test, column):
    """Answers with the nearest sense: nothing is trained, so the mix is the mean of the layers."""
    found = senses_right(task.model, *train, *test)
    *answers, most_frequent = found.T
    # Right, answered, asked: a word whose lemma is not in SemCor gets no answer.
    counts = [
        [[max(int(answer), 0), int(answer >= 0), 1] for answer in column]
        for column in (answers[task.columns.index(column)], most_frequent)
    ]
    return {"counts": counts[0], "baseline": ["always the most frequent sense", counts[1]]}


@functools.cache
def senses_right(model, training, test):
    """For each word 1 or 0, or -1 where nothing is known of its lemma, by layer 0, top, mean and frequency."""
    embedder = keras_elmo.Embedder(model)
    senses = nearest_sense.Senses()
    pairs = functools.partial(nearest_sense.occurrence_vectors, embedder)
    for occurrence, vectors in pairs(nearest_sense.read_tagged(training)):
        senses.add(occurrence, vectors)
    right = []
    for occurrence, vectors in pairs(nearest_sense.read_tagged(test)):
        lemma = occurrence.lemma
        if lemma not in senses:
            right.append([-1] * 4)
            continue
        first, *_, top, mean = senses.nearest(lemma, vectors)
        answers = [first, top, mean, senses.most_frequent(lemma)]
        right.append([answer == occurrence.sense for answer in answers])
    return np.array(right, int)


# === Translation ===


def read_translations(folder):
    """Pairs of English and French; English sentences and all their translations."""
    translations = translation.read(folder / "fra.txt.xz")
    pairs, english = translation.split(translations, None)
    return pairs, [(sentence, translations[sentence]) for sentence in english]


def run_translation(task, train, test, column):
    """Trains the example's translator and counts what BLEU is made of."""
    english = list(dict.fromkeys(sentence for sentence, _ in [*train, *test]))
    counts = collections.Counter(w for _, french in train for w in translation.tokenize(french))
    vocabulary = ["<padding>", "<start>", "<end>", "<unknown>"]
    vocabulary += [word for word, count in counts.items() if count > 1]
    if column == "words":
        num_words, inputs = word_places(english, train)
        encoder, decoder, model = with_word_vectors(num_words, len(vocabulary))
    else:
        inputs = layers_of(task.model, english, column)
        shape = inputs[english[0]].shape[1:]
        encoder, decoder, model = translation.build(shape, len(vocabulary))
    model.fit(translation.Batches(train, inputs, vocabulary), epochs=task.epochs, verbose=2)
    answers = [
        translation.translate(inputs[sentence], encoder, decoder, vocabulary)
        for sentence, _ in nearest_sense.progress(test, "Translating")
    ]
    return {
        "counts": [
            task.count(sentence, right, answer)
            for (sentence, right), answer in zip(test, answers, strict=True)
        ]
    } | mix_of(model)


@functools.cache
def vectors_of(model, english):
    """All layers of each sentence's words, words first, in half precision."""
    arrays = keras_elmo.Embedder(model).embed(english)
    return dict(zip(english, (a.swapaxes(0, 1).astype("float16") for a in arrays), strict=True))


def layers_of(model, english, column):
    """What a column reads of each sentence: (words, layers, dim)."""
    found = vectors_of(model, tuple(sorted(english)))
    chosen = {"layer 0": slice(0, 1), "top": slice(-1, None), "mix": slice(None)}[column]
    return {sentence: vectors[:, chosen] for sentence, vectors in found.items()}


def word_places(english, train):
    """The words that occur twice in training, counted, and each sentence as their places: 0 padding, 1 unknown."""
    tokens = dict(zip(english, keras_elmo.tokenize_sentences(english), strict=True))
    counts = collections.Counter(word for sentence, _ in train for word in tokens[sentence])
    places = {word: k for k, word in enumerate((w for w, n in counts.items() if n > 1), start=2)}
    rows = {s: np.array([places.get(w, 1) for w in words], "int32") for s, words in tokens.items()}
    return len(places) + 2, rows


def with_word_vectors(num_words, vocabulary_size):
    """The example's translator behind word vectors of its own."""
    import keras

    encoder, decoder, model = translation.build((1, WORD_DIM), vocabulary_size)
    words, french = keras.Input((None,)), keras.Input((None,), dtype="int32")
    vectors = layers.Embedding(num_words, WORD_DIM)(words)
    # The encoder knows padding by its zeros.
    vectors = vectors * ops.cast(words != 0, "float32")[..., None]
    vectors = ops.expand_dims(vectors, 2)
    of_words = keras.Model([words, french], model([vectors, french]))
    of_words.compile(model.optimizer, model.loss)
    return keras.Model(words, encoder(vectors)), decoder, of_words


def mix_of(model):
    """What the mix of the layers learned."""
    [mix] = [layer for layer in model._flatten_layers() if isinstance(layer, keras_elmo.ScalarMix)]
    # Keras warns of a softmax of one value.
    weights = np.exp(mix.scalar_weights.numpy())
    return {"layer_weights": (weights / weights.sum()).tolist(), "gamma": float(mix.gamma)}


def bleu_counts(given, right, answer):
    """What BLEU is made of, for one sentence: n-grams that are right, n-grams, length, length of the reference."""
    import sacrebleu

    found = sacrebleu.BLEU(effective_order=True).sentence_score(answer, right)
    return [*found.counts, *found.totals, found.sys_len, found.ref_len]
