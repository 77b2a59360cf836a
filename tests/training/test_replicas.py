"""Training on two devices of one process: the steps are those of one device with the whole batch."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from conftest_training import TINY, assert_same_state, state_of

from keras_elmo.corpus import TrainingStream
from keras_elmo.training import OptimizerConfig, TrainingCorpus, resume
from keras_elmo.training.batch_queue import BatchQueue, part_of
from keras_elmo.training.optimizers import (
    clip_by_global_norm,
    make_slots,
    merge_duplicate_rows,
    update,
)
from keras_elmo.training.replicas import Replicas, mean_of_replicas
from keras_elmo.training.starting_model import new_model
from keras_elmo.training.strategies import make_strategy
from keras_elmo.training.training_step import TrainingStep
from keras_elmo.vocabulary import Vocabulary

EVEN = TINY.changed(batch_size=4)


@pytest.fixture(scope="module")
def two():
    replicas = Replicas(make_strategy("mirrored"))
    assert (replicas.count, replicas.num_workers, replicas.is_chief) == (2, 1, True)
    return replicas


def sparse(values, indices, num_rows=4):
    values = tf.constant(values, tf.float32)
    return tf.IndexedSlices(values, tf.constant(indices), tf.constant([num_rows, 1]))


def update_by(replicas, optimizer, start, gradients, clip_norm=None):
    """Weights and slots of every device after a step of gradients, one for each device."""
    with replicas.strategy.scope():
        variable = tf.Variable(start, dtype=tf.float32)
        slots = make_slots(optimizer, variable)

    @tf.function
    def step():
        def mean(gradient):
            clipped, _ = clip_by_global_norm(
                [merge_duplicate_rows(g) for g in mean_of_replicas([gradient])], clip_norm
            )
            return clipped[0]

        with replicas.strategy.scope():
            gradient = replicas.run(mean, gradients)
            replicas.strategy.extended.update(
                variable,
                lambda *args: update(optimizer, *args),
                args=(gradient, slots, tf.constant(optimizer.learning_rate), tf.constant(1.0)),
            )

    step()
    local = replicas.strategy.experimental_local_results
    return [
        (weights.numpy(), {name: local(slot)[k].numpy() for name, slot in slots.items()})
        for k, weights in enumerate(local(variable))
    ]


# === Gradients ===


def test_replicas_are_averaged_before_the_norm_is_clipped(two):
    gradients = [tf.constant([3.0, 0.0]), tf.constant([0.0, 4.0])]
    for weights, _ in update_by(two, OptimizerConfig("sgd", 1.0), np.zeros(2), gradients, 1.0):
        np.testing.assert_allclose(weights, [-0.6, -0.8], rtol=1e-6)


def test_rows_of_two_replicas_are_one_gradient_to_adagrad(two):
    """Means of 1 and 2 for the same row: accumulator 1 + 3 ** 2, step 0.2 * 3 / sqrt(10)."""
    gradients = [sparse([[2.0]], [0]), sparse([[4.0]], [0])]
    optimizer = OptimizerConfig("adagrad", 0.2, initial_accumulator=1.0)
    for weights, slots in update_by(two, optimizer, np.zeros((4, 1)), gradients):
        assert slots["accumulator"][:, 0].tolist() == [10, 1, 1, 1]
        np.testing.assert_allclose(weights[:, 0], [-0.18974, 0, 0, 0], atol=5e-6)


def test_sparse_gradients_are_averaged_like_dense_ones(two):
    """With another number of rows on each device."""
    gradients = [sparse([[4.0], [1.0], [2.0]], [1, 3, 3]), sparse([[2.0], [6.0]], [1, 0])]
    for weights, _ in update_by(two, OptimizerConfig("sgd", 1.0), np.zeros((4, 1)), gradients):
        assert weights[:, 0].tolist() == [-3, -3, 0, -1.5]


# === Steps ===


def step_of(text, config, replicas):
    vocabulary = Vocabulary.load(text / "vocab.txt")
    with replicas.strategy.scope():
        model = new_model(config, vocabulary, np.ones(len(vocabulary)))
    step = TrainingStep(model, config, replicas.strategy)
    corpus = TrainingCorpus.of(text / "train.txt")
    stream = TrainingStream(corpus.stream(config), vocabulary, config.batch_size, 4, 8)
    return step, BatchQueue(stream, model, config, 6, 1, step.rows)


def test_each_replica_has_its_rows_and_its_words(text, two):
    step, batches = step_of(text, EVEN, two)
    assert step.rows == [slice(0, 2), slice(2, 4)]
    _, whole = step_of(text, EVEN, Replicas(tf.distribute.get_strategy()))
    with batches, whole:
        parts, (inputs,) = next(iter(batches)).parts, next(iter(whole)).parts
    for rows, part in zip(step.rows, parts, strict=True):
        assert not part["word_ids"][0].any()
        for direction in ("forward", "backward"):
            words = part["word_ids"][part[f"{direction}_words"]]
            expected = inputs["word_ids"][inputs[f"{direction}_words"][rows]]
            np.testing.assert_array_equal(words, expected)
            for name in ("targets", "negatives", "num_tries"):
                value = inputs[f"{direction}_{name}"]
                np.testing.assert_array_equal(
                    part[f"{direction}_{name}"], value[rows] if name == "targets" else value
                )
        read = np.unique([part["forward_words"], part["backward_words"]])
        assert set(read) | {0} == set(range(len(part["word_ids"])))
    assert part_of(inputs, slice(0, 4)) is inputs


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_replicas_draw_masks_of_their_own(text, two, dropout):
    """With the same rows on both devices the states differ if and only if something is dropped."""
    step, batches = step_of(text, EVEN.changed(dropout=dropout), two)
    with batches:
        batch = next(iter(batches))
    step([batch.parts[0]] * 2, batch.dropout_seed, 1, 1.0)
    first, second = (tf.nest.flatten(states) for states in step.states)
    same = [bool(tf.reduce_all(a == b)) for a, b in zip(first, second, strict=True)]
    assert all(same) if not dropout else not any(same)


def test_states_are_those_of_the_rows(text, two):
    """All rows' states in their order, whatever device has them; set on one device as on two."""
    config = EVEN.changed(dropout=0.0)
    (step, batches), (alone, whole) = (
        step_of(text, config, replicas)
        for replicas in (two, Replicas(tf.distribute.get_strategy()))
    )
    with batches, whole:
        for taken, queue in ((step, batches), (alone, whole)):
            batch = next(iter(queue))
            taken(batch.parts, batch.dropout_seed, 1, 1.0)
    arrays, expected = step.arrays(), alone.arrays()
    assert arrays.keys() == expected.keys()
    for name, array in arrays.items():
        np.testing.assert_allclose(array, expected[name], atol=1e-6, err_msg=name)
    for taken in (step, alone):
        taken.set_arrays({name: value + 1 for name, value in arrays.items()})
        for name, value in taken.arrays().items():
            np.testing.assert_array_equal(value, arrays[name] + 1, err_msg=name)


