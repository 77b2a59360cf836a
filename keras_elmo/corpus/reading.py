"""Reading: a sentence on its way through a language model, in both directions."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from keras_elmo.vocabulary import BEGIN_OF_SENTENCE_TOKEN, END_OF_SENTENCE_TOKEN, Vocabulary


@dataclass(frozen=True)
class Steps:
    """What is read and what is predicted, step by step, in both directions.

    Attributes:
        forward_words: Words read from left to right.
        backward_words: Words read from right to left.
        forward_targets: Vocabulary ids of the words predicted from left to right.
        backward_targets: Vocabulary ids of the words predicted from right to left.
    """

    forward_words: list[str] = field(default_factory=list)
    backward_words: list[str] = field(default_factory=list)
    forward_targets: list[int] = field(default_factory=list)
    backward_targets: list[int] = field(default_factory=list)


class Reading:
    """A sentence that is read in both directions, and how far that is.

    Of `<S> w1 .. wn </S>`, forwards every word but the last is read and every word but the first is
    predicted; backwards likewise, of the reversed sentence. That takes n + 1 steps.

    Args:
        tokens: The sentence.
        vocabulary: What gives the targets their ids.
        place: File and line of the sentence. Defaults to (0, 0).
        offset: How many steps are done. Defaults to 0.

    Example:
        >>> vocabulary = Vocabulary(["<S>", "</S>", "<UNK>", "the", "cat"])
        >>> reading, steps = Reading(["the", "cat"], vocabulary), Steps()
        >>> reading.num_steps_left
        3
        >>> reading.read(2, steps)
        >>> steps.forward_words, steps.forward_targets
        (['<S>', 'the'], [3, 4])
        >>> steps.backward_words, steps.backward_targets
        (['</S>', 'cat'], [4, 3])
    """

    __slots__ = ("_backward_ids", "_backward_words", "_ids", "_words", "offset", "place")

    def __init__(
        self,
        tokens: Iterable[str],
        vocabulary: Vocabulary,
        place: tuple[int, int] = (0, 0),
        offset: int = 0,
    ):
        self.place = place
        self.offset = offset
        self._words = [BEGIN_OF_SENTENCE_TOKEN, *tokens, END_OF_SENTENCE_TOKEN]
        self._ids = vocabulary.ids(self._words)
        self._backward_words = self._words[::-1]
        self._backward_ids = self._ids[::-1]

    @property
    def num_steps_left(self) -> int:
        """How many steps are to be done."""
        return len(self._words) - 1 - self.offset

    def read(self, num_steps: int, steps: Steps) -> None:
        """Reads on, at most to the end, and appends what was read to `steps`."""
        start, end = self.offset, self.offset + min(num_steps, self.num_steps_left)
        self.offset = end
        steps.forward_words.extend(self._words[start:end])
        steps.backward_words.extend(self._backward_words[start:end])
        steps.forward_targets.extend(self._ids[start + 1 : end + 1])
        steps.backward_targets.extend(self._backward_ids[start + 1 : end + 1])
