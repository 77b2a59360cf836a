"""ElmoVectorizer, as scikit-learn's users handle it."""

import pickle

import keras
import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn not installed (extra `sklearn`)")
if keras.backend.backend() != "tensorflow":
    pytest.skip("an Embedder needs TensorFlow", allow_module_level=True)

from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from keras_elmo import Embedder
from keras_elmo.integrations.scikit_learn import ElmoVectorizer

SENTENCES = ["The bank is near.", "", "a", "money in the bank"]


@pytest.mark.parametrize(
    ("pooling", "pooled"),
    [
        ("mean", lambda words: words.mean(axis=0)),
        ("max", lambda words: words.max(axis=0)),
        ("first-last", lambda words: np.concatenate([words[0], words[-1]])),
    ],
)
@pytest.mark.parametrize("layers", ["average", "word"])
def test_vectors_are_those_of_the_words(model, pooling, pooled, layers):
    subject = ElmoVectorizer(model, layers=layers, pooling=pooling)
    found = subject.fit_transform(SENTENCES)
    assert found.dtype == np.float32
    for row, words in zip(found, Embedder(model, layers).embed(SENTENCES), strict=True):
        expected = pooled(words) if len(words) else np.zeros(found.shape[1])
        np.testing.assert_allclose(row, expected, atol=1e-6)
    names = subject.get_feature_names_out()
    assert (names[0], len(names)) == ("elmo0", found.shape[1])
    assert subject.transform([]).shape == (0, found.shape[1])


def test_clone_pickle_and_new_parameters(model):
    subject = ElmoVectorizer(model)
    found = subject.fit_transform(SENTENCES)
    for other in (clone(subject), pickle.loads(pickle.dumps(subject))):
        assert other.get_params() == subject.get_params()
        np.testing.assert_array_equal(other.transform(SENTENCES), found)
    assert len(pickle.dumps(subject)) < 1000
    subject.set_params(layers="top", pooling="max")
    top = ElmoVectorizer(model, layers="top", pooling="max").transform(SENTENCES)
    np.testing.assert_array_equal(subject.transform(SENTENCES), top)


def test_in_a_grid_search(model):
    texts = ["good day", "bad day", "good bank", "bad bank"] * 4
    search = GridSearchCV(
        make_pipeline(ElmoVectorizer(model), LogisticRegression()),
        {"elmovectorizer__pooling": ["mean", "max"], "elmovectorizer__layers": ["top", "word"]},
        cv=2,
    )
    search.fit(texts, ["good", "bad"] * 8)
    assert list(search.predict(["good", "bad"])) == ["good", "bad"]
    assert set(search.best_params_) == {"elmovectorizer__pooling", "elmovectorizer__layers"}


def test_wrong_parameters(model):
    for parameters, message in (
        ({"pooling": "sum"}, "`pooling` must be"),
        ({"layers": "all"}, "`layers` must be"),
        ({"tokenizer": "none"}, "`tokenizer` must be"),
        ({"batch_tokens": 0}, "`batch_tokens` must be a positive integer"),
        ({"model": "nope"}, "There is no file, folder or preset 'nope'"),
    ):
        subject = ElmoVectorizer(**{"model": model} | parameters)
        for method in (subject.fit, subject.transform):
            with pytest.raises(ValueError, match=message):
                method(["a"])
    with pytest.raises(ValueError, match="`sentences` must be"):
        ElmoVectorizer(model).transform("one string")
