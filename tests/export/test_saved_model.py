"""Exported models, as a server has them: without keras_elmo, without Keras, after the folder was moved."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.tools import saved_model_utils

from keras_elmo import (
    BidirectionalLanguageModel,
    ElmoEmbedding,
    ElmoModel,
    as_strings,
    character_ids,
    tokenize_sentences,
)
from keras_elmo.export import (
    LabelledClassifier,
    LabelledTagger,
    LanguageModelServer,
    export_saved_model,
)
from keras_elmo.export import saved_model as module
from keras_elmo.text import tokenize

HERE = Path(__file__).parent
WIDTH = 12
VECTORS = ["default", "elmo", "lstm_outputs1", "lstm_outputs2", "word_emb"]
# The word is longer than the model's 10 bytes; the sentence is empty; there is Chinese and an emoji.
TEXTS = ["It's the riverbankers' bank.", "", "我喜欢苹果 😀", "a  b"]
WORDS = ["<S>", "</S>", "<UNK>", "the", "bank", "river", "of", "a", "我"]


@pytest.fixture(scope="module")
def model():
    """A small model of another word length than 50 (user problem 27)."""
    keras.utils.set_random_seed(1)
    return ElmoModel(
        filters=[[1, 4], [2, 4]],
        embedding_dim=4,
        units=8,
        projection_dim=4,
        num_highway_layers=1,
        max_word_length=WIDTH,
    )


@pytest.fixture(scope="module")
def language_model(model):
    keras.utils.set_random_seed(2)
    language_model = BidirectionalLanguageModel(model, WORDS)
    kernel, bias = (np.random.default_rng(k).normal(size=s) for k, s in enumerate([(9, 4), (9,)]))
    language_model.set_softmax(kernel.astype("float32"), bias.astype("float32"))
    return language_model


@pytest.fixture(scope="module")
def exported(language_model, tmp_path_factory):
    """A version with everything, moved after it was written (user problem 39)."""
    folder = tmp_path_factory.mktemp("saved_models") / "elmo"
    path = export_saved_model(language_model, folder)
    return path.rename(tmp_path_factory.mktemp("moved") / "1")


@pytest.fixture(scope="module")
def served(exported):
    return tf.saved_model.load(exported).signatures


def signature_defs(path):
    return saved_model_utils.get_meta_graph_def(str(path), "serve").signature_def


def expected(model, texts, tokenizer="word"):
    tokens = tokenize_sentences(texts, tokenizer)
    return model(character_ids([cut or [] for cut in tokens], WIDTH))


# --- what is served ---


def test_names_types_and_shapes_are_those_of_tf_hub(exported):
    """User problems 17 and 36."""
    found = signature_defs(exported)
    names = {name: set(definition.inputs) for name, definition in found.items()}
    names.pop("__saved_model_init_op")
    assert names == {
        "default": {"text"},
        "serving_default": {"text"},
        "tokens": {"tokens", "sequence_len"},
        "character_ids": {"character_ids"},
        "substitutes": {"tokens", "sequence_len", "position"},
    }

    def shape_and_type(info):
        return [dim.size for dim in info.tensor_shape.dim], tf.as_dtype(info.dtype).name

    assert shape_and_type(found["default"].inputs["text"]) == ([-1], "string")
    assert shape_and_type(found["tokens"].inputs["tokens"]) == ([-1, -1], "string")
    assert shape_and_type(found["tokens"].inputs["sequence_len"]) == ([-1], "int32")
    assert shape_and_type(found["character_ids"].inputs["character_ids"]) == (
        [-1, -1, WIDTH],
        "int32",
    )
    vectors = {
        "word_emb": ([-1, -1, 4], "float32"),
        "lstm_outputs1": ([-1, -1, 8], "float32"),
        "lstm_outputs2": ([-1, -1, 8], "float32"),
        "elmo": ([-1, -1, 8], "float32"),
        "default": ([-1, 8], "float32"),
        "sequence_len": ([-1], "int32"),
    }
    for name in ("default", "serving_default", "tokens", "character_ids"):
        outputs = {key: shape_and_type(info) for key, info in found[name].outputs.items()}
        assert outputs == vectors | ({"tokens": ([-1, -1], "string")} if "default" in name else {})
        assert found[name].method_name == "tensorflow/serving/predict"


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:1], TEXTS[1:2], [], ["bank"] * 130], ids=len)
def test_text(served, model, texts):
    """As TF-Hub's clients call it: one positional argument."""
    answer = served["default"](tf.constant(texts, tf.string))
    tokens = tokenize_sentences(texts)
    assert [[t.decode() for t in row if t] for row in answer["tokens"].numpy()] == tokens
    assert answer["sequence_len"].numpy().tolist() == list(map(len, tokens))
    if not texts:
        assert all(value.shape[0] == 0 for value in answer.values())
        return
    width = max(1, *map(len, tokens))
    outputs = ElmoEmbedding(model, output="all")(texts)
    for name in VECTORS:
        assert answer[name].shape == outputs[name].shape
        np.testing.assert_allclose(answer[name], outputs[name], atol=1e-6)
    assert answer["tokens"].shape == answer["elmo"].shape[:2] == (len(texts), width)


