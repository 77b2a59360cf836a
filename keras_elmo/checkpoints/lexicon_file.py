"""The lexicons of ELMoForManyLangs, `char.dic` and `word.dic`: their entries in the order of their ids."""

import re
from pathlib import Path

# What their tool takes an entry for that is nothing but white space.
_IDEOGRAPHIC_SPACE = "\u3000"


def read_lexicon(path: Path, num_entries: int) -> list[str]:
    r"""Reads `char.dic` or `word.dic`: an entry, a tab and its id in each line.

    Lines end at `\n` or `\r\n` only, and the last tab of a line parts entry and id, so that an entry may hold any
    other white space. White space before it is no part of it, and an entry of nothing else is U+3000: so their tool
    reads it. It fails where two entries become one by that; here such an entry is what it is.

    Args:
        path: The file.
        num_entries: How many entries the weights are for.

    Returns:
        The entries in the order of their ids.

    Raises:
        ValueError: If the file is missing or no UTF-8, if a line has no id, if the ids are not those from 0 up, each
            once, or if there are more or fewer; the line is named.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as a lexicon in UTF-8: {error}") from error
    written: dict[int, str] = {}
    line_of: dict[int, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if line in ("", "\r"):
            continue
        entry, _, digits = line.rpartition("\t")
        if not re.fullmatch(r"\s*[0-9]{1,18}\s*", digits):
            raise ValueError(
                f"{path}, line {number}: must be an entry, a tab and its id. Received: {line[:100]!r}"
            )
        id_ = int(digits)
        if id_ in written:
            raise ValueError(
                f"{path}, line {number}: the id {id_} is that of line {line_of[id_]}, too. Each must be there once."
            )
        written[id_], line_of[id_] = entry, number
    for id_ in written:
        if id_ >= len(written):
            raise ValueError(
                f"{path}, line {line_of[id_]}: the id {id_} leaves a gap: there are {len(written)} entries, the ids of "
                f"which must be 0 to {len(written) - 1}. Get the lexicon again."
            )
    if len(written) != num_entries:
        raise ValueError(
            f"{path} has {len(written)} entries, but the weights have vectors for {num_entries}. They must belong "
            "together: use the lexicon that came with the weights."
        )
    return _stripped([written[id_] for id_ in range(len(written))])


def _stripped(entries: list[str]) -> list[str]:
    """The entries without white space before them, unless there is such an entry already."""
    names = [entry.lstrip() or _IDEOGRAPHIC_SPACE for entry in entries]
    taken = {name for name, entry in zip(names, entries, strict=True) if name == entry}
    stripped = []
    for name, entry in zip(names, entries, strict=True):
        stripped.append(entry if name in taken else name)
        taken.add(name)
    return stripped
