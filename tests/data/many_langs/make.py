"""Makes the models in this folder: by ELMoForManyLangs itself, trained for a moment on a few lines of ours.

    python -m venv efml && efml/bin/pip install torch numpy h5py "overrides<4"
    efml/bin/pip install --no-deps elmoformanylangs==0.0.4.post2
    efml/bin/python tests/data/many_langs/make.py

Beside each model lies `expected.npz`: what its `Embedder.sents2elmo(.., output_layer=-2)` gives for `SENTENCES`, each
from a new state, for the tool keeps its LSTMs' state from one call to the next.
"""

import json
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from elmoformanylangs import Embedder, biLM

HERE = Path(__file__).resolve().parent

CORPUS = """\
The cat sat by the river and the dog ran home .
A dog saw the cat near the bank of the river .
The bank is open and the cat is at home .
猫 坐 在 河边 。
银行 在 河边 , 猫 在 家 。
狗 看见 猫 在 银行 门口 。
Die Katze schläft am Fluss , der Hund läuft nach Hause .
a-b_c|d ( e ) 1 23 456 ! ?
"""

SENTENCES = [
    ["The", "cat", "sat", "by", "the", "river", "."],
    ["猫", "在", "银行", "门口", "看见", "鱼", "。"],
    ["THE", "zebra", "ate", "9", "ñandú", "🦓", "𝔘", "\u3000", "\u2028"],
    ["Donaudampfschifffahrtsgesellschaft", "中" * 30, "cat" * 9, "cat-cat-ca", "cat-cat-cat"],
    [],
    ["", "<bos>", "cat", "<eos>", "<oov>", "<pad>", "<S>", ""],
    ["The"],
]

# Sizes unlike each other; clips that are reached.
MODELS = {
    "words_and_characters": {
        "encoder": {
            "dim": 10,
            "projection_dim": 6,
            "n_layers": 2,
            "cell_clip": 0.5,
            "proj_clip": 0.3,
        },
        "token_embedder": {
            **{"word_dim": 4, "char_dim": 5, "max_characters_per_token": 12, "n_highway": 2},
            **{"filters": [[1, 3], [2, 4], [5, 2]], "activation": "relu"},
        },
    },
    "characters": {
        "encoder": {"dim": 7, "projection_dim": 8, "n_layers": 2, "cell_clip": 3, "proj_clip": 3},
        "token_embedder": {
            **{"word_dim": 0, "char_dim": 4, "max_characters_per_token": 20, "n_highway": 3},
            **{"filters": [[3, 5], [7, 3]], "activation": "tanh"},
        },
    },
    "words": {
        "encoder": {"dim": 12, "projection_dim": 5, "n_layers": 3, "cell_clip": 0, "proj_clip": 0},
        "token_embedder": {
            **{"word_dim": 6, "char_dim": 0, "max_characters_per_token": 9, "n_highway": 1},
            **{"filters": [[1, 2]], "activation": "relu"},
        },
    },
    # As many units as values of the projection; no highway layer.
    "square": {
        "encoder": {"dim": 6, "projection_dim": 6, "n_layers": 2, "cell_clip": 3, "proj_clip": 3},
        "token_embedder": {
            **{"word_dim": 3, "char_dim": 3, "max_characters_per_token": 50, "n_highway": 0},
            **{"filters": [[1, 2], [2, 4]], "activation": "relu"},
        },
    },
}
# Saved in the format that PyTorch had before 1.6, as the published models are.
OLD_FORMAT = ("characters", "square")


# The tool asks a loss for its first number, as PyTorch before 0.4 wanted it.
_getitem = torch.Tensor.__getitem__
torch.Tensor.__getitem__ = lambda tensor, i: _getitem(
    tensor.reshape(1) if tensor.ndim == 0 else tensor, i
)


def make(name, sizes):
    folder = Path(name)
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    config = {
        "encoder": {"name": "elmo", **sizes["encoder"]},
        "token_embedder": {"name": "cnn", **sizes["token_embedder"]},
        "classifier": {"name": "softmax"},
        "dropout": 0.1,
    }
    Path("configs").mkdir(exist_ok=True)
    config_file = Path("configs") / f"{name}.json"
    config_file.write_text(json.dumps(config, indent=1))
    sys.argv = ["biLM", "train", "--train_path", "corpus.txt", "--config_path", str(config_file)]
    sys.argv += ["--model", name, "--optimizer", "adam", "--lr", "0.05", "--max_epoch", "3"]
    sys.argv += ["--batch_size", "4", "--min_count", "2"]
    biLM.train()
    shutil.copy(config_file, folder)
    # What published lexicons have: an entry that is white space. It takes the place of one that occurs once.
    for lexicon, entry in (("char.dic", "?"), ("word.dic", "and")):
        path = folder / lexicon
        if path.exists():
            text = path.read_text(encoding="utf-8")
            assert f"\n{entry}\t" in text
            path.write_text(text.replace(f"\n{entry}\t", "\n\u3000\t"), encoding="utf-8")
    if name in OLD_FORMAT:
        for path in folder.glob("*.pkl"):
            torch.save(torch.load(path), path, _use_new_zipfile_serialization=False)
    embedder = Embedder(str(folder))
    expected = {}
    for number, sentence in enumerate(SENTENCES):
        embedder.model.encoder.reset_states()
        [expected[f"sentence_{number}"]] = embedder.sents2elmo([sentence], output_layer=-2)
    # All at once, as people do it: one batch, so one state.
    embedder.model.encoder.reset_states()
    together = embedder.sents2elmo(SENTENCES, output_layer=-2)
    for number, vectors in enumerate(together):
        assert np.allclose(vectors, expected[f"sentence_{number}"], atol=1e-6)
    np.savez_compressed(folder / "expected.npz", **expected)
    target = HERE / name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("corpus.txt").write_text(CORPUS, encoding="utf-8")
        for name, sizes in MODELS.items():
            make(name, sizes)
        os.chdir(HERE)
    (HERE / "sentences.json").write_text(
        json.dumps(SENTENCES, ensure_ascii=True, indent=1) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
