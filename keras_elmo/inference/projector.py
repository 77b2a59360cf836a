"""write_projector: words and their vectors, as the Embedding Projector shows them."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack

from keras_elmo.files import written_beside
from keras_elmo.inference.embedder import Embedder
from keras_elmo.inference.sentence_blocks import Sentence
from keras_elmo.layers.checks import check_positive_integer
from keras_elmo.text import tokenize_sentences

METADATA_FILE = "metadata.tsv"
CONFIG_FILE = "projector_config.pbtxt"
# It shows the sentence of a point beside the cloud: more than this nobody reads there.
_LONGEST_SENTENCE = 300


def write_projector(
    sentences: Iterable[Sentence],
    folder: str | os.PathLike,
    embedder: Embedder,
    words: Sequence[str] = (),
    max_words: int = 10_000,
    on_progress: Callable[[int, int], None] = lambda num_sentences, num_words: None,
) -> int:
    """Writes a folder for the Embedding Projector: a point for every word of a text, in every layer.

    `tensorboard --logdir FOLDER` shows it under "Projector", each layer as a data set of its own. Without TensorBoard,
    https://projector.tensorflow.org takes `layer_2.tsv` and `metadata.tsv` under "Load".

    | file | holds |
    |---|---|
    | `layer_0.tsv`, .. | the vectors of a layer, a line for each word, numbers parted by tabs |
    | `metadata.tsv` | a head, then for each of these lines: word, sentence number from 1, place from 1, the sentence |
    | `projector_config.pbtxt` | which file belongs to which, for TensorBoard |

    Args:
        sentences: Strings, which are tokenized, or lists of tokens.
        folder: The folder to make.
        embedder: What computes the vectors; made with `layers="all"`.
        words: Only the occurrences of these are written. One that is cut into several tokens, as Chinese words are,
            has the mean of their vectors. Defaults to none: every token is.
        max_words: The text is read until there are so many. Defaults to 10,000, from where the Projector takes a
            sample itself.
        on_progress: Called after each window with the sentences read and the words written so far.

    Returns:
        The number of words.

    Raises:
        ValueError: if the folder exists already, `max_words` is no positive integer, the embedder gives no layers, or
            the text has no word (of `words`).
    """
    check_positive_integer("max_words", max_words)
    if embedder.layers != "all":
        raise ValueError(
            'The Projector shows every layer: make the embedder with `layers="all"`. '
            f"Received: layers={embedder.layers!r}"
        )
    wanted = tokenize_sentences(list(words), embedder.tokenizer) if words else None
    layers = [f"layer_{k}" for k in range(embedder.model.num_layers + 1)]
    with written_beside(folder) as beside, ExitStack() as files:
        beside.mkdir()
        metadata, *tensors = (
            files.enter_context(open(beside / name, "w", encoding="utf-8", errors="replace"))
            for name in (METADATA_FILE, *(f"{layer}.tsv" for layer in layers))
        )
        print("word", "sentence number", "place", "sentence", sep="\t", file=metadata)
        num_sentences = num_words = 0
        windows = embedder.windows(sentences)
        for tokens, arrays in windows:
            for number, (sentence, vectors) in enumerate(zip(tokens, arrays, strict=True), 1):
                for start, end in _places(sentence, wanted):
                    if num_words == max_words:
                        break
                    num_words += 1
                    row = (_cell(sentence[start:end]), num_sentences + number, start + 1)
                    print(*row, _cell(sentence)[:_LONGEST_SENTENCE], sep="\t", file=metadata)
                    for tensor, layer in zip(tensors, vectors, strict=True):
                        values = layer[start:end].mean(axis=0)
                        print(*(f"{value:.5g}" for value in values), sep="\t", file=tensor)
            num_sentences += len(tokens)
            on_progress(num_sentences, num_words)
            if num_words == max_words:
                # Which ends the computing ahead, too.
                windows.close()
                break
        if not num_words:
            raise ValueError(
                f"None of the words {', '.join(words)} is in the text, in the same upper and lower case."
                if words
                else "The text has no word. Give one that has."
            )
        (beside / CONFIG_FILE).write_text("".join(map(_entry, layers)), encoding="utf-8")
    return num_words


def _places(tokens: Sequence[str], wanted: list[list[str]] | None) -> Iterator[tuple[int, int]]:
    """Where words begin and end: those that are wanted, or all tokens."""
    if wanted is None:
        yield from ((place, place + 1) for place in range(len(tokens)))
        return
    tokens = list(tokens)
    for start in range(len(tokens)):
        for word in wanted:
            if word and tokens[start : start + len(word)] == word:
                yield start, start + len(word)


def _cell(tokens: Sequence[str]) -> str:
    """Words in a cell of a table, in which neither tabs nor line ends may be."""
    return " ".join(" ".join(tokens).split())


def _entry(layer: str) -> str:
    return (
        f'embeddings {{\n  tensor_name: "{layer}"\n  tensor_path: "{layer}.tsv"\n'
        f'  metadata_path: "{METADATA_FILE}"\n}}\n'
    )
