"""MaskedLayer: what layers share whose call takes a mask."""

import inspect

import keras
from keras import ops


def zero_where_masked(inputs, mask):
    """Zero where the mask (batch, num_tokens) is `False`, whatever stood there; the inputs if there is none."""
    if mask is None:
        return inputs
    return ops.where(mask[:, :, None], inputs, ops.zeros_like(inputs))


class MaskedLayer(keras.layers.Layer):
    """A layer that takes its mask by name, by position or from its first input, whatever else it is given.

    Keras alone passes a mask on to the outputs only if it came by name or on the input, and hides the input's
    mask from `call` if there is another tensor among the arguments, such as a state.
    """

    def __call__(self, *args, **kwargs):
        names = list(inspect.signature(self.call).parameters)
        return super().__call__(*args[:1], **dict(zip(names[1:], args[1:], strict=False)), **kwargs)

    def _mask_or_that_of(self, mask, inputs):
        """The mask if there is one, else that of the inputs, else `None`; for use in `call`."""
        return getattr(inputs, "_keras_mask", None) if mask is None else mask
