"""TrainingStep: one step of pre-training, and all the state that it changes."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_elmo.models import BidirectionalLanguageModel
from keras_elmo.training.optimizers import (
    Gradient,
    average_gradients,
    clip_by_global_norm,
    make_slots,
    merge_duplicate_rows,
    update,
)
from keras_elmo.training.pretrain_config import PretrainConfig

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

    Several devices would each compute `_gradients` on their rows, with their own LSTM states; the rest of the
    step is done once, on the average.

    Args:
        model: The model; its weights are changed in place.
        config: The numbers of the run.
    """

    def __init__(self, model: BidirectionalLanguageModel, config: PretrainConfig):
        self.model = model
        self.config = config
        elmo, softmax = model.elmo_model, model.softmax
        groups = (
            (config.network_optimizer, [*elmo.encoder.weights, *elmo.bilm.weights]),
            (config.softmax_optimizer, softmax.weights),
        )
        weights = [(weight, optimizer) for optimizer, group in groups for weight in group]
        self._names = [weight.path for weight, _ in weights]
        self._variables = [weight.value for weight, _ in weights]
        self._optimizers = [optimizer for _, optimizer in weights]
        self._slots = [
            make_slots(optimizer, variable)
            for optimizer, variable in zip(self._optimizers, self._variables, strict=True)
        ]
        self.states = self._zero_states()
        self._step: Any = None

    def __call__(
        self, inputs: Mapping[str, Any], dropout_seed: np.ndarray, step: int, rate: float
    ) -> Losses:
        """Takes a step.

        Args:
            inputs: Of `BidirectionalLanguageModel`, with the negatives if the softmax is sampled.
            dropout_seed: int32 (2,).
            step: Its number, from 1.
            rate: The part of the learning rates that is in force.
        """
        arguments = (
            {name: tf.convert_to_tensor(value) for name, value in inputs.items()},
            self.states,
            tf.convert_to_tensor(dropout_seed, tf.int32),
            tf.constant(step, tf.float32),
            tf.constant(rate, tf.float32),
        )
        if self._step is None:
            self._step = tf.function(self._one_step, input_signature=_signature(*arguments))
        losses, self.states = self._step(*arguments)
        return Losses(*losses.numpy().tolist())

    def _one_step(self, inputs, states, dropout_seed, step, rate):
        losses, states, gradients = self._gradients(inputs, states, dropout_seed)
        averages = average_gradients([gradients])
        merged = [merge_duplicate_rows(gradient) for gradient in averages]
        clipped, norm = clip_by_global_norm(merged, self.config.clip_norm)
        for optimizer, variable, gradient, slots in zip(
            self._optimizers, self._variables, clipped, self._slots, strict=True
        ):
            update(optimizer, variable, gradient, slots, rate * optimizer.learning_rate, step)
        return tf.stack([*losses, norm]), states

    def _gradients(
        self, inputs, states, dropout_seed
    ) -> tuple[list[tf.Tensor], States, list[Gradient]]:
        """Loss and gradient of the rows of one device."""
        # The model is frozen for those who load it; here its weights are watched one by one.
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(self._variables)
            losses, states = self.model(
                inputs,
                initial_state=states,
                return_state=True,
                dropout_seed=dropout_seed,
                training=True,
            )
            means = [tf.reduce_mean(losses[name]) for name in ("forward", "backward")]
            loss = 0.5 * (means[0] + means[1])
            if self.config.scale_loss:
                loss *= self.config.unroll_steps
        return means, states, tape.gradient(loss, self._variables)

    def is_finite(self) -> bool:
        """Whether all weights, slots and LSTM states are finite numbers."""
        values = [*self._variables, *(value for _, value in self._state())]
        return all(bool(tf.reduce_all(tf.math.is_finite(value))) for value in values)

    def arrays(self) -> dict[str, np.ndarray]:
        """Slots and LSTM states by name."""
        # Half precision, which no file format knows, fits into float32.
        return {name: value.numpy().astype(np.float32) for name, value in self._state()}

    def set_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Sets slots and LSTM states to what `arrays` gave.

        Raises:
            ValueError: If one is missing or has another shape.
        """
        for name, value in self._state():
            found = arrays.get(name)
            if found is None or found.shape != tuple(value.shape):
                raise ValueError(
                    f"`{name}` must have the shape {tuple(value.shape)}. "
                    f"Received: {'nothing' if found is None else found.shape}"
                )
        for name, slots in zip(self._names, self._slots, strict=True):
            for slot, variable in slots.items():
                variable.assign(arrays[f"slots/{name}/{slot}"])
        self.states = tuple(
            [
                [
                    tf.cast(arrays[f"states/{direction}/{layer}/{part}"], value.dtype)
                    for part, value in enumerate(parts)
                ]
                for layer, parts in enumerate(layers)
            ]
            for direction, layers in enumerate(self.states)
        )

    def _state(self) -> Iterator[tuple[str, Any]]:
        for name, slots in zip(self._names, self._slots, strict=True):
            for slot, variable in slots.items():
                yield f"slots/{name}/{slot}", variable
        for direction, layers in enumerate(self.states):
            for layer, parts in enumerate(layers):
                for part, value in enumerate(parts):
                    yield f"states/{direction}/{layer}/{part}", value

    def _zero_states(self) -> States:
        bilm = self.model.elmo_model.bilm
        return tuple(
            [
                [tf.zeros((self.config.batch_size, size), stack.compute_dtype) for size in sizes]
                for sizes in (cell.state_size for cell in stack.cells)
            ]
            for stack in (bilm.forward_stack, bilm.backward_stack)
        )


def _signature(inputs: Mapping[str, tf.Tensor], *others: Any) -> list[Any]:
    """What the step takes: every batch has another number of distinct words, and all else is fixed."""
    specs = tf.nest.map_structure(tf.TensorSpec.from_tensor, [dict(inputs), *others])
    words = specs[0]["word_ids"]
    specs[0]["word_ids"] = tf.TensorSpec((None, *words.shape[1:]), words.dtype)
    return specs
