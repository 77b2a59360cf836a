"""The presets that come with the package: complete, described, and as good as their cards say."""

import itertools
import json
import lzma
import re

import pytest
from paths import shared

import keras_elmo
from keras_elmo import presets
from keras_elmo.corpus import read_sentences
from keras_elmo.training import evaluate

MEGABYTES = 25
CORPORA = {"elmo_tiny_en": "lm", "elmo_tiny_zh": "lm-zh"}
BARS = {"elmo_tiny_en": 135, "elmo_tiny_zh": 130}
# What lies between two tokens, unless both are Latin words or numbers.
JOINT = re.compile(r"(?<![A-Za-z0-9]) | (?![A-Za-z0-9])")

pytestmark = pytest.mark.parametrize("name", presets.preset_names())


def metadata_of(name):
    return presets.read_metadata(presets.preset_folder(name))


def sentences_of(name, part):
    """Sentences of held-back text, cut as the preset's tokenizer cuts them."""
    lines = read_sentences(shared("data", CORPORA[name], f"{part}.txt.xz"), "tokens")
    if metadata_of(name)["text_format"] == "tokens":
        return lines
    joined = (JOINT.sub("", " ".join(tokens)) for tokens in lines)
    return itertools.chain.from_iterable(
        map(keras_elmo.tokenize_sentences, iter(lambda: list(itertools.islice(joined, 100)), []))
    )


def test_a_folder_is_complete_and_small(name):
    folder = presets.preset_folder(name)
    assert sum(file.stat().st_size for file in folder.iterdir()) < MEGABYTES * 1e6
    assert {file.name for file in folder.iterdir()} == {
        presets.CONFIG_FILE,
        presets.WEIGHTS_FILE,
        presets.LANGUAGE_MODEL_FILE,
        presets.VOCABULARY_FILE,
        presets.METADATA_FILE,
        presets.MODEL_CARD_FILE,
        "attribution.tsv.xz",
        "perplexity.png",
        "training_log.jsonl",
    }
    assert (folder / "perplexity.png").read_bytes().startswith(b"\x89PNG")


def test_metadata_and_card(name):
    folder, metadata = presets.preset_folder(name), metadata_of(name)
    assert metadata["tokenizer"] == "word"
    assert metadata["license"] == "Apache-2.0"
    assert metadata["language"] == name[-2:]
    card = (folder / presets.MODEL_CARD_FILE).read_text(encoding="utf-8")
    for heading in ("How good it is", "Training", "Limits", "Attribution and licence"):
        assert f"\n## {heading}\n" in card
    for part in ("validation", "test"):
        found = metadata[f"{part}_perplexity"]
        row = next(line for line in card.splitlines() if line.startswith(f"| {part} "))
        for direction in ("forward", "backward", "both"):
            assert f"{found[direction]:.1f}" in row
    assert metadata["validation_perplexity"]["both"] <= BARS[name]
    ratio = (
        metadata["validation_perplexity"]["forward"] / metadata["validation_perplexity"]["backward"]
    )
    assert 1 / 1.15 < ratio < 1.15


def test_the_log_is_that_of_the_run(name):
    log = presets.preset_folder(name) / "training_log.jsonl"
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [line["step"] for line in lines if "sampled_loss" in line][:5] == [10, 20, 30, 40, 50]
    best = min(
        (line for line in lines if "validation" in line),
        key=lambda line: line["validation"]["perplexity"],
    )
    assert best["step"] == metadata_of(name)["step"]


def test_every_document_is_named(name):
    with lzma.open(presets.preset_folder(name) / "attribution.tsv.xz", "rt") as lines:
        heads, *rows = (line.rstrip("\n").split("\t") for line in lines)
    assert heads[:2] == ["source", "licence"]
    assert len(rows) > 5000
    assert all(len(row) == len(heads) and all(row) for row in rows)


def test_the_model_is_computed_with_in_float32(name):
    model = keras_elmo.load_language_model(name)
    assert model.elmo_model.dtype_policy.name == "float32"
    assert {weight.dtype for weight in model.weights if weight.name != "seed_generator_state"} <= {
        "float32",
        "uint32",
    }


def test_held_back_sentences(name):
    """The first ones of the test text: no more than a third off what the card says of all of it."""
    sentences = itertools.islice(sentences_of(name, "test"), 150)
    result = evaluate(keras_elmo.load_language_model(name), sentences)
    assert result.perplexity == pytest.approx(
        metadata_of(name)["test_perplexity"]["both"], rel=0.33
    )


@pytest.mark.large
@pytest.mark.parametrize("part", ["validation", "test"])
def test_figures_of_the_card(name, part):
    sentences = sentences_of(name, "valid" if part == "validation" else part)
    result = evaluate(keras_elmo.load_language_model(name), sentences)
    found = metadata_of(name)[f"{part}_perplexity"]
    assert result.perplexity == pytest.approx(found["both"], rel=1e-3)
    assert result.forward_perplexity == pytest.approx(found["forward"], rel=1e-3)
    assert result.backward_perplexity == pytest.approx(found["backward"], rel=1e-3)
