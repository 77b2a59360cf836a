"""ElmoVectorizer: sentences to vectors, as a scikit-learn transformer (extra `sklearn`)."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from keras_elmo import presets
from keras_elmo.inference import Embedder
from keras_elmo.layers.checks import check_choice

POOLINGS = ("mean", "max", "first-last")
_LAYERS = ("average", "top", "mix", "word")


class ElmoVectorizer(TransformerMixin, BaseEstimator):
    """Turns sentences into vectors: those of its words, pooled.

    It learns nothing: `fit` checks the parameters and loads the model, and so does `transform` if it was not called.
    Cloning, pickling and searching over its parameters work as with scikit-learn's own; the model itself is not
    pickled but loaded anew.

    Args:
        model: The name of a preset, or a path of anything that `keras_elmo.load_model` reads. Defaults to the bundled
            English preset.
        layers: "average" (default) of all layers, the "top" one, the model's own "mix", or "word" for layer 0.
        pooling: "mean" (default) or "max" over the words, or "first-last": the vectors of the first and the last
            word side by side, twice as long.
        tokenizer: "word" or "whitespace"; `None` (default): as the model's training text was cut.
        batch_tokens: Tokens per batch at most, padding included. Defaults to 2048.

    Raises:
        ValueError: from `fit` and `transform`, if a parameter is out of range or the input is no list of sentences.

    Example:
    >>> ElmoVectorizer().fit_transform(["The bank is near.", "A second sentence", ""]).shape
    (3, 256)
    """

    def __init__(
        self,
        model: str = presets.DEFAULT_PRESET,
        *,
        layers: str = "average",
        pooling: str = "mean",
        tokenizer: str | None = None,
        batch_tokens: int = 2048,
    ):
        self.model = model
        self.layers = layers
        self.pooling = pooling
        self.tokenizer = tokenizer
        self.batch_tokens = batch_tokens

    def fit(self, X: Iterable[str] | None = None, y: Any = None) -> "ElmoVectorizer":
        """Checks the parameters and loads the model; `X` and `y` are not looked at."""
        check_choice("pooling", self.pooling, POOLINGS)
        check_choice("layers", self.layers, _LAYERS)
        parameters = (self.model, self.layers, self.tokenizer, self.batch_tokens)
        # Parameters may be changed by `set_params` at any time.
        if getattr(self, "_made_of", None) != parameters:
            self._embedder = Embedder(*parameters)
            self._made_of = parameters
        return self

    def transform(self, X: Iterable[str]) -> np.ndarray:
        """The vectors of sentences.

        Args:
            X: Strings, or lists of tokens.

        Returns:
            float32 array (num_sentences, dim), or twice `dim` with "first-last"; zeros for an empty sentence.
        """
        embedder = self.fit()._embedder
        dim = embedder.dim * (2 if self.pooling == "first-last" else 1)
        rows = [self._pooled(words) if len(words) else np.zeros(dim) for words in embedder.embed(X)]
        return np.array(rows, np.float32).reshape(-1, dim)

    def _pooled(self, words: np.ndarray) -> np.ndarray:
        if self.pooling == "first-last":
            return np.concatenate([words[0], words[-1]])
        return words.mean(axis=0) if self.pooling == "mean" else words.max(axis=0)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns: elmo0, elmo1, .."""
        width = self.transform([""]).shape[1]
        return np.array([f"elmo{k}" for k in range(width)], dtype=object)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        for name in ("_embedder", "_made_of"):
            state.pop(name, None)
        return state
