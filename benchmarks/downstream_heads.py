"""How a number of `downstream.py` is made with a head: one training, and what it answers to each test example."""

import collections

import numpy as np

FROZEN = ("words", "layer 0", "top", "mix")
TUNED = ("tuned", "tuned with LM loss")


def run_head(task, train, test, column):
    """Trains a head and counts its answers."""
    import keras

    x, y = zip(*train, strict=True)
    head = make_head(task, column, x, [right for _, right in [*train, *test]])
    # A biLM that learns with the head needs half the time to get there, and takes several times as long.
    epochs = task.epochs if column in FROZEN else -(-task.epochs // 2)
    head.fit(x, y, epochs=epochs, verbose=2)
    given, right = zip(*test, strict=True)
    answers = answers_of(head, given, column in FROZEN)
    mix = head.encoder.input_mix
    return {
        "counts": [list(task.count(*case)) for case in zip(given, right, answers, strict=True)],
        "layer_weights": keras.ops.softmax(mix.scalar_weights).numpy().tolist(),
        "gamma": float(mix.gamma),
    }


def answers_of(head, given, is_frozen):
    """What `predict` gives, by vectors that are there already where the biLM is frozen."""
    if not is_frozen:
        return head.predict(given, verbose=0)
    data = head._cached(head._inputs(list(given)), None, 0)
    return head._decoded(head._predict(data, 32, 0))


def make_head(task, column, x, right):
    """The task's head, of which a column says what it reads."""
    import keras

    arguments = {"lstm_units": 100} | dict(task.arguments)
    if task.head.__name__ != "SpanSelector":
        rows = right if isinstance(right[0], list | tuple) else [right]
        arguments["labels"] = sorted({label for row in rows for label in row})
    if column == "words":
        counts = collections.Counter(words_of(x))
        arguments |= {"word_vocabulary": [w for w, n in counts.items() if n > 1], "word_dim": 256}
    if column in TUNED:
        arguments |= {"trainable_bilm": True, "update_multipliers": [0.25, 0.5, 1.0]}
    if column == "tuned with LM loss":
        arguments["language_model_loss_weight"] = 0.1
    head = task.head(task.model, **arguments)
    mix = head.encoder.input_mix
    if column == "words":
        mix.gamma.assign(0.0)
        mix.trainable = False
    elif column in ("layer 0", "top"):
        num_layers = mix.scalar_weights.shape[0]
        # A softmax of these is 1 for one layer and 0 for all others.
        place = 0 if column == "layer 0" else num_layers - 1
        mix.scalar_weights.assign(np.where(np.arange(num_layers) == place, 0.0, -1e4))
        mix.scalar_weights.trainable = False
    head.compile(keras.optimizers.Adam(0.001 if column in FROZEN else 0.0005))
    return head


def words_of(x):
    """All words of what a task gives, as its head sees them."""
    from keras_elmo import tokenize_sentences

    for given in x:
        if isinstance(given, str):
            yield from tokenize_sentences([given])[0]
        elif isinstance(given[0], str) and isinstance(given, list):
            yield from given
        else:
            for part in given:
                if isinstance(part, list):
                    yield from part
                elif isinstance(part, str):
                    yield from words_of([part])


class vectors_once:
    """Within it a sentence's vectors are computed once for all runs of frozen biLMs, which are the same model."""

    def __init__(self, model, precision="float32"):
        self._model, self._precision, self._kept = model, precision, {}

    def __enter__(self):
        from keras_elmo.tasks import cached_vectors

        self._module, self._exact_rows = cached_vectors, cached_vectors._rows
        cached_vectors._rows = self._rows
        return self

    def __exit__(self, *_):
        self._module._rows = self._exact_rows
        self._kept.clear()

    def _rows(self, texts, encoder, verbose):
        keys = [tuple(text) for text in texts]
        new = [key for key in dict.fromkeys(keys) if key not in self._kept]
        if new:
            arrays = [np.array(key, object) for key in new]
            if self._precision == "float32":
                rows = self._exact_rows(arrays, encoder, verbose)
            else:
                rows = embedder_rows(self._model, self._precision, new)
            self._kept.update(zip(new, rows, strict=True))
        return [self._kept[key] for key in keys]


def embedder_rows(model, precision, sentences):
    """What a head keeps of each sentence, from an `Embedder`: layer 0 once, and nothing at the boundaries."""
    import keras_elmo

    embedder = keras_elmo.Embedder(model, precision=precision)
    tokens = ([word.decode() for word in sentence] for sentence in sentences)
    for layers in embedder.embed(tokens):
        half = layers.shape[-1] // 2
        words = np.concatenate([layers[0, :, :half], *layers[1:]], axis=-1)
        yield np.pad(words, [(1, 1), (0, 0)])