def test_tokens_of_which_only_the_length_says_what_is_padding(served, model):
    tokens = [["the", "", "bank"], ["river", "the", "the"], ["the", "the", "the"]]
    answer = served["tokens"](tokens=tf.constant(tokens), sequence_len=tf.constant([3, 1, 0]))
    alone = model(character_ids([["the", "", "bank"], ["river"], []], WIDTH))
    for name in VECTORS:
        np.testing.assert_allclose(answer[name], alone[name], atol=1e-6)
    assert not answer["elmo"].numpy()[1, 1:].any()


@pytest.mark.parametrize("length", [-1, 3], ids=str)
def test_impossible_lengths(served, length):
    with pytest.raises(tf.errors.InvalidArgumentError, match="`sequence_len` must lie between 0"):
        served["tokens"](
            tokens=tf.constant([["a", "b"]]), sequence_len=tf.constant([length], tf.int32)
        )


def test_character_ids(served, model):
    ids = character_ids(["the bank", "a"], WIDTH)
    answer = served["character_ids"](tf.constant(ids))
    for name, output in model(ids).items():
        np.testing.assert_allclose(answer[name], output, atol=1e-6)


def test_the_same_request_has_the_same_answer(served):
    first, second = (served["default"](tf.constant(TEXTS)) for _ in range(2))
    for name in first:
        np.testing.assert_array_equal(first[name].numpy(), second[name].numpy())


def test_an_answer_does_not_depend_on_its_batch_mates(served):
    many = served["default"](tf.constant([*TEXTS, "the " * 50]))
    for row, text in enumerate(TEXTS):
        alone = served["default"](tf.constant([text]))
        length = int(alone["sequence_len"][0])
        for name in VECTORS:
            together = many[name][row]
            of_words = together if name == "default" else together[:length]
            one = alone[name][0] if name == "default" else alone[name][0, :length]
            np.testing.assert_allclose(of_words, one, atol=1e-5)


def test_substitutes(served, language_model):
    sentences = [["the", "bank", "of", "a", "river"], ["bank"], ["a", "我"]]
    positions = [1, 0, 1]
    padded = [row + ["the"] * (5 - len(row)) for row in sentences]
    answer = served["substitutes"](
        tokens=tf.constant(padded),
        sequence_len=tf.constant([5, 1, 2]),
        position=tf.constant(positions),
    )
    for row, (tokens, position) in enumerate(zip(sentences, positions, strict=True)):
        found = language_model.substitutes(tokens, position)
        words = [word.decode() for word in answer["words"].numpy()[row]]
        assert words == [substitute.word for substitute in found]
        np.testing.assert_allclose(
            answer["log_probability"][row], [s.log_probability for s in found], atol=1e-5
        )


@pytest.mark.parametrize("position", [-1, 2])
def test_substitutes_outside_of_the_sentence(served, position):
    with pytest.raises(tf.errors.InvalidArgumentError, match="`position` must be an index"):
        served["substitutes"](
            tokens=tf.constant([["the", "bank", "the"]]),
            sequence_len=tf.constant([2]),
            position=tf.constant([position]),
        )


def test_number_of_substitutes(language_model):
    with pytest.raises(ValueError, match="`top` must be a positive integer"):
        LanguageModelServer(language_model, top=0)


# --- where Python is another, or none ---


