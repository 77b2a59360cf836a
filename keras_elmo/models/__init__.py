"""Models made of the layers."""

from keras_elmo.models.bidirectional_language_model import (
    BidirectionalLanguageModel as BidirectionalLanguageModel,
)
from keras_elmo.models.elmo_model import ElmoModel as ElmoModel
