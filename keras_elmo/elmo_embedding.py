"""ElmoEmbedding: strings in, contextual vectors out: the one Keras layer most users need."""

import os
import warnings
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_elmo import presets
from keras_elmo.character_ids import BEGIN_OF_SENTENCE_WORD, END_OF_SENTENCE_WORD
from keras_elmo.checkpoints import load_checkpoint
from keras_elmo.layers.checks import check_choice, check_rate
from keras_elmo.models import ElmoModel
from keras_elmo.models.elmo_model import ARCHITECTURE
from keras_elmo.models.reads_bytes import check_reads_bytes
from keras_elmo.text import as_strings, map_characters, tokenize
from keras_elmo.text.tokenizer import check_tokenizer

_BOUNDARY_WORDS = (BEGIN_OF_SENTENCE_WORD, END_OF_SENTENCE_WORD)
INPUTS = ("sentences", "tokens", "character_ids")


@keras.saving.register_keras_serializable(package="keras_elmo")
class ElmoEmbedding(keras.layers.Layer):
    """ELMo as one layer: sentences, tokens or character ids in, contextual vectors out.

    Everything that turns text into vectors is in the graph: the tokenizer, the characters, the model. The
    vectors come with their mask and are zero where there is no word, so that `LSTM`, `Bidirectional`,
    `GlobalAveragePooling1D` and `Dense` follow directly. A saved model holds the whole of it: loading needs
    `import keras_elmo`, no preset folder and no network.

    TensorFlow backend only, and never compiled by XLA, which has no strings. Under a `tf.distribute` strategy with
    several replicas Keras' `fit` takes no strings: let the dataset spell them, by `keras_elmo.text.tokenize` and
    `map_characters`, for a layer with `inputs="character_ids"`.

    Reference: Peters et al. (2018), "Deep contextualized word representations", section 3.3
    (https://arxiv.org/abs/1802.05365).

    Args:
        model_or_preset: An `ElmoModel`; or the name of a preset, or a path of anything that
            `keras_elmo.load_model` reads. Defaults to the bundled English preset. Layers that are given the same
            `ElmoModel` share it.
        inputs: What the layer is called with: "sentences" (default), "tokens" or "character_ids". It is said
            here, never guessed from the shape.
        output: Name of the output: "elmo" (default), the learned mix of the layers, a vector for each word;
            "default", the mean of these, a vector for each sentence; "word_emb", "lstm_outputs1", ..,
            "sequence_len"; or "all", a dict of every one.
        trainable_bilm: Whether training changes the biLM too, not only the mix. `None` (default): as the model has
            it; presets are loaded frozen.
        dropout: Rate of dropout on the vectors while training. Defaults to 0.0.
        layer_norm: "sentence" or "batch", of the mix, see `ScalarMix`. `None` (default): as the model has it.
        tokenizer: "word" or "whitespace", see `keras_elmo.text.tokenize`; for `inputs="sentences"`. `None`
            (default): the one that the preset was trained with, else "word".
        **kwargs: Arguments of `keras.layers.Layer` (`name`, `dtype`, `trainable`). `dtype` is that of a model that
            is given; else a preset is loaded in it.

    Call arguments:
        inputs: With `inputs="sentences"`: strings (batch,) or (batch, 1). With "tokens": strings
            (batch, num_tokens), of which trailing "" are padding; or a ragged tensor; or a dict of `tokens`
            and `sequence_len` (batch,), which alone says what is padding. With "character_ids": int
            (batch, num_tokens, max_word_length). Called directly the layer takes lists and NumPy arrays of
            strings, too; before `fit` and `predict` of your own model these go through `keras_elmo.as_strings`.
        training: bool, whether to apply dropout.

    Output shape:
        "elmo": (batch, num_tokens, 2 * projection_dim); "default": (batch, 2 * projection_dim); the others
        as `ElmoModel` has them.

    Masking:
        Vectors per token carry the mask (batch, num_tokens) and are zero where there is no word. A batch without
        a single word has one column of padding.

    Raises:
        ValueError: if an argument is out of range or contradicts the given model; in a call, if the input has
            another rank or type than `inputs` says.

    Example:
    >>> vectors = ElmoEmbedding()(["The bank is near the river.", "Hello"])
    >>> tuple(vectors.shape)
    (2, 7, 256)
    """

    def __init__(
        self,
        model_or_preset: ElmoModel | str | os.PathLike = presets.DEFAULT_PRESET,
        inputs: str = "sentences",
        output: str = "elmo",
        trainable_bilm: bool | None = None,
        dropout: float = 0.0,
        layer_norm: str | None = None,
        tokenizer: str | None = None,
        **kwargs,
    ):
        if isinstance(model_or_preset, ElmoModel):
            kwargs["dtype"] = dtype_of(model_or_preset, kwargs.get("dtype"))
        super().__init__(**kwargs)
        check_choice("inputs", inputs, INPUTS)
        check_choice("trainable_bilm", trainable_bilm, (None, True, False))
        check_rate("dropout", dropout)
        if tokenizer is not None:
            check_tokenizer(tokenizer)
        chosen = {"trainable_bilm": trainable_bilm, "layer_norm": layer_norm}
        chosen = {name: value for name, value in chosen.items() if value is not None}
        if isinstance(model_or_preset, ElmoModel):
            self.model = model_or_preset
            trained_with = None
            for name, value in chosen.items():
                if getattr(self.model, name) != value:
                    raise ValueError(
                        f"`{name}` is decided by the model that was given, where it is "
                        f"{getattr(self.model, name)!r}. Received: {name}={value!r}. Load the model with "
                        f"`keras_elmo.load_model(.., {name}={value!r})`."
                    )
        elif isinstance(model_or_preset, str | os.PathLike):
            checkpoint = load_checkpoint(model_or_preset, dtype=self.dtype_policy, **chosen)
            self.model = checkpoint.model
            trained_with = checkpoint.metadata.get("tokenizer")
        else:
            raise ValueError(
                "`model_or_preset` must be an `ElmoModel`, the name of a preset or a path. "
                f"Received: {type(model_or_preset).__name__}"
            )
        check_reads_bytes("ElmoEmbedding", self.model)
        if tokenizer is not None and trained_with not in (None, tokenizer):
            warnings.warn(
                f"The model was trained on text cut by the tokenizer {trained_with!r}; with {tokenizer!r} some "
                "words will look different from those it knows.",
                stacklevel=2,
            )
        names = list(self.model.output)
        check_choice("output", output, (*names, "all"))
        self.inputs = inputs
        self.output_name = output
        self.dropout = dropout
        self.tokenizer = tokenizer or trained_with or "word"
        self.supports_masking = True
        self.supports_jit = False
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)
        if not self.trainable:
            self.model.trainable = False  # Keras tells sublayers only when it changes

    def __call__(self, inputs, **kwargs):
        # Before Keras takes over, which knows no lists and arrays of strings and would wrap the sentence of an
        # error in many others.
        return super().__call__(self._checked(inputs), **kwargs)

    def build(self, input_shape):
        # The model was built when it was made.
        pass

    def call(self, inputs, training=False):
        outputs = self._outputs(self._character_ids(inputs))
        if self.output_name != "all":
            return self._drop(outputs[self.output_name], training)
        return {name: self._drop(output, training) for name, output in outputs.items()}

    def _outputs(self, ids, tokens=None, word_cache=None):
        """All outputs of the model; a batch of empty sentences has one column of padding."""
        if not ids.shape[1]:
            # Without a single column Keras' LSTM fails.
            ids = tf.pad(ids, [[0, 0], [0, tf.maximum(1 - tf.shape(ids)[1], 0)], [0, 0]])
        return self.model(ids) if word_cache is None else word_cache.outputs(tokens, ids)

    def _drop(self, output, training):
        is_vector = keras.backend.is_float_dtype(output.dtype)
        return (
            self.dropout_layer(output, training=training) if self.dropout and is_vector else output
        )

    def _character_ids(self, inputs):
        if self.inputs == "character_ids":
            return inputs
        if self.inputs == "sentences":
            if len(inputs.shape) == 2:  # a graph may learn the second size at run time only
                inputs = tf.squeeze(tf.ensure_shape(inputs, [None, 1]), axis=1)
            tokens, sequence_len = tokenize(inputs, self.tokenizer), None
        elif isinstance(inputs, dict):
            tokens, sequence_len = inputs["tokens"], inputs["sequence_len"]
        else:
            tokens, sequence_len = inputs, None
        return map_characters(tokens, sequence_len, self.model.max_word_length)

    def _checked(self, inputs):
        """The inputs as tensors, or one sentence for what is not of the kind that `inputs` says."""
        if isinstance(inputs, dict):
            if self.inputs != "tokens" or set(inputs) != {"tokens", "sequence_len"}:
                raise ValueError(
                    'A dict goes with `inputs="tokens"` and has the keys `tokens` and `sequence_len`. Received: '
                    f"inputs={self.inputs!r} and the keys {sorted(map(str, inputs))}"
                )
            tokens = self._checked(inputs["tokens"])
            return {
                "tokens": tokens,
                "sequence_len": _checked_sequence_len(inputs["sequence_len"], tokens),
            }
        inputs = _stand_in(inputs, "int32" if self.inputs == "character_ids" else "string")
        if self.inputs != "character_ids":
            inputs = _as_strings(inputs)
        shape, dtype = _shape_and_dtype(inputs)
        is_symbolic = isinstance(inputs, keras.KerasTensor)
        if self.inputs == "sentences":
            # Of a tensor in a graph, unlike of a model's input, the second size may be unknown.
            is_column = len(shape) == 2 and (
                shape[1] == 1 or (shape[1] is None and not is_symbolic)
            )
            right = len(shape) == 1 or (is_column and not isinstance(inputs, tf.RaggedTensor))
            right = right and dtype == "string"
            expected, model_input = "strings (batch,) or (batch, 1)", '(), dtype="string"'
        elif self.inputs == "tokens":
            right = dtype == "string" and len(shape) == 2
            expected, model_input = "strings (batch, num_tokens)", '(None,), dtype="string"'
        else:
            width = self.model.max_word_length
            right = "int" in dtype and len(shape) == 3 and shape[2] == width
            expected = (
                f"integers (batch, num_tokens, {width}) as `keras_elmo.character_ids` makes them"
            )
            model_input = f'(None, {width}), dtype="int32"'
        if not right:
            raise ValueError(
                f"With `inputs={self.inputs!r}` this layer takes {expected}. Received: {_describe(inputs)}. "
                + (
                    f"Begin the model with `keras.Input({model_input})`"
                    if is_symbolic
                    else "Give that"
                )
                + f", or make the layer with `inputs=` one of {', '.join(map(repr, INPUTS))}."
            )
        return inputs

    def compute_output_spec(self, inputs, training=False):
        tokens = inputs["tokens"] if isinstance(inputs, dict) else inputs
        num_tokens = None if self.inputs == "sentences" or not tokens.shape[1] else tokens.shape[1]
        ids = keras.KerasTensor(
            (tokens.shape[0], num_tokens, self.model.max_word_length), dtype="int32"
        )
        outputs = self.model.compute_output_spec(ids)
        return outputs if self.output_name == "all" else outputs[self.output_name]

    def get_config(self):
        # The whole architecture: what was saved loads without the preset's folder. Layers that share a model
        # share it again once loaded: Keras makes one object of all that have the same id.
        model = keras.saving.serialize_keras_object(self.model)
        model["shared_object_id"] = id(self.model)
        return {
            **super().get_config(),
            "model_or_preset": model,
            "inputs": self.inputs,
            "output": self.output_name,
            "trainable_bilm": self.model.trainable_bilm,
            "dropout": self.dropout,
            "layer_norm": self.model.layer_norm,
            "tokenizer": self.tokenizer,
        }

    def serving_description(self) -> dict[str, Any]:
        """What `assets.extra/keras_elmo.json` says of the layer in a SavedModel."""
        config = self.model.get_config()
        return {
            "tokenizer": self.tokenizer,
            "precision": self.dtype_policy.name,
            "architecture": {name: config[name] for name in ARCHITECTURE},
        }

    def serving_signatures(self, word_cache: Any = None) -> dict[str, Any]:
        """What a SavedModel of this layer answers to, whatever its `inputs` and `output` are: TF-Hub's names for ELMo.

        Args:
            word_cache: A `keras_elmo.export.word_cache.WordCache` of the model, which makes the outputs wherever the
                words' strings are known. `None` (default): the model itself does.

        Returns:
            A dict of `tf.function`s with input signatures, each of which returns a dict of tensors, all outputs of
            the model: `default` takes `text`, strings (batch,), and returns the `tokens` (batch, num_tokens),
            padded with "", besides; `tokens` takes `tokens`, strings (batch, max_len), and `sequence_len`, int32
            (batch,), which alone says what is padding; `character_ids` takes `character_ids`, int32
            (batch, num_tokens, max_word_length).

        Example:
        >>> default = ElmoEmbedding().serving_signatures()["default"]
        >>> default(tf.constant(["It's here."]))["tokens"].numpy().tolist()
        [[b'It', b"'s", b'here', b'.']]
        """
        width = self.model.max_word_length

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
        def default(text):
            cut = tokenize(text, self.tokenizer)
            outputs = self._outputs(map_characters(cut, None, width), cut, word_cache)
            if self.model.keep_sentence_boundaries:
                ends = [tf.fill([tf.shape(text)[0], 1], word) for word in _BOUNDARY_WORDS]
                cut = tf.concat([ends[0], cut, ends[1]], axis=1)
            # A batch of empty sentences has a column of padding, as the vectors have.
            shape = tf.shape(outputs["word_emb"], tf.int64)[:2]
            return outputs | {"tokens": cut.to_tensor(shape=shape)}

        @tf.function(
            input_signature=[
                tf.TensorSpec([None, None], tf.string, "tokens"),
                tf.TensorSpec([None], tf.int32, "sequence_len"),
            ]
        )
        def tokens(tokens, sequence_len):
            ids = map_characters(tokens, sequence_len, width)
            return self._outputs(ids, tokens, word_cache)

        @tf.function(
            input_signature=[tf.TensorSpec([None, None, width], tf.int32, "character_ids")]
        )
        def character_ids(character_ids):
            return self._outputs(character_ids)

        return {"default": default, "tokens": tokens, "character_ids": character_ids}

    @classmethod
    def from_config(cls, config):
        model = keras.saving.deserialize_keras_object(config["model_or_preset"])
        return cls(**{**config, "model_or_preset": model})


