"""Task: what all heads share: text in lists, training, saving, and the ways to use ELMo."""

import os
import reprlib
from collections.abc import Iterable, Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_elmo import presets
from keras_elmo.layers.checks import check_choice, check_not_negative_integer, check_rate
from keras_elmo.models import BidirectionalLanguageModel, ElmoModel
from keras_elmo.tasks.language_model_loss import LanguageModelLoss
from keras_elmo.tasks.source import model_of
from keras_elmo.tasks.trained_on_lists import TrainedOnLists
from keras_elmo.tasks.update_multipliers import UpdateMultipliers
from keras_elmo.tasks.word_encoder import WordEncoder
from keras_elmo.text.tokenizer import check_tokenizer


class Task(TrainedOnLists):
    """A head on ELMo that takes strings and answers with names: the base of all of them.

    It is trained with Adam, unless `compile` says otherwise. The ways to use ELMo:

    - *Features* (default): the biLM stays as it was trained, and the mix of its layers is learned. `fit` runs the biLM
      over the training data once, and not once an epoch.
    - *Beside other features*: `word_vocabulary` gives the words learned vectors of their own; `use_word_shape` tells
      how they are written.
    - *At the input and the output*: with `mix_at_output=True` a second mix stands beside the output of the task's
      LSTM; the biLM runs once.
    - *Fine-tuned*: with `trainable_bilm=True` training changes the biLM, too. `update_multipliers` slow layers down or
      freeze them, `language_model_loss_weight` keeps the language model's loss on the same text beside the task's:
      `loss = task loss + weight * language model loss`. The biLM stays a language model, of the task's text: what it
      keeps of other text `ForgettingReport` tells.

    Reference: Peters et al. (2018), section 3.3 (https://arxiv.org/abs/1802.05365); Howard and Ruder (2018), "Universal
    Language Model Fine-tuning for Text Classification", section 3.2 and 3.3 (https://arxiv.org/abs/1801.06146), for the
    rates of layers; Chronopoulou et al. (2019) (https://arxiv.org/abs/1902.10547) for the language model's loss.

    Args:
        model_or_preset: An `ElmoModel` or a `BidirectionalLanguageModel`; or the name of a preset, or a path of
            anything that `keras_elmo.load_model` reads. Defaults to the bundled English preset.
        lstm_units: int, width of each direction of the LSTM that reads the vectors; 0: none. Defaults to 128.
        mix_at_output: bool, whether a second mix stands beside the LSTM's outputs. Defaults to `False`.
        dropout: Rate of dropout on the vectors before and behind the LSTM. Defaults to 0.3.
        mix_l2: float, L2 penalty on the weights of the mix, see `ScalarMix`. `None` (default): none.
        word_vocabulary: Words that get a learned vector of their own beside ELMo's; others share one. `None`
            (default): none.
        word_dim: int, size of these vectors. Defaults to 100.
        use_word_shape: bool, whether to tell how words are written: capitals, digits, suffix. Defaults to `False`.
        trainable_bilm: Whether training changes the biLM, too. `None` (default): as a model that is given has it,
            else `False`.
        update_multipliers: One number for every layer from the characters up (three for a biLM of two LSTM layers): by
            how much the optimizer's update of its weights is multiplied. 0 freezes a layer. `None` (default): all 1.
            `head.update_multipliers.assign(..)` changes them, also while training, as `GradualUnfreezing` does.
        language_model_loss_weight: float, weight of the language model's loss, for example 0.1; needs
            `trainable_bilm=True` and a preset with a softmax. Defaults to 0.0: none.
        tokenizer: "word" or "whitespace", see `keras_elmo.text.tokenize`. `None` (default): the one that the preset
            was trained with, else "word".
        **kwargs: Arguments of `keras.Model` (`name`, `trainable`), and `dtype`, in which a preset is loaded.

    Raises:
        ValueError: if an argument is out of range, contradicts the model that was given, or asks for what the
            preset lacks.
    """

    # Size of the features that come beside the words.
    _FEATURES_DIM = 0

    def __init__(
        self,
        model_or_preset: (
            ElmoModel | BidirectionalLanguageModel | str | os.PathLike
        ) = presets.DEFAULT_PRESET,
        lstm_units: int = 128,
        mix_at_output: bool = False,
        dropout: float = 0.3,
        mix_l2: float | None = None,
        word_vocabulary: Sequence[str] | None = None,
        word_dim: int = 100,
        use_word_shape: bool = False,
        trainable_bilm: bool | None = None,
        update_multipliers: Sequence[float] | None = None,
        language_model_loss_weight: float = 0.0,
        tokenizer: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        check_not_negative_integer("lstm_units", lstm_units)
        check_choice("trainable_bilm", trainable_bilm, (None, True, False))
        check_rate("dropout", dropout)
        if not (
            isinstance(language_model_loss_weight, int | float) and language_model_loss_weight >= 0
        ):
            raise ValueError(
                "`language_model_loss_weight` must be zero or a positive number. "
                f"Received: language_model_loss_weight={language_model_loss_weight!r}"
            )
        elmo, language_model, trained_with = model_of(
            model_or_preset, trainable_bilm, language_model_loss_weight > 0, dtype
        )
        if language_model_loss_weight and not elmo.trainable_bilm:
            mend = "Give `trainable_bilm=True`, too."
            if not isinstance(model_or_preset, str | os.PathLike):
                mend = "Load it by `keras_elmo.load_language_model(.., trainable_bilm=True)`."
            raise ValueError(
                "`language_model_loss_weight` acts on a biLM that is trained. Received: "
                f"language_model_loss_weight={language_model_loss_weight} with trainable_bilm=False. {mend}"
            )
        self.tokenizer = check_tokenizer(tokenizer or trained_with or "word")
        self.elmo_model = elmo
        self.language_model = language_model if language_model_loss_weight else None
        self.dtype_policy = elmo.dtype_policy
        self.lstm_units = lstm_units
        self.mix_at_output = mix_at_output
        self.dropout = dropout
        self.mix_l2 = mix_l2
        self.word_vocabulary = _checked_vocabulary(word_vocabulary)
        self.word_dim = word_dim
        self.use_word_shape = use_word_shape
        self.language_model_loss_weight = language_model_loss_weight
        self.update_multipliers = UpdateMultipliers(elmo, update_multipliers)
        self.encoder = WordEncoder(
            elmo,
            lstm_units,
            mix_at_output,
            dropout,
            mix_l2,
            self.word_vocabulary,
            word_dim,
            use_word_shape,
            self._FEATURES_DIM,
            name="encoder",
        )
        if self.language_model is not None:
            # No layer, so that its table is no part of a saved or exported model.
            self._language_model_loss = LanguageModelLoss(self.language_model)
            self.language_model_loss_tracker = keras.metrics.Mean(name="language_model_loss")
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.accuracy_tracker = keras.metrics.Mean(name="accuracy")
        self.supports_jit = False
        self.built = True

    @property
    def _has_trained_bilm(self) -> bool:
        return self.elmo_model.trainable_bilm

    @classmethod
    def from_preset(cls, preset: str | os.PathLike, *args: Any, **kwargs: Any) -> "Task":
        """Makes the head on a preset: the same as giving it to the class itself."""
        return cls(preset, *args, **kwargs)

    def encode(self, inputs, features=None, training=False, prefix=""):
        """The vectors of the words and their mask; in training the language model's loss is added.

        Of a head that reads several texts, `prefix` says which; the language model's loss is the mean of all texts'.
        """
        inputs = {
            name.removeprefix(prefix): value
            for name, value in inputs.items()
            if name.startswith(prefix)
        }
        vectors, mask, layer_outputs = self.encoder(inputs, features=features, training=training)
        if training and self.language_model is not None:
            loss = self._language_model_loss(
                layer_outputs, inputs["tokens"], inputs["sequence_len"]
            )
            self.language_model_loss_tracker.update_state(loss)
            self.add_loss(self.language_model_loss_weight / len(self._PREFIXES) * loss)
        return vectors, mask

    def _end_of_fit(self):
        # A schedule, such as that of `GradualUnfreezing`, is one of this training.
        self.update_multipliers.schedule(1.0)

    def train_step(self, data):
        """Keras' step; then what the multipliers hold back of the update of the biLM is taken back."""
        if not self.elmo_model.trainable_bilm:
            return super().train_step(data)
        # In half precision Keras wraps the optimizer.
        if getattr(getattr(self.optimizer, "inner_optimizer", self.optimizer), "use_ema", False):
            raise ValueError(
                "A head with `trainable_bilm=True` takes no optimizer with `use_ema=True`, whose averages know nothing "
                "of the update multipliers. Compile it with another."
            )
        before = self.update_multipliers.before_step()
        logs = super().train_step(data)
        self.update_multipliers.after_step(before)
        return logs

    def test_step(self, data):
        """Keras' step; the language model's loss is one of training alone."""
        logs = super().test_step(data)
        logs.pop("language_model_loss", None)
        return logs

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True, **kwargs
    ):
        """The mean of the examples' losses, and the penalties."""
        losses, sizes = self._example_losses(y, y_pred)
        if sample_weight is not None:
            losses *= sample_weight
        size = tf.reduce_sum(sizes)
        loss = tf.add_n([tf.reduce_sum(losses) / tf.maximum(size, 1.0), *self.losses])
        # Keras' own mean of the batches' losses would count a batch by its examples, not by their words.
        self.loss_tracker.update_state(loss, sample_weight=size)
        return loss

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """The accuracy."""
        self.accuracy_tracker.update_state(self._accuracy(y, y_pred))
        return self.get_metrics_result()

    # === Weights and saving ===

    @property
    def trainable_variables(self):
        """What training changes: neither the mix of the `ElmoModel` nor the softmax, which no answer needs."""
        return self._learned(super().trainable_variables)

    @property
    def trainable_weights(self):
        """The same."""
        return self._learned(super().trainable_weights)

    def _learned(self, variables):
        layers = [self.elmo_model.scalar_mix]
        if self.language_model is not None:
            layers.append(self.language_model.softmax)
        unused = {id(variable) for layer in layers for variable in layer.variables}
        return [variable for variable in variables if id(variable) not in unused]

    def get_config(self):
        model = self.elmo_model if self.language_model is None else self.language_model
        return {
            "name": self.name,
            "trainable": self.trainable,
            # The whole architecture: what was saved loads without the preset's folder.
            "model_or_preset": keras.saving.serialize_keras_object(model),
            "lstm_units": self.lstm_units,
            "mix_at_output": self.mix_at_output,
            "dropout": self.dropout,
            "mix_l2": self.mix_l2,
            "word_vocabulary": self.word_vocabulary,
            "word_dim": self.word_dim,
            "use_word_shape": self.use_word_shape,
            "trainable_bilm": self.elmo_model.trainable_bilm,
            "update_multipliers": self.update_multipliers.values()
            if self.elmo_model.trainable_bilm
            else None,
            "language_model_loss_weight": self.language_model_loss_weight,
            "tokenizer": self.tokenizer,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        model = keras.saving.deserialize_keras_object(config["model_or_preset"])
        return cls(**{**config, "model_or_preset": model})

    def save(self, filepath: Any, *args: Any, **kwargs: Any) -> None:
        """Saves the whole head as Keras does; loading needs `import keras_elmo`, no preset and no network."""
        self._build_optimizer()
        super().save(filepath, *args, **kwargs)

    def save_weights(self, filepath: Any, *args: Any, **kwargs: Any) -> None:
        """Saves the weights as Keras does."""
        self._build_optimizer()
        super().save_weights(filepath, *args, **kwargs)

    def load_weights(self, filepath: Any, *args: Any, **kwargs: Any) -> None:
        """Loads weights as Keras does."""
        self._build_optimizer()
        super().load_weights(filepath, *args, **kwargs)

    def _build_optimizer(self) -> None:
        """So that a head before its first step has the same optimizer as one behind it, and Keras does not warn."""
        if self.compiled and not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)

    def build_from_config(self, config):
        """Nothing: all weights were made with the model."""

    def serving_description(self) -> dict[str, Any]:
        """What `assets.extra/keras_elmo.json` says of the model."""
        return {"tokenizer": self.tokenizer, "precision": self.dtype_policy.name}


def _checked_vocabulary(words: Any) -> list[str] | None:
    if words is None:
        return None
    is_list = isinstance(words, Iterable) and not isinstance(words, str | bytes)
    words = list(words) if is_list else words
    if (
        not is_list
        or not words
        or not all(isinstance(word, str) and word for word in words)
        or len(set(words)) < len(words)
    ):
        raise ValueError(
            "`word_vocabulary` must be different words, one at least, each a string. "
            f"Received: word_vocabulary={reprlib.repr(words)}"
        )
    return words
