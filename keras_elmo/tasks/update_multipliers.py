"""UpdateMultipliers: layers of the biLM that learn more slowly than the optimizer would have it, or not at all."""

from typing import Any

import numpy as np
import tensorflow as tf

from keras_elmo.models import ElmoModel


class UpdateMultipliers:
    """One number for every layer: by how much a step's update of its weights is multiplied.

    What a step changed is taken back in part when it is over, so that it works with any optimizer: also with those, as
    Adam, that would not notice smaller gradients. Unlike Keras' `trainable` it can change while training.

    Args:
        elmo_model: The model, with `trainable_bilm=True` if anything is to be multiplied.
        values: The numbers, for the characters and then each LSTM layer; `None`: all 1.

    Raises:
        ValueError: if there are more or fewer numbers, one is negative, or the biLM is frozen.
    """

    def __init__(self, elmo_model: ElmoModel, values: Any = None):
        self._elmo_model = elmo_model
        ones = [1.0] * (elmo_model.num_layers + 1)
        self._values = tf.Variable(ones, trainable=False)
        self._schedule = tf.Variable(ones, trainable=False)
        if values is not None:
            self.assign(values)

    def assign(self, values: Any) -> None:
        """Sets the numbers, also while training."""
        if not self._elmo_model.trainable_bilm:
            raise ValueError(
                "`update_multipliers` act on a biLM that is trained. Received: "
                f"update_multipliers={values!r} with trainable_bilm=False. Give `trainable_bilm=True`, too."
            )
        num_layers = self._values.shape[0]
        is_list = isinstance(values, list | tuple | np.ndarray) and len(values) == num_layers
        if not is_list or not all(
            isinstance(number, int | float) and 0 <= number < float("inf") for number in values
        ):
            raise ValueError(
                f"`update_multipliers` must be {num_layers} numbers of 0 or more, one for every layer from the "
                f"characters up. Received: update_multipliers={values!r}"
            )
        self._values.assign(values)

    def values(self) -> list[float]:
        """The numbers."""
        return self._values.numpy().tolist()

    def schedule(self, factors: list[float] | float) -> None:
        """Sets by what the numbers are multiplied until the end of `fit`, layer by layer or all; it is not saved."""
        self._schedule.assign(np.broadcast_to(factors, self._schedule.shape))

    def in_force(self) -> list[float]:
        """The numbers times what the schedule says."""
        return (self._values * self._schedule).numpy().tolist()

    def before_step(self) -> list[tf.Tensor]:
        """The weights of the biLM as they are."""
        return [tf.identity(variable.value) for _, variable in self._variables()]

    def after_step(self, before: list[tf.Tensor]) -> None:
        """Takes back what the step changed too much."""
        for (layer, variable), old in zip(self._variables(), before, strict=True):
            multiplier = self._values[layer] * self._schedule[layer]
            part = old + tf.cast(multiplier, old.dtype) * (variable.value - old)
            # So that with 1 it is the optimizer's own result, to the bit.
            variable.assign(tf.where(multiplier == 1.0, variable.value, part))

    def _variables(self) -> list[tuple[int, Any]]:
        """The weights that are trained, each with the number of its layer."""
        elmo = self._elmo_model
        found = [(0, variable) for variable in elmo.encoder.trainable_variables]
        for stack in (elmo.bilm.forward_stack, elmo.bilm.backward_stack):
            for layer, cell in enumerate(stack.cells, start=1):
                found += [(layer, variable) for variable in cell.trainable_variables]
        return found
