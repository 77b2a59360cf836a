"""A SavedModel with the signatures of an exported ELMo, whose every number is known: what the servers are tested with.

A token's vector is `scale * [bytes in the token, 1]`.
"""

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import predict_pb2, prediction_log_pb2

STRINGS = tf.TensorSpec((None,), tf.string, "text")
OUTPUTS = ("default", "elmo", "sequence_len", "tokens")


class TinyModel(tf.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = tf.Variable(float(scale))

    def outputs(self, tokens, sequence_len):
        mask = tf.sequence_mask(sequence_len, tf.shape(tokens)[1], tf.float32)
        lengths = tf.cast(tf.strings.length(tokens), tf.float32)
        elmo = self.scale * tf.stack([lengths, tf.ones_like(lengths)], 2) * mask[:, :, None]
        num_tokens = tf.cast(tf.maximum(sequence_len, 1), tf.float32)
        return {
            "elmo": elmo,
            "default": tf.reduce_sum(elmo, 1) / num_tokens[:, None],
            "sequence_len": sequence_len,
        }

    @tf.function(input_signature=[STRINGS])
    def text(self, text):
        words = tf.strings.split(text)
        tokens = words.to_tensor("")
        outputs = self.outputs(tokens, tf.cast(words.row_lengths(), tf.int32))
        return {**outputs, "tokens": tokens}

    @tf.function(
        input_signature=[
            tf.TensorSpec((None, None), tf.string, "tokens"),
            tf.TensorSpec((None,), tf.int32, "sequence_len"),
        ]
    )
    def tokens(self, tokens, sequence_len):
        fits = tf.debugging.assert_less_equal(
            sequence_len, tf.shape(tokens)[1], "`sequence_len` is larger than the sentence."
        )
        with tf.control_dependencies([fits]):
            return self.outputs(tokens, tf.identity(sequence_len))

    @tf.function(input_signature=[tf.TensorSpec((None, None, 50), tf.int32, "character_ids")])
    def character_ids(self, character_ids):
        return {"sums": tf.reduce_sum(character_ids, 2)}

    @tf.function(input_signature=[STRINGS])
    def echo(self, text):
        return {"raw_bytes": text}

    @tf.function(input_signature=[STRINGS])
    def echo_text(self, text):
        return {"text": text}

    @tf.function(input_signature=[tf.TensorSpec(None, tf.float32, "x")])
    def log(self, x):
        return {"y": tf.math.log(x)}

    @tf.function(
        input_signature=[
            tf.TensorSpec(None, tf.int64, "long"),
            tf.TensorSpec(None, tf.float64, "double"),
            tf.TensorSpec(None, tf.bool, "truth"),
            tf.TensorSpec(None, tf.uint8, "byte"),
        ]
    )
    def kinds(self, long, double, truth, byte):
        return {"long": long + 1, "double": double / 2, "truth": ~truth, "byte": byte}

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.float32, "x")])
    def halves(self, x):
        return {"y": tf.cast(x, tf.float16)}

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string, "inputs")])
    def classify(self, inputs):
        features = {"text": tf.io.FixedLenFeature((), tf.string)}
        text = tf.io.parse_example(inputs, features)["text"]
        score = tf.cast(tf.strings.length(text) % 2, tf.float32)
        classes = tf.tile([["even", "odd"]], [tf.size(text), 1])
        return {"classes": classes, "scores": tf.stack([1 - score, score], 1)}


def save(folder, scale=1.0, warmup=True):
    """Writes a version folder."""
    model = TinyModel(scale)
    names = ("tokens", "character_ids", "echo", "echo_text", "log", "kinds", "halves", "classify")
    signatures = {name: getattr(model, name) for name in names}
    signatures |= {"default": model.text, "serving_default": model.text}
    tf.saved_model.save(model, str(folder), signatures)
    set_method(folder, "classify", "tensorflow/serving/classify")
    if warmup:
        write_warmup(folder)
    return folder


def set_method(folder, name, method):
    file = folder / "saved_model.pb"
    content = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    content.meta_graphs[0].signature_def[name].method_name = method
    file.write_bytes(content.SerializeToString())


def write_warmup(folder, *logs):
    request = predict_pb2.PredictRequest()
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(["to warm up"]))
    log = prediction_log_pb2.PredictionLog()
    log.predict_log.request.CopyFrom(request)
    (folder / "assets.extra").mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(folder / "assets.extra/tf_serving_warmup_requests")) as writer:
        for entry in logs or [log]:
            writer.write(entry.SerializeToString())


def answer(sentences, scale=1.0):
    """What the signature `serving_default` answers, reckoned anew."""
    words = [sentence.split() for sentence in sentences]
    longest = max(map(len, words), default=0)
    elmo = np.zeros((len(words), longest, 2), np.float32)
    tokens = np.full((len(words), longest), b"", object)
    for row, sentence in enumerate(words):
        for place, word in enumerate(sentence):
            tokens[row, place] = word.encode()
            elmo[row, place] = scale * len(word.encode()), scale
    return {
        "default": np.stack([mean_vector(sentence, scale) for sentence in sentences]),
        "elmo": elmo,
        "sequence_len": np.array([len(sentence) for sentence in words], np.int32),
        "tokens": tokens,
    }


def mean_vector(sentence, scale=1.0):
    """The output `default` for a sentence."""
    lengths = [len(token.encode()) for token in sentence.split()]
    return scale * np.array([np.mean(lengths), 1] if lengths else [0, 0], np.float32)
