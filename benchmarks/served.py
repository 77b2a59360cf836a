"""What serving costs: words a second through the development server by gRPC, beside the library in the same run.

    python benchmarks/served.py
    python benchmarks/served.py --architecture small

The model is exported with the vectors alone and served by `keras-elmo serve`; an `ElmoClient` asks for the
sentences of `inference.py` in requests of 32, one after the other. The library computes the same batches of the same
strings by the layer that was exported, as a graph. Both sides take turns.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from inference import ARCHITECTURES, load_sentences, write_weights

BUNDLED = "elmo_tiny_en"


def main(argv=None):
    """Measures, and prints the rates."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--architecture", choices=[*ARCHITECTURES, BUNDLED], default=BUNDLED)
    parser.add_argument("--sentences", type=Path, help="one tokenized sentence a line")
    parser.add_argument("--num-sentences", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(argv)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf
    from serving import ServerProcess

    import keras_elmo
    from keras_elmo.export import export_saved_model
    from keras_elmo.serving import ElmoClient
    from keras_elmo.serving.batches import split

    sentences = load_sentences(options.sentences, options.num_sentences)
    texts = [" ".join(sentence) for sentence in sentences]
    with tempfile.TemporaryDirectory() as folder:
        weights = BUNDLED
        if options.architecture != BUNDLED:
            weights = Path(folder, "weights")
            write_weights(weights, options.architecture)
        embedding = keras_elmo.ElmoEmbedding(keras_elmo.load_model(weights))
        strings = tf.TensorSpec([None], tf.string)
        graph = tf.function(embedding, input_signature=[strings])
        lengths = list(map(len, keras_elmo.tokenize_sentences(texts)))
        batches = list(split([len(text.encode()) for text in texts], 32, 16384))

        def library():
            rows = [None] * len(texts)
            for batch in batches:
                found = graph([texts[number] for number in batch]).numpy()
                for number, row in zip(batch, found, strict=True):
                    rows[number] = row[: lengths[number]]
            return rows

        model_dir = Path(folder, "elmo")
        export_saved_model(embedding, model_dir, outputs=["elmo", "sequence_len"])
        with (
            ServerProcess(model_dir) as server,
            ElmoClient(server.addresses["gRPC"], "elmo", timeout=600) as client,
        ):
            sides = {
                "library": library,
                "server, gRPC": lambda: client.embed(texts),
            }
            values = [side() for side in sides.values()]
            largest = max(np.abs(a - b).max() for a, b in zip(*values, strict=True))
            seconds = {name: [] for name in sides}
            for _ in range(options.rounds):
                for name, side in sides.items():
                    start = time.perf_counter()
                    side()
                    seconds[name].append(time.perf_counter() - start)
    num_words = sum(lengths)
    rates = {name: num_words / statistics.median(taken) for name, taken in seconds.items()}
    for name, rate in rates.items():
        print(f"{options.architecture}, {name}: {rate:,.0f} words/s")
    own, served = rates.values()
    print(f"Served: {served / own:.2f} of the library's rate; differences up to {largest:.0e}.")
    if not largest <= 1e-5:
        sys.exit("The server's vectors are others.")


if __name__ == "__main__":
    main()
