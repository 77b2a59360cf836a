"""ElmoModel: character ids in, every layer of the biLM and their mix out."""

import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import keras
from keras import ops

from keras_elmo import presets
from keras_elmo.character_ids import MAX_WORD_LENGTH, character_ids
from keras_elmo.files import written_beside
from keras_elmo.layers import BiLMStack, RemoveSentenceBoundaries, ScalarMix, SentenceMean
from keras_elmo.layers.char_cnn_encoder import ORIGINAL_FILTERS
from keras_elmo.layers.checks import check_choice, check_positive_integer
from keras_elmo.lexicon import Lexicon
from keras_elmo.models.token_encoder import character_encoder, lexicon_encoder, token_id_encoder

# The arguments that say what the network is; the others say how it is used.
ARCHITECTURE = (
    "units",
    "projection_dim",
    "num_layers",
    "use_skip_connections",
    "cell_clip",
    "projection_clip",
    "max_word_length",
    "embedding_dim",
    "filters",
    "num_highway_layers",
    "activation",
)


@keras.saving.register_keras_serializable(package="keras_elmo")
class ElmoModel(keras.Model):
    """ELMo: contextual word vectors from characters. A functional Keras model with named input and outputs.

    A sentence's words are spelled as character ids; a character CNN makes each a vector; a forward and a backward
    LSTM language model read these vectors; every word gets the output of every layer, and a learned mix of them.
    The answer depends on the sentence alone: not on earlier calls, on its batch mates, or on the padding.

    The parts can be called by themselves: `token_encoder(character_ids)` gives the token vectors, sentence
    boundaries included, with their mask; `bilm(token_embeddings, mask)` gives `layer_outputs`, the list of
    `num_layers + 1` tensors (batch, num_tokens + 2, 2 * projection_dim) on which mixes run; `scalar_mix` is the
    model's own mix.

    Reference: Peters et al. (2018), "Deep contextualized word representations"
    (https://arxiv.org/abs/1802.05365).

    Args:
        units: int, width of the LSTMs' memory cells. Defaults to 4096.
        projection_dim: int, size of a token vector and of one direction's output. Equal to `units`, the LSTMs
            have no projection; equal to the number of filters, the character CNN has none (as in bilm-tf).
            Defaults to 512.
        num_layers: int, LSTM layers per direction. Defaults to 2.
        use_skip_connections: bool. Defaults to `True`.
        cell_clip: number or `None`, see `ProjectedLSTMCell`. Defaults to 3.0.
        projection_clip: number or `None`, see `ProjectedLSTMCell`. Defaults to 3.0.
        max_word_length: int, character ids per word; words are cut at `max_word_length - 2` bytes. Defaults
            to 50.
        embedding_dim: int, size of a character vector. Defaults to 16.
        filters: pairs (width, number of filters), see `CharCNNEncoder`. Defaults to the original's seven.
        num_highway_layers: int. Defaults to 2.
        activation: "relu" (default) or "tanh", see `CharCNNEncoder`.
        vocabulary_size: int, for a model that reads token ids instead of characters: number of words, to
            which `token_ids` (0 = no token) refer. `None` (default): characters.
        boundary_token_ids: the token ids of `<S>` and `</S>` in such a model. Defaults to (1, 2).
        lexicon: a `keras_elmo.Lexicon` or its config, for a model of ELMoForManyLangs, that reads the ids of Unicode
            characters and of words and has both projections whatever their size. `None` (default): bytes.
        word_dim: int, size of a word's own vector in such a model, if its lexicon has words. Defaults to 100.
        layer_norm: `None` (default), "sentence" or "batch", of the model's mix, see `ScalarMix`.
        keep_sentence_boundaries: bool, whether the outputs keep the vectors of `<S>` and `</S>` (`num_tokens + 2`
            rows; `</S>` right behind the last word). Defaults to `False`.
        trainable_bilm: bool, whether training changes the biLM and the character CNN, too. `False` (default):
            only the mix is trained, no gradient is kept for the rest, and `model.trainable = True` does not
            change that.
        dtype: dtype or dtype policy of all layers, such as "mixed_bfloat16". Defaults to Keras' global policy.
        **kwargs: Arguments of `keras.Model` (`name`, `trainable`).

    Call arguments:
        character_ids: int tensor (batch, num_tokens, max_word_length), as `keras_elmo.character_ids` makes it,
            padded with zeros anywhere in a row; a model with `vocabulary_size` has `token_ids`
            (batch, num_tokens) in its place; one with a `lexicon` has a dict of `character_ids` and `word_ids`
            (batch, num_tokens), or one of them. `model.ids(sentences)` makes what the model reads.

    Output shape:
        A dict: `word_emb` (batch, num_tokens, projection_dim), which is layer 0 and knows no context;
        `lstm_outputs1`, `lstm_outputs2`, .. (batch, num_tokens, 2 * projection_dim), forward and backward side
        by side; `elmo`, the mix (batch, num_tokens, 2 * projection_dim); `default`, its mean over the sentence's
        words (batch, 2 * projection_dim); `sequence_len`, the number of words (batch,) int32.

    Masking:
        The outputs per token carry the mask (batch, num_tokens) and are zero where there is no word. An empty
        sentence has zeros everywhere.

    Raises:
        ValueError: if an argument is out of range.

    Example:
    >>> import keras_elmo
    >>> model = ElmoModel.from_preset("elmo_tiny_en")
    >>> outputs = model(keras_elmo.character_ids(["The bank is near the river", "Hello"]))
    >>> tuple(outputs["elmo"].shape), outputs["sequence_len"].numpy().tolist()
    ((2, 6, 256), [6, 1])
    """

    def __init__(
        self,
        units: int = 4096,
        projection_dim: int = 512,
        num_layers: int = 2,
        use_skip_connections: bool = True,
        cell_clip: float | None = 3.0,
        projection_clip: float | None = 3.0,
        max_word_length: int = MAX_WORD_LENGTH,
        embedding_dim: int = 16,
        filters: Sequence[Sequence[int]] = ORIGINAL_FILTERS,
        num_highway_layers: int = 2,
        activation: str = "relu",
        vocabulary_size: int | None = None,
        boundary_token_ids: Sequence[int] = (1, 2),
        lexicon: Lexicon | Mapping[str, Any] | None = None,
        word_dim: int = 100,
        layer_norm: str | None = None,
        keep_sentence_boundaries: bool = False,
        trainable_bilm: bool = False,
        dtype: Any = None,
        **kwargs,
    ):
        # Keras' functional models take any argument and drop it: a misspelled one would go unnoticed.
        if unknown := sorted(set(kwargs) - {"name", "trainable"}):
            raise ValueError(
                f"ElmoModel has no argument `{unknown[0]}`. It has: {', '.join(ARGUMENTS)}"
            )

        # === Layers ===
        dtype = keras.dtype_policies.get(dtype)
        check_positive_integer("units", units)
        check_positive_integer("projection_dim", projection_dim)
        if isinstance(lexicon, Mapping):
            lexicon = Lexicon(**lexicon)
        spelling = (max_word_length, embedding_dim, filters, num_highway_layers, activation)
        if lexicon is not None:
            _check_lexicon(lexicon, vocabulary_size)
            token_encoder = lexicon_encoder(lexicon, word_dim, projection_dim, *spelling, dtype)
        elif vocabulary_size is not None:
            token_encoder = token_id_encoder(
                projection_dim, vocabulary_size, boundary_token_ids, dtype
            )
        else:
            token_encoder = character_encoder(projection_dim, *spelling, dtype)
        ids = token_encoder.input
        real = token_encoder.layers[-1].compute_mask(ids)
        # Models with a lexicon are ELMoForManyLangs', whose LSTMs have a projection of any size.
        has_projection = lexicon is not None or projection_dim != units
        bilm = BiLMStack(
            units,
            projection_dim if has_projection else None,
            num_layers,
            cell_clip,
            projection_clip,
            use_skip_connections,
            dtype=dtype,
            name="bilm",
        )
        scalar_mix = ScalarMix(layer_norm, dtype=dtype, name="scalar_mix")

        # === Functional model ===
        token_embeddings = token_encoder(ids)
        layer_outputs = bilm(token_embeddings)
        if not trainable_bilm:
            token_embeddings, *layer_outputs = _StopGradient(dtype=dtype, name="stop_gradient")(
                [token_embeddings, *layer_outputs]
            )
        mixed = scalar_mix(layer_outputs)
        outside = RemoveSentenceBoundaries(keep_sentence_boundaries, dtype=dtype, name="boundaries")
        words_only = RemoveSentenceBoundaries(dtype=dtype, name="words_only")
        # A symbolic tensor that comes out of a model, here `token_encoder`, carries no mask yet.
        mask = ops.pad(ops.cast(real, "int32"), [[0, 0], [1, 1]], constant_values=1) > 0
        outputs = {"word_emb": outside(token_embeddings, mask=mask)}
        for k in range(1, num_layers + 1):
            outputs[f"lstm_outputs{k}"] = outside(layer_outputs[k], mask=mask)
        outputs["elmo"] = outside(mixed, mask=mask)
        outputs["default"] = SentenceMean(dtype=dtype, name="sentence_mean")(words_only(mixed))
        outputs["sequence_len"] = ops.sum(ops.cast(real, "int32"), axis=-1)
        super().__init__(inputs=ids, outputs=outputs, **kwargs)

        # === Parts and config: PyTorch takes no attributes before `super().__init__` ===
        self.token_encoder = token_encoder
        self.bilm = bilm
        self.scalar_mix = scalar_mix
        self.dtype_policy = dtype
        self.units = units
        self.projection_dim = projection_dim
        self.num_layers = num_layers
        self.use_skip_connections = use_skip_connections
        self.cell_clip = cell_clip
        self.projection_clip = projection_clip
        self.max_word_length = max_word_length
        self.embedding_dim = embedding_dim
        self.filters = [list(pair) for pair in filters]
        self.num_highway_layers = num_highway_layers
        self.activation = activation
        self.vocabulary_size = vocabulary_size
        self.boundary_token_ids = list(boundary_token_ids)
        self.lexicon = lexicon
        self.word_dim = word_dim
        self.layer_norm = layer_norm
        self.keep_sentence_boundaries = keep_sentence_boundaries
        self.trainable_bilm = trainable_bilm
        self._set_parts_trainable()

    def __call__(self, inputs, *args, **kwargs):
        if any(_is_text(leaf) for leaf in keras.tree.flatten(inputs)):
            raise ValueError(
                "An ElmoModel reads character ids, not text. Make them by `model.ids(sentences)`, or use "
                "`keras_elmo.ElmoEmbedding`, which takes strings."
            )
        return super().__call__(inputs, *args, **kwargs)

    def ids(self, sentences: Iterable[str | Iterable[str]]) -> Any:
        """Maps sentences to what the model reads, padded to the longest one.

        Args:
            sentences: List of sentences. Each is a str, cut on white space, or a sequence of str tokens, taken as
                they are.

        Returns:
            int32 array (num_sentences, num_tokens, max_word_length), or, with a `lexicon`, a dict of arrays.

        Raises:
            ValueError: if `sentences` is something else, or the model reads the ids of a vocabulary.

        Example:
        >>> ElmoModel.from_preset("elmo_tiny_en").ids(["The bank", "Hello"]).shape
        (2, 2, 50)
        """
        if self.lexicon is not None:
            return self.lexicon.ids(sentences, self.max_word_length)
        if self.vocabulary_size is not None:
            raise ValueError(
                "This model reads the token ids of a vocabulary: make them by `Vocabulary.token_ids`."
            )
        return character_ids(sentences, self.max_word_length)

    @property
    def encoder(self):
        """The layer that makes token vectors: a `CharCNNEncoder`, `TokenEmbedding` or `WordAndCharacterEncoder`."""
        return self.token_encoder.layers[-1]

    @property
    def trainable(self):
        """Whether training changes anything; the biLM needs `trainable_bilm=True` besides."""
        return super().trainable

    @trainable.setter
    def trainable(self, value):
        keras.Model.trainable.fset(self, value)
        self._set_parts_trainable()

    def _set_parts_trainable(self):
        if not hasattr(self, "trainable_bilm"):
            return  # called by `super().__init__`
        self.scalar_mix.trainable = self.trainable
        for part in (self.token_encoder, self.bilm):
            part.trainable = self.trainable and self.trainable_bilm

    def get_config(self):
        # The layers follow from the arguments: unlike other functional models this one is not saved as a graph.
        return {
            "name": self.name,
            "trainable": self.trainable,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
            **{argument: getattr(self, argument) for argument in ARGUMENTS},
            "lexicon": None if self.lexicon is None else self.lexicon.get_config(),
        }

    @classmethod
    def from_preset(cls, preset: str | os.PathLike, **overrides) -> "ElmoModel":
        """Loads a model from a preset, one of `keras_elmo.presets.preset_names()` or a folder.

        Args:
            preset: Name of a bundled preset, or path of a folder that `save_to_preset` wrote.
            **overrides: Arguments of `ElmoModel` that replace those of the preset and do not change its weights,
                such as `trainable_bilm=True`, `layer_norm="sentence"` or `keep_sentence_boundaries=True`.

        Returns:
            An `ElmoModel` with the preset's weights, in float32 unless `dtype` says otherwise.

        Raises:
            ValueError: if there is no such preset, its files are not what they should be, or an override is
                unknown or does not fit the weights.
        """
        folder = presets.preset_folder(preset)
        unknown = sorted(set(overrides) - {*ARGUMENTS, "dtype", "name", "trainable"})
        if unknown:
            raise ValueError(
                f"ElmoModel has no argument `{unknown[0]}`. It has: {', '.join(ARGUMENTS)}"
            )
        saved = presets.read_json(folder / presets.CONFIG_FILE)
        if saved.get("class_name") != cls.__name__ or not isinstance(saved.get("config"), dict):
            raise ValueError(
                f"{folder / presets.CONFIG_FILE} must be the configuration of an {cls.__name__}. "
                f"Received: class_name={saved.get('class_name')!r}"
            )
        try:
            model = cls.from_config({**saved["config"], **overrides})
        except (TypeError, ValueError) as error:
            source = " and ".join(
                [str(folder / presets.CONFIG_FILE), *(["overrides"] if overrides else [])]
            )
            raise ValueError(f"No ElmoModel can be made of {source}: {error}") from error
        weights = folder / presets.WEIGHTS_FILE
        try:
            model.load_weights(weights)
        except (OSError, KeyError, ValueError) as error:
            raise ValueError(
                f"{weights} does not hold the weights of the model that {presets.CONFIG_FILE} describes, or is "
                f"damaged; get or save it again ({' '.join(str(error).split())[:300]})."
            ) from error
        return model

    def save_to_preset(
        self,
        folder: str | os.PathLike,
        weights_dtype: str = "float32",
        metadata: dict[str, Any] | None = None,
        overwrite: bool = False,
    ) -> None:
        """Saves the model as a preset: a folder with its architecture, weights and metadata.

        The folder is written beside and renamed: it is either whole or not there.

        Args:
            folder: Path of the folder to make.
            weights_dtype: "float32" (default), or "float16" for half the size and about three decimal digits;
                both load into float32.
            metadata: More for `metadata.json`, such as `{"description": .., "tokenizer": .., "license": ..}`.
            overwrite: Whether a folder that is there already may be replaced. Defaults to `False`.

        Raises:
            ValueError: if the folder exists and `overwrite` is `False`, or `weights_dtype` is another.
        """
        check_choice("weights_dtype", weights_dtype, ("float32", "float16"))
        with written_beside(folder, overwrite) as beside:
            beside.mkdir()
            config = {"class_name": type(self).__name__, "config": self.get_config()}
            presets.write_json(beside / presets.CONFIG_FILE, config)
            self.save_weights(beside / presets.WEIGHTS_FILE)
            if weights_dtype != "float32":
                presets.convert_floats(beside / presets.WEIGHTS_FILE, weights_dtype)
            presets.write_json(
                beside / presets.METADATA_FILE,
                (metadata or {}) | presets.base_metadata(self.count_params(), weights_dtype),
            )


class _StopGradient(keras.layers.Layer):
    """Passes tensors and their masks on, but no gradient back: what is below it is frozen."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs):
        return [ops.stop_gradient(tensor) for tensor in inputs]

    def compute_output_shape(self, input_shape):
        return input_shape


# The arguments that make the architecture, in the order of the signature.
ARGUMENTS = [
    name
    for name in inspect.signature(ElmoModel.__init__).parameters
    if name not in ("self", "dtype", "kwargs")
]


def _is_text(value: Any) -> bool:
    kind = getattr(getattr(value, "dtype", None), "name", "")
    return isinstance(value, str | bytes) or kind.startswith(("str", "bytes", "object"))


def _check_lexicon(lexicon: Any, vocabulary_size: int | None) -> None:
    if not isinstance(lexicon, Lexicon) or vocabulary_size is not None:
        raise ValueError(
            "`lexicon` must be a keras_elmo.Lexicon, or its config, and goes without `vocabulary_size`. Received: "
            f"lexicon={lexicon!r}, vocabulary_size={vocabulary_size!r}"
        )
