"""Language models: how good they are, and how they become better."""

from keras_elmo.training.evaluate import Evaluation as Evaluation
from keras_elmo.training.evaluate import evaluate as evaluate
from keras_elmo.training.optimizer_config import OptimizerConfig as OptimizerConfig
from keras_elmo.training.pretrain import PretrainResult as PretrainResult
from keras_elmo.training.pretrain import pretrain as pretrain
from keras_elmo.training.pretrain import resume as resume
from keras_elmo.training.pretrain_config import PretrainConfig as PretrainConfig
from keras_elmo.training.recipes import ARCHITECTURES as ARCHITECTURES
from keras_elmo.training.recipes import RECIPES as RECIPES
from keras_elmo.training.training_corpus import TrainingCorpus as TrainingCorpus
from keras_elmo.training.training_loop import Progress as Progress
