"""An ELMo and a classifier in NumPy, of whose vectors every number is known, for servers in the test process.

The vector of a word is its CRC as a fraction, its length in bytes, and a third.
"""

import threading
import zlib
from collections import deque

import numpy as np
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef
from tensorflow_serving.apis import get_model_metadata_pb2, get_model_status_pb2

PREDICT, CLASSIFY = "tensorflow/serving/predict", "tensorflow/serving/classify"
WORDS = {
    "elmo": ("DT_FLOAT", [-1, -1, 3]),
    "word_emb": ("DT_FLOAT", [-1, -1, 1]),
    "default": ("DT_FLOAT", [-1, 3]),
    "sequence_len": ("DT_INT32", [-1]),
}
TEXT = {"text": ("DT_STRING", [-1])}
SIGNATURES = {
    "serving_default": (TEXT, {**WORDS, "tokens": ("DT_STRING", [-1, -1])}, PREDICT),
    "tokens": (
        {"tokens": ("DT_STRING", [-1, -1]), "sequence_len": ("DT_INT32", [-1])},
        WORDS,
        PREDICT,
    ),
    "label": (
        TEXT,
        {
            "label": ("DT_STRING", [-1]),
            "probabilities": ("DT_FLOAT", [-1, 2]),
            "labels": ("DT_STRING", [-1, 2]),
        },
        PREDICT,
    ),
    "classify": (
        {"inputs": ("DT_STRING", [-1])},
        {"classes": ("DT_STRING", [-1, 2]), "scores": ("DT_FLOAT", [-1, 2])},
        CLASSIFY,
    ),
    "kinds": (
        {
            "long": ("DT_INT64", None),
            "double": ("DT_DOUBLE", None),
            "truth": ("DT_BOOL", None),
            "raw_bytes": ("DT_STRING", None),
        },
        {
            "long": ("DT_INT64", None),
            "double": ("DT_DOUBLE", None),
            "truth": ("DT_BOOL", None),
            "raw_bytes": ("DT_STRING", None),
        },
        PREDICT,
    ),
    "single": (TEXT, {"default": ("DT_FLOAT", [-1, 3])}, PREDICT),
    "__saved_model_init_op": ({}, {}, ""),
}


