"""The GPU benchmark: its file of windows, its FLOPs, what it refuses, and a try on the CPU where JAX is."""

import importlib.util
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import gpu
import keras
import numpy as np
import pytest

from keras_elmo import character_ids
from keras_elmo.corpus import SentenceStream, TrainingStream, build_vocabulary, count_words

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "gpu.py"
ARCHITECTURE = {
    "units": 11,
    "projection_dim": 7,
    "num_layers": 2,
    "max_word_length": 5,
    "embedding_dim": 3,
    "filters": [[1, 2], [3, 4]],
    "num_highway_layers": 1,
}
ROWS, STEPS, BATCHES, VOCABULARY_SIZE = 2, 20, 3, 12


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    file = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    animals, places = ("cat", "dog", "bird"), ("house", "river", "wood", "road", "field")
    pairs = itertools.product(animals, places)
    file.write_text("".join(f"the {animal} ran to the {place} .\n" for animal, place in pairs))
    return file


@pytest.fixture(scope="module")
def windows(corpus):
    batches = itertools.islice(_stream(corpus), BATCHES)
    header = {
        "architectures": {"tiny": ARCHITECTURE},
        "vocabulary_size": VOCABULARY_SIZE,
        "num_negatives": 5,
    }
    return gpu.Windows.of(batches, header)


def _stream(corpus):
    vocabulary, _ = build_vocabulary(count_words(corpus), VOCABULARY_SIZE)
    return TrainingStream(SentenceStream(corpus), vocabulary, ROWS, STEPS)


def test_what_is_packed_is_what_is_loaded(windows, tmp_path):
    windows.save(tmp_path / "windows.npz")
    loaded = gpu.Windows.load(tmp_path / "windows.npz")
    assert loaded.header == windows.header
    for name, array in windows.arrays.items():
        np.testing.assert_array_equal(loaded.arrays[name], array, strict=True)


def test_batches_are_those_of_the_stream(windows, corpus):
    assert windows.shape == (BATCHES, ROWS, STEPS)
    assert windows.tokens_per_batch == ROWS * STEPS
    num_words = []
    for step, batch in zip(range(BATCHES), _stream(corpus), strict=False):
        # After the last batch the first one comes again.
        inputs = windows.training_inputs(step + BATCHES)
        for name in gpu.TEXT:
            np.testing.assert_array_equal(inputs[name], getattr(batch, name), strict=True)
        words, real = inputs["word_ids"], len(batch.word_character_ids)
        assert len(words) % gpu.WORDS_MULTIPLE == 0
        np.testing.assert_array_equal(words[:real], batch.word_character_ids)
        assert not words[real:].any()
        np.testing.assert_array_equal(windows.sentences(step), words[batch.forward_words])
        num_words.append(real - 1)
    assert windows.words_per_batch == np.mean(num_words)


def test_negatives_are_those_of_the_step(windows):
    first, again, other = (windows.training_inputs(step) for step in (0, 0, BATCHES))
    for direction in ("forward", "backward"):
        negatives = first[f"{direction}_negatives"]
        assert len(set(negatives.tolist())) == 5
        assert negatives.max() < VOCABULARY_SIZE
        np.testing.assert_array_equal(again[f"{direction}_negatives"], negatives)
        assert (other[f"{direction}_negatives"] != negatives).any()
        assert first[f"{direction}_num_tries"] >= 5


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="packing needs TensorFlow")
def test_pack(corpus, tmp_path, capsys):
    from keras_elmo.training import ARCHITECTURES, PretrainConfig

    file = tmp_path / "windows.npz"
    options = {"corpus": corpus, "num-batches": 2, "batch-size": 3, "vocabulary-size": 9}
    pairs = [(f"--{name}", str(value)) for name, value in options.items()]
    gpu.main(["pack", str(file), *itertools.chain(*pairs)])
    assert "(2, 3, 20) batches, rows and tokens" in capsys.readouterr().out
    packed = gpu.Windows.load(file)
    assert packed.shape == (2, 3, 20)
    assert packed.header["vocabulary_size"] == 9
    assert packed.header["num_negatives"] == PretrainConfig().num_negative_samples
    assert set(packed.header["architectures"]) == set(gpu.SIZES)
    for name, architecture in packed.header["architectures"].items():
        assert architecture == PretrainConfig(**ARCHITECTURES[name]).architecture
    spelled = packed.sentences(0).reshape(-1, 50)
    assert character_ids(["the"])[0, 0].tolist() in spelled.tolist()


