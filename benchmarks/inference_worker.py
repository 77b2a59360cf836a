"""One side of `benchmarks/inference.py`, run by the Python of the environment that has its package.

Started as `python inference_worker.py SIDE WEIGHTS_FOLDER SENTENCES.json VECTORS.npy`. It writes
the top layer of the first sentences to VECTORS.npy, says `ready`, and then answers each line of
standard input by one line of standard output: `run` by the seconds that all sentences took and the
seconds that the cores worked for it; `gemm` by the GFLOP/s of a large matrix product.
"""

import json
import os
import sys
import time
from pathlib import Path

BATCH_SIZE = 32
NUM_CHECKED = 8  # sentences whose vectors are compared


class KerasElmo:
    """Batches of sentences of like length through one compiled function."""

    requirements = ()

    def __init__(self, folder: Path):
        import tensorflow as tf

        import keras_elmo

        model = keras_elmo.load_model(folder)
        ids = tf.TensorSpec((None, None, model.max_word_length), tf.int32)
        top = f"lstm_outputs{model.num_layers}"

        def output(name):
            return tf.function(lambda ids: model(ids, training=False)[name], input_signature=[ids])

        self._character_ids = keras_elmo.character_ids
        self._average, self._top = output("elmo"), output(top)

    def embed(self, sentences):
        """The mean of all layers: one array per sentence, in the order given."""
        by_length = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
        vectors = [None] * len(sentences)
        for start in range(0, len(sentences), BATCH_SIZE):
            batch = by_length[start : start + BATCH_SIZE]
            rows = self._average(self._character_ids([sentences[i] for i in batch])).numpy()
            for i, row in zip(batch, rows, strict=True):
                vectors[i] = row[: len(sentences[i])]
        return vectors

    def top_layer(self, sentences):
        """The top layer, padded with zeros."""
        return self._top(self._character_ids(sentences)).numpy()

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

    def top_layer(self, sentences):
        self._session.run(self._reset)  # it remembers what it read before
        return self.embed(sentences, "top")


SIDES = {
    "keras-elmo": KerasElmo,
    "simple-elmo-pytorch": SimpleElmoPytorch,
    "simple-elmo": SimpleElmo,
}


def main(argv):
    """Loads a side and answers until standard input ends."""
    side_name, folder, sentences_file, vectors_file = argv
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the packages print goes to standard error
    import numpy as np

    side = SIDES[side_name](Path(folder))
    sentences = json.loads(Path(sentences_file).read_text(encoding="utf-8"))
    np.save(vectors_file, side.top_layer(sentences[:NUM_CHECKED]).astype(np.float32))
    answers = {
        "run": lambda: _seconds(lambda: side.embed(sentences)),
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
