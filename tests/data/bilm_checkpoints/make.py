"""Makes the checkpoints of this folder with bilm-tf's training code, as simple-elmo 0.9.2 from PyPI carries it.

    python -m venv peer && peer/bin/pip install simple-elmo==0.9.2 "tensorflow==2.21.*" tf-keras
    TF_USE_LEGACY_KERAS=1 peer/bin/python tests/data/bilm_checkpoints/make.py

Each folder has what bilm-tf's training leaves behind, `options.json` and a checkpoint of random weights after two
steps by Adagrad, and in `expected.npz` a batch and the losses that bilm-tf's graph has for it under the full softmax.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
VOCABULARY_SIZE, BATCH_SIZE, UNROLL_STEPS, WORD_LENGTH = 12, 2, 5, 8

CHARACTERS = {
    "activation": "relu",
    "embedding": {"dim": 3},
    "filters": [[1, 4], [2, 5]],
    "max_characters_per_token": WORD_LENGTH,
    "n_characters": 261,
}
LSTM = {"cell_clip": 3, "dim": 6, "n_layers": 2, "proj_clip": 3, "projection_dim": 4}
# Scope, and options beside those of all.
CASES = {
    "two_layers": (
        "lm",
        {
            "char_cnn": CHARACTERS | {"n_highway": 1},
            "lstm": LSTM | {"use_skip_connections": True},
        },
    ),
    "one_layer": (
        "lm",
        {"char_cnn": CHARACTERS, "lstm": LSTM | {"n_layers": 1, "use_skip_connections": False}},
    ),
    "other_scope": (
        "model/lm",
        {
            "char_cnn": CHARACTERS | {"n_highway": 2, "activation": "tanh"},
            # Without a projection: units are what comes out.
            "lstm": LSTM | {"dim": 4, "use_skip_connections": True},
        },
    ),
    "shared_softmax": (
        "lm",
        {"share_embedding_softmax": True, "lstm": LSTM | {"use_skip_connections": True}},
    ),
}


def make(name):
    """Makes one of the folders."""
    import tensorflow as tf
    from simple_elmo import training

    v1 = tf.compat.v1
    v1.disable_eager_execution()
    v1.disable_v2_behavior()
    scope, more = CASES[name]
    options = more | {
        "bidirectional": True,
        "dropout": 0.0,
        "all_clip_norm_val": 10.0,
        "batch_size": BATCH_SIZE,
        "unroll_steps": UNROLL_STEPS,
        "n_tokens_vocab": VOCABULARY_SIZE,
        "n_negative_samples_batch": 8,
        "sample_softmax": False,
    }
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    v1.set_random_seed(len(name))
    with v1.variable_scope(scope):
        model = training.LanguageModel(options, False)
    step = v1.get_variable("global_step", [], tf.int64, v1.zeros_initializer(), trainable=False)
    train = v1.train.AdagradOptimizer(0.2, 1.0).minimize(model.total_loss, global_step=step)

    random = np.random.default_rng(0)
    arrays = {
        "forward_targets": random.integers(VOCABULARY_SIZE, size=(BATCH_SIZE, UNROLL_STEPS)),
        "backward_targets": random.integers(VOCABULARY_SIZE, size=(BATCH_SIZE, UNROLL_STEPS)),
    }
    feed = {
        model.next_token_id: arrays["forward_targets"],
        model.next_token_id_reverse: arrays["backward_targets"],
    }
    for direction, suffix in (("forward", ""), ("backward", "_reverse")):
        if "char_cnn" in options:
            # Words of one to five letters, as bilm-tf spells them.
            ids = np.full((BATCH_SIZE, UNROLL_STEPS, WORD_LENGTH), 260)
            ids[..., 0] = 258
            for word in ids.reshape(-1, WORD_LENGTH):
                length = random.integers(1, 6)
                word[1 : length + 1] = random.integers(97, 123, size=length)
                word[length + 1] = 259
            place = getattr(model, f"tokens_characters{suffix}")
        else:
            ids = random.integers(VOCABULARY_SIZE, size=(BATCH_SIZE, UNROLL_STEPS))
            place = getattr(model, f"token_ids{suffix}")
        # Ours count from 1, for 0 is padding.
        arrays[f"{direction}_ids"] = ids + 1
        feed[place] = ids
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        for _ in range(2):
            session.run(train, feed)
        arrays["losses"] = session.run(model.individual_losses, feed)
        v1.train.Saver(v1.global_variables(), save_relative_paths=True).save(
            session, str(folder / "model.ckpt"), global_step=2, write_meta_graph=False
        )
        weights = v1.trainable_variables()
        arrays |= {
            f"weights/{variable.op.name.removeprefix(scope + '/')}": value
            for variable, value in zip(weights, session.run(weights), strict=True)
        }
    np.savez_compressed(folder / "expected.npz", **arrays)
    (folder / "options.json").write_text(json.dumps(options, indent=2) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        make(sys.argv[1])
    else:
        # Each in a process of its own: TensorFlow 1 has one graph.
        for case in CASES:
            subprocess.run([sys.executable, __file__, case], check=True)
