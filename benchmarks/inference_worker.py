"""One side of `benchmarks/inference.py`, run by the Python of the environment that has its package.

Started as `python inference_worker.py SIDE WEIGHTS_FOLDER SENTENCES.json VECTORS.npy`. It writes
the top layer of the first sentences to VECTORS.npy, says `ready`, and then answers each line of
standard input by one line of standard output: `run` by the seconds that all sentences took and the
seconds that the cores worked for it; `one` by those of the first sentences, one at a time; `gemm` by
the GFLOP/s of a large matrix product.
"""

import json
import os
import sys
import time
from pathlib import Path

BATCH_SIZE = 32
NUM_CHECKED = 8  # sentences whose vectors are compared
NUM_ONE_BY_ONE = 64


class KerasElmo:
    """An `Embedder` as it is: batches of 2048 tokens, of sentences of like length."""

    requirements = ()

    def __init__(self, folder: Path, precision="float32", without=()):
        import keras_elmo

        average = keras_elmo.Embedder(folder, "average", precision=precision, without=without)
        self._average = average
        self._top = keras_elmo.Embedder(average.model, "top", without=without)

    def embed(self, sentences):
        """The mean of all layers: one array per sentence, in the order given."""
        # Every run knows as little as the first one.
        self._average._words.forget()
        return list(self._average.embed(sentences))

    def embed_one_by_one(self, sentences):
        """The same, of one sentence at a time."""
        self._average._words.forget()
        return [list(self._average.embed([sentence])) for sentence in sentences]

    def top_layer(self, sentences):
        """The top layer, padded with zeros."""
        import numpy as np

        rows = list(self._top.embed(sentences))
        padded = np.zeros((len(rows), max(map(len, rows)), rows[0].shape[1]), np.float32)
        for row, vectors in zip(padded, rows, strict=True):
            row[: len(vectors)] = vectors
        return padded

    def gemm_rate(self, size=2048, repeats=5):
        """GFLOP/s of a float32 product of two square matrices, the fastest of `repeats`."""
        import tensorflow as tf

        matrix = tf.random.normal((size, size))
        product = tf.function(lambda: tf.reduce_sum(matrix @ matrix))
        product()
        seconds = min(_seconds(lambda: product().numpy())[0] for _ in range(repeats))
        return 2 * size**3 / seconds / 1e9


class SimpleElmoPytorch:
    """The package as its `ElmoVectorizer` runs it: batches in the order given."""

    requirements = ("simple-elmo-pytorch==0.2", "torch==2.13.0", "numpy", "h5py")

    def __init__(self, folder: Path):
        from simple_elmo_pytorch import Elmo, ElmoVectorizer

        self._elmo = Elmo(
            str(folder / "options.json"),
            str(folder / "model.hdf5"),
            num_output_representations=1,
            dropout=0.0,
        )
        self._vectorizer = ElmoVectorizer(self._elmo, batch_size=BATCH_SIZE)

    def embed(self, sentences):
        return self._vectorizer.get_elmo_vectors(sentences, warmup=False)

    def embed_one_by_one(self, sentences):
        return [self.embed([sentence]) for sentence in sentences]

    def top_layer(self, sentences):
        import torch
        from simple_elmo_pytorch import batch_to_ids

        self._elmo._elmo_lstm._elmo_lstm.reset_states()  # it remembers what it read before
        with torch.no_grad():
            top = self._elmo(batch_to_ids(sentences))["activations"][-1].numpy()
        vectors = top[:, 1:-1].copy()
        for row, sentence in zip(vectors, sentences, strict=True):
            row[len(sentence) :] = 0.0  # </S> stands there
        return vectors


class SimpleElmo:
    """The package with one session for all calls: else each would load the weights again."""

    requirements = ("simple-elmo==0.9.2", "tensorflow==2.21.*", "tf-keras==2.21.*")

    def __init__(self, folder: Path):
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
        import tensorflow as tf
        from simple_elmo import ElmoModel
        from simple_elmo.elmo import weight_layers

        tf.compat.v1.disable_eager_execution()
        self._elmo = ElmoModel()
        self._elmo.load(str(folder), max_batch_size=BATCH_SIZE)
        embeddings = self._elmo.sentence_embeddings_op
        self._outputs = {
            layers: weight_layers(layers, embeddings, use_layers=layers)
            for layers in ("average", "top")
        }
        self._session = tf.compat.v1.Session()
        self._reset = tf.compat.v1.global_variables_initializer()
        self._session.run(self._reset)

    def embed(self, sentences, layers="average"):
        self._elmo.elmo_sentence_input = self._outputs[layers]
        return self._elmo.get_elmo_vectors(sentences, warmup=False, session=self._session)

    def embed_one_by_one(self, sentences):
        return [self.embed([sentence]) for sentence in sentences]

    def top_layer(self, sentences):
        self._session.run(self._reset)  # it remembers what it read before
        return self.embed(sentences, "top")


# Those of `keras_elmo.layers`, which the environments of the peers do not have.
SHORTCUTS = (
    "distinct_words",
    "trimmed_words",
    "gates_first",
    "tokens_first",
    "sorted_sentences",
    "word_cache",
)
SIDES = {
    "keras-elmo": (KerasElmo, {}),
    "keras-elmo-bfloat16": (KerasElmo, {"precision": "bfloat16"}),
    "keras-elmo-plain": (KerasElmo, {"without": SHORTCUTS}),
    **{f"keras-elmo-without-{name}": (KerasElmo, {"without": [name]}) for name in SHORTCUTS},
    "simple-elmo-pytorch": (SimpleElmoPytorch, {}),
    "simple-elmo": (SimpleElmo, {}),
}


def main(argv):
    """Loads a side and answers until standard input ends."""
    side_name, folder, sentences_file, vectors_file = argv
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the packages print goes to standard error
    import numpy as np

    kind, options = SIDES[side_name]
    side = kind(Path(folder), **options)
    sentences = json.loads(Path(sentences_file).read_text(encoding="utf-8"))
    np.save(vectors_file, side.top_layer(sentences[:NUM_CHECKED]).astype(np.float32))
    answers = {
        "run": lambda: _seconds(lambda: side.embed(sentences)),
        "one": lambda: _seconds(lambda: side.embed_one_by_one(sentences[:NUM_ONE_BY_ONE])),
        "gemm": lambda: [side.gemm_rate()],
    }
    print("ready", file=replies, flush=True)
    for line in sys.stdin:
        print(*answers[line.strip()](), file=replies, flush=True)


def _seconds(function):
    """Seconds that passed, and those that the cores worked for this process."""
    start, worked = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - start, time.process_time() - worked


if __name__ == "__main__":
    main(sys.argv[1:])
