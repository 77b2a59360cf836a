"""ElmoClient.embed: every sentence gets its own vectors, whatever they were sent with."""

import numpy as np
import pytest
from served_core import TEXT, WORDS, sentence_vectors

from keras_elmo.serving import ServingError

SENTENCES = [
    "the bank is near",
    "",
    "a",
    "Füße 苹果 \U0001f600",
    "the bank is open for money today",
]
TOKENS = [["two words", "x"], [], ["", "<S>"]]


def encoded(sentence):
    return sentence.encode().split()


def assert_refused(error, code, message):
    assert error.value.code == code
    assert message in str(error.value)


def test_words_of_strings(client):
    vectors = client.embed(SENTENCES)
    assert [array.shape for array in vectors] == [(4, 3), (0, 3), (1, 3), (3, 3), (7, 3)]
    for array, sentence in zip(vectors, SENTENCES, strict=True):
        assert array.dtype == np.float32
        np.testing.assert_array_equal(array, sentence_vectors(encoded(sentence)))


def test_sentences_that_are_all_empty(client):
    assert [array.shape for array in client.embed(["", " "])] == [(0, 3), (0, 3)]


def test_words_of_tokens(client):
    vectors = client.embed(TOKENS)
    for array, words in zip(vectors, TOKENS, strict=True):
        np.testing.assert_array_equal(array, sentence_vectors([word.encode() for word in words]))


def test_one_vector_a_sentence(client):
    vectors = client.embed(iter(SENTENCES), output="default")
    assert [array.shape for array in vectors] == [(3,)] * 5
    np.testing.assert_array_equal(vectors[1], 0)
    np.testing.assert_allclose(
        vectors[0], sentence_vectors(encoded(SENTENCES[0])).mean(0), rtol=1e-6
    )


def test_several_outputs_in_one_request(client, core):
    outputs = client.embed(SENTENCES, output=["tokens", "default", "word_emb", "sequence_len"])
    assert list(outputs) == ["tokens", "default", "word_emb", "sequence_len"]
    assert [list(words) for words in outputs["tokens"]] == [text.split() for text in SENTENCES]
    assert [array.shape for array in outputs["word_emb"]] == [
        (4, 1),
        (0, 1),
        (1, 1),
        (3, 1),
        (7, 1),
    ]
    assert outputs["sequence_len"] == [4, 0, 1, 3, 7]
    assert core.sizes() == [5]


def test_one_output_in_a_list(client):
    assert list(client.embed(["a"], output=("elmo",))) == ["elmo"]


@pytest.mark.parametrize("sentences", [[], (), iter([])], ids=["list", "tuple", "iterator"])
def test_nothing_is_asked_for_nothing(client, core, sentences):
    assert client.embed(sentences) == []
    assert client.embed([], output=["elmo", "default"]) == {"elmo": [], "default": []}
    assert core.requests == []


def test_many_sentences_are_split_and_keep_their_order(connect, core):
    sentences = ["word " * (number * 7 % 40) for number in range(100)]
    vectors = connect(batch_size=16).embed(sentences)
    assert [len(array) for array in vectors] == [number * 7 % 40 for number in range(100)]
    assert core.sizes() == [16] * 6 + [4]


def test_long_sentences_are_split_by_bytes(connect, core):
    sentences = ["long " * 30, "s", "long " * 30, "s", "long " * 200]
    vectors = connect(batch_bytes=350).embed(sentences)
    assert [len(array) for array in vectors] == [30, 1, 30, 1, 200]
    assert core.sizes() == [2, 2, 1]


def test_tokens_are_split_by_bytes(connect, core):
    sentences = [[""] * 100, ["a"], [""] * 100]
    vectors = connect(batch_bytes=150).embed(sentences)
    assert [len(array) for array in vectors] == [100, 1, 100]
    assert core.sizes() == [1, 1, 1]


@pytest.mark.parametrize("transport", ["grpc"], indirect=True)
def test_answer_larger_than_the_limit_of_grpc(client, core):
    core.answer = lambda outputs: {**outputs, "elmo": np.ones((1, 2, 600_000), np.float32)}
    assert client.embed(["a b"])[0].shape == (2, 600_000)


def test_vectors_do_not_keep_their_batch(client):
    assert all(array.base is None for array in client.embed(SENTENCES))


def test_metadata_are_asked_for_once(client, core):
    for _ in range(3):
        client.embed(["a"])
    assert [kind for kind, _, _ in core.requests] == ["metadata", *["predict"] * 3]


def test_only_what_is_needed_is_sent_over_grpc(client, core, transport):
    client.embed(["a"], "default")
    expected = {"default"} if transport == "grpc" else set(core.signatures["serving_default"][1])
    assert core.sent == [expected]


# --- what the model lacks ---


def exports(core, *outputs):
    core.signatures["serving_default"] = (
        TEXT,
        {name: WORDS[name] for name in outputs},
        "tensorflow/serving/predict",
    )


