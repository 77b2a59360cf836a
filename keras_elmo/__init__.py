"""ELMo for Keras 3: contextual word vectors, from characters, as Keras layers."""

from importlib.metadata import version as _version
from typing import Any as _Any

import keras as _keras

from keras_elmo.character_ids import character_ids as character_ids
from keras_elmo.checkpoints import load_language_model as load_language_model
from keras_elmo.checkpoints import load_model as load_model
from keras_elmo.layers import CRF as CRF
from keras_elmo.layers import BiLMStack as BiLMStack
from keras_elmo.layers import CharCNNEncoder as CharCNNEncoder
from keras_elmo.layers import Highway as Highway
from keras_elmo.layers import LSTMStack as LSTMStack
from keras_elmo.layers import ProjectedLSTMCell as ProjectedLSTMCell
from keras_elmo.layers import ScalarMix as ScalarMix
from keras_elmo.layers import SentenceMean as SentenceMean
from keras_elmo.lexicon import Lexicon as Lexicon
from keras_elmo.models import BidirectionalLanguageModel as BidirectionalLanguageModel
from keras_elmo.models import ElmoModel as ElmoModel
from keras_elmo.presets import upload_preset as upload_preset

if _keras.backend.backend() == "tensorflow":
    from keras_elmo.elmo_embedding import ElmoEmbedding as ElmoEmbedding
    from keras_elmo.inference import Embedder as Embedder
    from keras_elmo.tasks import PairClassifier as PairClassifier
    from keras_elmo.tasks import SemanticRoleLabeller as SemanticRoleLabeller
    from keras_elmo.tasks import SpanSelector as SpanSelector
    from keras_elmo.tasks import TextClassifier as TextClassifier
    from keras_elmo.tasks import TokenClassifier as TokenClassifier
    from keras_elmo.text import as_strings as as_strings
    from keras_elmo.text import tokenize_sentences as tokenize_sentences

_TENSORFLOW_ONLY = (
    "ElmoEmbedding",
    "Embedder",
    "PairClassifier",
    "SemanticRoleLabeller",
    "SpanSelector",
    "TextClassifier",
    "TokenClassifier",
    "as_strings",
    "tokenize_sentences",
)


def __getattr__(name: str) -> _Any:
    if name == "__version__":
        # Looked up when asked for: a checkout that is only on PYTHONPATH has none.
        return _version("keras-elmo")
    if name in _TENSORFLOW_ONLY:
        raise ImportError(
            f"keras_elmo.{name} needs Keras' TensorFlow backend; the backend is "
            f"{_keras.backend.backend()!r}. Set KERAS_BACKEND=tensorflow before Keras is imported."
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