def in_another_process(script, *args, **options):
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONPATH": ""}
    process = subprocess.run(
        [sys.executable, str(script), *map(str, args)],
        capture_output=True,
        text=True,
        env=environment,
        **options,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


def test_in_a_session_without_keras(exported, served, tmp_path):
    script = tmp_path / "session.py"
    script.write_text(
        """
import json, sys
for module in ("keras", "keras_elmo", "tensorflow_text"):
    sys.modules[module] = None  # importing it fails
import tensorflow as tf
texts = json.load(sys.stdin)
with tf.compat.v1.Session(graph=tf.Graph()) as session:
    graph = tf.compat.v1.saved_model.load(session, ["serve"], sys.argv[1])
    signature = graph.signature_def["serving_default"]
    fetches = {n: signature.outputs[n].name for n in ("elmo", "default", "sequence_len")}
    found = [session.run(fetches, {signature.inputs["text"].name: batch}) for batch in texts]
json.dump([{n: v.tolist() for n, v in f.items()} for f in found], sys.stdout)
"""
    )
    batches = [TEXTS[:1], TEXTS[:3], ["the bank"] * 130, [""]]
    answers = in_another_process(script, exported, input=json.dumps(batches))
    for batch, found in zip(batches, answers, strict=True):
        ours = served["serving_default"](tf.constant(batch))
        for name, value in found.items():
            np.testing.assert_allclose(value, ours[name], atol=1e-5)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the memory is read from /proc")
def test_memory_stays_whatever_lengths_come(exported, tmp_path):
    """User problem 37: a hundred requests, each of another size, and as many again."""
    script = tmp_path / "memory.py"
    script.write_text(
        """
import json, sys
import tensorflow as tf
served = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
sizes = [(1 + k % 7, 1 + 3 * k % 100) for k in range(100)]
found = []
for _ in range(3):
    for rows, words in sizes:
        served(tf.constant([" ".join(f"w{k}" for k in range(words))] * rows))
    with open("/proc/self/statm") as file:
        found.append(int(file.read().split()[1]) * 4096)
json.dump(found, sys.stdout)
"""
    )
    first, _, last = in_another_process(script, exported)
    assert last - first < 100e6


def test_in_the_loader_of_tensorflow_serving(exported, served):
    """By the C API, without Python's TensorFlow: every output of every signature."""
    requests = {
        "default": {"text": TEXTS},
        "serving_default": {"text": [""]},
        "tokens": {"tokens": [["the", "bank"], ["a", "b"]], "sequence_len": [2, 1]},
        "character_ids": {"character_ids": character_ids(["the bank"], WIDTH).tolist()},
        "substitutes": {"tokens": [["the", "bank"]], "sequence_len": [2], "position": [1]},
    }
    runs, ours = [], []
    for name, inputs in requests.items():
        signature = signature_defs(exported)[name]
        tensors = {key: signature.inputs[key] for key in inputs}
        outputs = sorted(signature.outputs)
        runs.append(
            {
                "inputs": {tensors[key].name: _as_latin_1(value) for key, value in inputs.items()},
                "dtypes": {i.name: tf.as_dtype(i.dtype).name for i in tensors.values()},
                "outputs": [signature.outputs[key].name for key in outputs],
            }
        )
        answer = served[name](
            **{
                key: tf.constant(value, tf.as_dtype(tensors[key].dtype))
                for key, value in inputs.items()
            }
        )
        ours.append([answer[key].numpy() for key in outputs])
    answers = in_another_process(
        HERE / "saved_model_in_c.py",
        Path(tf.__file__).parent,
        input=json.dumps({"folder": str(exported), "runs": runs}),
    )
    for found, expected_values in zip(answers, ours, strict=True):
        for value, expected_value in zip(found, expected_values, strict=True):
            if expected_value.dtype == object:
                assert value == _as_latin_1(expected_value.tolist())
            else:
                np.testing.assert_allclose(value, expected_value, atol=1e-5)


def _as_latin_1(value):
    if isinstance(value, list):
        return [_as_latin_1(part) for part in value]
    value = value.encode() if isinstance(value, str) else value
    return value.decode("latin-1") if isinstance(value, bytes) else value


def test_operations_are_tensorflow_s_own_and_write_nothing(exported):
    graph = saved_model_utils.get_meta_graph_def(str(exported), "serve")
    # Restoring is in the graph, too: it is no signature's.
    functions = {
        name: {node.op for node in function.node_def}
        for function in graph.graph_def.library.function
        for name in [function.signature.name]
        if "restore" not in name and "save" not in name
    }
    ops = set().union(*functions.values()) - {"PartitionedCall", "StatefulPartitionedCall"}
    assert {"MatMul", "StaticRegexReplace"} <= ops
    assert not [op for op in ops if op.startswith(("Assign", "Text", "WordPiece", "Regex>"))]
    in_core = {name for name in dir(tf.raw_ops) if not name.startswith("_")}
    assert ops <= in_core


# --- options ---


def test_float16_stores_half_as_much(model, tmp_path):
    texts = tf.constant(TEXTS)
    paths = [
        export_saved_model(model, tmp_path / "elmo", weights_dtype=dtype)
        for dtype in ("float32", "float16")
    ]
    sizes = [(path / "variables/variables.data-00000-of-00001").stat().st_size for path in paths]
    count = model.count_params()
    assert 4 * count < sizes[0]
    assert sizes[1] < sizes[0] - 2 * count + 100
    whole, half = (tf.saved_model.load(path).signatures["default"](texts) for path in paths)
    assert half["elmo"].dtype == tf.float32
    np.testing.assert_allclose(half["elmo"], whole["elmo"], atol=2e-3)
    assert np.abs(half["elmo"] - whole["elmo"]).max() > 0


def test_weights_that_float16_cannot_hold(tmp_path):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, name="big")])
    model.set_weights([np.array([[1e5]]), np.array([0.0])])
    with pytest.raises(
        ValueError, match="'float16' is too narrow for the weights of '.*big/kernel'"
    ):
        export_saved_model(model, tmp_path / "big", weights_dtype="float16")
    with pytest.raises(ValueError, match="`weights_dtype` must be one of 'float32', 'float16'"):
        export_saved_model(model, tmp_path / "big", weights_dtype="int8")
    assert not (tmp_path / "big").exists()


