"""Embedder: any number of sentences of any length in, their vectors out, in order and in bounded memory."""

import os
import reprlib
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import tensorflow as tf

from keras_elmo import presets
from keras_elmo.checkpoints import load_checkpoint
from keras_elmo.inference.rows import Rows
from keras_elmo.inference.sentence_blocks import Sentence, sentence_blocks
from keras_elmo.inference.word_vectors import WordVectors
from keras_elmo.layers import without_shortcuts
from keras_elmo.layers.checks import check_choice, check_positive_integer
from keras_elmo.layers.shortcuts import check_shortcuts
from keras_elmo.models import ElmoModel
from keras_elmo.text import tokenize_sentences
from keras_elmo.text.tokenizer import check_tokenizer

LAYERS = ("all", "average", "top", "mix", "word")
PRECISIONS = ("float32", "bfloat16")

# Sentences are sorted by length within a window of this many batches.
BATCHES_PER_WINDOW = 8
SENTENCES_PER_WINDOW = 4096


class Embedder:
    """Embeds sentences: batches of like length within a budget of tokens, results in the order of the input.

    A sentence with more tokens than the budget is read in pieces with the LSTMs' state carried on: forward from its
    beginning, backward from its end. The numbers are those of one pass. So memory does not grow with the number of
    sentences, nor with their length.

    Make one and keep it: the model is compiled once, for all shapes.

    Args:
        model: An `ElmoModel`; or the name of a preset, or a path of anything that `keras_elmo.load_model` reads.
            Defaults to the bundled English preset.
        layers: Which vectors: "all" (default), every layer from 0 up; "average" of them; "top"; "mix", the model's
            own, learned one; "word", layer 0 once, which knows no context.
        tokenizer: "word" or "whitespace", for sentences given as one string, see `keras_elmo.text.tokenize`. `None`
            (default): the one that the preset was trained with, else "word"; "whitespace" of a model with a lexicon.
        batch_tokens: Tokens per batch at most, padding included. Defaults to 2048.
        precision: "float32" (default), or "bfloat16" for faster, rougher arithmetic where the processor has it. The
            result is float32 either way. A model that is given keeps its own.
        without: Names of exact shortcuts that are not taken, to see that they are exact and what they are worth, see
            `keras_elmo.layers.SHORTCUTS`. Defaults to none.

    Attributes:
        model: The `ElmoModel`.
        dim: Values per token and layer.
        length_unit: What the length of a word counts: "bytes", or "characters" of a model with a lexicon.
        word_lengths: How many tokens of each length were embedded so far.
        num_words: All of them.
        num_cut_words: Those of them that were longer than the model reads.
        cut_words: Up to five examples of these.

    Raises:
        ValueError: if an argument is out of range, or the model cannot be used so.

    Example:
    >>> embedder = Embedder(layers="top")
    >>> [vectors.shape for vectors in embedder.embed(["The bank is near.", [], ["two", "tokens"]])]
    [(5, 256), (0, 256), (2, 256)]
    """

    def __init__(
        self,
        model: ElmoModel | str | os.PathLike = presets.DEFAULT_PRESET,
        layers: str = "all",
        tokenizer: str | None = None,
        batch_tokens: int = 2048,
        precision: str = "float32",
        without: Sequence[str] = (),
    ):
        check_choice("layers", layers, LAYERS)
        check_shortcuts(without)
        check_choice("precision", precision, PRECISIONS)
        check_positive_integer("batch_tokens", batch_tokens)
        if tokenizer is not None:
            check_tokenizer(tokenizer)
        if not isinstance(model, ElmoModel):
            checkpoint = load_checkpoint(model, dtype=precision)
            model = checkpoint.model
            trained_with = checkpoint.metadata.get("tokenizer")
            if tokenizer is not None and trained_with not in (None, tokenizer):
                warnings.warn(
                    f"The model was trained on text cut by the tokenizer {trained_with!r}; with {tokenizer!r} "
                    "some words will look different from those it knows.",
                    stacklevel=2,
                )
            tokenizer = tokenizer or trained_with
        if model.vocabulary_size is not None:
            raise ValueError(
                "An Embedder needs a model that reads characters; this one reads the token ids of a vocabulary: "
                "call the model itself with `Vocabulary.token_ids`."
            )
        if layers == "mix" and model.layer_norm == "batch":
            raise ValueError(
                'With `layer_norm="batch"` the mix of a sentence depends on its batch mates. Load the model with '
                '`layer_norm="sentence"`, or take other `layers`.'
            )
        self.model = model
        self.layers = layers
        self.tokenizer = tokenizer or ("word" if model.lexicon is None else "whitespace")
        self.batch_tokens = batch_tokens
        self.dim = model.projection_dim * (1 if layers == "word" else 2)
        self.length_unit = "bytes" if model.lexicon is None else "characters"
        self.word_lengths: Counter[int] = Counter()
        self.cut_words: list[str] = []
        self._without = tuple(without)
        self._words = WordVectors(model, self._without)
        self._compile()

    @property
    def num_words(self) -> int:
        """Tokens embedded so far."""
        return self.word_lengths.total()

    @property
    def num_cut_words(self) -> int:
        """Those of them that were longer than the model reads."""
        room = self.model.max_word_length - 2
        return sum(count for length, count in self.word_lengths.items() if length > room)

    def embed(self, sentences: Iterable[Sentence]) -> Iterator[np.ndarray]:
        """Embeds sentences, each a string, which is tokenized, or a sequence of tokens.

        Args:
            sentences: Any iterable; it is read as the results are taken, a window of some thousand words ahead.

        Yields:
            For each sentence a float32 array: (num_tokens, dim), or (num_layers + 1, num_tokens, dim) with
            `layers="all"`. That of a very long sentence is a `numpy.memmap` of a temporary file.

        Raises:
            ValueError: if `sentences` is one string or something in it is no sentence.
        """
        for _, arrays in self.windows(sentences):
            yield from arrays

    def windows(
        self,
        sentences: Iterable[Sentence],
        on_batch: Callable[[int, int], None] = lambda num_sentences, num_words: None,
    ) -> Generator[tuple[list[Sequence[str]], list[np.ndarray]], None, None]:
        """Like `embed`, many sentences at a time: their tokens and their vectors.

        Args:
            sentences: As in `embed`.
            on_batch: Called after each batch with the number of its sentences and of its words, for progress; where
                there is more than one window, from another thread.

        Yields:
            A list with the tokens of each sentence, and the list of their arrays.
        """
        stopped = threading.Event()
        tokenized = self._tokenized(sentences)
        window, is_last = self._window(tokenized)
        # While a window is computed in a thread, the caller's own thread reads the next one and uses the last one.
        with ThreadPoolExecutor(1, "embedder") as worker:

            def start(window: list[Sequence[str]]) -> Future:
                return worker.submit(self._embed_window, window, on_batch, stopped)

            if is_last:  # there is nothing to do meanwhile
                yield from self._result(window, self._embed_window(window, on_batch, stopped))
                return
            try:
                computed = start(window)
                while not is_last:
                    try:
                        following, is_last = self._window(tokenized)
                    except Exception:
                        # What was read before the error counts.
                        yield from self._result(window, computed.result())
                        raise
                    arrays = computed.result()
                    computed = start(following)
                    yield from self._result(window, arrays)
                    window = following
                yield from self._result(window, computed.result())
            finally:
                stopped.set()

    def _result(
        self, window: list[Sequence[str]], arrays: list[np.ndarray]
    ) -> Iterator[tuple[list[Sequence[str]], list[np.ndarray]]]:
        if window:
            self._count_words(window)
            yield window, arrays

    def _embed_window(
        self,
        window: list[Sequence[str]],
        on_batch: Callable[[int, int], None],
        stopped: threading.Event,
    ) -> list[np.ndarray]:
        arrays: list[np.ndarray] = [np.empty(0)] * len(window)
        table, places = self._words.look_up([self._short(tokens) for tokens in window])
        for batch in self._batches(window):
            if len(window[batch[0]]) > self.batch_tokens:
                arrays[batch[0]] = self._embed_long(window[batch[0]], stopped)
            else:
                found = self._embed_batch(table, [places[i] for i in batch])
                for i, array in zip(batch, found, strict=True):
                    arrays[i] = array
            if stopped.is_set():
                break
            on_batch(len(batch), sum(len(window[i]) for i in batch))
        return arrays

    def shape(self, num_tokens: int) -> tuple[int, ...]:
        """Shape of the array of a sentence with so many tokens."""
        rows = (num_tokens, self.dim)
        return (self.model.num_layers + 1, *rows) if self.layers == "all" else rows

    # --- sentences to batches ---

    def _tokenized(self, sentences: Iterable[Sentence]) -> Iterator[Sequence[str]]:
        if isinstance(sentences, str | bytes) or not isinstance(sentences, Iterable):
            raise ValueError(
                "`sentences` must be an iterable of sentences. "
                f"Received: {reprlib.repr(sentences)}; put a single sentence into a list."
            )
        for block in sentence_blocks(sentences):
            cut = iter(tokenize_sentences([s for s in block if isinstance(s, str)], self.tokenizer))
            for sentence in block:
                yield next(cut) if isinstance(sentence, str) else sentence

    def _window(self, tokenized: Iterator[Sequence[str]]) -> tuple[list[Sequence[str]], bool]:
        """The next sentences, and whether they are the last ones."""
        window: list[Sequence[str]] = []
        num_words = 0
        for tokens in tokenized:
            window.append(tokens)
            num_words += len(tokens)
            if (
                num_words >= BATCHES_PER_WINDOW * self.batch_tokens
                or len(window) == SENTENCES_PER_WINDOW
            ):
                return window, False
        return window, True

    def _batches(self, window: list[Sequence[str]]) -> Iterator[list[int]]:
        """Places of sentences of like length, longest first, so many that the padded batch keeps the budget."""
        batch: list[int] = []
        order: Iterable[int] = range(len(window))
        if "sorted_sentences" not in self._without:
            order = sorted(order, key=lambda i: len(window[i]), reverse=True)
        longest = 1
        for i in order:
            longest = max(longest, len(window[i]))
            if batch and (len(batch) + 1) * longest > self.batch_tokens:
                yield batch
                batch, longest = [], max(1, len(window[i]))
            batch.append(i)
        if batch:
            yield batch

    def _count_words(self, window: list[Sequence[str]]) -> None:
        room = self.model.max_word_length - 2
        for tokens in window:
            lengths = [self._length(token) for token in tokens]
            self.word_lengths.update(lengths)
            if lengths and max(lengths) > room and len(self.cut_words) < 5:
                cut = (token for token, n in zip(tokens, lengths, strict=True) if n > room)
                self.cut_words = list(dict.fromkeys([*self.cut_words, *cut]))[:5]

    def _length(self, token: str) -> int:
        return len(token.encode("utf-8", "ignore") if self.length_unit == "bytes" else token)

    # --- batches to vectors ---

    def _compile(self) -> None:
        model = self.model

        def select(layer_outputs: list) -> tf.Tensor:
            if self.layers == "mix":
                return tf.cast(model.scalar_mix(layer_outputs), tf.float32)
            layer_outputs = [tf.cast(layer, tf.float32) for layer in layer_outputs]
            if self.layers == "all":
                return tf.stack(layer_outputs, axis=1)
            if self.layers == "average":
                return tf.add_n(layer_outputs) / len(layer_outputs)
            return layer_outputs[-1]

        def state_signature(stack) -> list:
            return [
                [tf.TensorSpec((1, size), model.compute_dtype) for size in cell.state_size]
                for cell in stack.cells
            ]

        forward, backward = model.bilm.forward_stack, model.bilm.backward_stack
        dim = model.projection_dim
        vectors = tf.TensorSpec((None, None, dim), tf.float32)
        piece = tf.TensorSpec((1, None, dim), tf.float32)
        mask = tf.TensorSpec((None, None), tf.bool)

        @tf.function(input_signature=[vectors, mask])
        def embed_batch(vectors, mask):
            with without_shortcuts(self._without):
                return select(model.bilm(tf.cast(vectors, model.compute_dtype), mask=mask))

        @tf.function(input_signature=[piece, state_signature(backward)])
        def read_backward(vectors, state):
            vectors = tf.reverse(tf.cast(vectors, model.compute_dtype), [1])
            return backward(vectors, initial_state=state, return_state=True)[1]

        @tf.function(input_signature=[piece, state_signature(forward), state_signature(backward)])
        def embed_piece(vectors, forward_state, backward_state):
            layer_outputs, (forward_state, _) = model.bilm(
                tf.cast(vectors, model.compute_dtype),
                initial_state=(forward_state, backward_state),
                return_state=True,
            )
            return select(layer_outputs), forward_state

        self._run_batch = embed_batch
        self._read_backward = read_backward
        self._embed_piece = embed_piece

    def _short(self, tokens: Sequence[str]) -> Sequence[str]:
        """The sentence, unless it is read in pieces."""
        return () if len(tokens) > self.batch_tokens else tokens

    def _embed_batch(self, table: np.ndarray, places: list[np.ndarray]) -> list[np.ndarray]:
        if self.layers == "word":
            return [table[row[1:-1]] for row in places]
        if all(len(row) == 2 for row in places):
            return [np.zeros(self.shape(0), np.float32) for _ in places]
        padded = np.zeros((len(places), max(map(len, places))), np.int32)
        for row, found in zip(padded, places, strict=True):
            row[: len(found)] = found
        vectors = self._run_batch(table[padded], padded > 0).numpy()
        # Cut off <S>, padding and </S>; copied, for a view would keep the whole batch in memory.
        return [
            rows[..., 1 : len(found) - 1, :].copy()
            for rows, found in zip(vectors, places, strict=True)
        ]

    def _embed_long(self, tokens: Sequence[str], stopped: threading.Event) -> np.ndarray:
        if self.layers == "mix" and self.model.layer_norm is not None:
            raise ValueError(
                f"A sentence of {len(tokens)} tokens is longer than `batch_tokens`, {self.batch_tokens}, and the mix "
                f"with layer_norm={self.model.layer_norm!r} needs it whole. Raise `batch_tokens`, or take other "
                "`layers`."
            )
        starts = range(0, len(tokens), self.batch_tokens)
        result = Rows(self.shape(len(tokens)))

        def add(vectors: np.ndarray, start: int) -> None:
            first = 1 if start == 0 else 0  # behind <S>
            count = min(self.batch_tokens, len(tokens) - start)
            result.add(vectors[..., first : first + count, :])

        if self.layers == "word":
            for start in starts:
                add(self._piece(tokens, start)[0], start)
            return result.array()

        backward_states = [self._zero_state(self.model.bilm.backward_stack)]
        for start in reversed(starts[1:]):
            if stopped.is_set():
                return np.empty(0)
            piece = self._piece(tokens, start)
            backward_states.append(self._read_backward(piece, backward_states[-1]))

        forward_state = self._zero_state(self.model.bilm.forward_stack)
        for start in starts:
            if stopped.is_set():
                return np.empty(0)
            vectors, forward_state = self._embed_piece(
                self._piece(tokens, start), forward_state, backward_states.pop()
            )
            add(vectors.numpy()[0], start)
        return result.array()

    def _piece(self, tokens: Sequence[str], start: int) -> np.ndarray:
        """The vectors of `batch_tokens` tokens; with the first piece goes `<S>`, with the last `</S>`."""
        end = start + self.batch_tokens
        table, [places] = self._words.look_up([tokens[start:end]])
        return table[places[start > 0 : len(places) - (end < len(tokens))]][None]

    def _zero_state(self, stack) -> list:
        return [
            [tf.zeros((1, size), self.model.compute_dtype) for size in cell.state_size]
            for cell in stack.cells
        ]
