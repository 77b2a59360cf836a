"""Weights in and out: `load_model` recognizes what it is given; one file per format."""

from keras_elmo.checkpoints.checkpoint import Checkpoint as Checkpoint
from keras_elmo.checkpoints.load import language_model_of as language_model_of
from keras_elmo.checkpoints.load import load_checkpoint as load_checkpoint
from keras_elmo.checkpoints.load import load_language_model as load_language_model
from keras_elmo.checkpoints.load import load_model as load_model