def test_bfloat16_computes_otherwise_and_answers_in_float32(model, tmp_path):
    rough = ElmoModel.from_config(model.get_config() | {"dtype": "mixed_bfloat16"})
    rough.set_weights(model.get_weights())
    path = export_saved_model(rough, tmp_path / "elmo")
    answer = tf.saved_model.load(path).signatures["default"](tf.constant(TEXTS))
    precise = ElmoEmbedding(model)(TEXTS)
    assert answer["elmo"].dtype == tf.float32
    np.testing.assert_allclose(answer["elmo"], precise, atol=0.02)
    assert np.abs(answer["elmo"] - precise).max() > 0


def test_outputs_are_picked(language_model, tmp_path):
    path = export_saved_model(language_model, tmp_path / "elmo", ["elmo", "tokens"])
    found = {name: set(d.outputs) for name, d in signature_defs(path).items()}
    assert found["default"] == found["serving_default"] == {"elmo", "tokens"}
    assert found["tokens"] == found["character_ids"] == {"elmo"}
    assert found["substitutes"] == {"words", "log_probability"}


@pytest.mark.parametrize("outputs", ["elmo", [], ["elmo", "bilm"]], ids=str)
def test_unknown_outputs(model, tmp_path, outputs):
    with pytest.raises(ValueError, match="`outputs` must be names of outputs: default, elmo, lstm"):
        export_saved_model(model, tmp_path / "elmo", outputs)
    assert not (tmp_path / "elmo").exists()


def test_tf_hub_s_splitting(model, tmp_path):
    path = export_saved_model(ElmoEmbedding(model, tokenizer="whitespace"), tmp_path / "elmo")
    answer = tf.saved_model.load(path).signatures["default"](tf.constant(["It's the  bank."]))
    assert answer["tokens"].numpy().tolist() == [[b"It's", b"the", b"bank."]]
    ids = character_ids([["It's", "the", "bank."]], WIDTH)
    np.testing.assert_allclose(answer["elmo"], model(ids)["elmo"], atol=1e-6)


def test_boundaries_that_the_model_keeps(model, tmp_path):
    keeping = ElmoModel.from_config(model.get_config() | {"keep_sentence_boundaries": True})
    keeping.set_weights(model.get_weights())
    path = export_saved_model(keeping, tmp_path / "elmo")
    answer = tf.saved_model.load(path).signatures["default"](tf.constant(["the bank", ""]))
    assert answer["tokens"].numpy().tolist() == [
        [b"<S>", b"the", b"bank", b"</S>"],
        [b"<S>", b"</S>", b"", b""],
    ]
    assert answer["elmo"].shape == (2, 4, 8)


