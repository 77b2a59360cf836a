import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("SavedModels are TensorFlow's", allow_module_level=True)

import tensorflow as tf
import word_cache


def saved(folder, number):
    """A model that answers to each text with its length and a number."""
    module = tf.Module()
    module.number = tf.Variable(number)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def answer(text):
        return {"elmo": tf.cast(tf.strings.length(text), tf.float32) + module.number}

    tf.saved_model.save(module, str(folder), {"serving_default": answer})
    return folder


def test_requests_are_from_all_over_the_text():
    sentences = [[str(k)] for k in range(64)]
    alone = word_cache._requests(sentences, 1)
    assert len(alone) == word_cache.REQUESTS[1]
    assert all(len(request) == 1 for request in alone)
    together = word_cache._requests(sentences, 32)
    assert [len(request) for request in together] == [32, 32]
    assert sorted(together[0] + together[1]) == sorted(sentences)


def test_sides_take_turns_and_agree(tmp_path):
    requests = [[["the", "bank"]], [["a"]]]
    same = {0: saved(tmp_path / "a", 1.0), 5: saved(tmp_path / "b", 1.0)}
    seconds = word_cache._measure(same, requests, rounds=3)
    assert {count: len(found) for count, found in seconds.items()} == {0: 6, 5: 6}
    assert np.all(np.array(seconds[0]) > 0)
    other = same | {5: saved(tmp_path / "c", 2.0)}
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        word_cache._measure(other, requests, rounds=1)
