"""Configurations: JSON there and back, recipes, bilm-tf's options, and what every wrong field gets."""

import json
import re

import pytest
from paths import shared

from keras_elmo.training import ARCHITECTURES, RECIPES, OptimizerConfig, PretrainConfig
from keras_elmo.training.recipes import from_options


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_json_there_and_back(recipe, architecture):
    config = RECIPES[recipe](PretrainConfig(**ARCHITECTURES[architecture], seed=7))
    assert PretrainConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_the_default_recipe_is_the_default():
    assert RECIPES["default"](PretrainConfig()) == PretrainConfig()
    assert PretrainConfig(**ARCHITECTURES["tiny"]) == PretrainConfig()


def test_bilm_tf_recipe():
    config = RECIPES["bilm-tf"](PretrainConfig())
    for optimizer in (config.network_optimizer, config.softmax_optimizer):
        assert optimizer == OptimizerConfig("adagrad", 0.2, initial_accumulator=1.0, epsilon=0.0)
    assert (config.clip_norm, config.dropout, config.unroll_steps) == (10, 0.1, 20)
    assert (config.num_negative_samples, config.share_negatives) == (8192, False)
    assert config.scale_loss
    assert config.softmax_bias_initializer == "zeros"
    assert [config.rate(step, 1000) for step in (1, 500, 1000)] == [1, 1, 1]


def test_schedule():
    config = PretrainConfig(warmup_steps=100, final_rate=0.05)
    rates = [config.rate(step, 300) for step in (1, 50, 100, 200, 300, 400)]
    assert rates == pytest.approx([0.01, 0.5, 1, 0.525, 0.05, 0.05])
    assert config.rate(200, None) == 1