def test_description(exported, language_model):
    description = json.loads((exported / "assets.extra/keras_elmo.json").read_text())
    assert description["model"] == "elmo"
    assert description["tokenizer"] == "word"
    assert description["architecture"]["max_word_length"] == WIDTH
    assert description["signatures"]["tokens"]["inputs"] == ["tokens", "sequence_len"]
    assert "elmo" in description["signatures"]["serving_default"]["outputs"]
    assert set(description["versions"]) == {
        "keras-elmo",
        "keras",
        "tensorflow",
        "tensorflow-text",
    }


def test_warm_up_requests_are_answered(exported, served):
    from tensorflow_serving.apis import prediction_log_pb2

    signatures = []
    for record in tf.data.TFRecordDataset(
        str(exported / "assets.extra/tf_serving_warmup_requests")
    ):
        log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
        request = log.predict_log.request
        assert request.model_spec.name == "elmo"
        signatures.append(request.model_spec.signature_name)
        inputs = {name: tf.make_ndarray(value) for name, value in request.inputs.items()}
        answer = served[signatures[-1]](**{n: tf.constant(v) for n, v in inputs.items()})
        if "sequence_len" in answer:
            assert answer["sequence_len"].numpy().tolist() == [7]
    assert sorted(signatures) == sorted(served)


# --- versions ---


def test_versions_follow_each_other(model, tmp_path):
    folder = tmp_path / "models" / "elmo"
    assert export_saved_model(model, folder, ["elmo"]) == folder / "1"
    (folder / "1").rename(folder / "9")
    assert export_saved_model(model, str(folder), ["elmo"]) == folder / "10"
    assert sorted(os.listdir(folder)) == ["10", "9"]


def test_another_export_took_the_number(model, tmp_path, monkeypatch):
    folder = tmp_path / "elmo"
    real = module.write_warmup_requests

    def slow(*args):
        (folder / "1").mkdir()
        (folder / "1/saved_model.pb").touch()
        real(*args)
        # Between the look into the folder and the renaming.
        monkeypatch.setattr(Path, "iterdir", once_blind)

    listing = Path.iterdir

    def once_blind(path):
        monkeypatch.setattr(Path, "iterdir", listing)
        return iter(())

    monkeypatch.setattr(module, "write_warmup_requests", slow)
    assert export_saved_model(model, folder, ["elmo"]) == folder / "2"


def test_nobody_sees_half_a_version(model, tmp_path, monkeypatch):
    folder = tmp_path / "elmo"
    seen = []

    def fail(*args):
        seen.extend(os.listdir(folder))
        raise OSError("no space left")

    monkeypatch.setattr(module, "write_warmup_requests", fail)
    with pytest.raises(OSError, match="no space left"):
        export_saved_model(model, folder)
    assert seen
    assert all(name.startswith(".") for name in seen)
    assert os.listdir(folder) == []


def test_folders_that_are_none_of_a_model(model, tmp_path):
    with pytest.raises(ValueError, match="must be the model's folder, .* its name is the model's"):
        export_saved_model(model, tmp_path / "elmo" / "1")
    with pytest.raises(ValueError, match="`folder` must have a name without a colon"):
        export_saved_model(model, tmp_path / "a:b")
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="`folder` must be a folder. Received: .*which is a file"):
        export_saved_model(model, tmp_path / "file")
    with pytest.raises(ValueError, match="must be new or have nothing but versions .* has 'file'"):
        export_saved_model(model, tmp_path)


# --- other Keras models ---


def test_a_model_has_its_own_names(model, tmp_path):
    text = keras.Input((), dtype="string", name="premise")
    number = keras.Input((2,), name="number")
    vector = ElmoEmbedding(model, output="default")(text)
    outer = keras.Model(
        {"premise": text, "number": number},
        {"joined": keras.layers.Concatenate()([vector, number]), "vector": vector},
    )
    path = export_saved_model(outer, tmp_path / "joined")
    served = tf.saved_model.load(path).signatures
    assert sorted(served) == ["default", "serving_default"]
    numbers = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    answer = served["serving_default"](premise=tf.constant(["a", "the"]), number=numbers)
    ours = outer({"premise": as_strings(["a", "the"]), "number": numbers})
    for name in ("joined", "vector"):
        np.testing.assert_allclose(answer[name], ours[name], atol=1e-6)


def test_names_of_inputs_and_outputs_that_nobody_named(tmp_path):
    inputs = [keras.Input((1,)), keras.Input((1,), name="second")]
    outputs = [keras.layers.Dense(1, name="first_output")(inputs[0]), inputs[1]]
    path = export_saved_model(keras.Model(inputs, outputs), tmp_path / "two")
    definition = signature_defs(path)["default"]
    assert sorted(definition.inputs) == ["input_1", "second"]
    assert "first_output" in definition.outputs
    assert len(definition.outputs) == 2