def test_flop_are_those_of_a_count_by_hand(windows):
    # Filters of width 1 fit 5 times into a word, those of width 3 fit 3 times.
    convolutions = 5 * 2 * (1 * 3) * 2 + 3 * 4 * (3 * 3) * 2
    highway, projection = 2 * (6 * 6) * 2, (6 * 7) * 2
    word = convolutions + highway + projection
    assert gpu.flop_per_word(ARCHITECTURE) == word == 504
    # 44 gates, of 7 inputs and 7 outputs; 11 values projected to 7; in 2 layers, and 2 directions.
    token = (7 * 44 + 7 * 44 + 11 * 7) * 2 * 2 * 2
    assert gpu.flop_per_token(ARCHITECTURE) == token == 5544
    # 40 tokens; in each direction the logits of 5 negatives and of the target.
    step = 3 * (windows.words_per_batch * word + 40 * (token + 2 * 6 * 7 * 2))
    assert gpu.training_flop(windows, ARCHITECTURE) == step
    assert gpu.inference_flop(windows, ARCHITECTURE) == 2 * 22 * (word + token)


def test_tenths():
    assert gpu.tenths([9.0, 7.0, *[5.0] * 17, 3.0, 1.0]) == (8.0, 2.0)


@pytest.mark.parametrize("content", [b"", b"no file of windows", b"PK\x03\x04 cut off"])
def test_a_file_that_is_none(content, tmp_path):
    file = tmp_path / "windows.npz"
    file.write_bytes(content)
    with pytest.raises(SystemExit, match=r"must be a whole file that `gpu\.py pack` wrote"):
        gpu.Windows.load(file)


def test_no_file():
    with pytest.raises(SystemExit, match="must be a whole file"):
        gpu.main(["measure", "no_such_file.npz"])


def test_too_little_time():
    with pytest.raises(SystemExit, match="must be more than the `--minutes` of the loss"):
        gpu.main(["measure", "windows.npz", "--seconds", "60", "--minutes", "1"])


def test_tensorflow_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", np)
    with pytest.raises(SystemExit, match="must run without TensorFlow"):
        gpu.refuse_tensorflow()


@pytest.fixture(scope="module")
def file(windows, tmp_path_factory):
    file = tmp_path_factory.mktemp("windows") / "windows.npz"
    # Words have 50 ids, as the pipeline spells them; one layer is compiled in half the time. All words as negatives of
    # the same batch again and again: few steps show that the loss falls.
    architecture = ARCHITECTURE | {"max_word_length": 50, "num_layers": 1}
    header = {"architectures": {"tiny": architecture}, "num_negatives": VOCABULARY_SIZE}
    arrays = {name: array[:1] for name, array in windows.arrays.items()}
    gpu.Windows(windows.header | header, arrays).save(file)
    return file


def _measure(file, *options, **environment):
    return subprocess.run(
        [sys.executable, "-W", "error:::keras_elmo", SCRIPT, "measure", file, *options],
        env=os.environ | environment,
        capture_output=True,
        text=True,
    )


def test_without_jax(file, tmp_path):
    (tmp_path / "jax.py").write_text("raise ImportError('no JAX')")
    process = _measure(file, "--cpu", PYTHONPATH=str(tmp_path))
    assert process.returncode == 1
    assert "must be there: no JAX" in process.stderr


needs_jax = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None,
    reason="JAX is not installed: pip install '.[backends]'",
)


@needs_jax
def test_without_a_gpu(file):
    process = _measure(file, JAX_PLATFORMS="cpu")
    assert process.returncode == 1
    assert "JAX sees no GPU here" in process.stderr


@needs_jax
def test_on_the_cpu(file, tmp_path):
    report = tmp_path / "report.json"
    options = "--cpu --minutes 0.05 --measure-seconds 0.1 --matrix-size 64".split()
    process = _measure(file, *options, "--json", report)
    assert process.returncode == 0, process.stderr
    results = json.loads(report.read_text())["results"]
    assert [(result["what"], result["precision"]) for result in results] == [
        ("matrix_product", "float32"),
        ("matrix_product", "tensorfloat32"),
        ("matrix_product", "mixed_bfloat16"),
        ("training", "float32"),
        ("inference", "float32"),
        ("loss", "float32"),
    ]
    for result in results[3:5]:
        assert result["tokens_per_second"] > 0
        assert result["share_of_matrix_rate"] > 0
    assert results[-1]["last_tenth"] < results[-1]["first_tenth"]