def test_a_replica_whose_states_are_no_numbers(text, two):
    step, _ = step_of(text, EVEN, two)
    assert step.is_finite()
    step.states[1][0][0][0] = step.states[1][0][0][0] + np.nan
    assert not step.is_finite()


# === Runs ===


def losses(run):
    """Of each step: both directions' losses and the gradient's norm."""
    entries = [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines()]
    names = ("forward_sampled_loss", "backward_sampled_loss", "gradient_norm")
    return [[entry[name] for name in names] for entry in entries if "gradient_norm" in entry]


def test_twenty_steps_are_those_of_one_device(train, text, tmp_path):
    config = EVEN.changed(dropout=0.0, max_steps=20, validate_every=10)
    validation = TrainingCorpus.of(text / "valid.txt")
    results = [
        train(tmp_path / name, config, validation=validation, strategy=name)
        for name in ("single", "mirrored")
    ]
    one, several = (losses(tmp_path / name) for name in ("single", "mirrored"))
    assert len(one) == 20
    np.testing.assert_allclose(several, one, atol=1e-5)
    assert results[1].best["perplexity"] == pytest.approx(results[0].best["perplexity"], rel=1e-5)
    arrays, others = (state_of(tmp_path / n / "checkpoints/20")[0] for n in ("single", "mirrored"))
    for name, array in arrays.items():
        np.testing.assert_allclose(others[name], array, atol=1e-4, err_msg=name)


def test_resumed_on_as_many_and_on_fewer_devices(train, tmp_path):
    """With dropout: the same on as many, bit for bit. Without: the same on one as on two, but for rounding."""
    for dropout, strategy in ((0.2, "mirrored"), (0.0, "single")):
        straight, broken = (tmp_path / f"{kind}{dropout}" for kind in ("straight", "broken"))
        config = EVEN.changed(dropout=dropout)
        train(straight, config, strategy="mirrored")
        shutil.copytree(straight, broken)
        shutil.rmtree(broken / "checkpoints" / "10")
        assert resume(broken, strategy=strategy).step == 10
        ends = [run / "checkpoints" / "10" for run in (straight, broken)]
        if dropout:
            assert_same_state(*ends)
        else:
            np.testing.assert_allclose(losses(broken), losses(straight), atol=1e-5)


def test_a_batch_that_cannot_be_shared_out(train, tmp_path):
    with pytest.raises(ValueError, match="must be divisible by their number, 2. Received: batch_s"):
        train(tmp_path / "run", strategy="mirrored")
    assert not (tmp_path / "run").exists()