def test_a_model_that_was_loaded_has_the_names_that_it_had(tmp_path):
    text = keras.Input((), dtype="string")
    layer = keras.layers.StringLookup(vocabulary=["bank"])
    keras.Model(text, layer(text)).save(tmp_path / "lookup.keras")
    loaded = keras.saving.load_model(tmp_path / "lookup.keras")
    definition = signature_defs(export_saved_model(loaded, tmp_path / "lookup"))["default"]
    assert list(definition.inputs) == ["text"]


def test_outputs_of_one_name(tmp_path):
    vector = keras.Input((2,))
    halves = keras.ops.split(vector, 2, axis=-1)
    with pytest.raises(ValueError, match="must have different names to be served. 2 of them come"):
        export_saved_model(keras.Model(vector, halves), tmp_path / "halves")
    assert not (tmp_path / "halves").exists()
    named = keras.Model(vector, dict(zip(("first", "second"), halves, strict=True)))
    definition = signature_defs(export_saved_model(named, tmp_path / "halves"))["default"]
    assert sorted(definition.outputs) == ["first", "second"]


def test_lookup_tables_are_saved(tmp_path):
    """User problem 39: tables are tracked, and their assets are in the folder."""
    text = keras.Input((), dtype="string")
    layer = keras.layers.StringLookup(vocabulary=["bank", "river"])
    path = export_saved_model(keras.Model(text, layer(text)), tmp_path / "lookup")
    moved = path.rename(tmp_path / "moved")
    shutil.rmtree(tmp_path / "lookup")
    served = tf.saved_model.load(moved).signatures["default"]
    [ids] = served(text=tf.constant(["river", "x", "bank"])).values()
    assert ids.numpy().tolist() == [2, 0, 1]


def test_the_table_of_a_layer_that_has_weights_too_is_saved(tmp_path):
    class WordVectors(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.lookup = keras.layers.StringLookup(vocabulary=["bank", "river"])
            self.vectors = keras.layers.Embedding(3, 2)

        def build(self, input_shape):
            self.vectors.build(input_shape)

        def call(self, words):
            return self.vectors(self.lookup(words))

    text = keras.Input((), dtype="string")
    outer = keras.Model(text, WordVectors()(text))
    path = export_saved_model(outer, tmp_path / "vectors", weights_dtype="float16")
    words = tf.constant(["river", "x", "bank"])
    [vectors] = tf.saved_model.load(path).signatures["default"](text=words).values()
    np.testing.assert_allclose(vectors, outer(words), atol=1e-3)


def test_a_table_that_tensorflow_does_not_find(tmp_path):
    class Hidden(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            # Not tracked by TensorFlow, as a closure or a plain object would not be.
            lookup = keras.layers.StringLookup(vocabulary=["bank"])
            object.__setattr__(self, "look_up", lambda text: lookup(text))

        def call(self, inputs):
            return self.look_up(inputs)

    text = keras.Input((), dtype="string")
    outer = keras.Model(text, Hidden()(text))
    with pytest.raises(ValueError, match="uses a lookup table that TensorFlow does not find"):
        export_saved_model(outer, tmp_path / "hidden")
    assert os.listdir(tmp_path / "hidden") == []


def test_the_optimizer_stays_at_home(model, tmp_path):
    outer = keras.Sequential([keras.Input((4,)), keras.layers.Dense(100), keras.layers.Dense(1)])
    outer.compile("adam", "mse")
    outer.fit(np.zeros((2, 4)), np.zeros((2, 1)), verbose=0)
    path = export_saved_model(outer, tmp_path / "outer")
    names = [name for name, _ in tf.train.list_variables(str(path / "variables/variables"))]
    assert len([name for name in names if name.startswith("weights/")]) == 4
    assert not [name for name in names if "momentum" in name or "optimizer" in name]


class Counting(keras.layers.Layer):
    """Counts its calls."""

    def __init__(self, make_variable):
        super().__init__()
        self.count = make_variable(0.0, trainable=False)

    def call(self, inputs):
        self.count.assign(self.count + 1)
        return inputs + self.count


class Eager(keras.layers.Layer):
    """Runs Python code."""

    def call(self, inputs):
        return tf.ensure_shape(tf.py_function(lambda x: x, [inputs], tf.float32), inputs.shape)


def test_what_a_call_assigns_to_keras_variables_is_forgotten(tmp_path):
    outer = keras.Sequential([keras.Input((1,), name="x"), Counting(keras.Variable)])
    served = tf.saved_model.load(export_saved_model(outer, tmp_path / "outer")).signatures
    for _ in range(2):
        [answer] = served["default"](x=tf.constant([[1.0]])).values()
        assert answer.numpy().tolist() == [[2.0]]


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        (
            lambda: Counting(tf.Variable),
            "The signature `default` writes a variable .*: its answers would depend",
        ),
        (Eager, "The signature `default` runs Python code .*, which no server has"),
    ],
    ids=["writes", "python"],
)
def test_what_no_server_can_do(tmp_path, layer, message):
    outer = keras.Sequential([keras.Input((1,)), layer()])
    with pytest.raises(ValueError, match=message):
        export_saved_model(outer, tmp_path / "outer")
    assert not (tmp_path / "outer").exists()


