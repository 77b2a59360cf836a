"""SavedModels that answer to plain strings, for TensorFlow Serving and `tf.saved_model.load`."""

from keras_elmo.export.labelled_classifier import LabelledClassifier as LabelledClassifier
from keras_elmo.export.labelled_tagger import LabelledTagger as LabelledTagger
from keras_elmo.export.language_model_server import LanguageModelServer as LanguageModelServer
from keras_elmo.export.saved_model import export_saved_model as export_saved_model
