"""TrainingStep: one step of pre-training, and all the state that it changes."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_elmo.models import BidirectionalLanguageModel, ElmoModel
from keras_elmo.training.optimizers import (
    clip_by_global_norm,
    make_slots,
    merge_duplicate_rows,
    update,
)
from keras_elmo.training.pretrain_config import PretrainConfig
from keras_elmo.training.replicas import Replicas, mean_of_replicas

# (forward, backward), each with [output, memory] for every layer.
States = tuple[list[list[tf.Tensor]], ...]


class Losses(NamedTuple):
    """What a step tells.

    Attributes:
        forward: Mean loss of the forward direction, before the step.
        backward: Mean loss of the backward direction.
        gradient_norm: Norm of the gradient of all weights together, before it was clipped.
    """

    forward: float
    backward: float
    gradient_norm: float


class TrainingStep:
    """Truncated back-propagation: a batch, and the LSTM states where the one before left off.

    The state of training is weights, slots and LSTM states, and `arrays` and `set_arrays` have it all but for the
    weights. What is random comes in from outside: the negatives with the batch, the dropout by its seed.

    Several devices ("replicas") each have rows of the batch, always the same, the LSTM states of these, and a dropout
    of their own. What they do with the mean of their gradients is the same for all: merge rows, clip, update. So one
    device and several take the same steps.

    Args:
        model: The model, made in the scope of `strategy`; its weights are changed in place.
        config: The numbers of the run.
        strategy: The devices. Defaults to the strategy in force: one device, if nothing else was said.
    """

    def __init__(
        self,
        model: BidirectionalLanguageModel,
        config: PretrainConfig,
        strategy: tf.distribute.Strategy | None = None,
    ):
        self.model = model
        self.config = config
        self.replicas = Replicas(strategy or tf.distribute.get_strategy())
        elmo, softmax = model.elmo_model, model.softmax
        groups = (
            (config.network_optimizer, [*elmo.encoder.weights, *elmo.bilm.weights]),
            (config.softmax_optimizer, softmax.weights),
        )
        weights = [(weight, optimizer) for optimizer, group in groups for weight in group]
        self._names = [weight.path for weight, _ in weights]
        self._variables = [weight.value for weight, _ in weights]
        self._optimizers = [optimizer for _, optimizer in weights]
        with self.replicas.strategy.scope():
            self._slots = [
                make_slots(optimizer, variable)
                for optimizer, variable in zip(self._optimizers, self._variables, strict=True)
            ]
        # The rows of each local replica, and the LSTM states of these.
        self.rows = self.replicas.rows(config.batch_size)
        self.states = [self._zero_states(rows.stop - rows.start) for rows in self.rows]
        self._step: Any = None
        self._copy: BidirectionalLanguageModel | None = None

    def __call__(
        self, parts: Sequence[Mapping[str, Any]], dropout_seed: np.ndarray, step: int, rate: float
    ) -> Losses:
        """Takes a step.

        Args:
            parts: For each local replica the inputs of `BidirectionalLanguageModel`, with the negatives, the same for
                all, if the softmax is sampled.
            dropout_seed: int32 (2,).
            step: Its number, from 1.
            rate: The part of the learning rates that is in force.
        """
        arguments = (
            [{name: tf.convert_to_tensor(part[name]) for name in part} for part in parts],
            self.states,
            tf.convert_to_tensor(dropout_seed, tf.int32),
            tf.constant(step, tf.float32),
            tf.constant(rate, tf.float32),
        )
        if self._step is None:
            self._step = tf.function(self._one_step, input_signature=_signature(*arguments))
        losses, self.states = self._step(*arguments)
        return Losses(*losses.numpy().tolist())

    def _one_step(self, parts, states, dropout_seed, step, rate):
        replicas = self.replicas
        with replicas.strategy.scope():
            losses, states, gradients = replicas.run(
                self._gradients, list(zip(parts, states, strict=True)), dropout_seed
            )
            for optimizer, variable, gradient, slots in zip(
                self._optimizers, self._variables, gradients, self._slots, strict=True
            ):
                replicas.strategy.extended.update(
                    variable,
                    functools.partial(update, optimizer),
                    args=(gradient, slots, rate * optimizer.learning_rate, step),
                )
        return replicas.local_results(losses)[0], replicas.local_results(states)

    def _gradients(self, part, dropout_seed):
        """On each replica: the losses, its LSTM states, and the gradients to update by, the same for all."""
        inputs, states = part
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        # The model is frozen for those who load it; here its weights are watched one by one.
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(self._variables)
            losses, states = self.model(
                inputs,
                initial_state=states,
                return_state=True,
                dropout_seed=dropout_seed + [number, 0],
                training=True,
            )
            means = tf.stack([tf.reduce_mean(losses[name]) for name in ("forward", "backward")])
            loss = tf.reduce_mean(means)
            if self.config.scale_loss:
                loss *= self.config.unroll_steps
        means, *gradients = mean_of_replicas([means, *tape.gradient(loss, self._variables)])
        merged = [merge_duplicate_rows(gradient) for gradient in gradients]
        clipped, norm = clip_by_global_norm(merged, self.config.clip_norm)
        return tf.concat([means, [norm]], axis=0), states, clipped

    def model_on_one_device(self) -> BidirectionalLanguageModel:
        """The model for `predict` in this process alone: on several replicas, a copy."""
        if self.replicas.count == 1:
            return self.model
        # What Keras makes in the scope of a strategy predicts on all its devices, and gives each answer that often.
        if self._copy is None:
            elmo = ElmoModel.from_config(self.model.elmo_model.get_config())
            self._copy = BidirectionalLanguageModel(elmo, self.model.vocabulary)
        self._copy.set_weights(self.model.get_weights())
        return self._copy

    def is_finite(self) -> bool:
        """Whether all weights, slots and LSTM states of all replicas are finite numbers; all processes must ask."""
        values = [*self._variables, *(variable for _, variable in self._slot_variables())]
        values += tf.nest.flatten(self.states)
        is_finite = all(bool(tf.reduce_all(tf.math.is_finite(value))) for value in values)
        return self.replicas.maximum(int(not is_finite)) == 0

    def arrays(self) -> dict[str, np.ndarray]:
        """Slots and the LSTM states of all rows by name; all processes must ask."""
        # Half precision, which no file format knows, fits into float32.
        states = self.replicas.gather(
            [tf.nest.map_structure(lambda v: tf.cast(v, tf.float32), part) for part in self.states]
        )
        values = [*self._slot_variables(), *_named(states)]
        return {name: value.numpy().astype(np.float32) for name, value in values}

    def set_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Sets slots and LSTM states to what `arrays` gave, with as many replicas or others.

        Raises:
            ValueError: If one is missing or has another shape.
        """
        shapes = {name: tuple(variable.shape) for name, variable in self._slot_variables()}
        shapes |= {
            name: (self.config.batch_size, *value.shape[1:])
            for name, value in _named(self.states[0])
        }
        for name, shape in shapes.items():
            found = arrays.get(name)
            if found is None or found.shape != shape:
                raise ValueError(
                    f"`{name}` must have the shape {shape}. "
                    f"Received: {'nothing' if found is None else found.shape}"
                )
        for name, variable in self._slot_variables():
            variable.assign(arrays[name])
        states = []
        for rows, part in zip(self.rows, self.states, strict=True):
            values = [tf.cast(arrays[name][rows], value.dtype) for name, value in _named(part)]
            states.append(tf.nest.pack_sequence_as(part, values))
        self.states = states

    def _slot_variables(self) -> Iterator[tuple[str, tf.Variable]]:
        for name, slots in zip(self._names, self._slots, strict=True):
            for slot, variable in slots.items():
                yield f"slots/{name}/{slot}", variable

    def _zero_states(self, num_rows: int) -> States:
        bilm = self.model.elmo_model.bilm
        return tuple(
            [
                [tf.zeros((num_rows, size), stack.compute_dtype) for size in sizes]
                for sizes in (cell.state_size for cell in stack.cells)
            ]
            for stack in (bilm.forward_stack, bilm.backward_stack)
        )


def _named(states: States) -> Iterator[tuple[str, tf.Tensor]]:
    for direction, layers in enumerate(states):
        for layer, parts in enumerate(layers):
            for part, value in enumerate(parts):
                yield f"states/{direction}/{layer}/{part}", value


def _signature(*arguments: Any) -> list[Any]:
    """What the step takes: every batch has another number of distinct words, and all else is fixed."""
    specs = tf.nest.map_structure(tf.TensorSpec.from_tensor, list(arguments))
    for part in specs[0]:
        words = part["word_ids"]
        part["word_ids"] = tf.TensorSpec((None, *words.shape[1:]), words.dtype)
    return specs
