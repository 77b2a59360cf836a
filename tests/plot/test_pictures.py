"""The pictures of numbers: what is drawn, and what is refused."""

import json
import os

import numpy as np
import pytest

from keras_elmo.plot import (
    plot_layer_similarity,
    plot_layer_weights,
    plot_occurrences,
    plot_training,
    plot_word_lengths,
)

PNG = b"\x89PNG"


@pytest.mark.parametrize(
    "draw",
    [
        lambda path: plot_layer_similarity(["a", "b"], [np.eye(2)], path),
        lambda path: plot_layer_weights({"task": [1.0]}, path),
        lambda path: plot_occurrences(np.eye(2), ["a", "b"], path),
        lambda path: plot_training("nowhere", path),
        lambda path: plot_word_lengths({1: 1}, 50, path),
    ],
)
def test_unknown_endings(tmp_path, draw):
    with pytest.raises(ValueError, match="must end in one of"):
        draw(tmp_path / "out.doc")
    assert not os.listdir(tmp_path)


# --- a word's similarity over the layers ---


def test_layer_similarity(tmp_path, figures):
    layers = [np.ones((3, 3)), np.full((3, 3), 0.7), np.full((3, 3), 0.5)]
    layers[2][0, 2] = 0.25
    sentences = ["the $bank$ of", "my bank is", "a bank" * 50]
    plot_layer_similarity(sentences, layers, tmp_path / "out.png", "bank")
    [axis] = figures[0].axes
    lines = {line.get_label(): list(line.get_ydata()) for line in axis.get_lines()}
    assert lines == {"1 ~ 2": [1, 0.7, 0.5], "1 ~ 3": [1, 0.7, 0.25], "2 ~ 3": [1, 0.7, 0.5]}
    assert len({line.get_marker() for line in axis.get_lines()}) == 3
    assert [text.get_text() for text in axis.texts] == ["0.50", "0.25", "0.50"]
    title = axis.get_title(loc="left").split("\n")
    assert title[:2] == ["“bank” in", "1  the $bank$ of"]
    assert title[3].endswith("…")


@pytest.mark.parametrize("count", [0, 1, 7])
def test_too_few_or_too_many_sentences(tmp_path, count):
    with pytest.raises(ValueError, match=f"takes 2 to 6 sentences. Received: {count}"):
        plot_layer_similarity(["a"] * count, [np.eye(count)], tmp_path / "out.png")


@pytest.mark.parametrize("shapes", [[], [(3, 3)], [(2, 2), (2, 3)]])
def test_layers_of_another_size(tmp_path, shapes):
    with pytest.raises(ValueError, match=r"must be arrays of shape \(2, 2\). Received: shapes \["):
        plot_layer_similarity(["a", "b"], [np.zeros(s) for s in shapes], tmp_path / "out.png")


# --- the weights of the layers ---


def test_layer_weights(tmp_path, figures):
    plot_layer_weights({"tags, $x_": [0.6, 0.3, 0.1], "roles": [0.2, 0.8]}, tmp_path / "mix.png")
    axis = figures[0].axes[0]
    assert [text.get_text() for text in axis.texts] == ["0.60", "0.30", "0.10", "0.20", "0.80"]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["tags, $x_", "roles"]
    assert [label.get_text() for label in axis.get_xticklabels()] == [
        "characters",
        "LSTM 1",
        "LSTM 2",
    ]


@pytest.mark.parametrize("weights", [{}, {"tags": []}])
def test_no_layer_weights(tmp_path, weights):
    with pytest.raises(ValueError, match="the layers' weights of a task at least. Received: none"):
        plot_layer_weights(weights, tmp_path / "mix.png")


# --- a map of a word's occurrences ---


def test_occurrences(tmp_path, figures):
    """The two senses lie on two sides; how long a vector is does not matter."""
    random = np.random.default_rng(0)
    directions = np.array([[1, 0, 0, 0], [0, 1, 0, 0]]) + random.normal(0, 0.05, (20, 2, 4))
    vectors = (directions * random.uniform(1, 9, (20, 2, 1))).reshape(40, 4)
    plot_occurrences(
        vectors, ["$river_", "money"] * 20, tmp_path / "map.png", "bank", ["text"] * 40
    )
    [axis] = figures[0].axes
    river, money = (points.get_offsets() for points in axis.collections)
    assert len(river) == len(money) == 20
    assert river[:, 0].max() < 0 < money[:, 0].min() or money[:, 0].max() < 0 < river[:, 0].min()
    assert [text.get_text() for text in axis.get_legend().get_texts()] == ["$river_", "money"]
    assert len(axis.texts) == 40
    assert axis.get_title() == "“bank”, 40 occurrences"
    assert float(axis.get_xlabel().split()[2].rstrip("%")) > 90


