"""One side of `benchmarks/training.py`, run by the Python of the environment that has its package.

Started as `python training_worker.py SIDE ARCHITECTURE.json BATCHES.npz`. It takes one step, says `ready`, and then
answers each line `run` of standard input by one line of standard output: the seconds that a step on each of the batches
took, and the seconds that the cores worked for it.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np

VOCABULARY_FILE = "vocab.txt"
UNROLL_STEPS = 20


class KerasElmo:
    """Our step, on batches as our pipeline makes them."""

    requirements = ()

    def __init__(self, architecture, batches, folder):
        import tensorflow as tf

        from keras_elmo.training import RECIPES, PretrainConfig
        from keras_elmo.training.starting_model import new_model
        from keras_elmo.training.training_step import TrainingStep
        from keras_elmo.vocabulary import Vocabulary

        tf.config.experimental.enable_op_determinism()
        vocabulary = Vocabulary.load(folder / VOCABULARY_FILE)
        config = RECIPES[architecture["recipe"]](PretrainConfig(**architecture["arguments"]))
        config = config.changed(batch_size=architecture["batch_size"])
        model = new_model(config, vocabulary, np.ones(len(vocabulary)))
        self._step = TrainingStep(model, config)
        self._batches = batches
        self._number = 0

    def step(self, index):
        """Takes a step."""
        self._number += 1
        seed = np.array([1, self._number], np.int32)
        loss = self._step([self._batches[index]], seed, self._number, 1.0)
        return (loss.forward + loss.backward) / 2


class BilmTf:
    """bilm-tf's training graph, as simple_elmo carries it: loss, gradients, clipping, Adagrad, states fed back."""

    requirements = ("simple-elmo==0.9.2", "tensorflow==2.21.*", "tf_keras==2.21.*")

    def __init__(self, architecture, batches, folder):
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
        import tensorflow as tf
        from simple_elmo import training

        v1 = tf.compat.v1
        v1.disable_eager_execution()
        v1.disable_v2_behavior()
        arguments = architecture["arguments"]
        options = {
            "bidirectional": True,
            "char_cnn": {
                "activation": "relu",
                "embedding": {"dim": 16},
                "filters": arguments["filters"],
                "max_characters_per_token": 50,
                "n_characters": 261,
                "n_highway": arguments["num_highway_layers"],
            },
            "lstm": {
                "cell_clip": 3,
                "dim": arguments["units"],
                "n_layers": 2,
                "proj_clip": 3,
                "projection_dim": arguments["projection_dim"],
                "use_skip_connections": True,
            },
            "dropout": 0.1,
            "all_clip_norm_val": 10.0,
            "batch_size": architecture["batch_size"],
            "unroll_steps": UNROLL_STEPS,
            "n_tokens_vocab": architecture["vocabulary_size"],
            "n_negative_samples_batch": 8192,
        }
        self._model = training.LanguageModel(options, True)
        optimizer = v1.train.AdagradOptimizer(0.2, initial_accumulator_value=1.0)
        gradients = optimizer.compute_gradients(
            self._model.total_loss * UNROLL_STEPS,
            aggregation_method=tf.AggregationMethod.EXPERIMENTAL_TREE,
        )
        number = v1.get_variable("global_step", [], tf.int64, trainable=False)
        gradients = training.average_gradients([gradients], options["batch_size"], options)
        gradients, _ = training.clip_grads(gradients, options, True, number)
        self._train = optimizer.apply_gradients(gradients, global_step=number)
        self._session = v1.Session()
        self._session.run(v1.global_variables_initializer())
        self._initial = tf.nest.flatten(self._model.init_lstm_state)
        self._final = tf.nest.flatten(self._model.final_lstm_state)
        self._states = [np.zeros(state.shape, np.float32) for state in self._initial]
        self._feeds = [self._feed(batch) for batch in batches]

    def _feed(self, batch):
        """Every word spelled where it stands; bilm-tf's ids are ours less 1."""
        model, words = self._model, batch["word_ids"] - 1
        return {
            model.tokens_characters: words[batch["forward_words"]],
            model.tokens_characters_reverse: words[batch["backward_words"]],
            model.next_token_id: batch["forward_targets"],
            model.next_token_id_reverse: batch["backward_targets"],
        }

    def step(self, index):
        """Takes a step."""
        feed = self._feeds[index] | dict(zip(self._initial, self._states, strict=True))
        _, loss, *self._states = self._session.run(
            [self._train, self._model.total_loss, *self._final], feed
        )
        return float(loss)


SIDES = {"keras-elmo": KerasElmo, "bilm-tf": BilmTf}


def _batches(file: Path) -> list[dict[str, np.ndarray]]:
    batches: dict[int, dict[str, np.ndarray]] = {}
    for key, array in np.load(file).items():
        number, _, name = key.partition("/")
        batches.setdefault(int(number), {})[name] = array
    return [batches[number] for number in sorted(batches)]


def main() -> None:
    """Answers until standard input ends."""
    name, architecture_file, batches_file = sys.argv[1], *map(Path, sys.argv[2:])
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever the packages print goes to standard error
    architecture = json.loads(architecture_file.read_text(encoding="utf-8"))
    batches = _batches(batches_file)
    side = SIDES[name](architecture, batches, batches_file.parent)
    side.step(0)
    print("ready", file=replies, flush=True)
    for _ in sys.stdin:
        start, busy = time.perf_counter(), time.process_time()
        losses = [side.step(index) for index in range(len(batches))]
        seconds = time.perf_counter() - start
        print(seconds, time.process_time() - busy, losses[-1], file=replies, flush=True)


if __name__ == "__main__":
    main()
