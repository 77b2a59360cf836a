"""A development server with TensorFlow Serving's REST and gRPC interfaces; TensorFlow alone runs the model."""

from keras_elmo.serving.server.local_server import LocalServer as LocalServer
