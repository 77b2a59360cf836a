"""OptimizerConfig: how one group of weights is updated."""

from dataclasses import asdict, dataclass
from typing import Any

from keras_elmo.training.fields import check_choice, check_number, from_json

OPTIMIZERS = ("adam", "adagrad", "rowwise_adagrad", "sgd")


@dataclass(frozen=True)
class OptimizerConfig:
    """An optimizer and its numbers; those of other optimizers are not looked at.

    Args:
        name: "adam"; "adagrad"; "rowwise_adagrad", Adagrad with one accumulator for a row, of the mean of its
            squares; or "sgd".
        learning_rate: Rate before the schedule of `PretrainConfig`.
        beta_1: Of Adam. Defaults to 0.9.
        beta_2: Of Adam. Defaults to 0.999.
        epsilon: Added to the root, in Adam and both Adagrads. Defaults to 0.0, as in TensorFlow 1's Adagrad.
        initial_accumulator: Of both Adagrads. Defaults to 1.0.

    Raises:
        ValueError: If a field is out of range; the message names it.

    Example:
        >>> OptimizerConfig("adagrad", 0.2).initial_accumulator
        1.0
    """

    name: str
    learning_rate: float
    beta_1: float = 0.9
    beta_2: float = 0.999
    epsilon: float = 0.0
    initial_accumulator: float = 1.0

    def __post_init__(self) -> None:
        check_choice("name", self.name, OPTIMIZERS)
        check_number("learning_rate", self.learning_rate, above=0)
        for name in ("beta_1", "beta_2"):
            check_number(name, getattr(self, name), at_least=0, below=1)
        check_number("epsilon", self.epsilon, at_least=0)
        check_number("initial_accumulator", self.initial_accumulator, at_least=0)

    def to_json(self) -> dict[str, Any]:
        """The fields as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Any) -> "OptimizerConfig":
        """What `to_json` gave, or raises a ValueError that names the field."""
        return from_json(cls, values)