def test_output_that_is_not_exported(client, core):
    exports(core, "default", "sequence_len")
    with pytest.raises(ServingError) as error:
        client.embed(["a"])
    assert_refused(
        error,
        "INVALID_ARGUMENT",
        "the signature `serving_default` of the model `elmo` does not have the output `elmo`; it has `default`, "
        "`sequence_len`.",
    )


def test_lengths_that_are_not_exported(client, core):
    exports(core, "elmo", "default")
    with pytest.raises(ServingError) as error:
        client.embed(["a"])
    assert_refused(
        error,
        "INVALID_ARGUMENT",
        "does not have the output `sequence_len`, by which padding is cut off; it has `default`, `elmo`.",
    )
    assert len(client.embed(["a"], output="default")) == 1


def test_single_output(client, core):
    exports(core, "default")
    np.testing.assert_array_equal(client.embed(["a b"], "default")[0].shape, (3,))


def test_tokens_need_no_lengths(client, core):
    inputs, _, method = core.signatures["tokens"]
    core.signatures["tokens"] = (inputs, {"elmo": WORDS["elmo"]}, method)
    assert [len(array) for array in client.embed(TOKENS)] == [2, 0, 2]


def test_signature_that_is_not_there(client, core):
    del core.signatures["tokens"]
    with pytest.raises(ServingError) as error:
        client.embed([["a"]])
    assert_refused(
        error,
        "INVALID_ARGUMENT",
        "the model `elmo` has no signature `tokens`; it has `classify`, `kinds`, `label`, `serving_default`, `single`.",
    )


def test_signature_that_takes_something_else(connect, core):
    core.signatures["kinds"] = (core.signatures["kinds"][0], WORDS, "tensorflow/serving/predict")
    core.signatures["tokens"] = (TEXT, WORDS, "tensorflow/serving/predict")
    with pytest.raises(
        ServingError, match="where `embed` needs one input of strings: use `predict`"
    ):
        connect(signature="kinds").embed(["a"])
    with pytest.raises(
        ServingError, match="takes `text`, where `embed` needs `tokens` and `sequence_len`"
    ):
        connect().embed([["a"]])


def test_output_without_a_shape(client, core):
    core.signatures["serving_default"] = (
        TEXT,
        {**WORDS, "elmo": ("DT_FLOAT", None)},
        "tensorflow/serving/predict",
    )
    with pytest.raises(ServingError, match="does not tell the shape of its output `elmo`"):
        client.embed(["a"])


def test_version_with_other_outputs_is_noticed(client, core):
    exports(core, "default")
    client.embed(["a"], "default")
    exports(core, "elmo", "sequence_len")
    assert len(client.embed(["a b"])[0]) == 2


def test_version_that_lost_an_output_is_noticed(client, core):
    exports(core, "elmo", "sequence_len", "default")
    client.embed(["a"], "default")
    exports(core, "elmo", "sequence_len")
    for _ in range(2):
        with pytest.raises(ServingError, match="default"):
            client.embed(["a"], "default")
    assert len(client.embed(["a b"])[0]) == 2


# --- answers that cannot be ---


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda o: {**o, "elmo": o["elmo"][:1]},
            "`elmo` has the shape (1, 2, 3), which does not fit 2 sentences of 2",
        ),
        (
            lambda o: {**o, "elmo": o["elmo"][:, :1]},
            "has the shape (2, 1, 3), which does not fit 2 sentences of 2",
        ),
        (
            lambda o: {**o, "sequence_len": o["sequence_len"][:1]},
            "`sequence_len` has the shape (1,)",
        ),
        (lambda o: {"sequence_len": o["sequence_len"], "default": o["default"]}, "has no `elmo`"),
    ],
    ids=["sentences", "words", "lengths", "missing"],
)
def test_answer_that_does_not_fit(client, core, change, message):
    core.answer = change
    with pytest.raises(ServingError) as error:
        client.embed(["a b", "c"])
    assert_refused(error, "INTERNAL", message)


# --- what the user got wrong ---


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        ("one", "must be a list. Received one string, 'one': put it into a list"),
        (["a", ["b"]], "all strings or all lists of tokens. Received a list of both"),
        ([b"a"], "must be strings, or lists of strings. Received: b'a' of type bytes"),
        ([["a", None]], "Received: None of type NoneType"),
    ],
    ids=["one", "both", "bytes", "none"],
)
def test_sentences_of_another_kind(client, core, sentences, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011  (the message is compared below)
        client.embed(sentences)
    assert message in str(error.value)
    assert core.requests == []


@pytest.mark.parametrize("output", [[], [1], None], ids=["empty", "number", "none"])
def test_output_of_another_kind(client, output):
    with pytest.raises(
        ValueError, match="`output` must be the name of an output, or a list of names"
    ):
        client.embed(["a"], output)


def test_lone_surrogates_are_dropped(client):
    np.testing.assert_array_equal(client.embed(["a\udcff b"])[0], sentence_vectors([b"a", b"b"]))


def test_nul_stays(client):
    np.testing.assert_array_equal(client.embed([["a\0"]])[0], sentence_vectors([b"a\0"]))
