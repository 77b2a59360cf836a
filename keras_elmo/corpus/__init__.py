"""Text as it lies on disk: files in; sentences, vocabularies and batches to train on out."""

from keras_elmo.corpus.batch import Batch as Batch
from keras_elmo.corpus.column_files import LabelledSentence as LabelledSentence
from keras_elmo.corpus.column_files import read_columns as read_columns
from keras_elmo.corpus.negatives import Negatives as Negatives
from keras_elmo.corpus.negatives import expected_counts as expected_counts
from keras_elmo.corpus.negatives import log_uniform_probabilities as log_uniform_probabilities
from keras_elmo.corpus.negatives import sample_negatives as sample_negatives
from keras_elmo.corpus.random_generator import random_generator as random_generator
from keras_elmo.corpus.readers import LocatedSentence as LocatedSentence
from keras_elmo.corpus.readers import expand as expand
from keras_elmo.corpus.readers import locate_sentences as locate_sentences
from keras_elmo.corpus.readers import read_lines as read_lines
from keras_elmo.corpus.readers import read_sentences as read_sentences
from keras_elmo.corpus.sentence_batches import SentenceBatch as SentenceBatch
from keras_elmo.corpus.sentence_batches import sentence_batches as sentence_batches
from keras_elmo.corpus.sentence_stream import DrawnSentence as DrawnSentence
from keras_elmo.corpus.sentence_stream import SentenceStream as SentenceStream
from keras_elmo.corpus.training_stream import TrainingBatch as TrainingBatch
from keras_elmo.corpus.training_stream import TrainingStream as TrainingStream
from keras_elmo.corpus.vocabulary_builder import build_vocabulary as build_vocabulary
from keras_elmo.corpus.vocabulary_builder import count_words as count_words
from keras_elmo.corpus.vocabulary_builder import counts_of as counts_of
from keras_elmo.corpus.vocabulary_builder import counts_path as counts_path
from keras_elmo.corpus.vocabulary_builder import frequencies_fall as frequencies_fall
from keras_elmo.corpus.vocabulary_builder import load_counts as load_counts
from keras_elmo.corpus.vocabulary_builder import save_counts as save_counts
