"""Sentences of a user to the inputs of a served ELMo, and the checks of both."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from keras_elmo.serving.model_signature import ModelSignature, TensorSpec
from keras_elmo.serving.serving_error import ServingError

# bytes, or a list of them: which, one knows of all at once.
Encoded = Any


def check_sentences(sentences: Iterable[Any]) -> tuple[list[Encoded], bool]:
    """Encodes sentences as UTF-8. Lone surrogates, which it cannot write, are dropped.

    Args:
        sentences: Strings, or lists of tokens.

    Returns:
        The sentences, and whether they are lists of tokens.

    Raises:
        ValueError: if they are neither, or a mixture.
    """
    if isinstance(sentences, str | bytes):
        raise ValueError(
            f"The sentences must be a list. Received one string, {sentences!r:.60}: put it into a list."
        )
    sentences = list(sentences)
    kinds = {isinstance(sentence, list | tuple | np.ndarray) for sentence in sentences}
    if len(kinds) > 1:
        raise ValueError(
            "The sentences must be all strings or all lists of tokens. Received a list of both."
        )
    is_cut = True in kinds
    return [
        [_encode(token) for token in sentence] if is_cut else _encode(sentence)
        for sentence in sentences
    ], is_cut


def size(sentence: Encoded) -> int:
    """How large a sentence is in a request, in bytes. A token is some, too, even an empty one."""
    if isinstance(sentence, bytes):
        return len(sentence)
    return sum(len(token) + 1 for token in sentence)


def as_inputs(sentences: list[Encoded], name: str, signature: ModelSignature) -> dict[str, Any]:
    """Makes the inputs of one request.

    Args:
        sentences: All strings or all lists of tokens.
        name: The name of the signature.
        signature: The signature.

    Returns:
        The inputs by name.

    Raises:
        ServingError: "INVALID_ARGUMENT" if the signature takes something else.
    """
    inputs = set(signature.inputs)
    if isinstance(sentences[0], bytes):
        if len(inputs) != 1:
            raise _other_inputs(name, signature, "one input of strings")
        return {inputs.pop(): sentences}
    if inputs != {"tokens", "sequence_len"}:
        raise _other_inputs(name, signature, "`tokens` and `sequence_len`")
    lengths = [len(sentence) for sentence in sentences]
    # Never without a column: a server that makes batches of several requests refuses empty arrays.
    tokens = np.full((len(sentences), max(1, *lengths)), b"", object)
    for row, sentence in zip(tokens, sentences, strict=True):
        row[: len(sentence)] = sentence
    return {"tokens": tokens, "sequence_len": lengths}


def is_per_word(name: str, spec: TensorSpec) -> bool:
    """Whether an output has a row for each word: its second axis varies.

    Raises:
        ServingError: "INVALID_ARGUMENT" if the model does not tell.
    """
    if spec.shape is None:
        raise ServingError(
            "INVALID_ARGUMENT",
            f"the model does not tell the shape of its output `{name}`: use `predict` for it.",
        )
    return len(spec.shape) > 1 and spec.shape[1] is None


def check_shape(name: str, array: np.ndarray, least: tuple[int, ...]) -> None:
    """Raises `ServingError` unless an answer has a row for each sentence, and in it one for each word."""
    rows, *words = array.shape or (0,)
    if rows != least[0] or (len(least) > 1 and (not words or words[0] < least[1])):
        raise ServingError(
            "INTERNAL",
            f"the server's output `{name}` has the shape {array.shape}, which does not fit {least[0]} sentences"
            + (f" of {least[1]} words at most." if len(least) > 1 else "."),
        )


def _encode(value: Any) -> bytes:
    if not isinstance(value, str):
        raise ValueError(
            f"The sentences must be strings, or lists of strings. Received: {value!r:.60} of type "
            f"{type(value).__name__}"
        )
    return value.encode("utf-8", "ignore")


def _other_inputs(name: str, signature: ModelSignature, expected: str) -> ServingError:
    has = ", ".join(f"`{key}`" for key in sorted(signature.inputs)) or "none"
    return ServingError(
        "INVALID_ARGUMENT",
        f"the signature `{name}` takes {has}, where `embed` needs {expected}: use `predict` for it.",
    )
