"""Models made of the layers."""

from keras_elmo.models.elmo_model import ElmoModel as ElmoModel
