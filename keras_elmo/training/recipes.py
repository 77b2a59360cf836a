"""Recipes and architectures: functions that fill numbers into a `PretrainConfig`, and no more."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from keras_elmo import presets
from keras_elmo.training.optimizer_config import OptimizerConfig
from keras_elmo.training.pretrain_config import PretrainConfig

_ORIGINAL_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))

ARCHITECTURES: dict[str, dict[str, Any]] = {
    "tiny": {
        "units": 512,
        "projection_dim": 128,
        "filters": ((1, 16), (2, 16), (3, 32), (4, 64), (5, 128)),
        "num_highway_layers": 1,
    },
    "small": {
        "units": 1024,
        "projection_dim": 128,
        "filters": _ORIGINAL_FILTERS,
        "num_highway_layers": 1,
    },
    "original": {
        "units": 4096,
        "projection_dim": 512,
        "filters": _ORIGINAL_FILTERS,
        "num_highway_layers": 2,
    },
}


def default(config: PretrainConfig) -> PretrainConfig:
    """The recipe that was measured to be best on small corpora: a bias that knows how frequent words are.

    With biases of 0, the vectors of rare words, which are hardly ever negatives, are never pushed down.
    """
    return config.changed(
        dropout=0.0,
        softmax_kernel_deviation=None,
        softmax_bias_initializer="log_frequencies",
        num_negative_samples=2048,
        share_negatives=True,
        batch_size=128,
        unroll_steps=20,
        network_optimizer=OptimizerConfig("adam", 0.003, beta_2=0.99, epsilon=1e-8),
        softmax_optimizer=OptimizerConfig("rowwise_adagrad", 0.09, initial_accumulator=1e-6),
        warmup_steps=100,
        decay="linear",
        final_rate=0.05,
        clip_norm=1.0,
        scale_loss=False,
    )


def bilm_tf(config: PretrainConfig) -> PretrainConfig:
    """The recipe of the original ELMo, but for decision 8 of the design: both directions see the same sentences."""
    adagrad = OptimizerConfig("adagrad", 0.2, initial_accumulator=1.0, epsilon=0.0)
    return config.changed(
        dropout=0.1,
        softmax_kernel_deviation=None,
        softmax_bias_initializer="zeros",
        num_negative_samples=8192,
        share_negatives=False,
        batch_size=128,
        unroll_steps=20,
        network_optimizer=adagrad,
        softmax_optimizer=adagrad,
        warmup_steps=0,
        decay="none",
        clip_norm=10.0,
        scale_loss=True,
    )


RECIPES: dict[str, Callable[[PretrainConfig], PretrainConfig]] = {
    "default": default,
    "bilm-tf": bilm_tf,
}

# bilm-tf's options by their dotted keys, and the fields they fill.
_OPTIONS = {
    "lstm.dim": "units",
    "lstm.projection_dim": "projection_dim",
    "lstm.n_layers": "num_layers",
    "lstm.use_skip_connections": "use_skip_connections",
    "lstm.cell_clip": "cell_clip",
    "lstm.proj_clip": "projection_clip",
    "char_cnn.max_characters_per_token": "max_word_length",
    "char_cnn.embedding.dim": "embedding_dim",
    "char_cnn.filters": "filters",
    "char_cnn.n_highway": "num_highway_layers",
    "char_cnn.activation": "activation",
    "dropout": "dropout",
    "all_clip_norm_val": "clip_norm",
    "batch_size": "batch_size",
    "unroll_steps": "unroll_steps",
    "n_negative_samples_batch": "num_negative_samples",
    "n_epochs": "num_epochs",
    "n_train_tokens": "num_train_tokens",
}
# What bilm-tf assumes where an option is missing.
_ABSENT = {
    "lstm.n_layers": 1,
    "lstm.use_skip_connections": False,
    "lstm.cell_clip": None,
    "lstm.proj_clip": None,
    "char_cnn.n_highway": 0,
}
# Looked at here, and not stored: they follow from others, or have one possible value.
_OTHER = (
    "bidirectional",
    "sample_softmax",
    "share_embedding_softmax",
    "learning_rate",
    "n_tokens_vocab",
    "char_cnn.n_characters",
)


def from_options(
    config: PretrainConfig, options_file: Path, vocabulary_size: int | None = None
) -> PretrainConfig:
    """Fills in what a file `options.json` of bilm-tf says.

    Args:
        config: What holds for options that the file lacks.
        options_file: The file.
        vocabulary_size: What `n_tokens_vocab` has to be. Defaults to `None`, anything.

    Raises:
        ValueError: If the file is damaged, has an unknown option or an impossible value; the message names it.
    """
    options = _flat(presets.read_json(options_file))
    for key in options:
        if key in ("lstm", "char_cnn"):
            raise ValueError(
                f"{options_file}: `{key}` must be an object. Received: {options[key]!r}"
            )
        if key not in _OPTIONS and key not in _OTHER:
            raise ValueError(
                f"{options_file}: the option `{key}` is unknown. Remove it, or correct its name."
            )
    if options.get("bidirectional", True) is not True:
        raise ValueError(f"{options_file}: `bidirectional` must be true: ELMo has both directions.")
    if options.get("char_cnn.n_characters", 261) not in (261, 262):
        raise ValueError(
            f"{options_file}: `n_characters` must be 261 or 262, bytes and the special characters. "
            f"Received: {options['char_cnn.n_characters']!r}"
        )
    if options.get("share_embedding_softmax", False):
        raise ValueError(
            f"{options_file}: `share_embedding_softmax` must be false: the softmax has vectors of its own."
        )
    stated = options.get("n_tokens_vocab")
    if vocabulary_size is not None and stated not in (None, vocabulary_size):
        raise ValueError(
            f"{options_file}: `n_tokens_vocab` must be the size of the vocabulary, {vocabulary_size}. "
            f"Received: {stated!r}"
        )
    fields = {_OPTIONS[key]: value for key, value in options.items() if key in _OPTIONS}
    has_characters = any(key.startswith("char_cnn.") for key in options)
    for key, value in _ABSENT.items():
        if key not in options and (has_characters or not key.startswith("char_cnn.")):
            fields[_OPTIONS[key]] = value
    fields["use_characters"] = has_characters
    if options.get("sample_softmax", True) is False:
        fields["num_negative_samples"] = None
    try:
        if "learning_rate" in options:
            fields |= _optimizers(config, options["learning_rate"])
        return config.changed(**fields)
    except ValueError as error:
        raise ValueError(f"{options_file}: {error}") from error


def _optimizers(config: PretrainConfig, learning_rate: Any) -> dict[str, OptimizerConfig]:
    """Both optimizers with the learning rate of bilm-tf, which is one for Adagrad."""
    optimizers = {
        name: getattr(config, name) for name in ("network_optimizer", "softmax_optimizer")
    }
    if any(optimizer.name != "adagrad" for optimizer in optimizers.values()):
        raise ValueError(
            "`learning_rate` is that of bilm-tf's Adagrad. Add `--recipe bilm-tf`, or remove it."
        )
    return {
        name: OptimizerConfig.from_json(optimizer.to_json() | {"learning_rate": learning_rate})
        for name, optimizer in optimizers.items()
    }


def _flat(options: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in options.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat
