"""Running a model over text."""

from keras_elmo.inference.compare import Comparison as Comparison
from keras_elmo.inference.compare import compare as compare
from keras_elmo.inference.compare import compare_words as compare_words
from keras_elmo.inference.embed_files import Progress as Progress
from keras_elmo.inference.embed_files import embed_files as embed_files
from keras_elmo.inference.embed_files import unfinished_run as unfinished_run
from keras_elmo.inference.embedder import Embedder as Embedder
from keras_elmo.inference.projector import write_projector as write_projector
