"""Pictures of what a model does, and of how it was trained (matplotlib, extra `plot`)."""

from keras_elmo.plot.layer_similarity import plot_layer_similarity as plot_layer_similarity
from keras_elmo.plot.layer_weights import plot_layer_weights as plot_layer_weights
from keras_elmo.plot.occurrences import plot_occurrences as plot_occurrences
from keras_elmo.plot.token_similarity import plot_token_similarity as plot_token_similarity
from keras_elmo.plot.training_curves import plot_training as plot_training
from keras_elmo.plot.word_lengths import plot_word_lengths as plot_word_lengths
