"""Embedder: whatever the batches, windows and pieces, the numbers are those of the model itself."""

import collections
import errno
import functools
import io
import itertools
import threading
import time

import numpy as np
import pytest
import reference
import tensorflow as tf
from test_reference import VARIANTS, VOCABULARY, options_for

from keras_elmo import ElmoModel
from keras_elmo.character_ids import character_ids, count_cut_words
from keras_elmo.checkpoints import load_checkpoint
from keras_elmo.inference import Embedder, embedder, rows, sentence_blocks
from keras_elmo.text import tokenize_sentences

# Keras reads its own variables in a way that NumPy 2 warns of.
KERAS_VARIABLES = "ignore:__array__ implementation:DeprecationWarning"


def close(actual, expected, tolerance=1e-5):
    for one, other in zip(actual, expected, strict=True):
        assert one.dtype == np.float32
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance)


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    models = {}

    def load(options=VARIANTS["plain"], **overrides):
        key = str((options, overrides))
        if key not in models:
            vocabulary = None if "char_cnn" in options else VOCABULARY
            weights = reference.random_model(options, seed=1)
            folder = tmp_path_factory.mktemp("model")
            reference.write_model(folder, options, weights, vocabulary)
            models[key] = load_checkpoint(folder, **overrides).model
        return models[key]

    return load


@pytest.fixture(scope="module")
def make(load):
    """`make(layers, model)`: an Embedder; one for all tests, for compiling takes a second."""
    made = {}

    def make(layers="all", model=None, batch_tokens=2048):
        key = layers, id(model)
        if key not in made:
            made[key] = Embedder(model or load(), layers=layers)
        made[key].batch_tokens = batch_tokens
        return made[key]

    return make


@functools.cache
def compiled(model):
    ids = tf.TensorSpec((None, None, model.max_word_length), tf.int32)
    return tf.function(lambda ids: model(ids), input_signature=[ids])


def pick(outputs, layers):
    word = outputs["word_emb"]
    names = sorted(name for name in outputs if name.startswith("lstm_outputs"))
    all_layers = [np.concatenate([word, word], axis=-1), *(outputs[name] for name in names)]
    if layers == "all":
        return np.stack(all_layers)
    if layers == "average":
        return np.mean(all_layers, axis=0)
    return {"top": all_layers[-1], "mix": outputs["elmo"], "word": word}[layers]


def direct(model, sentences, layers="all"):
    """Every sentence alone through the model's own call."""
    vectors = []
    for tokens in sentences:
        # A batch without any token at all has no row to show the shape.
        outputs = compiled(model)(character_ids([tokens or ["x"]], model.max_word_length))
        rows = {name: value[0, : len(tokens)] for name, value in outputs.items() if value.ndim == 3}
        vectors.append(pick({name: np.asarray(row) for name, row in rows.items()}, layers))
    return vectors


def oracle(sentences, layers="all", options=VARIANTS["plain"]):
    """The independent model in NumPy, one pass over each sentence."""
    weights = reference.random_model(options, seed=1)
    results = reference.embed(options, weights, sentences, None)
    return [pick(result, layers) for result in results]


def random_sentences(lengths, seed=0):
    random = np.random.default_rng(seed)
    words = ["The", "bank", "bänk", "", "猫", "x" * 60, ".", *map(str, range(30))]
    return [list(random.choice(words, length)) for length in lengths]


# The numbers and their order


@pytest.mark.parametrize("layers", embedder.LAYERS)
def test_layers_equal_the_model_called_directly(make, load, layers):
    sentences = random_sentences([3, 0, 12, 1, 7, 0, 1, 30, 2, 5, 5, 19])
    vectors = list(make(layers).embed(sentences))
    close(vectors, direct(load(), sentences, layers))
    close(vectors, oracle(sentences, layers))


@pytest.mark.parametrize("batch_tokens", [1, 7, 64, 10_000])
def test_any_budget_gives_the_same_numbers(make, load, batch_tokens):
    lengths = [0, 1, 2, 3, 6, 7, 8, 0, 22, 64, 63, 65, 1]
    lengths = lengths[:9] if batch_tokens == 1 else lengths
    np.random.default_rng(1).shuffle(lengths)
    sentences = random_sentences(lengths)
    close(list(make("all", batch_tokens=batch_tokens).embed(sentences)), oracle(sentences))