def _as_strings(text: Any) -> Any:
    is_convertible = isinstance(text, list | tuple | str | bytes | np.ndarray)
    return as_strings(text) if is_convertible or hasattr(text, "to_numpy") else text


def _stand_in(inputs: Any, dtype: str) -> Any:
    """A tensor of the right type for one of floats in a graph, which traces but does not run; else the inputs.

    Keras builds a subclassed model that it loads from the shape of its input alone, and takes it for floats.
    """
    if not tf.is_symbolic_tensor(inputs) or not inputs.dtype.is_floating:
        return inputs
    refused = tf.debugging.Assert(False, [f"This layer takes {dtype}, not {inputs.dtype.name}."])
    with tf.control_dependencies([refused]):
        return tf.fill(tf.shape(inputs), tf.zeros((), dtype)) + tf.zeros((), dtype)


def _checked_sequence_len(sequence_len: Any, tokens: Any) -> Any:
    if isinstance(sequence_len, list | tuple):
        sequence_len = np.asarray(sequence_len)
    sequence_len = _stand_in(sequence_len, "int32")
    shape, dtype = _shape_and_dtype(sequence_len)
    batch = tokens.shape[0]
    if (
        "int" not in dtype
        or len(shape) != 1
        or (None not in (shape[0], batch) and shape[0] != batch)
    ):
        raise ValueError(
            "`sequence_len` must be integers (batch,), the number of tokens of each sentence; the batch has "
            f"{'any number of' if batch is None else batch} sentences. Received: {_describe(sequence_len)}"
        )
    if isinstance(tokens, tf.RaggedTensor) or getattr(tokens, "ragged", False):
        raise ValueError(
            "Ragged `tokens` say themselves how long each sentence is. Received: `sequence_len` besides. Give "
            "the tokens alone, not in a dict."
        )
    return sequence_len


