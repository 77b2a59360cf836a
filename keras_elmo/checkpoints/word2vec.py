"""Layer 0 of words in the formats of word2vec, which gensim, spaCy and many others read."""

import os
from collections.abc import Iterator, Sequence

import numpy as np
from keras import ops

from keras_elmo.character_ids import character_ids
from keras_elmo.checkpoints.checkpoint import Checkpoint
from keras_elmo.corpus import read_lines
from keras_elmo.files import written_beside
from keras_elmo.vocabulary import SPECIAL_TOKENS

_WORDS_PER_BATCH = 512


def write(
    checkpoint: Checkpoint,
    path: str | os.PathLike,
    vocabulary: str | os.PathLike | None = None,
    binary: bool = False,
) -> None:
    """Writes a vector for each word of a vocabulary: layer 0, which knows the word's characters and no sentence.

    `gensim.models.KeyedVectors.load_word2vec_format(path, binary=..)` reads it.

    Args:
        checkpoint: The model, and its vocabulary if it has one.
        path: The file to make. Text: a line `words dim`, then for each word a line with the word and its numbers;
            binary: the same first line, then each word, a space, float32 numbers (little endian) and a line end.
        vocabulary: A file with a word a line; those of language models (`<S>`, `</S>`, `<UNK>`) are left out.
            `None` (default): the model's own vocabulary.
        binary: Whether to write the binary format. Defaults to `False`.

    Raises:
        ValueError: if the file exists, the model reads no characters, there is no vocabulary, or a word has white
            space in it, which the format has no way to write.
    """
    model = checkpoint.model
    if model.vocabulary_size is not None:
        raise ValueError(
            "word2vec's formats get the vectors of words by their characters; this model reads whole words."
        )
    if vocabulary is None and checkpoint.vocabulary is None:
        raise ValueError(
            "The model has no vocabulary of its own. Name a file with a word a line: `--vocabulary FILE`."
        )
    lines = checkpoint.vocabulary if vocabulary is None else read_lines(vocabulary)
    words = [word for word in dict.fromkeys(lines or ()) if word and word not in SPECIAL_TOKENS]
    if not words:
        raise ValueError(f"{vocabulary} has no word.")
    for word in words:
        if len(word.split()) != 1 or word.split()[0] != word:
            raise ValueError(
                f"word2vec's formats cannot hold white space in a word. Received: {word!r}. Leave it out."
            )
    with written_beside(path) as beside, open(beside, "wb") as file:
        file.write(f"{len(words)} {model.projection_dim}\n".encode())
        for word, vector in zip(words, _vectors(model, words), strict=True):
            file.write(word.encode("utf-8", "replace") + b" ")
            if binary:
                file.write(vector.astype("<f4").tobytes() + b"\n")
            else:
                file.write((" ".join(f"{value:.6g}" for value in vector) + "\n").encode())


def _vectors(model, words: Sequence[str]) -> Iterator[np.ndarray]:
    for start in range(0, len(words), _WORDS_PER_BATCH):
        batch = [words[start : start + _WORDS_PER_BATCH]]
        ids = character_ids(batch, model.max_word_length)
        yield from ops.convert_to_numpy(model.encoder(ids)[0]).astype(np.float32)
