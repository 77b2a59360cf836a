"""Makes the archives of this folder with AllenNLP's modules, as simple-elmo-pytorch 0.2 from PyPI carries them.

    python -m venv peer && peer/bin/pip install simple-elmo-pytorch==0.2
    peer/bin/python tests/data/allennlp/make.py

Each is what AllenNLP leaves behind of a model that reads ELMo: `config.json`, `weights.th`, a vocabulary, in a
`model.tar.gz`. The names of the parameters are those that a tagger of AllenNLP gives to its embedder's. The weights
are random, and not those of a file: as after fine-tuning. The `.npz` beside each has character ids, without boundaries,
and what the module makes of them.
"""

import io
import json
import tarfile
import tempfile
from pathlib import Path

import h5py
import numpy as np
import torch
from simple_elmo_pytorch.models.elmo import Elmo

HERE = Path(__file__).parent
PREFIX = "text_field_embedder.token_embedder_elmo._elmo."
# Highway layers, LSTM layers, mixes, whether zip or the format before PyTorch 1.6.
CASES = {"tagger": (1, 2, 1, True), "two_mixes": (2, 3, 2, False)}
WIDTH, PROJECTION, UNITS = 50, 4, 6
FILTERS = [[1, 4], [2, 5]]


def make(name):
    """Makes one of the archives."""
    num_highway, num_layers, num_mixes, is_zip = CASES[name]
    torch.manual_seed(len(name))
    random = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        options = {
            "char_cnn": {
                "activation": "relu",
                "embedding": {"dim": 3},
                "filters": FILTERS,
                "max_characters_per_token": WIDTH,
                "n_characters": 262,
                "n_highway": num_highway,
            },
            "lstm": {
                "cell_clip": 3,
                "dim": UNITS,
                "n_layers": num_layers,
                "proj_clip": 3,
                "projection_dim": PROJECTION,
                "use_skip_connections": True,
            },
        }
        options_file, weights_file = f"{folder}/options.json", f"{folder}/weights.hdf5"
        Path(options_file).write_text(json.dumps(options))
        write_weights(weights_file, num_highway, num_layers)
        elmo = Elmo(options_file, weights_file, num_mixes, requires_grad=True, dropout=0.0)
        with torch.no_grad():
            for parameter in elmo.parameters():
                parameter.copy_(torch.from_numpy(random.normal(0, 0.7, parameter.shape)))
            # The row of id 0, which nothing reads in a word.
            elmo._elmo_lstm._token_embedder._char_embedding_weights[0] = 0
    elmo.eval()
    ids = example_ids(random)
    with torch.no_grad():
        found = elmo(torch.from_numpy(ids))
        elmo._elmo_lstm._elmo_lstm.reset_states()
        layers = elmo._elmo_lstm(torch.from_numpy(ids))
    state = {PREFIX + key: value for key, value in elmo.state_dict().items()}
    state |= {
        "encoder._module.weight_ih_l0": torch.ones(3, 4),
        "tag_projection_layer._module.bias": torch.zeros(5),
    }
    weights = io.BytesIO()
    torch.save(state, weights, _use_new_zipfile_serialization=is_zip)
    config = {
        "model": {
            "type": "simple_tagger",
            "text_field_embedder": {
                "token_embedders": {
                    "elmo": {
                        "type": "elmo_token_embedder",
                        "options_file": "/home/somebody/options.json",
                        "weight_file": "/home/somebody/weights.hdf5",
                    }
                }
            },
        }
    }
    files = {
        "config.json": json.dumps(config).encode(),
        "weights.th": weights.getvalue(),
        "vocabulary/labels.txt": b"NN\nVB\n",
    }
    with tarfile.open(HERE / f"{name}.tar.gz", "w:gz") as archive:
        for file, data in files.items():
            info = tarfile.TarInfo(file)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    np.savez_compressed(
        HERE / f"{name}.npz",
        character_ids=ids,
        layers=[layer[:, 1:-1].numpy() for layer in layers["activations"]],
        elmo=[mix.numpy() for mix in found["elmo_representations"]],
    )


def write_weights(path, num_highway, num_layers):
    """bilm-tf's file of weights, which the module wants to see first."""
    shapes = {"char_embed": (261, 3)}
    total = sum(count for _, count in FILTERS)
    for k, (width, count) in enumerate(FILTERS):
        shapes |= {f"CNN/W_cnn_{k}": (1, width, 3, count), f"CNN/b_cnn_{k}": (count,)}
    for k in range(num_highway):
        for kind in ("carry", "transform"):
            shapes |= {
                f"CNN_high_{k}/W_{kind}": (total, total),
                f"CNN_high_{k}/b_{kind}": (total,),
            }
    shapes |= {"CNN_proj/W_proj": (total, PROJECTION), "CNN_proj/b_proj": (PROJECTION,)}
    for direction in (0, 1):
        for k in range(num_layers):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{k}/LSTMCell"
            shapes |= {
                f"{cell}/W_0": (2 * PROJECTION, 4 * UNITS),
                f"{cell}/B": (4 * UNITS,),
                f"{cell}/W_P_0": (UNITS, PROJECTION),
            }
    with h5py.File(path, "w") as file:
        for name, shape in shapes.items():
            file[name] = np.zeros(shape, "float32")


def example_ids(random):
    """Two sentences of five words and of three, as AllenNLP spells them."""
    ids = np.zeros((2, 5, WIDTH), "int64")
    for row, count in zip(ids, (5, 3), strict=True):
        for word in row[:count]:
            letters = random.integers(1, 257, random.integers(1, 9))
            word[:] = 261
            word[: len(letters) + 2] = [259, *letters, 260]
    return ids


if __name__ == "__main__":
    for case in CASES:
        make(case)