def test_models_that_do_not_know_their_inputs(tmp_path):
    class Subclassed(keras.Model):
        def call(self, inputs):
            return inputs

    with pytest.raises(
        ValueError, match="must know its inputs to be exported. Make it a functional"
    ):
        export_saved_model(Subclassed(), tmp_path / "outer")
    with pytest.raises(
        ValueError, match="`model` must be a Keras model or have .* Received: Dense"
    ):
        export_saved_model(keras.layers.Dense(1), tmp_path / "outer")


# --- classifiers ---


@pytest.fixture(scope="module")
def softmax(model):
    keras.utils.set_random_seed(3)
    return keras.Sequential(
        [
            keras.Input((), dtype="string"),
            ElmoEmbedding(model, output="default"),
            keras.layers.Dense(3, activation="softmax"),
        ]
    )


def test_a_classifier_answers_with_labels(softmax, tmp_path):
    labels = ["坏", "so so", "good"]
    path = export_saved_model(LabelledClassifier(softmax, labels), tmp_path / "reviews")
    definition = signature_defs(path)["classify"]
    assert definition.method_name == "tensorflow/serving/classify"
    assert (set(definition.inputs), set(definition.outputs)) == (
        {"inputs"},
        {"classes", "scores"},
    )
    served = tf.saved_model.load(path).signatures
    texts = ["the bank", "", "我"]
    answer = served["default"](tf.constant(texts))
    probabilities = softmax.predict(as_strings(texts), verbose=0)
    np.testing.assert_allclose(answer["probabilities"], probabilities, atol=1e-6)
    assert [label.decode() for label in answer["label"].numpy()] == [
        labels[k] for k in probabilities.argmax(axis=1)
    ]
    assert [[label.decode() for label in row] for row in answer["labels"].numpy()] == [labels] * 3

    def example(text):
        feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode()]))
        features = tf.train.Features(feature={"text": feature})
        return tf.train.Example(features=features).SerializeToString()

    classified = served["classify"](tf.constant([example(text) for text in texts]))
    np.testing.assert_allclose(classified["scores"], probabilities, atol=1e-6)
    np.testing.assert_array_equal(classified["classes"].numpy(), answer["labels"].numpy())
    description = json.loads((path / "assets.extra/keras_elmo.json").read_text())
    assert description["labels"] == labels


@pytest.mark.parametrize("shape", [(), (1,)], ids=str)
def test_one_output_for_two_labels(model, shape):
    text = keras.Input(shape, dtype="string")
    outer = keras.Model(
        text,
        keras.layers.Dense(1, activation="sigmoid")(ElmoEmbedding(model, output="default")(text)),
    )
    answer = LabelledClassifier(outer, ["no", "yes"]).serving_signatures()["default"](
        tf.constant(["the bank"])
    )
    [[no, yes]] = answer["probabilities"].numpy()
    np.testing.assert_allclose(yes, outer(tf.reshape(tf.constant("the bank"), (1, *shape)))[0, 0])
    np.testing.assert_allclose(no + yes, 1)


@pytest.mark.parametrize("labels", [["a"], ["a", "a", "b"], ["a", 1, 2], ["", "a"], []], ids=str)
def test_labels_that_are_none(softmax, labels):
    with pytest.raises(ValueError, match="`labels` must be two or more different names"):
        LabelledClassifier(softmax, labels)


