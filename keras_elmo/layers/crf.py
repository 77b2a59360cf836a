"""CRF: a linear chain over the tags of a sentence."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_elmo.layers.checks import check_rank
from keras_elmo.layers.masked_layer import MaskedLayer, zero_where_masked

# Of what cannot be. Not infinite: the difference of two of them must be a number.
_IMPOSSIBLE = -1e9
# Of a transition that is not allowed. Tags with one in the training data have a large loss, not a broken one.
_FORBIDDEN = -1e4


class _Step:
    """What `keras.layers.RNN` asks of a cell, around a function."""

    def __init__(self, function: Callable, state_size: int, output_size: int):
        self.call = function
        self.state_size = [state_size]
        self.output_size = output_size
        self.compute_dtype = "float32"

    def __call__(self, inputs, states):
        return self.call(inputs, states)


@keras.saving.register_keras_serializable(package="keras_elmo")
class CRF(MaskedLayer):
    """Linear-chain conditional random field: the tags of a sentence are chosen together, not one by one.

    `score(tags) = start[y_1] + sum_t emissions[t, y_t] + sum_t transitions[y_t-1, y_t] + end[y_T]`, and
    `p(tags) = exp(score(tags)) / Z`, where Z is the sum over all sequences of tags. A call decodes; training minimizes
    `-log_likelihood(..)`. Everything is computed in float32.

    Reference: Lafferty, McCallum and Pereira (2001), "Conditional Random Fields"; Lample et al. (2016), "Neural
    Architectures for Named Entity Recognition", section 2.2 (https://arxiv.org/abs/1603.01360).

    Args:
        allowed_transitions: (num_tags + 1, num_tags + 1) of booleans: from which tag (last row: the beginning of the
            sentence) which may follow (last column: its end), such as `bio_transitions` makes. `None` (default): all.
        **kwargs: Arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`).

    Call arguments:
        emissions: float tensor (batch, num_tokens, num_tags), how well each tag suits each token.
        mask: bool tensor (batch, num_tokens), `False` where there is no token, wherever that is; taken from the
            input if it carries one.

    Output shape:
        (batch, num_tokens), int32: the likeliest tags; of equally likely ones the first.

    Masking:
        Masked tokens are left out of the chain; their tag is 0. The mask is passed on.

    Raises:
        ValueError: if `allowed_transitions` is no square of booleans, or does not fit the number of tags.

    Example:
    >>> import numpy as np
    >>> crf = CRF()
    >>> emissions = np.array([[[2.0, 1.0], [0.0, 1.0], [3.0, 2.5]]], "float32")
    >>> crf(emissions).numpy().tolist()
    [[0, 1, 0]]
    >>> round(float(crf.log_likelihood(emissions, np.array([[0, 1, 0]]))[0]), 3)
    -1.101
    """

    def __init__(self, allowed_transitions: Sequence[Sequence[bool]] | None = None, **kwargs: Any):
        # Everything is float32, also where Keras would round what comes in and the weights.
        super().__init__(autocast=False, **kwargs)
        if allowed_transitions is not None:
            array = np.asarray(allowed_transitions)
            if array.ndim != 2 or array.shape[0] != array.shape[1] or array.dtype != bool:
                raise ValueError(
                    "`allowed_transitions` must be booleans (num_tags + 1, num_tags + 1). "
                    f"Received an array of shape {array.shape} and type {array.dtype}"
                )
            allowed_transitions = array.tolist()
        self.allowed_transitions = allowed_transitions
        self.supports_masking = True

    def build(self, input_shape):
        check_rank("The input of a CRF", input_shape, 3, "(batch, num_tokens, num_tags)")
        num_tags = input_shape[-1]
        if self.allowed_transitions and len(self.allowed_transitions) != num_tags + 1:
            raise ValueError(
                f"`allowed_transitions` must have a row and a column for each of the {num_tags} tags and one more. "
                f"Received: {len(self.allowed_transitions)} rows"
            )
        self.num_tags = num_tags
        for name, shape in (
            ("transitions", (num_tags, num_tags)),
            ("start", (num_tags,)),
            ("end", (num_tags,)),
        ):
            weight = self.add_weight(shape, "zeros", name=name, dtype="float32", autocast=False)
            setattr(self, name, weight)

    def call(self, emissions, mask=None):
        emissions, mask = self._checked(emissions, mask)
        table, end = self._scores()

        def forward(inputs, states):
            best = ops.max(states[0][:, :, None] + table, axis=1) + inputs
            return best, [_before_any(best)]

        def backward(inputs, states):
            # `states` has what the tag that follows adds to each tag.
            chosen = ops.one_hot(ops.argmax(inputs + states[0], axis=-1), self.num_tags)
            return chosen, [ops.matmul(chosen, ops.transpose(table[:-1]))]

        best = self._forward(forward, emissions, mask)[0]
        chosen = self._run(backward, best, self._rows(end, emissions), mask, self.num_tags, True)[0]
        # A masked row has no 1 and so the tag 0.
        return ops.cast(ops.argmax(chosen, axis=-1), "int32")

    def log_likelihood(self, emissions: Any, tags: Any, mask: Any = None) -> Any:
        """Logarithm of the probability of whole sequences of tags.

        Args:
            emissions: As in a call.
            tags: int tensor (batch, num_tokens); those of masked tokens do not matter.
            mask: As in a call.

        Returns:
            float32 tensor (batch,), 0 for a sentence without tokens.
        """
        emissions, mask = self._checked(emissions, mask)
        # The sum over all sequences that have these tags, of which there is one.
        given = ops.one_hot(tags, self.num_tags, dtype="float32")
        clamped = emissions + (1.0 - given) * _IMPOSSIBLE
        return self._log_partition(clamped, mask) - self._log_partition(emissions, mask)

    def marginals(self, emissions: Any, mask: Any = None) -> Any:
        """The probability of each tag for each token, whatever the other tokens' tags are.

        Args:
            emissions: As in a call.
            mask: As in a call.

        Returns:
            float32 tensor (batch, num_tokens, num_tags), 0 where there is no token.
        """
        emissions, mask = self._checked(emissions, mask)
        table, end = self._scores()

        def backward(inputs, states):
            message = states[0]
            following = table[:-1] + (inputs + message)[:, None, :]
            return message, [ops.logsumexp(following, axis=-1)]

        alphas = self._forward(self._sum_step(table), emissions, mask)[0]
        betas = self._run(
            backward, emissions, self._rows(end, emissions), mask, self.num_tags, True
        )[0]
        found = ops.softmax(alphas + betas, axis=-1)
        return zero_where_masked(found, mask)

    def _log_partition(self, emissions, mask):
        table, end = self._scores()
        _, last = self._forward(self._sum_step(table), emissions, mask)
        total = ops.logsumexp(last[:, :-1] + end, axis=-1)
        if mask is None:
            return total
        return ops.where(ops.any(mask, axis=-1), total, ops.zeros_like(total))

    def _sum_step(self, table):
        def forward(inputs, states):
            total = ops.logsumexp(states[0][:, :, None] + table, axis=1) + inputs
            return total, [_before_any(total)]

        return forward

    def _scores(self):
        """Transitions (num_tags + 1, num_tags), the last row those from the beginning; and `end` (num_tags,)."""
        table = ops.concatenate([self.transitions, self.start[None]], axis=0)
        end = ops.convert_to_tensor(self.end)
        if self.allowed_transitions is not None:
            cost = np.where(self.allowed_transitions, 0.0, _FORBIDDEN).astype("float32")
            table, end = ops.add(table, cost[:, :-1]), ops.add(end, cost[:-1, -1])
        return table, end

    def _forward(self, step, emissions, mask):
        """Runs a step over the tokens, from a state in which there was no tag yet."""
        nothing_yet = np.full(self.num_tags + 1, _IMPOSSIBLE, "float32")
        nothing_yet[-1] = 0.0
        state = self._rows(ops.convert_to_tensor(nothing_yet), emissions)
        return self._run(step, emissions, state, mask, self.num_tags + 1)

    def _rows(self, vector, emissions):
        return ops.tile(vector[None], (ops.shape(emissions)[0], 1))

    def _run(self, step, inputs, state, mask, state_size, go_backwards=False):
        """All outputs, in the order of the tokens, and the last state; masked tokens change no state."""
        rnn = keras.layers.RNN(
            _Step(step, state_size, self.num_tags),
            return_sequences=True,
            return_state=True,
            go_backwards=go_backwards,
            zero_output_for_mask=True,
            dtype="float32",
            name="loop",
        )
        outputs, last = rnn(inputs, initial_state=[state], mask=mask)
        return ops.flip(outputs, axis=1) if go_backwards else outputs, last

    def _checked(self, emissions, mask):
        mask = self._mask_or_that_of(mask, emissions)
        emissions = ops.convert_to_tensor(emissions)
        if not self.built:
            self.build(emissions.shape)
        mask = None if mask is None else ops.cast(ops.convert_to_tensor(mask), "bool")
        return ops.cast(emissions, "float32"), mask

    def compute_output_spec(self, emissions, mask=None):
        return keras.KerasTensor(emissions.shape[:-1], dtype="int32")

    def get_config(self):
        return {**super().get_config(), "allowed_transitions": self.allowed_transitions}


def bio_transitions(labels: Sequence[str]) -> np.ndarray:
    """Which BIO labels (IOB2) may follow which: `I-X` only `B-X` and `I-X`.

    Args:
        labels: The labels, in the order of the tags; all but those that begin with `I-` may stand anywhere.

    Returns:
        bool array (num_labels + 1, num_labels + 1), as `CRF` takes it.

    Example:
    >>> bio_transitions(["O", "B-PER", "I-PER"]).astype(int).tolist()
    [[1, 1, 0, 1], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 1]]
    """
    before = [*labels, ""]
    allowed = np.ones((len(before), len(before)), bool)
    for column, label in enumerate(labels):
        if label.startswith("I-"):
            allowed[:, column] = [other in (f"B{label[1:]}", label) for other in before]
    return allowed


def _before_any(scores):
    """The scores, and that of there being no tag yet, which is over."""
    return ops.pad(scores, [[0, 0], [0, 1]], constant_values=_IMPOSSIBLE)
