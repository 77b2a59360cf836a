"""The layers of ELMo, in `keras.ops` alone: they run on any Keras backend."""

from keras_elmo.layers.bilm_stack import BiLMStack as BiLMStack
from keras_elmo.layers.char_cnn_encoder import CharCNNEncoder as CharCNNEncoder
from keras_elmo.layers.crf import CRF as CRF
from keras_elmo.layers.crf import bio_transitions as bio_transitions
from keras_elmo.layers.highway import Highway as Highway
from keras_elmo.layers.lstm_stack import LSTMStack as LSTMStack
from keras_elmo.layers.projected_lstm_cell import ProjectedLSTMCell as ProjectedLSTMCell
from keras_elmo.layers.sampled_softmax import SampledSoftmax as SampledSoftmax
from keras_elmo.layers.scalar_mix import ScalarMix as ScalarMix
from keras_elmo.layers.sentence_boundaries import AddSentenceBoundaries as AddSentenceBoundaries
from keras_elmo.layers.sentence_boundaries import (
    RemoveSentenceBoundaries as RemoveSentenceBoundaries,
)
from keras_elmo.layers.sentence_mean import SentenceMean as SentenceMean
from keras_elmo.layers.shortcuts import SHORTCUTS as SHORTCUTS
from keras_elmo.layers.shortcuts import without_shortcuts as without_shortcuts
from keras_elmo.layers.token_embedding import TokenEmbedding as TokenEmbedding
from keras_elmo.layers.word_and_character_encoder import (
    WordAndCharacterEncoder as WordAndCharacterEncoder,
)
