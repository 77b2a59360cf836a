"""Labels of entities: B-X begins one, I-X goes on with it, O is outside of all."""

from collections.abc import Sequence


def are_entities(labels: Sequence[str]) -> bool:
    """Whether all labels but `O` begin with `B-` or `I-`, and there are such.

    Example:
        >>> are_entities(["O", "I-PER"]), are_entities(["NOUN", "VERB"])
        (True, False)
    """
    others = [label for label in labels if label != "O"]
    return bool(others) and all(label[:2] in ("B-", "I-") for label in others)


def both_kinds(labels: Sequence[str]) -> list[str]:
    """The labels, and of every `B-X` its `I-X`, and the other way round, behind them.

    Example:
        >>> both_kinds(["O", "I-PER"])
        ['O', 'I-PER', 'B-PER']
    """
    types = dict.fromkeys(label[2:] for label in labels if label != "O")
    wanted = ["O", *(f"{kind}-{name}" for name in types for kind in "BI")]
    return [*labels, *(label for label in wanted if label not in labels)]


def to_iob2(labels: Sequence[str]) -> list[str]:
    """The labels of a sentence in IOB2, where every entity begins with `B-`.

    In IOB, which CoNLL-2003 and others have, `B-` stands only between two entities of the same kind.

    Example:
        >>> to_iob2(["I-PER", "I-PER", "B-PER", "O", "I-LOC"])
        ['B-PER', 'I-PER', 'B-PER', 'O', 'B-LOC']
    """
    before = ["O", *labels]
    return [
        f"B{label[1:]}" if label[:2] == "I-" and last[1:] != label[1:] else label
        for last, label in zip(before, labels, strict=False)
    ]


def entity_scores(
    true: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Precision, recall and F1 of whole entities: right are those whose kind, begin and end are.

    Args:
        true: The labels of every sentence, in IOB2.
        predicted: The same as predicted.

    Example:
        >>> entity_scores([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "O", "O", "B-LOC"]])
        {'precision': 0.5, 'recall': 0.5, 'f1': 0.5}
    """
    # Not at the top: `import keras_elmo` comes without it.
    from nervaluate import Evaluator

    kinds = sorted(
        {label[2:] for rows in (true, predicted) for row in rows for label in row} - {""}
    )
    pairs = [list(map(list, rows)) for rows in (true, predicted)]
    found = Evaluator(*pairs, tags=kinds, loader="list").evaluate()["overall"]["strict"]
    return {name: float(getattr(found, name)) for name in ("precision", "recall", "f1")}