def test_models_that_are_no_classifiers(model, softmax):
    with pytest.raises(ValueError, match="`labels` must be as many as the model has outputs, 3"):
        LabelledClassifier(softmax, ["a", "b"])
    text = keras.Input((), dtype="string")
    vectors = ElmoEmbedding(model)(text)
    logits = keras.Model(text, keras.layers.Dense(2)(ElmoEmbedding(model, output="default")(text)))
    with pytest.raises(ValueError, match="must return probabilities, which add up to 1"):
        LabelledClassifier(logits, ["a", "b"])
    nan = keras.Model(text, keras.layers.Rescaling(float("nan"))(logits(text)))
    with pytest.raises(ValueError, match="must return probabilities, .* Received: .nan, nan"):
        LabelledClassifier(nan, ["a", "b"])
    with pytest.raises(ValueError, match="must have one output .* to be a text classifier"):
        LabelledClassifier(keras.Model(text, vectors), ["a", "b"])
    with pytest.raises(ValueError, match="must begin with one `keras.Input"):
        LabelledClassifier(model, ["a", "b"])


# --- taggers ---


@pytest.mark.parametrize("inputs", ["sentences", "tokens"])
def test_a_tagger_answers_with_the_label_of_each_token(model, tmp_path, inputs):
    keras.utils.set_random_seed(4)
    text = keras.Input(() if inputs == "sentences" else (None,), dtype="string")
    vectors = ElmoEmbedding(model, inputs=inputs)(text)
    outer = keras.Model(text, keras.layers.Dense(3, activation="softmax")(vectors))
    labels = ["O", "B-PER", "I-PER"]
    path = export_saved_model(LabelledTagger(outer, labels), tmp_path / "tagger")
    answer = tf.saved_model.load(path).signatures["serving_default"](tf.constant(TEXTS))
    cut = tokenize_sentences(TEXTS)
    expected_input = TEXTS if inputs == "sentences" else cut
    probabilities = outer(
        as_strings(expected_input) if inputs == "sentences" else tf.ragged.constant(cut).to_tensor()
    ).numpy()
    assert answer["sequence_len"].numpy().tolist() == list(map(len, cut))
    for row, tokens in enumerate(cut):
        count = len(tokens)
        shown = [token.decode() for token in answer["tokens"].numpy()[row]]
        assert shown == tokens + [""] * (len(shown) - count)
        found = [label.decode() for label in answer["label"].numpy()[row]]
        best = [labels[k] for k in probabilities[row, :count].argmax(axis=-1)]
        assert found == best + [""] * (len(shown) - count)
        np.testing.assert_allclose(
            answer["probabilities"][row, :count], probabilities[row, :count], atol=1e-6
        )
        assert not answer["probabilities"].numpy()[row, count:].any()
    assert [label.decode() for label in answer["labels"].numpy()[0]] == labels
    description = json.loads((path / "assets.extra/keras_elmo.json").read_text())
    assert description["tokenizer"] == "word"


def test_models_that_are_no_taggers(model, softmax):
    text = keras.Input((), dtype="string")
    tags = keras.layers.Dense(3, activation="softmax")(ElmoEmbedding(model)(text))
    with pytest.raises(ValueError, match="`labels` must be as many as the model has outputs, 3"):
        LabelledTagger(keras.Model(text, tags), ["a", "b"])
    with pytest.raises(ValueError, match="must have one output .* to be a tagger"):
        LabelledTagger(softmax, ["a", "b", "c"])
    with pytest.raises(ValueError, match="must begin with one `keras.Input.* to be a tagger"):
        LabelledTagger(model, ["a", "b"])
    without = keras.Model(text, keras.layers.StringLookup(vocabulary=["a"])(text))
    with pytest.raises(ValueError, match="must have one `ElmoEmbedding`.* Received: 0"):
        LabelledTagger(without, ["a", "b"])


# --- ElmoEmbedding says what it serves ---


def test_inputs_and_output_of_the_layer_do_not_matter(model):
    layer = ElmoEmbedding(model, inputs="character_ids", output="default", dropout=0.5)
    answer = layer.serving_signatures()["default"](tf.constant(["the bank"]))
    assert set(answer) == {*VECTORS, "tokens", "sequence_len"}
    assert tokenize(["the bank"]).to_list() == answer["tokens"].numpy().tolist()
    np.testing.assert_allclose(answer["elmo"], ElmoEmbedding(model)(["the bank"]), atol=1e-6)
