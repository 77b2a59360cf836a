"""Makes the TF-Hub modules of this folder of bilm-tf's graph, as simple-elmo 0.9.2 from PyPI carries it.

    python -m venv peer
    peer/bin/pip install simple-elmo==0.9.2 tensorflow-hub==0.14.0 "tensorflow==2.21.*" tf-keras
    TF_USE_LEGACY_KERAS=1 peer/bin/python tests/data/hub_modules/make.py

The variables have the names of https://tfhub.dev/google/elmo/3 in one module, and of those that DeepPavlov exports in
the other; the weights are random. Beside the variables a module has its graph, of which the tests read what no
variable tells. The `.npz` beside each has character ids, without boundaries, and what the module makes of them.
"""

import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
OPTIONS = {
    "char_cnn": {
        "activation": "relu",
        "embedding": {"dim": 3},
        "filters": [[1, 4], [2, 5]],
        "max_characters_per_token": 50,
        "n_characters": 262,
        "n_highway": 1,
    },
    "lstm": {
        "cell_clip": 3,
        "dim": 6,
        "n_layers": 2,
        "proj_clip": 3,
        "projection_dim": 4,
        "use_skip_connections": True,
    },
}
# Names of the mix, and the options.
CASES = {
    "google": (("aggregation/weights", "aggregation/scaling"), OPTIONS),
    "deeppavlov": (
        ("elmo_output_ELMo_W", "elmo_output_ELMo_gamma"),
        {
            "char_cnn": OPTIONS["char_cnn"] | {"activation": "tanh", "n_highway": 2},
            # Small enough to matter; three layers, without the sum of input and output.
            "lstm": OPTIONS["lstm"]
            | {"n_layers": 3, "use_skip_connections": False, "cell_clip": 0.2, "proj_clip": 0.1},
        },
    ),
}


def random_weights(path, options):
    """bilm-tf's file of weights, filled at random."""
    import h5py

    random = np.random.default_rng(0)
    lstm, cnn = options["lstm"], options["char_cnn"]
    dim, projection = lstm["dim"], lstm["projection_dim"]
    total = sum(count for _, count in cnn["filters"])
    shapes = {"char_embed": (261, cnn["embedding"]["dim"])}
    for k, (width, count) in enumerate(cnn["filters"]):
        shapes[f"CNN/W_cnn_{k}"] = (1, width, cnn["embedding"]["dim"], count)
        shapes[f"CNN/b_cnn_{k}"] = (count,)
    for k in range(cnn["n_highway"]):
        for kind in ("carry", "transform"):
            shapes[f"CNN_high_{k}/W_{kind}"] = (total, total)
            shapes[f"CNN_high_{k}/b_{kind}"] = (total,)
    shapes |= {"CNN_proj/W_proj": (total, projection), "CNN_proj/b_proj": (projection,)}
    for direction in (0, 1):
        for k in range(lstm["n_layers"]):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{k}/LSTMCell"
            shapes[f"{cell}/W_0"] = (2 * projection, 4 * dim)
            shapes[f"{cell}/B"] = (4 * dim,)
            shapes[f"{cell}/W_P_0"] = (dim, projection)
    with h5py.File(path, "w") as file:
        for name, shape in shapes.items():
            file[name] = random.normal(0, 0.7, shape).astype("float32")


def make(name):
    """Makes one of the modules."""
    import tensorflow as tf

    # TensorFlow-Hub 0.14 looks for it while it is imported; TensorFlow 2.21 has it no more.
    tf.compat.v1.estimator = type("estimator", (), {"__getattr__": lambda *_: object})()
    import tensorflow_hub as hub
    from simple_elmo.model import BidirectionalLanguageModel

    v1 = tf.compat.v1
    v1.disable_eager_execution()
    v1.disable_v2_behavior()
    mix_names, options = CASES[name]
    num_layers = options["lstm"]["n_layers"] + 1
    with tempfile.TemporaryDirectory() as folder:
        options_file, weights_file = f"{folder}/options.json", f"{folder}/weights.hdf5"
        Path(options_file).write_text(json.dumps(options))
        random_weights(weights_file, options)

        def module():
            ids = v1.placeholder(tf.int32, (None, None, 50))
            model = BidirectionalLanguageModel(options_file, weights_file, max_batch_size=2)
            vectors = model(ids)["lm_embeddings"]
            weights = v1.get_variable(
                mix_names[0], initializer=np.linspace(-1, 1, num_layers).astype("float32")
            )
            scaling = v1.get_variable(mix_names[1], initializer=np.float32([1.5]))
            mix = scaling * tf.einsum("l,bltd->btd", tf.nn.softmax(weights), vectors)
            hub.add_signature("tokens", {"ids": ids}, {"layers": vectors, "elmo": mix})

        spec = hub.create_module_spec(module)
        with v1.Graph().as_default():
            loaded = hub.Module(spec)
            ids = v1.placeholder(tf.int32, (None, None, 50))
            found = loaded(ids, signature="tokens", as_dict=True)
            with v1.Session() as session:
                session.run(v1.global_variables_initializer())
                with tempfile.TemporaryDirectory() as folder:
                    loaded.export(folder, session)
                    with tarfile.open(HERE / f"{name}.tar.gz", "w:gz") as archive:
                        archive.add(folder, ".")
                rows = example_ids()
                values = session.run(found, {ids: rows})
    # Ours are without the boundaries.
    rows[rows[..., 1] == 258] = 0
    np.savez_compressed(HERE / f"{name}.npz", character_ids=rows[:, 1:-1], **values)


def example_ids():
    """Two sentences of five and three words with their boundaries, as bilm-tf spells them for inference."""
    random = np.random.default_rng(1)
    ids = np.zeros((2, 7, 50), "int32")
    for row, count in zip(ids, (5, 3), strict=True):
        words = [
            [257],
            *(random.integers(1, 257, size=n) for n in random.integers(1, 9, count)),
            [258],
        ]
        for place, word in enumerate(words):
            row[place] = 261
            row[place, : len(word) + 2] = [259, *word, 260]
    return ids


if __name__ == "__main__":
    if len(sys.argv) > 1:
        make(sys.argv[1])
    else:
        # Each in a process of its own: TensorFlow 1 has one graph.
        for case in CASES:
            subprocess.run([sys.executable, __file__, case], check=True)
