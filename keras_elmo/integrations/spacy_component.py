"""The spaCy component `elmo`: contextual vectors for tokens, spans and documents (extra `spacy`)."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.tokens import Doc, Span, Token
from spacy.util import minibatch

from keras_elmo import presets
from keras_elmo.inference import Embedder
from keras_elmo.layers.checks import check_choice

_LAYERS = ("average", "top", "mix", "word")


@Language.factory(
    "elmo",
    assigns=["doc.tensor"],
    default_config={"model": presets.DEFAULT_PRESET, "layers": "average", "batch_tokens": 2048},
)
def make_elmo(
    nlp: Language, name: str, model: str, layers: str, batch_tokens: int
) -> "ElmoComponent":
    """What `nlp.add_pipe("elmo")` calls; a pipeline that was saved loads the model by its name or path."""
    return ElmoComponent(model, layers, batch_tokens)


class ElmoComponent:
    """Gives each token of a document its vector, which depends on the sentence.

    `doc.tensor` has a row for each token, and `token.vector`, `span.vector`, `doc.vector` (the means of theirs) and
    `similarity` are made of it. Sentences are those of the document, if another component (`senter`, `sentencizer`,
    `parser`) has set them; else the document is read as one. Tokens of white space, which ELMo never saw, have zeros
    and belong to no sentence.

        nlp = spacy.blank("en")
        nlp.add_pipe("sentencizer")
        nlp.add_pipe("elmo", config={"model": "elmo_tiny_en"})

    Args:
        model: The name of a preset, or a path of anything that `keras_elmo.load_model` reads. Defaults to the bundled
            English preset.
        layers: "average" (default) of all layers, the "top" one, the model's own "mix", or "word" for layer 0.
        batch_tokens: Tokens per batch at most, padding included. Defaults to 2048.

    Raises:
        ValueError: if an argument is out of range or there is no such model.

    Example:
    >>> import spacy
    >>> nlp = spacy.blank("en")
    >>> _ = nlp.add_pipe("elmo")
    >>> doc = nlp("The bank is near the river")
    >>> doc.tensor.shape, doc[1].vector.shape
    ((6, 256), (256,))
    """

    def __init__(
        self,
        model: str = presets.DEFAULT_PRESET,
        layers: str = "average",
        batch_tokens: int = 2048,
    ):
        check_choice("layers", layers, _LAYERS)
        # spaCy cuts the text, whatever the model's own tokenizer.
        self._embedder = Embedder(model, layers, batch_tokens=batch_tokens)

    def __call__(self, doc: Doc) -> Doc:
        """Sets the vectors of one document."""
        return next(self._with_vectors([doc]))

    def pipe(self, stream: Iterable[Doc], batch_size: int = 128) -> Iterator[Doc]:
        """Sets the vectors of many documents, whose sentences are computed together.

        Args:
            stream: The documents.
            batch_size: So many documents at a time, as `nlp.pipe(.., batch_size=)` says. Defaults to 128.
        """
        for docs in minibatch(stream, batch_size):
            yield from self._with_vectors(docs)

    def _with_vectors(self, docs: list[Doc]) -> Iterator[Doc]:
        sentences = [
            [[token for token in sentence if not token.is_space] for sentence in _sentences(doc)]
            for doc in docs
        ]
        vectors = self._embedder.embed(
            [token.text for token in sentence] for doc in sentences for sentence in doc
        )
        for doc, its_sentences in zip(docs, sentences, strict=True):
            doc.tensor = np.zeros((len(doc), self._embedder.dim), np.float32)
            for tokens in its_sentences:
                doc.tensor[[token.i for token in tokens]] = next(vectors)
            _use_tensor(doc)
            yield doc


def _sentences(doc: Doc) -> Iterable[Any]:
    return doc.sents if doc.has_annotation("SENT_START") else [doc]


def _use_tensor(doc: Doc) -> None:
    """Makes what spaCy says of vectors that of `doc.tensor`."""
    # Of two tokens of one word spaCy would say that they are the same, whatever their sentences.
    hooks: dict[str, Any] = {"has_vector": _yes, "vector_norm": _norm, "similarity": _cosine}
    doc.user_token_hooks |= hooks | {"vector": _of_token}
    doc.user_span_hooks |= hooks | {"vector": _of_tokens}
    doc.user_hooks |= hooks | {"vector": _of_tokens}


def _of_token(token: Token) -> np.ndarray:
    return token.doc.tensor[token.i]


def _of_tokens(tokens: Doc | Span) -> np.ndarray:
    """The mean over the tokens that are words; zeros if there is none."""
    doc = tokens if isinstance(tokens, Doc) else tokens.doc
    places = [token.i for token in tokens if not token.is_space]
    return doc.tensor[places].mean(axis=0) if places else np.zeros(doc.tensor.shape[1], np.float32)


def _norm(thing: Any) -> float:
    return float(np.linalg.norm(thing.vector))


def _cosine(one: Any, other: Any) -> float:
    # Not `vector_norm`, in place of which spaCy 3.8 gives a span's vector where there are hooks.
    norms = _norm(one) * _norm(other)
    return float(np.dot(one.vector, other.vector) / norms) if norms else 0.0


def _yes(thing: Any) -> bool:
    return True
