import random

import batch_sizes
import keras
import pytest
import tensorflow as tf


def test_sentences():
    found = batch_sizes.sentences(random.Random(0), 3)
    assert [len(sentence.split()) for sentence in found] == [batch_sizes.NUM_WORDS] * 3


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="SavedModels are TensorFlow's")
def test_a_table_of_all_sizes(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(batch_sizes, "SIZES", (1, 4))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def length(text):
        return {"length": tf.strings.length(text)}

    module = tf.Module()
    tf.saved_model.save(module, str(tmp_path), {"serving_default": length})
    batch_sizes.main([str(tmp_path)])
    rows = [line.replace("│", " ").split() for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows if row and row[0].isdigit()] == ["1", "4"]
