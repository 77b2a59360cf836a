"""What all pictures have in common: fonts, labels, files."""

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from keras_elmo.extras import require
from keras_elmo.files import written_beside

# Matplotlib's own font has Latin, Greek, Cyrillic, Arabic and Hebrew. Of these, those that are installed help out.
_MORE_FONTS = (
    *(f"Noto Sans CJK {place}" for place in ("SC", "JP", "TC", "KR")),
    *(
        "Source Han Sans SC",
        "Noto Sans SC",
        "Droid Sans Fallback",
        "WenQuanYi Micro Hei",
        "WenQuanYi Zen Hei",
    ),
    *(
        "PingFang SC",
        "Hiragino Sans",
        "Heiti TC",
        "Apple SD Gothic Neo",
        "Microsoft YaHei",
        "SimHei",
    ),
    *("Arial Unicode MS", "Noto Sans Devanagari", "Noto Sans Thai", "Noto Emoji"),
)
_DOTS_PER_INCH = 150


def check_can_draw(path: str | os.PathLike) -> None:
    """Raises an error if matplotlib is missing or cannot write a file of this ending."""
    require("matplotlib", "plot")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    kinds = FigureCanvasAgg.get_supported_filetypes()
    if os.path.splitext(path)[1].lstrip(".").lower() not in kinds:
        raise ValueError(
            f"The picture {str(path)!r} must end in one of {', '.join('.' + kind for kind in sorted(kinds))}."
        )


def save(figure: Any, path: str | os.PathLike) -> None:
    """Writes a figure to a file that takes the place of another only when it is whole."""
    with written_beside(path, overwrite=True) as beside:
        figure.savefig(beside, dpi=_DOTS_PER_INCH, bbox_inches="tight")


def label(text: str, length: int) -> str:
    """A text of one line that can be drawn, cut to a length; of lone surrogates, question marks."""
    text = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    return text if len(text) <= length else text[: length - 1] + "…"


def fonts() -> list[str]:
    """Matplotlib's fonts, and behind them those that are installed for other scripts."""
    import matplotlib
    from matplotlib.font_manager import fontManager

    installed = {font.name for font in fontManager.ttflist}
    return [
        *matplotlib.rcParams["font.family"],
        *(font for font in _MORE_FONTS if font in installed),
    ]


@contextmanager
def missing_glyphs_told() -> Iterator[None]:
    """Makes one warning, with the characters, of matplotlib's one for each missing glyph and each drawing."""
    missing = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", r"Glyph \d+ .*missing from")
        yield
    for warning in caught:
        glyph = re.match(r"Glyph (\d+) .*missing from", str(warning.message))
        if glyph:
            missing[chr(int(glyph[1]))] = True
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    if missing:
        warnings.warn(
            f"No installed font has the characters {''.join(missing)}: the picture shows boxes in their place. "
            "Install a font that has them, such as Noto Sans CJK for Chinese, Japanese and Korean.",
            stacklevel=4,
        )