def test_fields_that_a_file_lacks_are_the_defaults():
    defaults = PretrainConfig(seed=5)
    assert PretrainConfig.from_json({"batch_size": 2}, defaults) == defaults.changed(batch_size=2)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"units": 0}, "`units` must be an integer of at least 1. Received: units=0"),
        ({"batch_size": True}, "`batch_size` must be an integer of at least 1"),
        ({"max_word_length": 2}, "`max_word_length` must be an integer of at least 3"),
        ({"seed": -1}, "`seed` must be an integer of at least 0"),
        ({"seed": 2**32}, "`seed` must be a number at most 4.29497e+09"),
        ({"max_steps": 0}, "`max_steps` must be an integer of at least 1 or null"),
        ({"clip_norm": 0}, "`clip_norm` must be a number above 0 or null. Received: clip_norm=0"),
        ({"dropout": 1.0}, "`dropout` must be a number at least 0 and below 1"),
        ({"final_rate": float("nan")}, "`final_rate` must be a number at least 0 and at most 1"),
        ({"shuffle": 1}, "`shuffle` must be true or false. Received: shuffle=1"),
        ({"decay": "cosine"}, '`decay` must be one of "linear", "none"'),
        ({"filters": [[1]]}, "`filters` must be pairs of positive integers"),
        ({"filters": [[60, 2]]}, "no wider than `max_word_length`"),
        ({"precision": "float16"}, '`precision` must be one of "float32", "mixed_bfloat16"'),
        ({"network_optimizer": "adam"}, "`network_optimizer`: A OptimizerConfig must be a JSON"),
        ({"softmax_optimizer": {"name": "adam"}}, "must have the field `learning_rate`"),
        (
            {"softmax_optimizer": {"name": "lamb", "learning_rate": 1}},
            '`softmax_optimizer`: `name` must be one of "adam", "adagrad", "rowwise_adagrad", "sgd"',
        ),
        (
            {"network_optimizer": {"name": "adam", "learning_rate": 1, "beta_2": 1}},
            "`beta_2` must be a number at least 0 and below 1",
        ),
        ({"unit": 4}, "A PretrainConfig has no field `unit`. It has: activation, "),
        ([], "A PretrainConfig must be a JSON object. Received: []"),
    ],
)
def test_wrong_fields(values, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        PretrainConfig.from_json(values)


def test_an_optimizer_must_be_one():
    with pytest.raises(ValueError, match="`network_optimizer` must be an OptimizerConfig"):
        PretrainConfig(network_optimizer="adam")


def options(tmp_path, **changes):
    values = {
        "bidirectional": True,
        "char_cnn": {
            "activation": "tanh",
            "embedding": {"dim": 4},
            "filters": [[1, 32], [2, 32]],
            "max_characters_per_token": 30,
            "n_characters": 261,
            "n_highway": 2,
        },
        "lstm": {"dim": 64, "projection_dim": 16, "cell_clip": 3, "proj_clip": 3},
        "dropout": 0.2,
        "all_clip_norm_val": 5.0,
        "n_epochs": 3,
        "n_train_tokens": 1000,
        "batch_size": 16,
        "n_tokens_vocab": 99,
        "unroll_steps": 10,
        "n_negative_samples_batch": 50,
        "learning_rate": 0.1,
    } | changes
    path = tmp_path / "options.json"
    path.write_text(json.dumps({key: value for key, value in values.items() if value != ...}))
    return path


def test_options_of_bilm_tf(tmp_path):
    start = RECIPES["bilm-tf"](PretrainConfig())
    config = from_options(start, options(tmp_path), vocabulary_size=99)
    assert config == start.changed(
        activation="tanh",
        embedding_dim=4,
        filters=((1, 32), (2, 32)),
        max_word_length=30,
        num_highway_layers=2,
        units=64,
        projection_dim=16,
        num_layers=1,
        use_skip_connections=False,
        cell_clip=3,
        projection_clip=3,
        dropout=0.2,
        clip_norm=5.0,
        num_epochs=3,
        num_train_tokens=1000,
        batch_size=16,
        unroll_steps=10,
        num_negative_samples=50,
        network_optimizer=OptimizerConfig("adagrad", 0.1),
        softmax_optimizer=OptimizerConfig("adagrad", 0.1),
    )


def test_options_without_characters_and_with_the_full_softmax(tmp_path):
    changes = {"char_cnn": ..., "sample_softmax": False, "learning_rate": ...}
    config = from_options(PretrainConfig(), options(tmp_path, **changes))
    assert not config.use_characters
    assert config.num_negative_samples is None


def test_real_options_file():
    file = shared("models", "bilm_tf_tiny_en", "options.json")
    config = from_options(RECIPES["bilm-tf"](PretrainConfig()), file, 40_000)
    assert config == RECIPES["bilm-tf"](PretrainConfig()).changed(num_train_tokens=6_400_000)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"bidirectional": False}, "`bidirectional` must be true"),
        ({"share_embedding_softmax": True}, "`share_embedding_softmax` must be false"),
        ({"n_tokens_vocab": 98}, "`n_tokens_vocab` must be the size of the vocabulary, 99"),
        ({"batchsize": 3}, "options.json: the option `batchsize` is unknown"),
        ({"dropout": 2}, "options.json: `dropout` must be a number"),
        ({"lstm": 3}, "options.json: `lstm` must be an object. Received: 3"),
        ({"char_cnn": {"n_characters": 300}}, "`n_characters` must be 261 or 262, bytes and"),
        ({"learning_rate": "x"}, "options.json: `learning_rate` must be a number"),
    ],
)
def test_wrong_options(tmp_path, changes, sentence):
    start = RECIPES["bilm-tf"](PretrainConfig())
    with pytest.raises(ValueError, match=re.escape(sentence)):
        from_options(start, options(tmp_path, **changes), vocabulary_size=99)


def test_the_learning_rate_of_another_recipe(tmp_path):
    sentence = "options.json: `learning_rate` is that of bilm-tf's Adagrad. Add `--recipe bilm-tf`"
    with pytest.raises(ValueError, match=sentence):
        from_options(PretrainConfig(), options(tmp_path))
