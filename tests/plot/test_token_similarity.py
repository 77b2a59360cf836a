import os
import sys
import warnings

import numpy as np
import pytest

from keras_elmo.plot import drawing, plot_token_similarity

matplotlib = pytest.importorskip("matplotlib", reason="matplotlib not installed (extra `plot`)")

from matplotlib.figure import Figure  # noqa: E402

SENTENCES = [["the", "bank"], ["a", "bank", "$x_", "^$"]]


def similarities(sentences, layers=3):
    count = sum(map(len, sentences))
    return list(np.random.default_rng(0).uniform(-1, 1, (layers, count, count)))


def panels(figure):
    return [axis for axis in figure.axes if axis.get_title()]


@pytest.mark.parametrize(
    ("ending", "magic"),
    [("png", b"\x89PNG"), ("PNG", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")],
)
def test_formats(tmp_path, ending, magic):
    path = tmp_path / f"out.{ending}"
    plot_token_similarity(SENTENCES, similarities(SENTENCES), str(path), "bank")
    assert path.read_bytes().startswith(magic)
    assert os.listdir(tmp_path) == [path.name]


def test_what_is_drawn(tmp_path, figures):
    layers = similarities(SENTENCES)
    plot_token_similarity(SENTENCES, layers, tmp_path / "out.png", "New  York")
    (figure,) = figures
    assert figure.get_suptitle() == "Token against token, compared: New York"
    assert [axis.get_title() for axis in panels(figure)] == [
        "layer 0: characters only",
        "layer 1",
        "layer 2",
    ]
    for axis, layer in zip(panels(figure), layers, strict=True):
        np.testing.assert_array_equal(axis.images[0].get_array(), layer)
        assert axis.images[0].get_clim() == (-1, 1)
        labels = [text.get_text() for text in axis.get_xticklabels()]
        assert labels == ["the", "bank", "a", "bank", "$x_", "^$"]
        # One line between two sentences, down and across.
        assert [line.get_xdata()[0] for line in axis.lines if line.get_xdata()[0] == 1.5] == [1.5]
        assert len(axis.lines) == 2
    assert [text.get_text() for text in panels(figure)[0].get_yticklabels()] == labels


def test_title_without_a_word(tmp_path, figures):
    plot_token_similarity([["a"], ["b"]], similarities([["a"], ["b"]], 1), tmp_path / "out.png")
    assert figures[0].get_suptitle() == "Token against token"


@pytest.mark.parametrize("count", [2, 12, 60])
def test_nothing_overlaps(tmp_path, figures, count):
    sentences = [["internationally"] * (count // 2), ["a"] * (count // 2)]
    plot_token_similarity(sentences, similarities(sentences, 3), tmp_path / "out.png", "a")
    (figure,) = figures
    inch = figure.dpi
    for axis in panels(figure):
        places = axis.transData.transform([(k, k) for k in range(count)])
        step = abs(np.diff(places[:, 1])).min()
        heights = [text.get_window_extent().width for text in axis.get_xticklabels()]
        assert max(heights) < step * 1.01
        assert axis.get_xticklabels()[0].get_fontsize() >= 6
        gap = figure.get_suptitle() and (
            figure._suptitle.get_window_extent().y0 - axis.title.get_window_extent().y1
        )
        assert 0 < gap < 0.35 * inch
    boxes = [axis.get_tightbbox() for axis in figure.axes]
    assert all(one.x1 <= two.x0 + 1 for one, two in zip(boxes, boxes[1:], strict=False))


def test_long_words_are_cut(tmp_path, figures):
    sentences = [["x" * 10_000, "b"]]
    plot_token_similarity(sentences, similarities(sentences), tmp_path / "out.png", "x" * 10_000)
    assert figures[0].axes[0].get_xticklabels()[0].get_text() == "x" * 19 + "…"
    assert len(figures[0].get_suptitle()) < 100


@pytest.mark.parametrize(
    "token", ["\udcff", "a\0b", "\x1b[31m", "$", "$x$", "\\frac", "{", "_^", "<b>"], ids=ascii
)
def test_odd_tokens(tmp_path, token):
    for name in ("out.png", "out.svg"):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "No installed font")
            plot_token_similarity(
                [[token, token]], similarities([[token] * 2]), tmp_path / name, token
            )


def test_a_character_that_no_font_has(tmp_path):
    character = "\U0010fffd"  # for private use: nobody's
    with pytest.warns(
        UserWarning, match=f"No installed font has the characters {character}: "
    ) as caught:
        plot_token_similarity(
            [["a", character]], similarities([["a", "b"]]), tmp_path / "out.png", character
        )
    assert len(caught) == 1
    assert "Noto Sans CJK" in str(caught[0].message)
    assert (tmp_path / "out.png").exists()


def test_installed_fonts_help_out(monkeypatch):
    from matplotlib.font_manager import fontManager

    assert drawing.fonts()[0] == "sans-serif"
    assert set(drawing.fonts()[1:]) <= {font.name for font in fontManager.ttflist}
    monkeypatch.setattr(drawing, "_MORE_FONTS", ("STIXGeneral", "No Such Font"))
    assert drawing.fonts() == ["sans-serif", "STIXGeneral"]


def test_other_warnings_pass(tmp_path, monkeypatch):
    real = Figure.savefig

    def savefig(*args, **options):
        warnings.warn("beware", RuntimeWarning, stacklevel=1)
        real(*args, **options)

    monkeypatch.setattr(Figure, "savefig", savefig)
    with pytest.warns(RuntimeWarning, match="beware"):
        plot_token_similarity([["a"]], similarities([["a"]]), tmp_path / "out.png")


def test_a_picture_that_is_there_is_replaced(tmp_path):
    (tmp_path / "out.png").write_text("old")
    plot_token_similarity([["a"]], similarities([["a"]]), tmp_path / "out.png")
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["out", "out.doc", "png", "out.png.", ""])
def test_unknown_endings(tmp_path, name):
    with pytest.raises(
        ValueError, match=r"The picture '.*' must end in one of .*\.pdf, .*\.png, .*\.svg"
    ):
        plot_token_similarity([["a"]], similarities([["a"]]), tmp_path / name)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("count", [0, 201])
def test_too_many_or_no_tokens(tmp_path, count):
    with pytest.raises(ValueError, match=f"takes 1 to 200 tokens altogether. Received: {count};"):
        plot_token_similarity([["a"] * count], similarities([["a"] * count]), tmp_path / "out.png")


@pytest.mark.parametrize("shapes", [[], [(3, 3)], [(2, 2), (2, 3)], [(2, 2, 1)]])
def test_layers_of_another_size(tmp_path, shapes):
    with pytest.raises(
        ValueError, match=r"`layers` must be arrays of shape \(2, 2\). Received: shapes \["
    ):
        plot_token_similarity(
            [["a", "b"]], [np.zeros(shape) for shape in shapes], tmp_path / "out.png"
        )


def test_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match="pip install matplotlib"):
        plot_token_similarity([["a"]], similarities([["a"]]), tmp_path / "out.png")


def test_no_figure_stays_in_memory(tmp_path):
    plot_token_similarity([["a"]], similarities([["a"]]), tmp_path / "out.png")
    assert (
        "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()
    )