def _shape_and_dtype(value: Any) -> tuple[tuple, str]:
    """Of whatever is a dense or ragged tensor; else ((), "none")."""
    if (
        not hasattr(value, "shape")
        or not hasattr(value, "dtype")
        or isinstance(value, tf.SparseTensor)
    ):
        return (), "none"
    is_string_array = isinstance(value, np.ndarray) and value.dtype.kind not in "biuf"
    dtype = value.dtype.name if is_string_array else keras.backend.standardize_dtype(value.dtype)
    return () if getattr(value.shape, "rank", 0) is None else tuple(value.shape), dtype


def _describe(value: Any) -> str:
    shape, dtype = _shape_and_dtype(value)
    if dtype == "none":
        return type(value).__name__
    is_unknown = getattr(value.shape, "rank", 0) is None
    return f"{type(value).__name__} of {'unknown shape' if is_unknown else f'shape {shape}'} and type {dtype}"


def dtype_of(model: ElmoModel, dtype: Any) -> Any:
    """The model's dtype policy, which is the layer's too."""
    if dtype is not None and keras.dtype_policies.get(dtype) != model.dtype_policy:
        raise ValueError(
            f"`dtype` is decided by the model that was given, where it is {model.dtype_policy.name!r}. Received: "
            f"dtype={keras.dtype_policies.get(dtype).name!r}. Load the model with "
            f"`keras_elmo.load_model(.., dtype={keras.dtype_policies.get(dtype).name!r})`."
        )
    return model.dtype_policy
