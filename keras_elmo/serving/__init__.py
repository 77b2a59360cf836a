"""Models behind TensorFlow Serving."""

from keras_elmo.serving.client import ElmoClient as ElmoClient
from keras_elmo.serving.serving_error import ServingError as ServingError