def test_windows_and_blocks_keep_the_order(make, monkeypatch):
    sentences = [[str(k)] * (k % 5) for k in range(60)]
    expected = list(make("top").embed(sentences))
    monkeypatch.setattr(sentence_blocks, "SENTENCES_PER_BLOCK", 4)
    monkeypatch.setattr(embedder, "SENTENCES_PER_WINDOW", 7)
    windows = list(make("top").windows(sentences))
    assert [len(tokens) for tokens, _ in windows] == [7] * 8 + [4]
    assert [tokens for window, _ in windows for tokens in window] == sentences
    close([array for _, arrays in windows for array in arrays], expected)


def test_strings_are_tokenized_and_tokens_taken_as_they_are(make, load):
    texts = ["It's near.", "", "  ", "He's in the U.S."]
    mixed = [
        texts[0],
        ["It's", "near."],
        texts[1],
        ("a b",),
        texts[2],
        np.array(["x", "y"]),
        texts[3],
    ]
    cut = iter(tokenize_sentences(texts, "word"))
    expected = [next(cut) if isinstance(s, str) else list(s) for s in mixed]
    assert list(map(len, expected)) == [4, 2, 0, 1, 0, 2, 5]
    got = list(make("top").windows(mixed))[0]
    assert got[0] == expected
    close(got[1], oracle(expected, "top"))


def test_the_whitespace_tokenizer(load):
    embedder = Embedder(load(), layers="word", tokenizer="whitespace")
    [(tokens, _)] = embedder.windows(["It's near.  ", "a\tb"])
    assert tokens == [["It's", "near."], ["a\tb"]]


def test_an_empty_token_is_a_word_and_an_empty_sentence_is_none(make, load):
    # User problem 10
    sentences = [["a"], [], [""], ["a", ""], ["", "a"]]
    vectors = list(make("all").embed(sentences))
    assert [array.shape for array in vectors] == [(3, n, 12) for n in (1, 0, 1, 2, 2)]
    close(vectors, oracle(sentences))
    assert all(np.isfinite(array).all() for array in vectors)


@pytest.mark.parametrize("sentences", [[], [[]], ["", "  "], iter([]), [[], ""]])
def test_nothing_but_empty_sentences(make, sentences):
    sentences = list(sentences)
    shapes = [array.shape for array in make("top").embed(sentences)]
    assert shapes == [(0, 12)] * len(sentences)


def test_results_own_their_memory(make):
    one, two = make("top").embed([["a", "b"], ["c"]])
    assert one.base is None
    assert two.base is None
    assert one.flags.writeable


def test_boundary_options_of_the_model_do_not_matter(load):
    sentences = random_sentences([4, 0, 2])
    kept = Embedder(load(keep_sentence_boundaries=True), layers="top")
    close(list(kept.embed(sentences)), oracle(sentences, "top"))


def test_bfloat16_gives_float32_near_the_float32_numbers(load, tmp_path):
    options = VARIANTS["plain"]
    folder = tmp_path / "model"
    reference.write_model(folder, options, reference.random_model(options, seed=1))
    rough = Embedder(folder, layers="average", precision="bfloat16", batch_tokens=8)
    assert rough.model.compute_dtype == "bfloat16"
    sentences = random_sentences([5, 8, 0, 20])
    vectors = list(rough.embed(sentences))
    close(vectors, oracle(sentences, "average"), tolerance=0.2)
    assert np.abs(vectors[0] - oracle(sentences, "average")[0]).max() > 1e-5


# Long sentences, read in pieces (user problem 48)


@pytest.mark.parametrize(
    "options",
    [
        VARIANTS["plain"],
        VARIANTS["no LSTM projection"],
        options_for(n_layers=1),
        options_for(n_layers=3, dim=6, use_skip_connections=True),
    ],
    ids=["skip", "no projection, no skip", "one layer", "three layers, no projection, skip"],
)
def test_pieces_give_the_numbers_of_one_pass(make, load, options):
    model = load(options)
    lengths = [9, 8, 7, 16, 17, 60]
    sentences = random_sentences(lengths)
    expected = oracle(sentences, "all", options)
    close(list(make("all", model, batch_tokens=8).embed(sentences)), expected)
    close(list(make("all", model, batch_tokens=1).embed(sentences[:1])), expected[:1])


