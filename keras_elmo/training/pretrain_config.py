"""PretrainConfig: every number of a pre-training run."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from keras_elmo.models.elmo_model import ARCHITECTURE
from keras_elmo.training.fields import (
    check_bool,
    check_choice,
    check_count,
    check_number,
    from_json,
)
from keras_elmo.training.optimizer_config import OptimizerConfig

# What may be another when a run goes on: how long it is, and what it writes.
CHANGEABLE = (
    "max_steps",
    "num_epochs",
    "num_train_tokens",
    "save_every",
    "validate_every",
    "log_every",
    "keep_checkpoints",
)
# Keras takes no larger one.
MAX_SEED = 2**32 - 1


@dataclass(frozen=True)
class PretrainConfig:
    """What a biLM is trained to be, and how. Stored as JSON in the run's folder.

    The defaults are the recipe `default` with the architecture `tiny`; `keras_elmo.training.recipes` has others.
    Every option of bilm-tf has its field here.

    Args:
        units: As `ElmoModel`, and so are the next ones down to `activation`.
        projection_dim: As `ElmoModel`.
        num_layers: As `ElmoModel`.
        use_skip_connections: As `ElmoModel`.
        cell_clip: As `ElmoModel`.
        projection_clip: As `ElmoModel`.
        max_word_length: As `ElmoModel`.
        embedding_dim: As `ElmoModel`.
        filters: As `ElmoModel`.
        num_highway_layers: As `ElmoModel`.
        activation: As `ElmoModel`.
        use_characters: Whether words are read by their characters; if not, as ids of the vocabulary.
        dropout: Rate, as in `BidirectionalLanguageModel`.
        softmax_kernel_deviation: Words' vectors start normally distributed with this deviation; `None`:
            `projection_dim ** -0.5`.
        softmax_bias_initializer: "log_frequencies", the logarithms of the words' relative frequencies, or "zeros".
        num_negative_samples: Words that the softmax sets against each target; `None`: all.
        share_negatives: Whether both directions have the same sample.
        batch_size: Rows, on all devices together.
        unroll_steps: Steps of a row in a batch, through which gradients flow.
        shuffle: Whether sentences are shuffled.
        shuffle_buffer_size: In how large a buffer, in lines.
        seed: Of the weights, the order of sentences, the negatives and the dropout.
        network_optimizer: Of all weights but the softmax's.
        softmax_optimizer: Of the softmax's.
        warmup_steps: In so many steps the rates rise linearly from 0.
        decay: "linear": from there to the end of the run they fall linearly to `final_rate`; "none".
        final_rate: The part of the rates that is left at the end.
        clip_norm: Largest norm of the gradient of all weights together; `None`: no limit.
        scale_loss: Whether the gradient is that of the loss times `unroll_steps`, as in bilm-tf.
        precision: "float32", or "mixed_bfloat16" for computing with weights kept in float32.
        max_steps: When to stop.
        num_epochs: Or after so many passes over the corpus, if `max_steps` is `None`.
        num_train_tokens: What bilm-tf takes for the length of the corpus. Here it is counted; a number that is far
            off is reported.
        save_every: Steps between checkpoints.
        validate_every: Steps between validations; `None`: at the end only.
        log_every: Steps between lines of the log.
        keep_checkpoints: How many of the last checkpoints to keep; the best is kept besides.

    Raises:
        ValueError: If a field is out of range; the message names it.

    Example:
        >>> config = PretrainConfig(max_steps=100)
        >>> PretrainConfig.from_json(config.to_json()) == config
        True
    """

    units: int = 512
    projection_dim: int = 128
    num_layers: int = 2
    use_skip_connections: bool = True
    cell_clip: float | None = 3.0
    projection_clip: float | None = 3.0
    max_word_length: int = 50
    embedding_dim: int = 16
    filters: tuple[tuple[int, int], ...] = ((1, 16), (2, 16), (3, 32), (4, 64), (5, 128))
    num_highway_layers: int = 1
    activation: str = "relu"
    use_characters: bool = True
    dropout: float = 0.0
    softmax_kernel_deviation: float | None = None
    softmax_bias_initializer: str = "log_frequencies"
    num_negative_samples: int | None = 2048
    share_negatives: bool = True
    batch_size: int = 128
    unroll_steps: int = 20
    shuffle: bool = True
    shuffle_buffer_size: int = 100_000
    seed: int = 0
    network_optimizer: OptimizerConfig = field(
        default_factory=lambda: OptimizerConfig("adam", 0.003, beta_2=0.99, epsilon=1e-8)
    )
    softmax_optimizer: OptimizerConfig = field(
        default_factory=lambda: OptimizerConfig("rowwise_adagrad", 0.09, initial_accumulator=1e-6)
    )
    warmup_steps: int = 100
    decay: str = "linear"
    final_rate: float = 0.05
    clip_norm: float | None = 1.0
    scale_loss: bool = False
    precision: str = "float32"
    max_steps: int | None = None
    num_epochs: int = 1
    num_train_tokens: int | None = None
    save_every: int = 1000
    validate_every: int | None = 1000
    log_every: int = 10
    keep_checkpoints: int = 2

    def __post_init__(self) -> None:
        for name in (
            "units",
            "projection_dim",
            "num_layers",
            "embedding_dim",
            "batch_size",
            "unroll_steps",
            "shuffle_buffer_size",
            "num_epochs",
            "save_every",
            "log_every",
            "keep_checkpoints",
        ):
            check_count(name, getattr(self, name))
        check_count("max_word_length", self.max_word_length, minimum=3)
        for name in ("num_highway_layers", "seed", "warmup_steps"):
            check_count(name, getattr(self, name), minimum=0)
        for name in ("num_negative_samples", "max_steps", "num_train_tokens", "validate_every"):
            check_count(name, getattr(self, name), optional=True)
        for name in ("cell_clip", "projection_clip", "clip_norm", "softmax_kernel_deviation"):
            check_number(name, getattr(self, name), above=0, optional=True)
        for name in (
            "use_skip_connections",
            "use_characters",
            "share_negatives",
            "shuffle",
            "scale_loss",
        ):
            check_bool(name, getattr(self, name))
        check_number("seed", self.seed, at_most=MAX_SEED)
        check_number("dropout", self.dropout, at_least=0, below=1)
        check_number("final_rate", self.final_rate, at_least=0, at_most=1)
        check_choice("activation", self.activation, ("relu", "tanh"))
        check_choice("decay", self.decay, ("linear", "none"))
        check_choice("precision", self.precision, ("float32", "mixed_bfloat16"))
        check_choice(
            "softmax_bias_initializer", self.softmax_bias_initializer, ("log_frequencies", "zeros")
        )
        self._check_filters()
        for name in ("network_optimizer", "softmax_optimizer"):
            if not isinstance(getattr(self, name), OptimizerConfig):
                raise ValueError(
                    f"`{name}` must be an OptimizerConfig. Received: {name}={getattr(self, name)!r}"
                )

    def _check_filters(self) -> None:
        try:
            pairs = tuple((width, count) for width, count in self.filters)
            for number in (number for pair in pairs for number in pair):
                check_count("filters", number)
            if not pairs or max(pairs)[0] > self.max_word_length:
                raise ValueError
        except (TypeError, ValueError) as error:
            raise ValueError(
                "`filters` must be pairs of positive integers (width, number of filters), no wider than "
                f"`max_word_length`. Received: filters={self.filters!r}"
            ) from error
        object.__setattr__(self, "filters", pairs)

    @property
    def architecture(self) -> dict[str, Any]:
        """The arguments of `ElmoModel` that are fields here."""
        values = {name: getattr(self, name) for name in ARCHITECTURE}
        return values | {"filters": [list(pair) for pair in self.filters]}

    def changed(self, **values: Any) -> "PretrainConfig":
        """A copy with other values in some fields."""
        return replace(self, **values)

    def check_resumable(self, before: "PretrainConfig") -> None:
        """Raises a ValueError if a run that began with `before` cannot go on with this."""
        now, then = self.to_json(), before.to_json()
        for name in now:
            if name not in CHANGEABLE and now[name] != then[name]:
                raise ValueError(
                    f"`{name}` must be that of the run, {then[name]!r}: a run that goes on may change only "
                    f"{', '.join(CHANGEABLE)}. Received: {name}={now[name]!r}"
                )

    def rate(self, step: int, total_steps: int | None) -> float:
        """The part of the learning rates in force at a step, counted from 1."""
        if step <= self.warmup_steps:
            return step / self.warmup_steps
        if self.decay == "none" or total_steps is None:
            return 1.0
        length = max(total_steps - self.warmup_steps, 1)
        done = min((step - self.warmup_steps) / length, 1.0)
        return 1.0 - (1.0 - self.final_rate) * done

    def to_json(self) -> dict[str, Any]:
        """The fields as a JSON object."""
        return asdict(self) | {"filters": [list(pair) for pair in self.filters]}

    @classmethod
    def from_json(cls, values: Any, defaults: "PretrainConfig | None" = None) -> "PretrainConfig":
        """A configuration from a JSON object; fields that it lacks are those of `defaults`.

        Raises:
            ValueError: If it is none; the message names the field.
        """
        if isinstance(values, Mapping):
            values = dict(values)
            for name in ("network_optimizer", "softmax_optimizer"):
                if name in values:
                    try:
                        values[name] = OptimizerConfig.from_json(values[name])
                    except ValueError as error:
                        raise ValueError(f"`{name}`: {error}") from error
            if defaults is not None:
                rest = {name: getattr(defaults, name) for name in defaults.to_json()}
                values = rest | values
        return from_json(cls, values)
