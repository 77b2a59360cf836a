"""BidirectionalLanguageModel: the biLM with its softmax: predicts the next word, and the one before."""

import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_elmo import presets
from keras_elmo.corpus import sentence_batches
from keras_elmo.files import written_beside
from keras_elmo.layers import SampledSoftmax
from keras_elmo.layers.checks import check_positive_integer, check_rate
from keras_elmo.models.elmo_model import ElmoModel
from keras_elmo.vocabulary import Vocabulary


class Score(NamedTuple):
    """How likely a language model of each direction finds the words of a sentence of n words.

    Attributes:
        forward: float32 array (n + 1,): log-probability of each word, and of the end, given what stands before.
        backward: float32 array (n + 1,): log-probability of the beginning, and of each word, given what follows.
            Entry k belongs to word k, counted from 1; entry 0 to the beginning.
    """

    forward: np.ndarray
    backward: np.ndarray


class Substitute(NamedTuple):
    """A word that a language model would put into a place.

    Attributes:
        word: The word.
        log_probability: log p_forward + log p_backward, normalized over the vocabulary.
        forward: log p_forward, given what stands before the place.
        backward: log p_backward, given what follows it.
    """

    word: str
    log_probability: float
    forward: float
    backward: float


@keras.saving.register_keras_serializable(package="keras_elmo")
class BidirectionalLanguageModel(keras.Model):
    """What ELMo is trained as: a forward and a backward language model that share encoder and softmax.

        loss = -1/2 * mean(log p(w_k | w_1 .. w_k-1) + log p(w_k | w_k+1 .. w_n))

    It has the parts of the `ElmoModel` that it is given: what trains this one trains that one, if it was made
    with `trainable_bilm=True`. `fit` trains it on batches without carried state, on any backend;
    `keras_elmo.training` carries the state from window to window.

    Reference: Peters et al. (2018), "Deep contextualized word representations", section 3.1
    (https://arxiv.org/abs/1802.05365).

    Args:
        elmo_model: The `ElmoModel`.
        vocabulary: The `Vocabulary` of the words that are predicted, or its tokens.
        dropout: Rate of dropout on the input of every LSTM layer and on the last one's output, as in bilm-tf;
            nothing is dropped inside the recurrence. Defaults to 0.0.
        bias_initializer: initializer of the softmax's biases. Defaults to "zeros".
        **kwargs: Arguments of `keras.Model` (`name`, `trainable`).

    Call arguments:
        inputs: A dict of int tensors, as the batches of `keras_elmo.corpus` have them, each direction in its own
            reading order: `word_ids` (num_words, max_word_length), the distinct words (vocabulary ids + 1,
            (num_words,), for a model without characters); `forward_words`, `backward_words`
            (batch, num_tokens), rows of these, 0 for padding; `forward_targets`, `backward_targets` (batch,
            num_tokens); and, for a sampled loss, `forward_negatives`, `backward_negatives` (num_negatives,)
            and floats `forward_num_tries`, `backward_num_tries`, scalars or, as `fit` wants it, of shape (1,).
        initial_state: pair (forward, backward) of states as `LSTMStack` takes them; zeros if not given.
        return_state: bool, whether to return the final states too. Defaults to `False`.
        dropout_seed: int tensor (2,) that decides what is dropped; by default it is drawn anew.
        training: bool, whether to drop. Padding is allowed, and masked, if it is `False`.

    Output shape:
        A dict of `forward` and `backward`: float32 (batch, num_tokens), the negative log-likelihood of every
        target, 0 for padding; with `return_state=True` a pair of this dict and the states.

    Raises:
        ValueError: if an argument is out of range, or the vocabulary is not that of a model without characters.

    Example:
    >>> import keras_elmo
    >>> model = keras_elmo.load_language_model("elmo_tiny_en")
    >>> score = model.score([["The", "bank", "is", "near", "the", "river", "."]])[0]
    >>> score.forward.shape, score.backward.shape
    ((8,), (8,))
    """

    def __init__(
        self,
        elmo_model: ElmoModel,
        vocabulary: Vocabulary | Sequence[str],
        dropout: float = 0.0,
        bias_initializer: Any = "zeros",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if not isinstance(elmo_model, ElmoModel):
            raise ValueError(
                f"`elmo_model` must be an ElmoModel. Received: {type(elmo_model).__name__}"
            )
        if not isinstance(vocabulary, Vocabulary):
            vocabulary = Vocabulary(vocabulary)
        if elmo_model.vocabulary_size not in (None, len(vocabulary)):
            raise ValueError(
                f"`vocabulary` must be the one that the model reads, of {elmo_model.vocabulary_size} words. "
                f"Received: {len(vocabulary)} words"
            )
        if elmo_model.lexicon is not None:
            raise ValueError(
                "`elmo_model` must read bytes or the ids of `vocabulary`; this one, of ELMoForManyLangs' kind, reads "
                "the ids of its lexicon. It gives vectors: use `keras_elmo.Embedder`."
            )
        check_rate("dropout", dropout)
        self.elmo_model = elmo_model
        self.vocabulary = vocabulary
        self.dropout = dropout
        self.bias_initializer = keras.initializers.get(bias_initializer)
        self.seed_generator = keras.random.SeedGenerator()
        self.softmax = SampledSoftmax(
            len(vocabulary),
            bias_initializer=self.bias_initializer,
            dtype=elmo_model.dtype_policy,
            name="softmax",
        )
        self.softmax.build((None, elmo_model.projection_dim))
        self.supports_jit = keras.backend.backend() == "jax"
        self.built = True

    def call(
        self, inputs, initial_state=None, return_state=False, dropout_seed=None, training=False
    ):
        bilm = self.elmo_model.bilm
        words = self.elmo_model.encoder(inputs["word_ids"][None])[0]
        losses, states = {}, []
        for place, (direction, stack) in enumerate(
            (("forward", bilm.forward_stack), ("backward", bilm.backward_stack))
        ):
            rows = inputs[f"{direction}_words"]
            drop = self._drop(place, dropout_seed) if training and self.dropout else None
            outputs, state = stack(
                ops.take(words, rows, axis=0),
                # Training windows have no padding.
                mask=None if training else ops.not_equal(rows, 0),
                initial_state=None if initial_state is None else initial_state[place],
                drop=drop,
                return_state=True,
                training=training,
            )
            top = outputs[-1] if drop is None else drop(outputs[-1], stack.num_layers)
            loss = self.softmax(
                ops.reshape(top, (-1, stack.output_dim)),
                ops.reshape(inputs[f"{direction}_targets"], (-1,)),
                inputs.get(f"{direction}_negatives"),
                inputs.get(f"{direction}_num_tries"),
            )
            loss = ops.reshape(loss, ops.shape(rows))
            losses[direction] = loss * ops.cast(ops.not_equal(rows, 0), loss.dtype)
            states.append(state)
        return (losses, tuple(states)) if return_state else losses

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True, **kwargs
    ):
        """The mean of both directions' losses over all predictions."""
        total = ops.sum(y_pred["forward"]) + ops.sum(y_pred["backward"])
        count = ops.sum(ops.cast(ops.not_equal(x["forward_words"], 0), total.dtype))
        return total / (2.0 * ops.maximum(count, 1.0))

    def _drop(self, place, seed):
        """A function that drops values of a layer's input; each layer and direction its own."""
        num_places = self.elmo_model.num_layers + 1

        def drop(inputs, layer):
            if seed is None:
                layer_seed = self.seed_generator
            else:
                # Of the type that the backend wants, whatever came in.
                dtype = self.seed_generator.state.dtype
                number = ops.convert_to_tensor([0, place * num_places + layer], dtype)
                layer_seed = _FixedSeed(ops.cast(seed, dtype) + number)
            return keras.random.dropout(inputs, self.dropout, seed=layer_seed)

        return drop

    @property
    def trainable_variables(self):
        """What training changes: not the mix of the `ElmoModel`, which predicts nothing."""
        return self._but_the_mix(super().trainable_variables)

    @property
    def trainable_weights(self):
        """The same."""
        return self._but_the_mix(super().trainable_weights)

    def _but_the_mix(self, variables):
        mix = {id(variable) for variable in self.elmo_model.scalar_mix.variables}
        return [variable for variable in variables if id(variable) not in mix]

    def inputs_of(self, batch: Any) -> dict[str, np.ndarray]:
        """The call's inputs, without negatives, from a batch of `keras_elmo.corpus`."""
        if self.elmo_model.vocabulary_size is None:
            word_ids = batch.word_character_ids
        else:
            word_ids = batch.word_vocabulary_ids + 1
        names = ("forward_words", "backward_words", "forward_targets", "backward_targets")
        return {"word_ids": word_ids} | {name: getattr(batch, name) for name in names}

    def score(self, sentences: Iterable[Sequence[str]], batch_tokens: int = 1024) -> list[Score]:
        """Log-probability of every word of sentences, by both directions, under the full softmax.

        Each sentence is alone: it begins with `<S>` and no state, whatever its batch mates. Words that are not in the
        vocabulary are read by their characters and predicted as `<UNK>`.

        Args:
            sentences: Lists of tokens.
            batch_tokens: Predictions per batch at most, padding included. Defaults to 1024.

        Returns:
            A `Score` for each sentence, in order.

        Raises:
            ValueError: if a sentence is no list of strings.
        """
        scores: dict[int, Score] = {}
        width = self.elmo_model.max_word_length
        for batch in sentence_batches(sentences, self.vocabulary, width, batch_tokens):
            losses = self._evaluate(self.inputs_of(batch))
            for row, (index, steps) in enumerate(zip(batch.indices, batch.num_steps, strict=True)):
                scores[int(index)] = Score(
                    -losses["forward"][row, :steps], -losses["backward"][row, :steps][::-1]
                )
        return [scores[index] for index in range(len(scores))]

    def _evaluate(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {
            name: np.asarray(ops.convert_to_numpy(loss))
            for name, loss in self.predict_on_batch(dict(inputs)).items()
        }

    def substitutes(self, tokens: Sequence[str], position: int, top: int = 10) -> list[Substitute]:
        """The words that the model would put into a place of a sentence, likeliest first.

        By `log p_forward + log p_backward`, normalized over the vocabulary: what stands before the place counts as much
        as what follows it, and the word that is there does not count. `<S>`, `</S>` and `<UNK>` are no words.

        Args:
            tokens: The sentence.
            position: Index of the word to replace, from 0.
            top: How many words. Defaults to 10.

        Returns:
            A list of `Substitute`.

        Raises:
            ValueError: if `tokens` is no list of strings, `position` is outside of it, or `top` is no positive
                integer.
        """
        check_positive_integer("top", top)
        if not isinstance(position, Integral) or not 0 <= position < len(tokens):
            raise ValueError(
                f"`position` must be an index of the sentence's {len(tokens)} tokens, from 0. "
                f"Received: position={position!r}"
            )
        forward, backward = self._log_probabilities(tokens, position)
        combined = forward + backward
        no_words = [self.vocabulary.begin_id, self.vocabulary.end_id, self.vocabulary.unknown_id]
        combined[no_words] = -np.inf
        combined -= np.logaddexp.reduce(combined)
        best = np.argsort(-combined, kind="stable")[: min(top, len(combined) - len(no_words))]
        words = self.vocabulary.tokens(best.tolist())
        return [
            Substitute(word, float(combined[k]), float(forward[k]), float(backward[k]))
            for word, k in zip(words, best, strict=True)
        ]

    def _log_probabilities(self, tokens: Sequence[str], position: int) -> list[np.ndarray]:
        """Log-probabilities of all words in a place, forward and backward, float64."""
        (batch,) = sentence_batches([tokens], self.vocabulary, self.elmo_model.max_word_length)
        inputs = self.inputs_of(batch)
        words = self.elmo_model.encoder(inputs["word_ids"][None])[0]
        bilm = self.elmo_model.bilm
        found = []
        for direction, stack, read in (
            ("forward", bilm.forward_stack, position + 1),
            ("backward", bilm.backward_stack, len(tokens) - position),
        ):
            rows = inputs[f"{direction}_words"][:, :read]
            top = stack(ops.take(words, rows, axis=0))[-1][:, -1]
            logits = ops.convert_to_numpy(self.softmax.logits(top))[0].astype(np.float64)
            found.append(logits - np.logaddexp.reduce(logits))
        return found

    @classmethod
    def from_preset(cls, preset: str | os.PathLike, **overrides) -> "BidirectionalLanguageModel":
        """Loads a language model from a preset that has a softmax and a vocabulary.

        Args:
            preset: Name of a bundled preset, or path of a folder that `save_to_preset` wrote.
            **overrides: Arguments of `ElmoModel` that change no weights, such as `trainable_bilm=True`, and `dropout`.

        Raises:
            ValueError: if the preset has no language model, or its files do not fit each other.
        """
        folder = presets.preset_folder(preset)
        softmax_file, vocabulary_file = (
            folder / name for name in (presets.LANGUAGE_MODEL_FILE, presets.VOCABULARY_FILE)
        )
        for file in (softmax_file, vocabulary_file):
            if not file.is_file():
                raise ValueError(
                    f"The preset {folder} has no language model: {file.name} is missing. It still gives vectors: "
                    "load it by `keras_elmo.load_model`."
                )
        dropout = overrides.pop("dropout", 0.0)
        model = cls(
            ElmoModel.from_preset(folder, **overrides), Vocabulary.load(vocabulary_file), dropout
        )
        model.set_softmax(*presets.read_softmax(softmax_file))
        return model

    def save_to_preset(
        self,
        folder: str | os.PathLike,
        weights_dtype: str = "float32",
        metadata: dict[str, Any] | None = None,
        overwrite: bool = False,
    ) -> None:
        """Saves the model as a preset with softmax and vocabulary; see `ElmoModel.save_to_preset`."""
        with written_beside(folder, overwrite) as beside:
            self.elmo_model.save_to_preset(beside, weights_dtype, metadata)
            self.vocabulary.save(beside / presets.VOCABULARY_FILE)
            kernel, bias = (
                ops.convert_to_numpy(weight) for weight in (self.softmax.kernel, self.softmax.bias)
            )
            presets.write_softmax(beside / presets.LANGUAGE_MODEL_FILE, kernel, bias, weights_dtype)

    def set_softmax(self, kernel: np.ndarray, bias: np.ndarray) -> None:
        """Sets the output layer: kernel (vocabulary_size, projection_dim), bias (vocabulary_size,)."""
        expected = tuple(self.softmax.kernel.shape)
        if kernel.shape != expected or bias.shape != expected[:1]:
            raise ValueError(
                f"The softmax must have the shapes {expected} and {expected[:1]}. "
                f"Received: {kernel.shape} and {bias.shape}"
            )
        self.softmax.kernel.assign(kernel)
        self.softmax.bias.assign(bias)

    def get_config(self):
        return {
            "name": self.name,
            "trainable": self.trainable,
            "elmo_model": keras.saving.serialize_keras_object(self.elmo_model),
            "vocabulary": list(self.vocabulary),
            "dropout": self.dropout,
            "bias_initializer": keras.initializers.serialize(self.bias_initializer),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        elmo_model = keras.saving.deserialize_keras_object(config["elmo_model"])
        return cls(**{**config, "elmo_model": elmo_model})


class _FixedSeed(keras.random.SeedGenerator):
    """Hands `keras.random` a seed that was made elsewhere, also in a graph."""

    def __init__(self, seed):
        self._seed = seed
        # PyTorch's dropout asks for it: without, it takes its own random numbers.
        self._initial_seed = seed

    def next(self, ordered=True):
        return self._seed
