"""What MkDocs does with a page besides: code from the package, formulas as MathML, the language of a page."""

import html
import re
import textwrap
from functools import cache

import griffe
from latex2mathml.converter import convert

_SOURCE = re.compile(r"^```source\n(\S+)\n```$", re.MULTILINE)
# What `pymdownx.arithmatex` makes of formulas.
_FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</(?:span|div)>', re.DOTALL
)


def on_page_markdown(markdown, page, config, files):
    """Puts the code in the place of its name: a block `source` with `keras_elmo.layers.Highway.call`."""
    return _SOURCE.sub(lambda found: _code(found[1]), markdown)


def on_page_content(html, page, config, files):
    """Makes MathML of formulas: a browser shows it without any script."""
    return _FORMULA.sub(_mathml, html)


def on_page_context(context, page, config, nav):
    """Makes the words around a page, and the language that browsers are told, those of its edition."""
    config.theme["language"] = "zh" if page.file.src_uri.startswith("zh/") else "en"


@cache
def _package():
    return griffe.load("keras_elmo")


def _code(name):
    found = _package()[name.removeprefix("keras_elmo.")]
    path = found.relative_package_filepath.as_posix()
    return f'```python title="{path}"\n{textwrap.dedent(found.source).rstrip()}\n```'


def _mathml(found):
    kind, formula = found.groups()
    return convert(html.unescape(formula), display="block" if kind == "div" else "inline")
