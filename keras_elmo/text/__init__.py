"""Text in the TensorFlow graph: what turns strings into the ids that the model reads."""

from keras_elmo.text.character_mapper import CharacterMapper as CharacterMapper
from keras_elmo.text.character_mapper import map_characters as map_characters
from keras_elmo.text.chinese_words import chinese_words as chinese_words
from keras_elmo.text.strings import as_strings as as_strings
from keras_elmo.text.tokenizer import Tokenizer as Tokenizer
from keras_elmo.text.tokenizer import tokenize as tokenize
from keras_elmo.text.tokenizer import tokenize_sentences as tokenize_sentences
from keras_elmo.text.tokenizer import tokenize_with_offsets as tokenize_with_offsets
from keras_elmo.text.vocabulary_lookup import VocabularyLookup as VocabularyLookup
