"""GradualUnfreezing: a biLM that is fine-tuned from the top down, one layer after the other."""

from typing import Any

import keras

from keras_elmo.layers.checks import check_positive_integer


class GradualUnfreezing(keras.callbacks.Callback):
    """Keeps the layers of the biLM as they are at first, and lets them learn one by one, the highest first.

    In the first `epochs_per_layer` epochs only the head and the mix learn, then the highest LSTM layer too, and so on
    down to the character CNN. A layer that learns does so by its update multiplier.

    Reference: Howard and Ruder (2018), section 3.3 (https://arxiv.org/abs/1801.06146).

    Args:
        epochs_per_layer: int, so many epochs later the next layer begins to learn. Defaults to 1.

    Raises:
        ValueError: if `epochs_per_layer` is no positive integer; when training begins, if the model has no biLM that
            is trained.

    Example:
    >>> from keras_elmo.tasks import TextClassifier
    >>> classifier = TextClassifier(labels=["bad", "good"], trainable_bilm=True)
    >>> history = classifier.fit(["fine", "dull"], ["good", "bad"], callbacks=[GradualUnfreezing()], verbose=0)
    >>> GradualUnfreezing().factors(num_layers=3, epoch=1)
    [0.0, 0.0, 1.0]
    """

    def __init__(self, epochs_per_layer: int = 1):
        super().__init__()
        check_positive_integer("epochs_per_layer", epochs_per_layer)
        self.epochs_per_layer = epochs_per_layer

    def factors(self, num_layers: int, epoch: int) -> list[float]:
        """Which layers learn in an epoch, counted from 0: 1, else 0, from the characters up."""
        num_learning = min(epoch // self.epochs_per_layer, num_layers)
        return [0.0] * (num_layers - num_learning) + [1.0] * num_learning

    def on_train_begin(self, logs: Any = None) -> None:
        """Refuses a head that has nothing to unfreeze."""
        if not getattr(getattr(self.model, "elmo_model", None), "trainable_bilm", False):
            raise ValueError(
                "`GradualUnfreezing` is for a head with `trainable_bilm=True`, which has a biLM to unfreeze. Received: "
                f"{type(self.model).__name__} with a frozen one"
            )

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Freezes what is not to learn yet."""
        num_layers = len(self.model.update_multipliers.values())
        self.model.update_multipliers.schedule(self.factors(num_layers, epoch))