@pytest.mark.parametrize("layers", ["average", "top", "mix", "word"])
def test_pieces_of_other_layers(make, load, layers):
    sentences = random_sentences([17, 3, 64])
    vectors = list(make(layers, batch_tokens=16).embed(sentences))
    close(vectors, oracle(sentences, layers))


def test_pieces_with_bfloat16(load):
    subject = Embedder(load(dtype="mixed_bfloat16"), layers="top", batch_tokens=100)
    sentences = random_sentences([16, 17, 50])
    whole = list(subject.embed(sentences))
    subject.batch_tokens = 16
    pieces = list(subject.embed(sentences))
    # Where a piece ends its state is rounded as it is inside of one pass.
    close(pieces, whole, tolerance=0.02)


def test_a_very_long_sentence_is_kept_in_a_file(make, monkeypatch):
    sentences = random_sentences([40, 3])
    expected = list(make("all").embed(sentences))
    monkeypatch.setattr(rows, "MAX_BYTES_IN_MEMORY", 3 * 40 * 12 * 4 - 1)
    long, short = make("all", batch_tokens=16).embed(sentences)
    assert isinstance(long, np.memmap)
    assert not isinstance(short, np.memmap)
    close([long, short], expected)
    long += 1  # it can be worked with like any other
    [top, _] = make("top", batch_tokens=16).embed(sentences)
    assert not isinstance(top, np.memmap)


def test_no_room_for_a_very_long_sentence_is_an_error_and_no_crash(make, monkeypatch):
    class Full(io.BytesIO):
        def write(self, data):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(rows, "MAX_BYTES_IN_MEMORY", 10)
    monkeypatch.setattr(rows.tempfile, "TemporaryFile", Full)
    with pytest.raises(OSError, match="No space left on device"):
        list(make("top", batch_tokens=2).embed([["a", "b", "c"]]))


# Work done


def test_shapes_are_not_traced_anew(load):
    embedder = Embedder(load(), layers="top", batch_tokens=20)
    list(embedder.embed(random_sentences([3, 9, 25])))
    counts = [
        function.experimental_get_tracing_count()
        for function in (embedder._run_batch, embedder._read_backward, embedder._embed_piece)
    ]
    list(embedder.embed(random_sentences([1, 2, 21, 40, 41, 7, 19, 20, 100])))
    assert counts == [1, 1, 1]
    assert counts == [
        function.experimental_get_tracing_count()
        for function in (embedder._run_batch, embedder._read_backward, embedder._embed_piece)
    ]


@pytest.mark.parametrize("batch_tokens", [1, 10, 33])
def test_batches_keep_the_budget(make, monkeypatch, batch_tokens):
    subject = make("top", batch_tokens=batch_tokens)
    shapes = []
    run, piece = subject._run_batch, subject._embed_piece

    def note(function):
        def call(vectors, *others):
            shapes.append(vectors.shape)
            return function(vectors, *others)

        return call

    monkeypatch.setattr(subject, "_run_batch", note(run))
    monkeypatch.setattr(subject, "_embed_piece", note(piece))
    list(subject.embed(random_sentences([1, 5, 33, 34, 2, 0, 90, 8, 8, 8, 8])))
    # Beside the words there are the sentences' boundaries.
    assert all(rows * (columns - 2) <= batch_tokens for rows, columns, _ in shapes)
    assert shapes


def test_progress_is_told_after_each_batch(make):
    told = []
    lengths = [4, 0, 30, 4, 2]
    sentences = random_sentences(lengths)
    list(make("top", batch_tokens=8).windows(sentences, lambda *counts: told.append(counts)))
    assert len(told) > 2
    assert tuple(map(sum, zip(*told, strict=True))) == (5, sum(lengths))


