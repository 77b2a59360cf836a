"""Warm-up requests: TensorFlow Serving sends them to a version before the first real one, which would be slow."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from keras_elmo.character_ids import character_ids

WARMUP_FILE = "tf_serving_warmup_requests"
CLASSIFY = "classify"
_TOKENS = ["The", "bank", "is", "near", "the", "river", "."]


def example_request(specs: Sequence[tf.TensorSpec]) -> dict[str, np.ndarray]:
    """Inputs for a signature, a batch of one: a sentence where it takes text.

    Args:
        specs: The signature's inputs.

    Returns:
        An array for each input, by its name, in order.
    """
    return {spec.name: _example(spec.name, spec) for spec in specs}


def _example(name: str, spec: tf.TensorSpec) -> np.ndarray:
    shape = tuple(1 if size is None else size for size in spec.shape)
    if spec.dtype == tf.string:
        if name == "inputs" and len(shape) == 1:
            return np.array([_serialized(" ".join(_TOKENS))], object)
        if spec.shape.rank == 2 and spec.shape[1] is None:
            return np.array([_TOKENS], object)
        return np.full(shape, " ".join(_TOKENS), object)
    if name == "sequence_len":
        return np.full(shape, len(_TOKENS), np.int32)
    if name == "character_ids" and len(shape) == 3:
        return character_ids([_TOKENS], shape[2])
    return np.zeros(shape, spec.dtype.as_numpy_dtype)


def _serialized(text: str) -> bytes:
    feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode()]))
    return tf.train.Example(
        features=tf.train.Features(feature={"text": feature})
    ).SerializeToString()


def write_warmup_requests(
    folder: Path, model: str, requests: Mapping[str, Mapping[str, np.ndarray]]
) -> None:
    """Writes a request for each signature in the file that TensorFlow Serving looks for.

    Args:
        folder: The version's folder `assets.extra`.
        model: The model's name.
        requests: The inputs for each signature, as `example_request` makes them.
    """
    # Not at the top: it takes gRPC along, which nothing else here needs.
    from tensorflow_serving.apis import prediction_log_pb2

    with tf.io.TFRecordWriter(str(folder / WARMUP_FILE)) as writer:
        for signature, inputs in requests.items():
            log = prediction_log_pb2.PredictionLog()
            if signature == CLASSIFY:
                request = log.classify_log.request
                request.input.example_list.examples.add().ParseFromString(inputs["inputs"][0])
            else:
                request = log.predict_log.request
                for name, value in inputs.items():
                    request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
            request.model_spec.name = model
            request.model_spec.signature_name = signature
            writer.write(log.SerializeToString())
