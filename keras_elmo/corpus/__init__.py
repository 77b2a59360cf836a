"""Text as it lies on disk: files in, sentences out, one at a time."""

from keras_elmo.corpus.readers import LocatedSentence as LocatedSentence
from keras_elmo.corpus.readers import expand as expand
from keras_elmo.corpus.readers import locate_sentences as locate_sentences
from keras_elmo.corpus.readers import read_lines as read_lines
from keras_elmo.corpus.readers import read_sentences as read_sentences
