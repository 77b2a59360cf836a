"""The component `elmo` in spaCy's pipelines."""

import keras
import numpy as np
import pytest

spacy = pytest.importorskip("spacy", reason="spaCy not installed (extra `spacy`)")
if keras.backend.backend() != "tensorflow":
    pytest.skip("an Embedder needs TensorFlow", allow_module_level=True)

# Behind the skips, for the component imports spaCy.
from keras_elmo import Embedder  # noqa: E402
from keras_elmo.integrations.spacy_component import ElmoComponent  # noqa: E402

TEXTS = ["The bank is near. My bank lends money.", "", "  two\n\nlines ", "我喜欢苹果 😀"]


@pytest.fixture(scope="module")
def nlp(model):
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo", config={"model": model, "layers": "top"})
    return nlp


def test_the_vectors_of_each_sentence(nlp, model):
    doc = nlp(TEXTS[0])
    first, second = Embedder(model, "top").embed(
        [[token.text for token in sentence] for sentence in doc.sents]
    )
    np.testing.assert_allclose(doc.tensor, np.concatenate([first, second]), atol=1e-6)
    # The word's vector depends on its sentence.
    banks = [token for token in doc if token.text == "bank"]
    assert np.abs(banks[0].vector - banks[1].vector).max() > 1e-3
    np.testing.assert_array_equal(banks[0].vector, doc.tensor[banks[0].i])


def test_without_sentences_the_document_is_one(model):
    nlp = spacy.blank("xx")
    nlp.add_pipe("elmo", config={"model": model})
    doc = nlp(TEXTS[0])
    [expected] = Embedder(model, "average").embed([[token.text for token in doc]])
    np.testing.assert_allclose(doc.tensor, expected, atol=1e-6)


def test_spans_documents_and_similarity(nlp):
    doc = nlp(TEXTS[0])
    assert doc.has_vector
    np.testing.assert_allclose(doc.vector, doc.tensor.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(doc[1:3].vector, doc.tensor[1:3].mean(axis=0), rtol=1e-6)
    assert doc[0].vector_norm == pytest.approx(np.linalg.norm(doc.tensor[0]))
    one, other = doc[1].vector, doc[6].vector
    cosine = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    # Twice "bank", and not the same.
    assert doc[1].similarity(doc[6]) == pytest.approx(cosine, abs=1e-6) != 1
    assert doc[0:2].similarity(doc[0:2]) == pytest.approx(1)
    assert doc.similarity(doc) == pytest.approx(1)
    assert doc.similarity(nlp("")) == 0


def test_white_space_and_nothing(nlp, model):
    doc = nlp(TEXTS[2])
    words = [token.i for token in doc if not token.is_space]
    assert len(words) == 2 < len(doc)
    [expected] = Embedder(model, "top").embed([["two", "lines"]])
    np.testing.assert_allclose(doc.tensor[words], expected, atol=1e-6)
    assert not np.delete(doc.tensor, words, axis=0).any()
    empty = nlp("")
    assert empty.tensor.shape == (0, 8)
    assert not empty.vector.any()


def test_pipe_is_the_same_in_any_batch(nlp):
    texts = TEXTS * 3
    alone = [nlp(text).tensor for text in texts]
    for batch_size in (1, 5, 100):
        docs = list(nlp.pipe(texts, batch_size=batch_size))
        assert [doc.text for doc in docs] == texts
        for doc, tensor in zip(docs, alone, strict=True):
            np.testing.assert_allclose(doc.tensor, tensor, atol=1e-6)


def test_a_saved_pipeline_loads(nlp, tmp_path):
    nlp.to_disk(tmp_path / "pipeline")
    again = spacy.load(tmp_path / "pipeline")
    np.testing.assert_array_equal(again(TEXTS[0]).tensor, nlp(TEXTS[0]).tensor)


def test_wrong_arguments(model):
    with pytest.raises(ValueError, match="`layers` must be"):
        ElmoComponent(model, layers="all")
    with pytest.raises(ValueError, match="There is no file, folder or preset 'nope'"):
        spacy.blank("en").add_pipe("elmo", config={"model": "nope"})
