"""The ways to use ELMo: which weights each of them moves, and what it costs."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from conftest_tasks import make_elmo, make_language_model, moved, values

from keras_elmo import ElmoEmbedding, ScalarMix, as_strings, character_ids
from keras_elmo.layers import RemoveSentenceBoundaries, without_shortcuts
from keras_elmo.tasks import SemanticRoleLabeller, TextClassifier, TokenClassifier
from keras_elmo.text import Tokenizer


def trained(head, x, y, **arguments):
    """Trains a head; the weights that it moved and those that it left, each as a set of paths."""
    head.compile(keras.optimizers.Adam(0.05))
    before = values(head.weights)
    head.fit(x, y, epochs=3, verbose=0, **arguments)
    found = moved(before, head.weights)
    return found, set(before) - found


def paths(*layers):
    return {variable.path for layer in layers for variable in layer.weights}


def mixes(head):
    return paths(*filter(None, (head.encoder.input_mix, head.encoder.output_mix)))


def bilm(head):
    return paths(head.elmo_model.token_encoder, head.elmo_model.bilm)


def test_features(elmo, reviews):
    """The mix and the head are learned, all of them, and nothing of the biLM (user problem 52)."""
    head = TextClassifier(elmo, ["bad", "good"], lstm_units=4)
    found, left = trained(head, *reviews)
    unused = paths(elmo.scalar_mix)
    assert left == bilm(head) | unused
    assert found == paths(head.encoder.lstm, head.classify) | mixes(head)
    assert {variable.path for variable in head.trainable_variables} == found


def test_beside_word_vectors_and_shapes(elmo, reviews):
    head = TokenClassifier(
        elmo, ["N", "V"], lstm_units=4, word_vocabulary=["good", "bad", "film"], word_dim=5
    )
    x = [text.split() for text in reviews[0]]
    y = [["V" if word in ("sat", "ran") else "N" for word in words] for words in x]
    before = head.encoder.word_embedding.embeddings.numpy()
    found, left = trained(head, x, y)
    assert left == bilm(head) | paths(elmo.scalar_mix, head.crf)
    assert paths(head.encoder.word_embedding, head.encoder.word_shape.suffix_embedding) <= found
    # The words that occur have vectors of their own, and all others share one, which moved as well.
    after = head.encoder.word_embedding.embeddings.numpy()
    assert (before != after).any(axis=1).tolist() == [True] * 4


@pytest.mark.parametrize("lstm_units", [0, 4])
def test_mixes_at_input_and_output(elmo, reviews, lstm_units):
    """Two mixes of one run of the biLM, which become different."""
    head = TextClassifier(elmo, ["bad", "good"], lstm_units=lstm_units, mix_at_output=True)
    found, left = trained(head, *reviews)
    assert left == bilm(head) | paths(elmo.scalar_mix)
    assert mixes(head) <= found
    assert len(mixes(head)) == 4
    below, above = (
        mix.scalar_weights.numpy() for mix in (head.encoder.input_mix, head.encoder.output_mix)
    )
    assert not np.allclose(below, above, atol=1e-3)
    assert head.encoder.output_dim == (2 * lstm_units or 8) + 8


def number_of_loops(head, x, y, attribute):
    """How many loops there are in the graph of a training step, and how many lists they write for gradients."""
    data, targets = head._examples(x, y)
    batch = data.batch(range(len(x))), targets.batch(range(len(x)))
    head.optimizer.build(head.trainable_variables)
    graph = tf.function(head.train_step).get_concrete_function(batch).graph.as_graph_def()
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    return sum(node.op in attribute for node in nodes)


def test_one_run_of_the_bilm_serves_both_mixes(elmo, reviews):
    def loops(**arguments):
        head = TextClassifier(elmo, ["bad", "good"], lstm_units=0, **arguments)
        return number_of_loops(head, *reviews, ("While", "StatelessWhile"))

    assert loops() == loops(mix_at_output=True) > 0


def test_features_keep_nothing_for_gradients(reviews):
    """User problem 53: the loops of a frozen biLM keep no activations, and no gradient is computed."""

    def count(trainable_bilm, *operations):
        head = TextClassifier(
            make_elmo(trainable_bilm=trainable_bilm), ["bad", "good"], lstm_units=0
        )
        return number_of_loops(head, *reviews, operations)

    def kept(trainable_bilm):
        return count(trainable_bilm, "TensorListPushBack", "TensorListPopBack")

    assert kept(False) == 0
    assert count(True, "MatMul") > count(False, "MatMul")
    # Loops that see a mask have no gradient of their own, and TensorFlow's keeps lists.
    with without_shortcuts(["tokens_first"]):
        assert kept(False) == 0
        assert kept(True) > 0


def test_no_gradient_reaches_a_frozen_bilm(elmo, reviews):
    """User problem 53."""
    head = TextClassifier(elmo, ["bad", "good"], lstm_units=4)
    data, targets = head._examples(*reviews)
    with tf.GradientTape() as tape:
        tape.watch([variable.value for variable in head.weights])
        outputs = head(data.batch(range(4)), training=True)
        loss = head.compute_loss(y=targets.batch(range(4)), y_pred=outputs)
    gradients = tape.gradient(loss, [variable.value for variable in head.weights])
    without = {
        variable.path
        for variable, gradient in zip(head.weights, gradients, strict=True)
        if gradient is None
    }
    assert without == bilm(head) | paths(elmo.scalar_mix)


def test_fine_tuned(reviews):
    """Every weight of the biLM moves, the softmax and the unused mix do not."""
    language_model = make_language_model()
    head = TextClassifier(language_model, ["bad", "good"], lstm_units=4)
    found, left = trained(head, *reviews)
    assert left == paths(head.elmo_model.scalar_mix)
    assert bilm(head) <= found
    assert head.language_model is None


def test_fine_tuned_with_the_language_models_loss(reviews):
    language_model = make_language_model()
    head = TextClassifier(
        language_model, ["bad", "good"], lstm_units=4, language_model_loss_weight=0.1
    )
    found, left = trained(head, *reviews)
    assert left == paths(head.elmo_model.scalar_mix, language_model.softmax)
    assert bilm(head) <= found


def test_word_lists_and_roles_move_the_same(elmo):
    head = SemanticRoleLabeller(elmo, ["O", "B-V", "B-ARG0"], lstm_units=4)
    x = [(["cats", "ran"], 1), (["a", "dog", "sat"], 2)]
    found, left = trained(head, x, [["B-ARG0", "B-V"], ["B-ARG0", "I-ARG0", "B-V"]])
    assert left == bilm(head) | paths(elmo.scalar_mix, head.crf)
    assert paths(head.indicator) <= found


def test_crf_is_learned(elmo):
    head = TokenClassifier(elmo, ["O", "B-X", "I-X"], decoder="crf", lstm_units=0)
    x, y = [["a", "b", "c"], ["b"]], [["B-X", "I-X", "O"], ["O"]]
    found, left = trained(head, x, y)
    assert paths(head.crf) <= found
    assert left == bilm(head) | paths(elmo.scalar_mix)


@pytest.mark.parametrize("mix_l2", [None, 0.0, 0.001])
def test_l2_of_the_mixes(elmo, mix_l2):
    """User problem 54: of the weights, not of gamma; none if there is none."""
    head = TextClassifier(elmo, ["bad", "good"], mix_at_output=True, mix_l2=mix_l2)
    for mix in (head.encoder.input_mix, head.encoder.output_mix):
        mix.scalar_weights.assign([1.0, 2.0, 3.0])
        mix.gamma.assign(5.0)
    total = sum(float(loss) for loss in head.losses)
    assert total == pytest.approx(2 * 0.014 if mix_l2 else 0.0)
    if not mix_l2:
        assert head.losses == []


def test_dropout_only_while_training(elmo, reviews):
    head = TextClassifier(elmo, ["bad", "good"], lstm_units=0, dropout=0.5)
    batch = head._inputs(reviews[0]).batch(range(4))
    quiet = [head(batch, training=False)["logits"].numpy() for _ in range(2)]
    loud = [head(batch, training=True)["logits"].numpy() for _ in range(2)]
    np.testing.assert_array_equal(*quiet)
    assert not np.allclose(*loud)


@pytest.mark.parametrize("padding", [0, 7])
def test_padding_changes_no_answer(elmo, padding):
    """User problem 13: with an LSTM behind ELMo, and with any number of columns of padding."""
    head = TokenClassifier(elmo, ["N", "V"], lstm_units=4, mix_at_output=True)
    short, long = ["the", "cat"], ["a"] * (2 + padding)
    alone = head.predict_probabilities([short], verbose=0)[0]
    beside = head.predict_probabilities([long, short], verbose=0)[1]
    np.testing.assert_allclose(alone, beside, atol=1e-6)


# === The same in a functional model of one's own ===


def fitted(model, x):
    before = values(model.weights)
    model.compile(keras.optimizers.Adam(0.05), "mse")
    model.fit(x, np.array([[1.0], [0.0]], "float32"), verbose=0)
    found = moved(before, model.weights)
    return found, set(before) - found


def test_word_vectors_beside_elmo_embedding(elmo):
    text = keras.Input((), dtype="string")
    tokens, sequence_len = Tokenizer()(text)
    embedding = ElmoEmbedding(elmo, inputs="tokens")
    lookup = keras.layers.StringLookup(vocabulary=["good", "bad"])
    words = keras.layers.Embedding(lookup.vocabulary_size(), 3)
    both = keras.layers.Concatenate()(
        [embedding({"tokens": tokens, "sequence_len": sequence_len}), words(lookup(tokens))]
    )
    pooled = keras.layers.GlobalAveragePooling1D()(both)
    dense = keras.layers.Dense(1)
    model = keras.Model(text, dense(pooled))
    found, left = fitted(model, as_strings(["a good film", "bad"]))
    assert left == paths(elmo.token_encoder, elmo.bilm)
    assert found == paths(elmo.scalar_mix, words, dense)


def test_two_mixes_of_one_run(elmo):
    ids = keras.Input((None, elmo.max_word_length), dtype="int32")
    layer_outputs = elmo.bilm(elmo.token_encoder(ids))
    mixes = [ScalarMix(l2=0.001), ScalarMix(l2=0.001)]
    frozen = [keras.ops.stop_gradient(layer) for layer in layer_outputs]
    below, above = (RemoveSentenceBoundaries()(mix(frozen)) for mix in mixes)
    lstm, dense = keras.layers.LSTM(3, return_sequences=True), keras.layers.Dense(1)
    both = keras.layers.Concatenate()([lstm(below), above])
    model = keras.Model(ids, dense(keras.layers.GlobalAveragePooling1D()(both)))
    found, left = fitted(model, character_ids(["a good film", "bad"]))
    assert left == paths(elmo.token_encoder, elmo.bilm)
    assert found == paths(*mixes, lstm, dense)
