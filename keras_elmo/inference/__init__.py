"""Running a model over text."""

from keras_elmo.inference.compare import Comparison as Comparison
from keras_elmo.inference.compare import compare as compare
from keras_elmo.inference.compare import compare_words as compare_words
