"""The docstrings of Keras layers as Griffe wants them."""

import re

import griffe

# A line that begins an example, and all lines up to the next empty one.
_EXAMPLE = re.compile(r"(?:^ *>>> .*\n?)(?:^(?!\n)(?! *$).+\n?)*", re.MULTILINE)
_CALL_ARGUMENTS = re.compile(r"^Call arguments:\n((?:    .*\n?|\n(?=    ))+)", re.MULTILINE)


class KerasDocstrings(griffe.Extension):
    """Fences examples, which Markdown would take for quotations, and makes a list of call arguments."""

    def on_object(self, *, obj, **kwargs):
        """Rewrites a docstring before it is parsed."""
        if obj.docstring:
            text = _CALL_ARGUMENTS.sub(_as_list, obj.docstring.value)
            obj.docstring.value = _EXAMPLE.sub(_fenced, text)


def _fenced(found):
    margin = re.match(" *", found[0])[0]
    return f"{margin}```pycon\n{found[0].rstrip()}\n{margin}```\n"


def _as_list(found):
    items = re.sub(r"^    (\w+): ", r"    - `\1`: ", found[1], flags=re.MULTILINE)
    return f"Call arguments:\n{items}"