@pytest.mark.parametrize("vectors", [[[1.0], [2.0]], [[1.0, 1.0]] * 3, [[0.0, 0.0]] * 2])
def test_occurrences_that_fill_no_plane(tmp_path, vectors):
    plot_occurrences(vectors, ["a"] * len(vectors), tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("vectors", "senses", "texts", "message"),
    [
        ([[1, 2]], ["a"], None, r"two occurrences or more. Received: shape \(1, 2\)"),
        ([1, 2], ["a", "b"], None, r"two occurrences or more. Received: shape \(2,\)"),
        (np.eye(2), ["a"], None, "`senses` must have one entry for each of the 2 vectors"),
        (np.eye(2), ["a", "b"], ["t"], "`texts` must have one entry .* Received: 1"),
        (np.eye(11), list("abcdefghijk"), None, "up to 10 senses apart. Received: 11; leave out"),
    ],
)
def test_no_map(tmp_path, vectors, senses, texts, message):
    with pytest.raises(ValueError, match=message):
        plot_occurrences(vectors, senses, tmp_path / "map.png", texts=texts)


# --- the curves of a run ---


def log_of(folder, losses, validations):
    lines = [
        {"step": step, "sampled_loss": loss, "gradient_norm": 1.0, "learning_rate": 0.1}
        for step, loss in losses
    ]
    lines += [
        {
            "step": step,
            "validation": {
                "perplexity": value,
                "forward_perplexity": value + 1,
                "backward_perplexity": value - 1,
            },
        }
        for step, value in validations
    ]
    lines.append({"step": 98, "event": "end", "num_dropped": 0})
    log = folder / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"step": 99, "sam')
    return folder


def test_training_curves(tmp_path, figures):
    """Of steps that were made twice the last ones count; a line that is just being written does not."""
    losses = [(step, 5.0) for step in (1, 2, 3, 2, 3, 4)]
    run = log_of(tmp_path, [*losses, (4, 3.0)], [(10, 90.0), (20, 30.0), (30, 50.0), (20, 40.0)])
    plot_training(run, tmp_path / "curves.png")
    loss, perplexity, norm, rate = figures[0].axes
    assert [axis.get_title() for axis in (loss, perplexity, norm, rate)] == [
        "sampled loss in training",
        "perplexity on the validation text",
        "gradient norm",
        "learning rate",
    ]
    single = loss.get_lines()[0]
    assert list(single.get_xdata()) == [1, 2, 3, 4]
    assert list(single.get_ydata()) == [5, 5, 5, 3]
    lines = {line.get_label(): line for line in perplexity.get_lines()}
    assert list(lines) == ["forward", "backward", "both"]
    assert list(lines["both"].get_xdata()) == [10, 20, 30]
    assert list(lines["both"].get_ydata()) == [90, 40, 50]
    assert list(lines["backward"].get_ydata()) == [89, 39, 49]
    assert [text.get_text() for text in perplexity.texts] == ["40.0"]
    assert (tmp_path / "curves.png").read_bytes().startswith(PNG)


def test_the_mean_over_many_steps(tmp_path, figures):
    plot_training(log_of(tmp_path, [(k, k % 2) for k in range(200)], []), tmp_path / "c.png")
    loss, *others = figures[0].axes
    assert len(others) == 2  # without validation
    mean = loss.get_lines()[1]
    assert list(mean.get_xdata()) == list(range(3, 200))
    np.testing.assert_allclose(mean.get_ydata(), 0.5)


def test_a_run_without_a_step(tmp_path):
    with pytest.raises(ValueError, match="log.jsonl has no training step yet"):
        plot_training(log_of(tmp_path, [], []), tmp_path / "curves.png")
    with pytest.raises(OSError, match="log.jsonl"):
        plot_training(tmp_path / "none", tmp_path / "curves.png")


# --- words that are cut ---


def test_word_lengths(tmp_path, figures):
    plot_word_lengths({1: 50, 18: 30, 19: 15, 500: 5}, 20, tmp_path / "lengths.png")
    [axis] = figures[0].axes
    whole, cut = axis.containers
    assert sum(bar.get_height() for bar in whole) == 80
    assert [(bar.get_x() + 0.4, bar.get_height()) for bar in cut if bar.get_height()] == [
        (pytest.approx(19), 15),
        (pytest.approx(100), 5),
    ]
    labels = [text.get_text() for text in axis.get_legend().get_texts()]
    assert labels == ["read whole: 80", "cut: 20 (20.00%)"]
    assert axis.get_xticklabels()[-1].get_text() == "≥100"


def test_no_word_lengths(tmp_path):
    with pytest.raises(ValueError, match="must count a word at least. Received: none"):
        plot_word_lengths({}, 50, tmp_path / "lengths.png")
