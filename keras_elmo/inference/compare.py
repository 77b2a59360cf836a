"""One word in several sentences: how alike its vectors are, layer by layer."""

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keras_elmo.models import ElmoModel
from keras_elmo.text import tokenize_sentences

# Errors quote what was typed; of a very long sentence, both ends.
_quote = reprlib.Repr()
_quote.maxstring = 120


@dataclass(frozen=True)
class Comparison:
    """What `compare` found.

    Attributes:
        word: The word that was compared.
        sentences: The tokens of each sentence.
        positions: For each sentence, the places (first, behind the last) of the word's tokens.
        layers: For each layer, from 0, which knows no context, up: float32 array
            (num_sentences, num_sentences) of cosine similarities of the word's vectors.
        token_vectors: For each layer, float32 array (all tokens, dim): the vectors of all tokens of all
            sentences, in order.
    """

    word: str
    sentences: list[list[str]]
    positions: list[tuple[int, int]]
    layers: list[np.ndarray]
    token_vectors: list[np.ndarray]

    @property
    def token_layers(self) -> list[np.ndarray]:
        """For each layer, float32 array (all tokens, all tokens) of cosine similarities of all tokens."""
        return [cosine_similarity(vectors) for vectors in self.token_vectors]


def compare(
    model: ElmoModel, sentences: Sequence[str], word: str, tokenizer: str = "word"
) -> Comparison:
    """Compares a word's vectors between sentences, in every layer, by cosine similarity.

    Layer 0 sees the word's characters alone: the same word has the same vector in every sentence. The upper layers
    read the sentence.

    Args:
        model: The model.
        sentences: Two or more sentences.
        word: The word; its first occurrence in each sentence counts. If it is cut into several tokens, as Chinese
            words are, its vector is the mean of theirs.
        tokenizer: "word" (default) or "whitespace": how both are cut, see `keras_elmo.text.tokenize`. Checkpoints
            name theirs: `load_checkpoint(..).metadata["tokenizer"]`.

    Returns:
        The similarities, and where the word was found.

    Raises:
        ValueError: if there are fewer than two sentences, one of them lacks the word, or `tokenizer` is unknown.

    Example:
    >>> model = ElmoModel.from_preset("elmo_tiny_en")
    >>> result = compare(model, ["The bank is near the river.", "My bank lends money."], "bank")
    >>> round(float(result.layers[0][0, 1]), 3), bool(result.layers[2][0, 1] < 0.99)
    (1.0, True)
    """
    _check_strings("sentences", sentences)
    wanted, *tokens = tokenize_sentences([word, *sentences], tokenizer)
    positions = [
        _find(wanted, cut, sentence) for cut, sentence in zip(tokens, sentences, strict=True)
    ]
    layers, token_vectors = [], []
    for vectors in _layer_vectors(model, tokens):
        pieces = [
            rows[start:end].mean(axis=0)
            for rows, (start, end) in zip(vectors, positions, strict=True)
        ]
        layers.append(cosine_similarity(np.stack(pieces)))
        token_vectors.append(np.concatenate(vectors))
    return Comparison(word, tokens, positions, layers, token_vectors)


def compare_words(model: ElmoModel, words: Sequence[str]) -> np.ndarray:
    """Compares words by their layer 0 alone, which every word has, seen in training or not.

    Args:
        model: The model.
        words: The words, each a single token.

    Returns:
        float32 array (num_words, num_words) of cosine similarities.

    Raises:
        ValueError: if there are fewer than two words, or one is empty or holds white space.
    """
    _check_strings("words", words)
    for word in words:
        if len(word.split()) != 1:
            raise ValueError(
                f"`words` must be single words without white space. Received: {_quote.repr(word)}"
            )
    return cosine_similarity(np.concatenate(_layer_vectors(model, [[word] for word in words])[0]))


def cosine_similarity(vectors: np.ndarray) -> np.ndarray:
    """Cosine of the angle between every two rows; 0 for a row of zeros. Shape (rows, dim) -> (rows, rows)."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(lengths == 0, 1.0, lengths)
    return np.clip(unit @ unit.T, -1.0, 1.0)


def _layer_vectors(model: ElmoModel, sentences: list[list[str]]) -> list[list[np.ndarray]]:
    """For every layer, each sentence's vectors (num_tokens, dim)."""
    if model.vocabulary_size is not None:
        raise ValueError("Comparing needs a model that reads characters; this one reads token ids.")
    # Not `predict_on_batch`, which makes a graph for every new length.
    outputs = model(model.ids(sentences), training=False)
    names = ["word_emb", *(f"lstm_outputs{k}" for k in range(1, model.num_layers + 1))]
    first = 1 if model.keep_sentence_boundaries else 0
    return [
        [
            np.asarray(rows[first : first + len(tokens)], np.float32)
            for rows, tokens in zip(outputs[name], sentences, strict=True)
        ]
        for name in names
    ]


def _check_strings(name: str, values: Sequence[str]) -> None:
    if (
        isinstance(values, str)
        or len(values) < 2
        or not all(isinstance(value, str) for value in values)
    ):
        raise ValueError(
            f"`{name}` must be a list of two or more {name} to compare. Received: {_quote.repr(values)}"
        )


def _find(word: list[str], tokens: list[str], sentence: str) -> tuple[int, int]:
    if not word:
        raise ValueError("`word` must be a word of the sentences. Received an empty one")
    for start in range(len(tokens) - len(word) + 1):
        if tokens[start : start + len(word)] == word:
            return start, start + len(word)
    raise ValueError(
        f"The word {_quote.repr(' '.join(word))} is not in the sentence {_quote.repr(sentence)}, which was cut into "
        f"{_quote.repr(' '.join(tokens))}. Give a word of these, in the same upper and lower case."
    )
