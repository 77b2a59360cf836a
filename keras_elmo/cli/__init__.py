"""`keras-elmo`: the command line. It parses and calls; the work is done in the package.

One file per command, or per pair of small ones; `app.py` is their frame.
"""

from keras_elmo.cli import compare as _compare  # noqa: F401  (each registers its commands)
from keras_elmo.cli import demo as _demo  # noqa: F401
from keras_elmo.cli import embed as _embed  # noqa: F401
from keras_elmo.cli import export as _export  # noqa: F401
from keras_elmo.cli import language_model as _language_model  # noqa: F401
from keras_elmo.cli import models as _models  # noqa: F401
from keras_elmo.cli import pretrain as _pretrain  # noqa: F401
from keras_elmo.cli import projector as _projector  # noqa: F401
from keras_elmo.cli import serve as _serve  # noqa: F401
from keras_elmo.cli.app import app as app
from keras_elmo.cli.app import run as run