def test_it_reads_no_further_ahead_than_a_window(make, monkeypatch):
    monkeypatch.setattr(sentence_blocks, "SENTENCES_PER_BLOCK", 4)
    monkeypatch.setattr(embedder, "SENTENCES_PER_WINDOW", 10)
    taken = itertools.count()
    sentences = ([str(next(taken))] for _ in itertools.count())
    results = make("word").embed(sentences)
    assert next(taken) == 0
    for k in range(25):
        next(results)
        read = next(taken) - k - 2
        # While a window is computed the next one is read.
        assert read <= (k // 10 + 2) * 10 + 4


def test_the_caller_reads_while_a_thread_computes(make, monkeypatch):
    monkeypatch.setattr(embedder, "SENTENCES_PER_WINDOW", 3)
    monkeypatch.setattr(sentence_blocks, "SENTENCES_PER_BLOCK", 1)
    subject, threads = make("top"), collections.defaultdict(set)
    run = subject._run_batch

    def note(who):
        threads[who].add(threading.current_thread())

    def noted(*args):
        note("computes")
        return run(*args)

    def sentences(count):
        for k in range(count):
            note("reads")
            yield [f"w{k}"]

    monkeypatch.setattr(subject, "_run_batch", noted)

    def on_batch(*counts):
        note("tells")

    sizes = [len(tokens) for tokens, _ in subject.windows(sentences(8), on_batch)]
    assert sizes == [3, 3, 2]
    assert threads["reads"] == {threading.current_thread()}
    assert threads["computes"] == threads["tells"]
    assert threading.current_thread() not in threads["computes"]
    # A single window needs no thread.
    threads.clear()
    assert len(list(subject.windows(sentences(2), on_batch))) == 1
    assert threads["computes"] == {threading.current_thread()}


def test_what_was_read_before_an_error_comes_first(make, monkeypatch):
    monkeypatch.setattr(embedder, "SENTENCES_PER_WINDOW", 2)
    monkeypatch.setattr(sentence_blocks, "SENTENCES_PER_BLOCK", 1)

    def sentences():
        yield from [["a"], ["b"], ["c"]]
        raise OSError("the disk is gone")

    results = make("top").embed(sentences())
    assert len([next(results), next(results)]) == 2
    with pytest.raises(OSError, match="the disk is gone"):
        next(results)


def test_whoever_stops_taking_stops_the_computing(make, monkeypatch):
    monkeypatch.setattr(embedder, "SENTENCES_PER_WINDOW", 20)
    monkeypatch.setattr(sentence_blocks, "SENTENCES_PER_BLOCK", 1)
    subject, calls = make("top", batch_tokens=1), []
    run = subject._run_batch
    monkeypatch.setattr(
        subject, "_run_batch", lambda *args: (calls.append(1), time.sleep(0.01), run(*args))[-1]
    )
    results = subject.embed([f"w{k}"] for k in range(1000))
    next(results)
    results.close()
    assert len(calls) <= 20 + 20
    ended = len(calls)
    time.sleep(0.1)
    assert len(calls) == ended


def test_long_lines_are_tokenized_in_smaller_blocks(make, monkeypatch):
    monkeypatch.setattr(sentence_blocks, "CHARACTERS_PER_BLOCK", 100)
    taken = []

    def lines():
        for k in range(12):
            taken.append(k)
            yield "x " * 30

    results = make("word", batch_tokens=2).embed(lines())
    next(results)
    assert len(taken) <= 4
    assert len(list(results)) == 11


# Cut words (user problems 26 and 51)


def test_cut_words_are_counted_and_shown(load):
    subject = Embedder(load(max_word_length=20), layers="word")
    assert (subject.num_words, subject.num_cut_words, subject.cut_words) == (0, 0, [])
    long = "中华人民共和国"
    sentences = [[long, "中国", "a" * 18], ["a" * 19, long, "", "é" * 9], ["é" * 10]]
    list(subject.embed(sentences))
    assert (subject.num_words, subject.num_cut_words) == (8, 4)
    assert (subject.num_cut_words, subject.num_words) == count_cut_words(sentences, 20)
    assert subject.cut_words == [long, "a" * 19, "é" * 10]
    assert subject.word_lengths == {21: 2, 6: 1, 18: 2, 19: 1, 0: 1, 20: 1}
    list(subject.embed([[f"{k}{'x' * 30}" for k in range(9)]]))
    assert (subject.num_words, subject.num_cut_words, len(subject.cut_words)) == (17, 13, 5)


def test_words_alike_up_to_the_cut_have_one_vector(make):
    # User problem 26
    one, two, inside, inside_2 = make("word").embed(
        [["a" * 49], ["a" * 60], ["a" * 47 + "é"], ["a" * 47 + "è"]]
    )
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(inside, inside_2)
    assert np.abs(one - inside).max() > 1e-4


# Layer norm


def test_the_mix_with_sentence_norm_is_the_same_in_any_batch(load):
    model = load(layer_norm="sentence")
    sentences = random_sentences([3, 0, 12, 1])
    subject = Embedder(model, layers="mix")
    close(list(subject.embed(sentences)), direct(model, sentences, "mix"), tolerance=1e-4)
    subject.batch_tokens = 11
    with pytest.raises(ValueError, match="12 tokens is longer than `batch_tokens`, 11.* Raise"):
        list(subject.embed(sentences))


def test_other_layers_know_no_norm(load):
    sentences = random_sentences([3, 12])
    subject = Embedder(load(layer_norm="batch"), layers="top")
    close(list(subject.embed(sentences)), oracle(sentences, "top"))


# Errors


def test_batch_norm_is_refused(load):
    with pytest.raises(ValueError, match='`layer_norm="batch"` the mix of a sentence depends on'):
        Embedder(load(layer_norm="batch"), layers="mix")


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("layers", "last"),
        ("precision", "float16"),
        ("batch_tokens", 0),
        ("batch_tokens", 1.5),
        ("tokenizer", "spacy"),
    ],
)
def test_wrong_arguments(load, argument, value):
    with pytest.raises(ValueError, match=f"`{argument}` must be .* Received: {argument}={value!r}"):
        Embedder(load(), **{argument: value})