class Refusal(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code, self.message = code, message


def word_vector(word):
    return np.array([zlib.crc32(word) / 2**32, len(word), 1 / 3], np.float32)


def sentence_vectors(words):
    """What the output `elmo` holds for a sentence, without padding."""
    return np.array([word_vector(word) for word in words], np.float32).reshape(-1, 3)


class Core:
    """What both servers ask.

    Attributes:
        requests: The kind, the headers and the number of sentences of each request.
        is_loaded: Whether a version can be asked.
        sent: The names of the outputs in each answer.
        asked: The version and the label of each request.
        failures: What the next requests for a prediction are refused with; code and message.
        gate: Predictions wait until it is set.
        signatures: Name -> inputs, outputs and method.
        answer: Changes an answer before it is sent.
    """

    def __init__(self):
        self.requests = []
        self.is_loaded = True
        self.sent = []
        self.asked = set()
        self.failures = deque()
        self.gate = threading.Event()
        self.gate.set()
        self.signatures = dict(SIGNATURES)
        self.answer = lambda outputs: outputs

    def note(self, kind, headers, size=None):
        self.requests.append((kind, {name.lower(): value for name, value in headers}, size))

    def sizes(self, kind="predict"):
        return [size for name, _, size in self.requests if name == kind]

    def find(self, name, version, label):
        self.asked.add((version, label))
        if label not in (None, "stable", "canary"):
            raise Refusal("INVALID_ARGUMENT", f"Unrecognized servable version label: {label}")
        if not self.is_loaded or name != "elmo" or version not in (None, 1, 2):
            raise Refusal("NOT_FOUND", f"Servable not found for request: Latest({name})")

    def signature_defs(self):
        result = get_model_metadata_pb2.SignatureDefMap()
        for name, (inputs, outputs, method) in self.signatures.items():
            signature = SignatureDef(method_name=method)
            for infos, specs in ((signature.inputs, inputs), (signature.outputs, outputs)):
                for key, (dtype, sizes) in specs.items():
                    infos[key].name = f"{name}_{key}:0"
                    infos[key].dtype = types_pb2.DataType.Value(dtype)
                    infos[key].tensor_shape.unknown_rank = sizes is None
                    for size in sizes or ():
                        infos[key].tensor_shape.dim.add(size=size)
            result.signature_def[name].CopyFrom(signature)
        return result

    def status(self, version):
        response = get_model_status_pb2.GetModelStatusResponse()
        for number, state in ((2, 30), (1, 50)):
            if version in (None, number):
                response.model_version_status.add(version=number, state=state)
        if response.model_version_status and version != 2:
            response.model_version_status[-1].status.error_code = 3
            response.model_version_status[-1].status.error_message = "no such op"
        if not response.model_version_status:
            raise Refusal("NOT_FOUND", f"Could not find version {version} of model elmo")
        return response

    def predict(self, signature_name, inputs, output_filter=()):
        self.wait()
        name = signature_name or "serving_default"
        if name not in self.signatures:
            raise Refusal(
                "INVALID_ARGUMENT", f'Serving signature name: "{name}" not found in signature def'
            )
        outputs = self.answer(self.run(name, inputs))
        exported = self.signatures[name][1]
        unknown = [key for key in output_filter if key not in exported]
        if unknown:
            raise Refusal(
                "INVALID_ARGUMENT", f"output tensor alias not found in signature: {unknown[0]}"
            )
        result = {key: outputs[key] for key in output_filter or exported if key in outputs}
        self.sent.append(set(result))
        return result

    def wait(self):
        self.gate.wait()
        if self.failures:
            raise Refusal(*self.failures.popleft())

    def run(self, name, inputs):
        if name == "kinds":
            return {
                "long": inputs["long"] + 1,
                "double": inputs["double"] / 2,
                **{key: inputs[key] for key in ("truth", "raw_bytes")},
            }
        if name == "label":
            text = inputs["text"]
            scores = np.array([self.scores(item) for item in text], np.float32)
            labels = np.array([[b"odd", b"\xc3\xbcber"]] * len(text), object)
            return {
                "label": np.array([labels[0][row.argmax()] for row in scores], object),
                "probabilities": scores,
                "labels": labels,
            }
        if "text" in inputs:
            sentences = [text.split() for text in inputs["text"]]
        else:
            lengths = inputs["sequence_len"]
            if np.max(lengths) > inputs["tokens"].shape[1]:
                raise Refusal("INVALID_ARGUMENT", "sequence_len is larger than the sentence")
            sentences = [row[:n] for row, n in zip(inputs["tokens"], lengths, strict=True)]
        width = max(map(len, sentences))
        elmo = np.zeros((len(sentences), width, 3), np.float32)
        tokens = np.full((len(sentences), width), b"", object)
        for row, words, sentence in zip(elmo, tokens, sentences, strict=True):
            row[: len(sentence)] = sentence_vectors(sentence)
            words[: len(sentence)] = sentence
        lengths = np.array([len(sentence) for sentence in sentences], np.int32)
        default = elmo.sum(1) / np.maximum(lengths, 1)[:, None]
        return {
            "elmo": elmo,
            "word_emb": elmo[:, :, :1],
            "default": default.astype(np.float32),
            "sequence_len": lengths,
            "tokens": tokens,
        }

    def scores(self, text):
        score = zlib.crc32(text) / 2**32
        return [score, 1 - score]

    def classify(self, signature_name, texts):
        self.wait()
        if self.signatures.get(signature_name, ((), (), ""))[2] != CLASSIFY:
            raise Refusal(
                "INVALID_ARGUMENT",
                f"Expected classification signature method_name to be {CLASSIFY}",
            )
        return self.answer(
            [list(zip(("odd", "über"), self.scores(text), strict=True)) for text in texts]
        )
