"""ElmoModel: character ids in, every layer of the biLM and their mix out."""

import inspect
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np
from keras import ops

from keras_elmo import presets
from keras_elmo.character_ids import (
    BEGIN_OF_SENTENCE_WORD,
    END_OF_SENTENCE_WORD,
    MAX_WORD_LENGTH,
    word_character_ids,
)
from keras_elmo.files import written_beside
from keras_elmo.layers import (
    AddSentenceBoundaries,
    BiLMStack,
    CharCNNEncoder,
    RemoveSentenceBoundaries,
    ScalarMix,
    SentenceMean,
    TokenEmbedding,
)
from keras_elmo.layers.char_cnn_encoder import ORIGINAL_FILTERS, check_filters
from keras_elmo.layers.checks import check_choice, check_positive_integer, is_integer

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
            (batch, num_tokens) in its place.

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
        if vocabulary_size is None:
            filters = check_filters(filters)
            widest = max(width for width, _ in filters)
            if not is_integer(max_word_length) or max_word_length < max(3, widest):
                raise ValueError(
                    "`max_word_length` must be an integer of 3 or more (begin of word, a byte, end of word) and "
                    f"no smaller than the widest filter, {widest}. Received: max_word_length={max_word_length!r}"
                )
            begin, end = (
                word_character_ids(word, max_word_length).tolist()
                for word in (BEGIN_OF_SENTENCE_WORD, END_OF_SENTENCE_WORD)
            )
            encoder = CharCNNEncoder(
                projection_dim,
                embedding_dim,
                filters,
                num_highway_layers,
                activation,
                use_projection=sum(count for _, count in filters) != projection_dim,
                dtype=dtype,
                name="char_cnn_encoder",
            )
            ids = keras.Input((None, max_word_length), dtype="int32", name="character_ids")
            real = ops.any(ids != 0, axis=-1)
        else:
            check_positive_integer("vocabulary_size", vocabulary_size)
            begin, end = _check_boundary_token_ids(boundary_token_ids, vocabulary_size)
            encoder = TokenEmbedding(
                vocabulary_size + 1, projection_dim, dtype=dtype, name="token_embedding"
            )
            ids = keras.Input((None,), dtype="int32", name="token_ids")
            real = ids != 0
        add_boundaries = AddSentenceBoundaries(begin, end, dtype=dtype, name="add_boundaries")
        token_encoder = keras.Model(ids, encoder(add_boundaries(ids)), name="token_encoder")
        bilm = BiLMStack(
            units,
            None if projection_dim == units else projection_dim,
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
        self.layer_norm = layer_norm
        self.keep_sentence_boundaries = keep_sentence_boundaries
        self.trainable_bilm = trainable_bilm
        self._set_parts_trainable()

    def __call__(self, inputs, *args, **kwargs):
        if any(_is_text(leaf) for leaf in keras.tree.flatten(inputs)):
            raise ValueError(
                "An ElmoModel reads character ids, not text. Make them by `keras_elmo.character_ids(sentences)`, or "
                "use `keras_elmo.ElmoEmbedding`, which takes strings."
            )
        return super().__call__(inputs, *args, **kwargs)

    @property
    def encoder(self):
        """The layer that makes token vectors: a `CharCNNEncoder`, or a `TokenEmbedding`."""
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
                _convert_datasets(beside / presets.WEIGHTS_FILE, weights_dtype)
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


def _check_boundary_token_ids(ids: Sequence[int], vocabulary_size: int) -> tuple[int, int]:
    good = isinstance(ids, list | tuple) and all(
        is_integer(number) and 1 <= number <= vocabulary_size for number in ids
    )
    if not good or len(ids) != 2 or ids[0] == ids[1]:
        raise ValueError(
            f"`boundary_token_ids` must be two different token ids between 1 and {vocabulary_size}. "
            f"Received: boundary_token_ids={ids!r}"
        )
    return ids[0], ids[1]


def _convert_datasets(path: Path, dtype: str) -> None:
    """Rewrites the floats of an HDF5 file in another precision."""
    with written_beside(path, overwrite=True) as beside:
        with h5py.File(path) as source, h5py.File(beside, "w") as target:

            def copy(name, item):
                if not isinstance(item, h5py.Dataset):
                    copied = target.require_group(name)
                elif np.issubdtype(item.dtype, np.floating):
                    copied = target.create_dataset(name, data=item[()].astype(dtype))
                else:
                    copied = target.create_dataset(name, data=item[()])
                copied.attrs.update(item.attrs)

            source.visititems(copy)
            target.attrs.update(source.attrs)