def test_a_model_of_words_is_refused(load):
    with pytest.raises(ValueError, match="needs a model that reads characters; this one reads"):
        Embedder(load(VARIANTS["words"]))


def test_a_missing_model_is_named():
    with pytest.raises(ValueError, match="no file, folder or preset 'elmo_huge'"):
        Embedder("elmo_huge")


@pytest.mark.filterwarnings(KERAS_VARIABLES)
def test_another_tokenizer_than_that_of_the_preset_warns(tmp_path):
    model = ElmoModel(8, 4, 1, filters=[[1, 4]], num_highway_layers=0)
    model.save_to_preset(tmp_path / "preset", metadata={"tokenizer": "whitespace"})
    assert Embedder(tmp_path / "preset").tokenizer == "whitespace"
    with pytest.warns(
        UserWarning, match="text cut by the tokenizer 'whitespace'; with 'word' some"
    ):
        assert Embedder(tmp_path / "preset", tokenizer="word").tokenizer == "word"


@pytest.mark.parametrize("sentences", ["The bank", b"The bank", None, 5])
def test_one_string_is_no_list_of_sentences(make, sentences):
    with pytest.raises(ValueError, match="must be an iterable of sentences. Received: .*; put"):
        list(make("top").embed(sentences))


@pytest.mark.parametrize(
    ("sentence", "place"),
    [
        (None, r"sentences\[2\]=None of type NoneType"),
        (float("nan"), r"sentences\[2\]=nan of type float"),
        (7, r"sentences\[2\]=7 of type int"),
        (b"bytes", r"sentences\[2\]=b'bytes' of type bytes"),
        (["a", None], r"sentences\[2\]\[1\]=None of type NoneType"),
        (["a", b"b"], r"sentences\[2\]\[1\]=b'b' of type bytes"),
        ([["a"]], r"sentences\[2\]\[0\]=\['a'\] of type list"),
    ],
)
def test_what_is_no_sentence_is_named(make, sentence, place):
    with pytest.raises(ValueError, match=f"a string or a list of tokens .* Received: {place}"):
        list(make("top").embed(["fine", ["fine"], sentence]))


def test_lone_surrogates_do_no_harm(make):
    one, two, three = make("word").embed(["a\ud800b", ["a\ud800b"], ["ab"]])
    np.testing.assert_array_equal(one, three)
    np.testing.assert_array_equal(two, three)


def test_an_error_in_the_input_comes_through(make):
    def lines():
        yield "one"
        raise KeyError("from outside")

    with pytest.raises(KeyError, match="from outside"):
        list(make("top").embed(lines()))
    assert len(list(make("top").embed(["still", "works"]))) == 2
