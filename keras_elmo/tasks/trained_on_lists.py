"""TrainedOnLists: a Keras model that takes lists of text, where Keras wants tensors."""

import reprlib
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_elmo.layers.checks import check_positive_integer
from keras_elmo.tasks.cached_vectors import with_cached_vectors
from keras_elmo.tasks.table import Table, by_size, dataset
from keras_elmo.tasks.texts import as_list


class TrainedOnLists(keras.Model):
    """`fit`, `evaluate` and `predict` with lists of text and of what is right for each.

    Text becomes a `Table`; its batches are put together of texts of about the same length, and padded to the longest of
    each batch. What a list holds is for subclasses to say: they turn lists into columns, and outputs into answers.
    """

    # What the names of the columns of each text begin with.
    _PREFIXES: tuple[str, ...] = ("",)
    # Of the subclass: the layer that runs the biLM.
    encoder: Any

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self._forward_functions: dict[str, Any] = {}

    def __call__(self, *args, **kwargs):
        if not (args and isinstance(args[0], dict)):
            raise ValueError(
                "A head is asked by `predict`, with a list of texts. Received a call with "
                f"{type(args[0]).__name__ if args else 'nothing'}"
            )
        return super().__call__(*args, **kwargs)

    def export(self, *args: Any, **kwargs: Any) -> None:
        """Says what exports a head.

        Raises:
            ValueError: always: Keras' own export knows no strings and no names.
        """
        raise ValueError(
            "A head is exported by `keras_elmo.export.export_saved_model(head, folder)`, or by `keras-elmo export` "
            "from its .keras file."
        )

    def fit(  # type: ignore[override]
        self,
        x: Any,
        y: Any = None,
        batch_size: int = 32,
        epochs: int = 1,
        validation_data: tuple | None = None,
        sample_weight: Sequence[float] | None = None,
        shuffle: bool = True,
        cache_vectors: bool | None = None,
        verbose: str | int = "auto",
        **kwargs: Any,
    ) -> keras.callbacks.History:
        """Trains the head.

        Args:
            x: The texts, see the class.
            y: What is right for each, see the class.
            batch_size: Examples in a batch. Defaults to 32. Those of about the same length come together.
            epochs: How often the examples are gone through. Defaults to 1.
            validation_data: A pair of `x` and `y` to measure loss and accuracy on after every epoch.
            sample_weight: A number for every example, by which its loss counts.
            shuffle: Whether examples come in another order in every epoch. Defaults to `True`.
            cache_vectors: Whether the biLM runs once over the texts, and not once an epoch: the same numbers, for a
                temporary file of 2.5 kB a word (`elmo_tiny_en`). `None` (default): if the biLM is frozen and there is
                more than one epoch.
            verbose: As in Keras.
            **kwargs: More arguments of `keras.Model.fit`, such as `callbacks`.

        Raises:
            ValueError: if there are not as many labels as texts, words or labels are no strings, a label is unknown,
                a text is empty, or there is only one label.
        """
        check_positive_integer("batch_size", batch_size)
        if self.distribute_strategy.num_replicas_in_sync > 1:
            raise ValueError(
                "A head is trained on one device, for Keras' `fit` can share out no strings. Make it outside of the "
                'strategy\'s scope, or put `ElmoEmbedding(inputs="character_ids")` into a Keras model of your own.'
            )
        if refused := {"validation_split", "class_weight"} & set(kwargs):
            raise ValueError(
                f"A head's `fit` has no `{min(refused)}`: give "
                + ("`sample_weight`." if "class_weight" in refused else "`validation_data=(x, y)`.")
            )
        if validation_data is not None and not (
            isinstance(validation_data, list | tuple) and len(validation_data) == 2
        ):
            raise ValueError(
                "`validation_data` must be a pair of texts and of what is right for each. "
                f"Received: {reprlib.repr(validation_data)}"
            )
        data, targets = self._examples(x, y)
        self._check_learnable(targets)
        weights = None if sample_weight is None else np.asarray(sample_weight, np.float32)
        if weights is not None and weights.shape != (len(data),):
            raise ValueError(
                f"`sample_weight` must have a number for each of the {len(data)} examples. "
                f"Received: shape {weights.shape}"
            )
        for callback in kwargs.get("callbacks") or ():
            # Keras would ask for the mode of every measure but its own.
            if str(getattr(callback, "monitor", "")).removeprefix("val_") == "accuracy":
                callback.mode = callback.mode if callback.mode in ("min", "max") else "max"
        validation = None if validation_data is None else self._examples(*validation_data)
        if cache_vectors or (cache_vectors is None and epochs > 1):
            data = self._cached(data, cache_vectors, verbose)
            if validation is not None:
                validation = (self._cached(validation[0], cache_vectors, verbose), validation[1])
        if not self.optimizer.built:
            # Else TensorFlow would trace the step twice: once for making the optimizer's variables.
            self.optimizer.build(self.trainable_variables)
        with ExitStack() as opened:
            opened.callback(self._end_of_fit)
            batches = opened.enter_context(dataset(data, targets, weights, batch_size, shuffle))
            if validation is not None:
                validation = opened.enter_context(dataset(*validation, None, batch_size, False))
            return super().fit(
                batches,
                epochs=epochs,
                shuffle=False,  # the data come shuffled
                validation_data=validation,
                verbose=verbose,
                **kwargs,
            )

    def _end_of_fit(self) -> None:
        """What is to be undone after a training, however it ended."""

    def evaluate(  # type: ignore[override]
        self,
        x: Any,
        y: Any = None,
        batch_size: int = 32,
        verbose: str | int = "auto",
        cache_vectors: bool | None = None,
        **kwargs: Any,
    ) -> dict[str, float]:
        """Measures the head.

        Args:
            x: The texts.
            y: What is right for each.
            batch_size: Examples in a batch. Defaults to 32.
            verbose: As in Keras.
            cache_vectors: Whether the biLM runs once, for loss and answers, as in `fit`. `None` (default): if it is
                frozen.
            **kwargs: `callbacks` as in Keras.

        Returns:
            A dict of `loss`, `accuracy` and what else the head measures.
        """
        if isinstance(x, tf.data.Dataset):  # `fit` asks for its validation
            return super().evaluate(x, verbose=verbose, **kwargs)
        check_positive_integer("batch_size", batch_size)
        if refused := set(kwargs) - {"callbacks", "return_dict"}:
            raise ValueError(f"A head's `evaluate` has no `{min(refused)}`.")
        data, targets = self._examples(x, y)
        if cache_vectors is not False:
            data = self._cached(data, cache_vectors, 0)
        with dataset(data, targets, None, batch_size, False) as batches:
            found = super().evaluate(batches, verbose=verbose, **{**kwargs, "return_dict": True})
        return found | self._scores(x, y, lambda: self._decoded(self._predict(data, batch_size, 0)))

    def predict(self, x: Any, batch_size: int = 32, verbose: str | int = "auto") -> list:  # type: ignore[override]
        """The head's answers.

        Args:
            x: The texts.
            batch_size: Texts in a batch. Defaults to 32.
            verbose: As in Keras.

        Returns:
            A list with the answer to each, see the class.
        """
        return self._decoded(self._predict(as_list("x", x), batch_size, verbose))

    def _predict(
        self, x: list | Table, batch_size: int, verbose: str | int, function: Any = None
    ) -> list[dict[str, Any]]:
        """The outputs of `call`, or of another function, for each example, padded to the longest of its batch."""
        check_positive_integer("batch_size", batch_size)
        if not len(x):
            return []
        data = x if isinstance(x, Table) else self._inputs(x)
        forward = self._forward(data, function)
        outputs: list[dict[str, Any]] = [{}] * len(data)
        bar = keras.utils.Progbar(
            -(-len(data) // batch_size), verbose=1 if verbose == "auto" else int(verbose)
        )
        for rows in by_size(data.sizes, batch_size):
            found = {name: value.numpy() for name, value in forward(data.batch(rows)).items()}
            for place, row in enumerate(rows):
                outputs[row] = {name: value[place] for name, value in found.items()}
            bar.add(1)
        return outputs

    def _forward(self, data: Table, function: Any) -> Any:
        """The function as a graph, made once for each set of columns."""
        key = ",".join([getattr(function, "__name__", "call"), *data.columns])
        if key not in self._forward_functions:
            function = function or (lambda batch: self(batch, training=False))
            self._forward_functions[key] = tf.function(function, input_signature=[data.signature()])
        return self._forward_functions[key]

    def _examples(self, x: Any, y: Any) -> tuple[Table, Table]:
        if not self.compiled:
            self.compile("adam")
        compiled = self.get_compile_config() or {}
        if strange := [
            name for name in ("loss", "metrics", "weighted_metrics") if compiled.get(name)
        ]:
            raise ValueError(
                f"A head has its own loss and metrics: compile it without `{strange[0]}`, with the optimizer alone."
            )
        if isinstance(x, tf.data.Dataset | keras.utils.PyDataset) or y is None:
            raise ValueError(
                "`x` and `y` must be lists, of texts and of what is right for each. "
                f"Received: {type(x).__name__} and {type(y).__name__}"
            )
        x, y = as_list("x", x), as_list("y", y)
        if len(x) != len(y) or not x:
            raise ValueError(
                f"`x` and `y` must be equally many, and not none. Received: {len(x)} texts and {len(y)} labels"
            )
        data = self._inputs(x)
        columns = self._targets(x, y)
        for prefix in self._PREFIXES:
            lengths = np.array([len(text) for text in data.columns[f"{prefix}tokens"]])
            if not lengths.all():
                raise ValueError(
                    "`x` must hold texts with words to learn from. Received: an empty "
                    f"{prefix.rstrip('_') or 'text'} at index {int(np.argmin(lengths))}. Leave it out."
                )
        return data, Table(columns, data.sizes)

    def _inputs(self, x: list) -> Table:
        columns = self._columns(x)
        lengths = [[len(text) for text in columns[f"{prefix}tokens"]] for prefix in self._PREFIXES]
        return Table(columns, np.sum(lengths, axis=0, dtype=int))

    def _cached(self, data: Table, cache_vectors: bool | None, verbose: str | int) -> Table:
        if self._has_trained_bilm and cache_vectors:
            raise ValueError(
                "`cache_vectors` is for a frozen biLM: one that is trained gives other vectors after every step. "
                "Received: cache_vectors=True with trainable_bilm=True"
            )
        if self._has_trained_bilm:
            return data
        return with_cached_vectors(data, self._PREFIXES, self.encoder, verbose in ("auto", 1))

    @property
    def _has_trained_bilm(self) -> bool:
        """Whether training changes the biLM, so that vectors are to be computed anew."""
        raise NotImplementedError

    def _columns(self, x: list) -> dict[str, list]:
        """The inputs of `call` as columns of a `Table`."""
        raise NotImplementedError

    def _targets(self, x: list, y: list) -> dict[str, list]:
        """What is right, as columns of a `Table`."""
        raise NotImplementedError

    def _check_learnable(self, targets: Table) -> None:
        """Raises `ValueError` if there is nothing to learn."""

    def _example_losses(
        self, y: dict[str, tf.Tensor], outputs: dict[str, tf.Tensor]
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """The losses of the examples of a batch, (batch,), and how much each of them counts."""
        raise NotImplementedError

    def _accuracy(self, y: dict[str, tf.Tensor], outputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """What is right, 1 or 0, in a row."""
        raise NotImplementedError

    def _decoded(self, outputs: list[dict[str, Any]]) -> list:
        """The answers that people read, from the outputs of `call` for each example."""
        raise NotImplementedError

    def _scores(self, x: Any, y: Any, predictions: Any) -> dict[str, float]:
        """More measures for `evaluate`; `predictions()` are what `predict` gives for `x`."""
        return {}
