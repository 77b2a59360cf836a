"""Serving exported models: a local development server with TensorFlow Serving's interfaces."""

from keras_elmo.serving.local_server import LocalServer as LocalServer
