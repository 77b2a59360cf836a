"""The part of an `ElmoModel` that makes token vectors of ids, with sentence boundaries added."""

from collections.abc import Sequence
from typing import Any

import keras

from keras_elmo.character_ids import (
    BEGIN_OF_SENTENCE_WORD,
    END_OF_SENTENCE_WORD,
    word_character_ids,
)
from keras_elmo.layers import (
    AddSentenceBoundaries,
    CharCNNEncoder,
    TokenEmbedding,
    WordAndCharacterEncoder,
)
from keras_elmo.layers.char_cnn_encoder import check_filters
from keras_elmo.layers.checks import check_positive_integer, is_integer
from keras_elmo.lexicon import BEGIN_OF_SENTENCE, END_OF_SENTENCE, Lexicon


def character_encoder(
    projection_dim: int,
    max_word_length: int,
    embedding_dim: int,
    filters: Sequence[Sequence[int]],
    num_highway_layers: int,
    activation: str,
    dtype: Any,
) -> keras.Model:
    """Of the bytes of words."""
    filters = check_filters(filters)
    _check_max_word_length(max_word_length, filters)
    begin, end = (
        word_character_ids(word, max_word_length).tolist()
        for word in (BEGIN_OF_SENTENCE_WORD, END_OF_SENTENCE_WORD)
    )
    encoder = CharCNNEncoder(
        projection_dim,
        embedding_dim,
        filters,
        num_highway_layers,
        activation,
        use_projection=sum(count for _, count in filters) != projection_dim,
        dtype=dtype,
        name="char_cnn_encoder",
    )
    ids = keras.Input((None, max_word_length), dtype="int32", name="character_ids")
    return _with_boundaries(encoder, ids, begin, end, dtype)


def token_id_encoder(
    projection_dim: int, vocabulary_size: int, boundary_token_ids: Sequence[int], dtype: Any
) -> keras.Model:
    """Of the ids of words in a vocabulary."""
    check_positive_integer("vocabulary_size", vocabulary_size)
    begin, end = _check_boundary_token_ids(boundary_token_ids, vocabulary_size)
    encoder = TokenEmbedding(
        vocabulary_size + 1, projection_dim, dtype=dtype, name="token_embedding"
    )
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    return _with_boundaries(encoder, ids, begin, end, dtype)


def lexicon_encoder(
    lexicon: Lexicon,
    word_dim: int,
    projection_dim: int,
    max_word_length: int,
    embedding_dim: int,
    filters: Sequence[Sequence[int]],
    num_highway_layers: int,
    activation: str,
    dtype: Any,
) -> keras.Model:
    """Of the ids of words and of their characters in a lexicon."""
    filters = check_filters(filters)
    if lexicon.characters is not None:
        _check_max_word_length(max_word_length, filters)
    encoder = WordAndCharacterEncoder(
        projection_dim,
        num_words=None if lexicon.words is None else len(lexicon.words) + 1,
        word_dim=word_dim,
        num_characters=None if lexicon.characters is None else len(lexicon.characters) + 1,
        word_padding=1 if lexicon.characters is None else lexicon.word_padding,
        embedding_dim=embedding_dim,
        filters=filters,
        num_highway_layers=num_highway_layers,
        activation=activation,
        dtype=dtype,
        name="word_and_character_encoder",
    )
    boundaries = lexicon.ids([[BEGIN_OF_SENTENCE, END_OF_SENTENCE]], max_word_length)
    ids = {
        name: keras.Input((None, *rows.shape[2:]), dtype="int32", name=name)
        for name, rows in boundaries.items()
    }
    begin, end = (
        {name: rows[0, place].tolist() for name, rows in boundaries.items()} for place in (0, 1)
    )
    return _with_boundaries(encoder, ids, begin, end, dtype)


def _with_boundaries(encoder, ids, begin, end, dtype) -> keras.Model:
    if isinstance(ids, dict):
        bounded = {
            name: AddSentenceBoundaries(
                begin[name], end[name], dtype=dtype, name=f"add_boundaries_to_{name}"
            )(ids[name])
            for name in ids
        }
    else:
        bounded = AddSentenceBoundaries(begin, end, dtype=dtype, name="add_boundaries")(ids)
    return keras.Model(ids, encoder(bounded), name="token_encoder")


def _check_max_word_length(max_word_length: int, filters: Sequence[Sequence[int]]) -> None:
    widest = max(width for width, _ in filters)
    if not is_integer(max_word_length) or max_word_length < max(3, widest):
        raise ValueError(
            "`max_word_length` must be an integer of 3 or more (begin of word, a byte, end of word) and "
            f"no smaller than the widest filter, {widest}. Received: max_word_length={max_word_length!r}"
        )


def _check_boundary_token_ids(ids: Sequence[int], vocabulary_size: int) -> tuple[int, int]:
    good = isinstance(ids, list | tuple) and all(
        is_integer(number) and 1 <= number <= vocabulary_size for number in ids
    )
    if not good or len(ids) != 2 or ids[0] == ids[1]:
        raise ValueError(
            f"`boundary_token_ids` must be two different token ids between 1 and {vocabulary_size}. "
            f"Received: boundary_token_ids={ids!r}"
        )
    return ids[0], ids[1]
