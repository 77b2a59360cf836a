"""Heads on ELMo that take strings and answer with names; see `Task` for the ways to use ELMo."""

from keras_elmo.tasks.answer_scores import answer_scores as answer_scores
from keras_elmo.tasks.forgetting_report import ForgettingReport as ForgettingReport
from keras_elmo.tasks.gradual_unfreezing import GradualUnfreezing as GradualUnfreezing
from keras_elmo.tasks.pair_classifier import PairClassifier as PairClassifier
from keras_elmo.tasks.semantic_role_labeller import SemanticRoleLabeller as SemanticRoleLabeller
from keras_elmo.tasks.span_selector import SpanSelector as SpanSelector
from keras_elmo.tasks.task import Task as Task
from keras_elmo.tasks.text_classifier import TextClassifier as TextClassifier
from keras_elmo.tasks.token_classifier import TokenClassifier as TokenClassifier
