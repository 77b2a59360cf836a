"""ScalarMix: gamma times the softmax-weighted sum of the layers."""

from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from keras_elmo.layers.checks import check_choice
from keras_elmo.layers.masked_layer import MaskedLayer, zero_where_masked

LAYER_NORM_EPSILON = 1e-13


@keras.saving.register_keras_serializable(package="keras_elmo")
class ScalarMix(MaskedLayer):
    """A task's own mix of the layers: `gamma * sum_k softmax(w)_k * layer_k`.

    `w` starts at zero (every layer counts the same) and `gamma` at one; both are learned with the task. Several
    mixes of one biLM are several `ScalarMix` layers on the same `layer_outputs`.

    Reference: Peters et al. (2018), "Deep contextualized word representations", eq. 1
    (https://arxiv.org/abs/1802.05365); layer norm as in AllenNLP's `ScalarMix`.

    Args:
        layer_norm: `None` (default), "sentence" or "batch": whether every layer is first brought to mean 0 and
            variance 1 over all values of its real tokens, boundaries included, of each sentence, or of the
            whole batch. The latter is AllenNLP's; with it a sentence's vectors depend on its batch mates.
        l2: float, adds `l2 * sum(w ** 2)` to the losses (of the raw `w`, not of `gamma`); `None` (default): none.
        fixed_weights: list with one number per layer: these weights are used, and neither they nor `gamma`
            (1) are learned. `None` (default): learned.
        normalized: bool, whether `fixed_weights` are the weights of the sum themselves. `False` (default): they
            go through the softmax, as in AllenNLP, so that [0, 0, 1] weighs (.21, .21, .58).
        top_only: bool, `gamma * top layer`, where `gamma` alone is learned. Defaults to `False`.
        **kwargs: Arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        layer_outputs: list of float tensors (batch, num_tokens, dim), as `BiLMStack` gives them.
        mask: bool tensor (batch, num_tokens), `False` where there is no token, or a list of one per layer, of which
            the first counts; taken from the input if it carries one.

    Output shape:
        (batch, num_tokens, dim).

    Masking:
        Masked positions are zero and the mask is passed on.

    Raises:
        ValueError: if an argument is out of range, two of them contradict each other, the number of weights is
            not the number of layers, or the input is not a list.

    Example:
    >>> import numpy as np
    >>> layers = [np.full((1, 1, 2), value, "float32") for value in (1.0, 2.0, 6.0)]
    >>> ScalarMix()(layers).numpy().tolist()
    [[[3.0, 3.0]]]
    """

    def __init__(
        self,
        layer_norm: str | None = None,
        l2: float | None = None,
        fixed_weights: Sequence[float] | None = None,
        normalized: bool = False,
        top_only: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_choice("layer_norm", layer_norm, (None, "sentence", "batch"))
        if l2 is not None and not l2 >= 0:
            raise ValueError(f"`l2` must be None, zero or a positive number. Received: l2={l2!r}")
        if fixed_weights is not None:
            fixed_weights = [float(weight) for weight in fixed_weights]
            sums_to_1 = abs(sum(fixed_weights) - 1) <= 1e-6
            if normalized and not (sums_to_1 and min(fixed_weights) >= 0):
                raise ValueError(
                    "`fixed_weights` with `normalized=True` must be zero or more and sum to 1. "
                    f"Received: fixed_weights={fixed_weights}"
                )
        elif normalized:
            raise ValueError(
                "`normalized=True` speaks of `fixed_weights`. Received: fixed_weights=None"
            )
        if (fixed_weights is not None or top_only) and l2:
            raise ValueError(
                f"`l2` acts on learned weights, of which this mix has none. Received: l2={l2!r}"
            )
        if fixed_weights is not None and top_only:
            raise ValueError("Give either `fixed_weights` or `top_only=True`. Received both")
        self.layer_norm = layer_norm
        self.l2 = l2
        self.fixed_weights = fixed_weights
        self.normalized = normalized
        self.top_only = top_only
        self.supports_masking = True

    def build(self, input_shape):
        num_layers = self._check_input(input_shape)
        learned = self.fixed_weights is None
        self.scalar_weights = None
        if not self.top_only:
            self.scalar_weights = self.add_weight(
                (num_layers,),
                "zeros" if learned else _constant(self.fixed_weights),
                trainable=learned,
                regularizer=keras.regularizers.L2(self.l2) if self.l2 else None,
                name="scalar_weights",
            )
        self.gamma = self.add_weight((), "ones", trainable=learned, name="gamma")

    def call(self, layer_outputs, mask=None):
        num_layers = self._check_input(layer_outputs)
        if isinstance(mask, list | tuple):
            mask = mask[0]
        if self.scalar_weights is None:
            mixed = self._normalize(layer_outputs[-1], mask)
        else:
            weights = self.scalar_weights
            if not self.normalized:
                # By hand: `ops.softmax` warns if there is one layer alone.
                weights = ops.exp(weights - ops.max(weights))
                weights = weights / ops.sum(weights)
            mixed = sum(
                weights[k] * self._normalize(layer_outputs[k], mask) for k in range(num_layers)
            )
        mixed = self.gamma * mixed
        return zero_where_masked(mixed, mask)

    def _normalize(self, layer, mask):
        if self.layer_norm is None:
            return layer
        values = ops.cast(layer, "float32")
        real = (
            ops.ones_like(values[:, :, :1])
            if mask is None
            else ops.cast(mask, "float32")[:, :, None]
        )
        axes = (1, 2) if self.layer_norm == "sentence" else (0, 1, 2)
        # An empty sentence has no values at all: the mean of nothing is taken to be zero.
        count = ops.maximum(ops.sum(real, axis=axes, keepdims=True) * layer.shape[-1], 1.0)
        mean = ops.sum(values * real, axis=axes, keepdims=True) / count
        variance = ops.sum(ops.square((values - mean) * real), axis=axes, keepdims=True) / count
        return ops.cast((values - mean) / ops.sqrt(variance + LAYER_NORM_EPSILON), layer.dtype)

    def _check_input(self, layers):
        """Checks tensors, or their shapes, and returns how many layers there are."""
        is_list = isinstance(layers, list | tuple)
        shapes = [getattr(layer, "shape", layer) for layer in layers] if is_list else []
        if not shapes or any(
            not isinstance(shape, list | tuple) and not hasattr(shape, "__len__")
            for shape in shapes
        ):
            raise ValueError(
                "`layer_outputs` must be a list of tensors (batch, num_tokens, dim), one per layer. "
                f"Received: {type(layers).__name__}"
            )
        if self.fixed_weights is not None and len(self.fixed_weights) != len(layers):
            raise ValueError(
                f"`fixed_weights` must have one number for each of the {len(layers)} layers. "
                f"Received: fixed_weights={self.fixed_weights}"
            )
        return len(layers)

    def compute_mask(self, inputs, mask=None):
        return mask[0] if isinstance(mask, list | tuple) else mask

    def compute_output_shape(self, input_shape):
        self._check_input(input_shape)
        return input_shape[0]

    def get_config(self):
        return {
            **super().get_config(),
            "layer_norm": self.layer_norm,
            "l2": self.l2,
            "fixed_weights": self.fixed_weights,
            "normalized": self.normalized,
            "top_only": self.top_only,
        }


def _constant(values):
    return lambda shape, dtype=None: ops.convert_to_tensor(np.reshape(values, shape), dtype=dtype)
