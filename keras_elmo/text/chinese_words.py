"""Chinese words: an optional Python step in front of a model, by the library jieba (extra `zh`)."""

import logging
import warnings
from collections.abc import Sequence

from keras_elmo.extras import require


def chinese_words(sentences: Sequence[str]) -> list[list[str]]:
    """Cuts Chinese sentences into words, where the tokenizer `word` cuts them into characters.

    What comes of it are tokens, for models that were trained on words: `ElmoEmbedding(inputs="tokens")`,
    `Embedder`, `character_ids`. It depends on a dictionary and so cannot be part of a graph or of an exported model.

    Args:
        sentences: Strings.

    Returns:
        The words of every sentence; white space is left out.

    Raises:
        ModuleNotFoundError: If jieba is not installed, with the command to install it.
        ValueError: If `sentences` is one string or holds anything but strings.

    Example:
        >>> chinese_words(["我喜欢吃苹果。"])
        [['我', '喜欢', '吃', '苹果', '。']]
    """
    if isinstance(sentences, str) or not all(isinstance(text, str) for text in sentences):
        raise ValueError(
            "`sentences` must be a sequence of strings. "
            f"Received: {sentences!r:.80}; put a single sentence into a list."
        )
    with warnings.catch_warnings():
        # jieba's own source has escapes that newer Pythons warn of.
        warnings.simplefilter("ignore")
        jieba = require("jieba", "zh")
    jieba.setLogLevel(logging.WARNING)
    return [[word for word in jieba.cut(text) if not word.isspace()] for text in sentences]
