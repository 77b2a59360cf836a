"""A corpus of a few sentences, a model of a few weights, and runs of a few steps on them."""

import random

import numpy as np
import pytest

from keras_elmo.corpus import build_vocabulary, count_words, counts_path, save_counts
from keras_elmo.training import PretrainConfig, TrainingCorpus, pretrain

WORDS = ("the", "cat", "dog", "sat", "ran", "on", "under", "a", "mat", "tree", ".", "über", "猫")

TINY = PretrainConfig(
    units=6,
    projection_dim=4,
    num_layers=1,
    max_word_length=8,
    embedding_dim=3,
    filters=((1, 3), (2, 4)),
    num_negative_samples=6,
    batch_size=3,
    unroll_steps=4,
    warmup_steps=2,
    dropout=0.2,
    max_steps=10,
    save_every=5,
    log_every=1,
    shuffle_buffer_size=16,
    seed=3,
)


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    """A folder with `train.txt`, `valid.txt` and `vocab.txt`, with counts."""
    folder = tmp_path_factory.mktemp("text")
    choose = random.Random(0)
    for name, size in (("train", 60), ("valid", 8)):
        lines = [" ".join(choose.choices(WORDS, k=choose.randint(0, 9))) for _ in range(size)]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    vocabulary, counts = build_vocabulary(count_words(folder / "train.txt"))
    vocabulary.save(folder / "vocab.txt")
    save_counts(counts_path(folder / "vocab.txt"), vocabulary, counts)
    return folder


@pytest.fixture(scope="session")
def train(text):
    """`train(output, config, ...)`: a run on the text."""

    def run(output, config=TINY, corpus=text / "train.txt", **more):
        vocabulary_file = more.pop("vocabulary_file", text / "vocab.txt")
        return pretrain(config, TrainingCorpus.of(corpus), vocabulary_file, output, **more)

    return run


@pytest.fixture(scope="session")
def straight(train, text, tmp_path_factory):
    """The folder of a run of 10 steps, validated every 4, that nothing interrupted. Not to be changed."""
    output = tmp_path_factory.mktemp("runs") / "straight"
    said = []
    config = TINY.changed(validate_every=4)
    validation = TrainingCorpus.of(text / "valid.txt")
    result = train(output, config, validation=validation, say=said.append)
    assert result.step == 10
    return output


def state_of(checkpoint):
    """All arrays of a checkpoint by name, and its progress."""
    import h5py

    from keras_elmo import presets

    arrays = {}
    for name in ("model.weights.h5", "language_model.weights.h5", "training_state.h5"):
        with h5py.File(checkpoint / name) as file:
            file.visititems(
                lambda key, item, name=name: (
                    arrays.update({f"{name}/{key}": item[()]})
                    if isinstance(item, h5py.Dataset)
                    else None
                )
            )
    return arrays, presets.read_json(checkpoint / "progress.json")


def assert_same_state(checkpoint, other):
    """Two checkpoints are the same, bit for bit: weights, slots, LSTM states, place in the data, best so far."""
    (arrays, progress), (others, other_progress) = state_of(checkpoint), state_of(other)
    assert progress == other_progress
    assert arrays.keys() == others.keys()
    assert len(arrays) > 20
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, others[name], err_msg=name)
