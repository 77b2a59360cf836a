"""Sentence boundaries: adds <S> and </S> and removes them; the only place that knows where they are.

`<S>` stands in the first column and `</S>` in the last column of the batch, with the padding of shorter sentences
between the last word and `</S>`. The masked LSTMs skip the padding, wherever it stands, so that no sentence needs
its end marked at its own length.
"""

from collections.abc import Sequence

import keras
import numpy as np
from keras import ops

from keras_elmo.layers.masked_layer import MaskedLayer


@keras.saving.register_keras_serializable(package="keras_elmo")
class AddSentenceBoundaries(keras.layers.Layer):
    """Puts `<S>` before the first column of a batch of ids and `</S>` behind the last.

    Args:
        begin: the ids of `<S>`: a list of `max_word_length` character ids, or an int for token ids.
        end: the ids of `</S>`, of the same kind.
        **kwargs: Arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        ids: int tensor (batch, num_tokens, max_word_length), or (batch, num_tokens) for token ids.

    Output shape:
        (batch, num_tokens + 2, ...).

    Masking:
        Ids carry their mask themselves (0 = no token); none is passed on.

    Raises:
        ValueError: if the ids of `begin` and `end` are not of the input's word length.

    Example:
    >>> import numpy as np
    >>> AddSentenceBoundaries(begin=1, end=2)(np.array([[7, 8], [9, 0]])).numpy().tolist()
    [[1, 7, 8, 2], [1, 9, 0, 2]]
    """

    def __init__(self, begin: int | Sequence[int], end: int | Sequence[int], **kwargs):
        super().__init__(**kwargs)
        if np.shape(begin) != np.shape(end):
            raise ValueError(
                "`begin` and `end` must be ids of the same kind and length. "
                f"Received: begin={begin!r}, end={end!r}"
            )
        self.begin = np.asarray(begin).tolist()
        self.end = np.asarray(end).tolist()

    def call(self, ids):
        if tuple(ids.shape[2:]) != np.shape(self.begin):
            raise ValueError(
                f"The ids of a word must have the shape {np.shape(self.begin)}, that of `begin`. "
                f"Received a tensor of shape {tuple(ids.shape)}"
            )
        batch = ops.shape(ids)[0]

        def column(word):
            word = ops.convert_to_tensor(np.asarray(word)[None, None], dtype=ids.dtype)
            return ops.broadcast_to(word, (batch, *word.shape[1:]))

        return ops.concatenate([column(self.begin), ids, column(self.end)], axis=1)

    def compute_output_shape(self, input_shape):
        batch, num_tokens, *rest = input_shape
        return (batch, None if num_tokens is None else num_tokens + 2, *rest)

    def compute_output_spec(self, ids):
        return keras.KerasTensor(self.compute_output_shape(ids.shape), dtype=ids.dtype)

    def get_config(self):
        return {**super().get_config(), "begin": self.begin, "end": self.end}


@keras.saving.register_keras_serializable(package="keras_elmo")
class RemoveSentenceBoundaries(MaskedLayer):
    """Takes `<S>` and `</S>` away again, or puts `</S>` right behind the last word of each sentence.

    Args:
        keep: bool. `False` (default) removes both; `True` keeps them and moves `</S>` from the last column of
            the batch to the place behind the sentence's last word, as people expect to read it.
        **kwargs: Arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        inputs: tensor (batch, num_tokens + 2, dim).
        mask: bool tensor (batch, num_tokens + 2), `True` for boundaries and words; needed if `keep=True`, taken
            from the input if it carries one.

    Output shape:
        (batch, num_tokens, dim), or (batch, num_tokens + 2, dim) if `keep=True`.

    Masking:
        The mask is cut, or moved, in the same way.

    Raises:
        ValueError: if `keep=True` and there is no mask.

    Example:
    >>> import numpy as np
    >>> x = np.arange(8, dtype="float32").reshape((1, 4, 2))
    >>> RemoveSentenceBoundaries()(x).numpy().tolist()
    [[[2.0, 3.0], [4.0, 5.0]]]
    """

    def __init__(self, keep: bool = False, **kwargs):
        super().__init__(**kwargs)
        self.keep = keep
        self.supports_masking = True

    def call(self, inputs, mask=None):
        if not self.keep:
            return inputs[:, 1:-1]
        self._check_mask(mask)
        moved = ops.where(self._end(mask)[:, :, None], inputs[:, -1:], ops.zeros_like(inputs))
        return ops.where(self._keep(mask)[:, :, None], inputs, moved)

    def compute_mask(self, inputs, mask=None):
        if self.keep:
            self._check_mask(mask)
            return ops.logical_or(self._keep(mask), self._end(mask))
        return None if mask is None else mask[:, 1:-1]

    def _check_mask(self, mask):
        if mask is None:
            raise ValueError(
                "`keep=True` needs a mask to know where each sentence ends. Received: mask=None. Pass `mask`, "
                "or an input that carries one."
            )

    def _keep(self, mask):
        """`<S>` and the words, where they stand."""
        return ops.concatenate([mask[:, :-1], ops.zeros_like(mask[:, :1])], axis=1)

    def _end(self, mask):
        """`True` at one place of each row: behind the last word."""
        # Not `ops.arange`: in a symbolic call the number of columns is unknown.
        columns = ops.cumsum(ops.ones_like(mask, dtype="int32"), axis=1) - 1
        last = ops.where(self._keep(mask), columns, 0)
        return ops.equal(columns, ops.max(last, axis=1, keepdims=True, initial=0) + 1)

    def compute_output_shape(self, input_shape):
        batch, num_tokens, *rest = input_shape
        if not self.keep and num_tokens is not None:
            num_tokens -= 2
        return (batch, num_tokens, *rest)

    def get_config(self):
        return {**super().get_config(), "keep": self.keep}
