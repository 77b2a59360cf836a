"""SentenceMean: the harness, and the mean over real tokens."""

import harness
import keras
import numpy as np

from keras_elmo.layers import SentenceMean


def some_batch():
    x = np.random.default_rng(0).normal(size=(5, 4, 3)).astype("float32")
    mask = np.ones((5, 4), bool)
    mask[1, 1:] = mask[2, :2] = mask[3, 1] = mask[4] = False
    return x, mask


def test_harness():
    x, mask = some_batch()
    harness.check_layer(SentenceMean, {}, x, mask=mask, padding="mask", passes_mask=False)


def test_mean_over_real_tokens():
    x, mask = some_batch()
    expected = np.zeros((5, 3))
    for i in range(4):  # the last one is empty
        expected[i] = x[i][mask[i]].mean(axis=0)
    mean = SentenceMean()
    masked = harness.masked(np.where(mask[..., None], x, 0))
    for output in (mean(x, mask=mask), mean(x, keras.ops.convert_to_tensor(mask)), mean(masked)):
        harness.close(output, expected)
        assert not harness.to_numpy(output)[4].any(), "an empty sentence is not zero"
        assert harness.mask_of(output) is None
    harness.close(mean(x[mask][:1][None]), x[:1, 0])
    harness.close(mean(x), x.mean(axis=1))


def test_long_sentences_in_half_precision():
    x = np.full((1, 5000, 2), 1.5, "float32")
    output = SentenceMean(dtype="mixed_bfloat16")(x)
    harness.close(output, np.full((1, 2), 1.5))
