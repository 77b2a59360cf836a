"""BiLMStack: the forward and the backward LSTM stack, and every layer's output."""

import keras
from keras import ops

from keras_elmo.layers.checks import check_rank
from keras_elmo.layers.lstm_stack import LSTMStack
from keras_elmo.layers.masked_layer import MaskedLayer, zero_where_masked


@keras.saving.register_keras_serializable(package="keras_elmo")
class BiLMStack(MaskedLayer):
    """The layers of a bidirectional language model: two independent LSTM stacks over the token vectors.

    Layer 0 is the token vector twice, `[x; x]`; layer k is `[forward_k; backward_k]`. The forward stack reads
    from the first token to the last, the backward stack from the last to the first; neither sees the other's
    outputs. Nothing is kept between calls: state goes in and comes out by hand.

    Its parts `forward_stack` and `backward_stack` are layers that can be called by themselves, each with the
    tokens in its own reading order.

    Reference: Peters et al. (2018), "Deep contextualized word representations", section 3.1 and 3.2
    (https://arxiv.org/abs/1802.05365).

    Args:
        units: int, width of the memory cells.
        projection_dim: int, size of one direction's output; `None` (default): no projection, `units` values.
        num_layers: int, LSTM layers per direction. Defaults to 2.
        cell_clip: number or `None` (default), see `ProjectedLSTMCell`.
        projection_clip: number or `None` (default), see `ProjectedLSTMCell`.
        use_skip_connections: bool, whether each layer from the second on adds its input to its output.
            Defaults to `True`.
        **kwargs: Arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        token_embeddings: float tensor (batch, num_tokens, dim), sentence boundaries included; dim is
            `projection_dim`, or `units` without a projection.
        mask: bool tensor (batch, num_tokens), `False` where there is no token; taken from the input if it
            carries one.
        initial_state: pair (forward, backward) of states as `LSTMStack` takes them; zeros if not given.
        return_state: bool, whether to return the final states too, as `initial_state` takes them. Defaults to
            `False`.
        training: bool. Defaults to `False`.

    Output shape:
        List of `num_layers + 1` tensors (batch, num_tokens, 2 * dim); with `return_state=True` a pair of this
        list and the states.

    Masking:
        Padding may stand anywhere in a row: it changes no state and its outputs are zero. Every output
        carries the input's mask.

    Raises:
        ValueError: if an argument is out of range, or if the input has not three axes or another dim.

    Example:
    >>> import numpy as np
    >>> bilm = BiLMStack(units=8, projection_dim=4, num_layers=2)
    >>> [tuple(layer.shape) for layer in bilm(np.zeros((2, 5, 4), "float32"))]
    [(2, 5, 8), (2, 5, 8), (2, 5, 8)]
    """

    def __init__(
        self,
        units: int,
        projection_dim: int | None = None,
        num_layers: int = 2,
        cell_clip: float | None = None,
        projection_clip: float | None = None,
        use_skip_connections: bool = True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.units = units
        self.projection_dim = projection_dim
        self.num_layers = num_layers
        self.cell_clip = cell_clip
        self.projection_clip = projection_clip
        self.use_skip_connections = use_skip_connections
        self.supports_masking = True
        self.forward_stack, self.backward_stack = (
            LSTMStack(
                units,
                projection_dim,
                num_layers,
                cell_clip,
                projection_clip,
                use_skip_connections,
                dtype=self.dtype_policy,
                name=name,
            )
            for name in ("forward_stack", "backward_stack")
        )

    def build(self, input_shape):
        self._check_input(input_shape)
        self.forward_stack.build(input_shape)
        self.backward_stack.build(input_shape)

    def call(
        self, token_embeddings, mask=None, initial_state=None, return_state=False, training=False
    ):
        self._check_input(token_embeddings.shape)
        mask = self._mask_or_that_of(mask, token_embeddings)
        forward_state, backward_state = (None, None) if initial_state is None else initial_state
        options = {"return_state": return_state, "training": training}
        forward = self.forward_stack(
            token_embeddings, mask=mask, initial_state=forward_state, **options
        )
        # Padding does not move a state, so that turning the whole row around is enough: no sentence needs to be
        # turned around on its own length.
        backward = self.backward_stack(
            ops.flip(token_embeddings, axis=1),
            mask=None if mask is None else ops.flip(mask, axis=1),
            initial_state=backward_state,
            **options,
        )
        if return_state:
            (forward, forward_state), (backward, backward_state) = forward, backward
        token_embeddings = zero_where_masked(token_embeddings, mask)
        layer_outputs = [ops.concatenate([token_embeddings, token_embeddings], axis=-1)]
        for ahead, back in zip(forward, backward, strict=True):
            layer_outputs.append(ops.concatenate([ahead, ops.flip(back, axis=1)], axis=-1))
        return (layer_outputs, (forward_state, backward_state)) if return_state else layer_outputs

    def _check_input(self, shape):
        check_rank("`token_embeddings`", shape, 3, "(batch, num_tokens, dim)")
        if shape[-1] != self.forward_stack.output_dim:
            raise ValueError(
                "The last axis of `token_embeddings` must have the size of a layer's output, "
                f"{self.forward_stack.output_dim}. Received a tensor of shape {tuple(shape)}"
            )

    def compute_mask(self, inputs, mask=None):
        return [mask] * (self.num_layers + 1)

    def compute_output_shape(self, input_shape):
        return [(*input_shape[:-1], 2 * self.forward_stack.output_dim)] * (self.num_layers + 1)

    def compute_output_spec(
        self, token_embeddings, mask=None, initial_state=None, return_state=False, training=False
    ):
        layer_outputs = [
            keras.KerasTensor(shape, dtype=self.compute_dtype)
            for shape in self.compute_output_shape(token_embeddings.shape)
        ]
        if not return_state:
            return layer_outputs
        states = tuple(
            stack.compute_output_spec(token_embeddings, return_state=True)[1]
            for stack in (self.forward_stack, self.backward_stack)
        )
        return layer_outputs, states

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "projection_dim": self.projection_dim,
            "num_layers": self.num_layers,
            "cell_clip": self.cell_clip,
            "projection_clip": self.projection_clip,
            "use_skip_connections": self.use_skip_connections,
        }
