"""ELMo for Keras 3: contextual word vectors, from characters, as Keras layers."""

from importlib.metadata import version as _version

from keras_elmo.character_ids import character_ids as character_ids
from keras_elmo.checkpoints import load_model as load_model
from keras_elmo.layers import BiLMStack as BiLMStack
from keras_elmo.layers import CharCNNEncoder as CharCNNEncoder
from keras_elmo.layers import Highway as Highway
from keras_elmo.layers import LSTMStack as LSTMStack
from keras_elmo.layers import ProjectedLSTMCell as ProjectedLSTMCell
from keras_elmo.layers import ScalarMix as ScalarMix
from keras_elmo.layers import SentenceMean as SentenceMean
from keras_elmo.models import ElmoModel as ElmoModel

__version__ = _version("keras-elmo")
