"""The format of bilm-tf and AllenNLP: in, out and in again; and what is said of a file that is wrong."""

import gzip
import json
import re

import h5py
import keras
import numpy as np
import pytest
import reference
from harness import close, to_numpy
from paths import shared
from test_reference import VARIANTS, VOCABULARY, options_for

import keras_elmo
from keras_elmo.checkpoints import bilm_tf
from keras_elmo.checkpoints.checkpoint import Checkpoint, Softmax
from keras_elmo.vocabulary import Vocabulary

PLAIN = options_for(use_skip_connections=True) | {"n_tokens_vocab": len(VOCABULARY)}
SENTENCES = [["The", "bank", "is"], ["near"]]


def datasets(path):
    """{name: (dtype, shape, bytes)} of every dataset of a file."""
    found = {}

    def collect(name, item):
        if isinstance(item, h5py.Dataset):
            found[name] = (item.dtype, item.shape, item[()].tobytes())

    with h5py.File(path, "r") as file:
        file.visititems(collect)
    return found


@pytest.fixture
def folder(tmp_path):
    """The plain model with its softmax and vocabulary, to be damaged."""
    weights = reference.random_model(PLAIN, seed=1, softmax=True)
    return reference.write_model(tmp_path / "model", PLAIN, weights, VOCABULARY)


def edit_options(folder, **changes):
    """Sets dotted keys; `...` removes one."""
    path = folder / "options.json"
    options = json.loads(path.read_text(encoding="utf-8"))
    for key, value in changes.items():
        *parents, last = key.split("__")
        place = options
        for parent in parents:
            place = place[parent]
        if value is ...:
            del place[last]
        else:
            place[last] = value
    path.write_text(json.dumps(options), encoding="utf-8")


def refused(folder, *parts):
    """Reading fails with one sentence that names all of `parts`; returns it."""
    with pytest.raises(ValueError, match=re.escape(str(parts[0]))) as error:
        bilm_tf.read(folder)
    message = str(error.value)
    for part in parts:
        assert str(part) in message
    assert "\n" not in message
    assert len(message) < 500
    return message


# In, out, in -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("softmax", [False, True])
def test_round_trip_is_byte_equal(tmp_path, name, softmax):
    """User problems 42 and 43: every variant, whatever datasets it lacks."""
    options = VARIANTS[name] | {"n_tokens_vocab": len(VOCABULARY)}
    weights = reference.random_model(options, seed=1, softmax=softmax)
    vocabulary = VOCABULARY if softmax or name == "words" else None
    source = reference.write_model(tmp_path / "source", options, weights, vocabulary)
    checkpoint = bilm_tf.read(source)
    assert checkpoint.format == "bilm-tf / AllenNLP"
    assert (checkpoint.softmax is not None) == softmax
    bilm_tf.write(checkpoint, tmp_path / "target")
    assert datasets(tmp_path / "target" / "model.hdf5") == datasets(source / "weights.hdf5")
    if vocabulary is not None:
        written = (tmp_path / "target" / "vocab.txt").read_bytes()
        assert written == (source / "vocab.txt").read_bytes()
    else:
        assert not (tmp_path / "target" / "vocab.txt").exists()

    again = bilm_tf.read(tmp_path / "target")
    assert again.model.get_config() == checkpoint.model.get_config() | {"name": again.model.name}
    assert (again.vocabulary is None) == (vocabulary is None)
    for variable, other in zip(again.model.variables, checkpoint.model.variables, strict=True):
        np.testing.assert_array_equal(to_numpy(variable), to_numpy(other))


def test_written_options_are_those_that_bilm_tf_reads(folder, tmp_path):
    bilm_tf.write(bilm_tf.read(folder), tmp_path / "target")
    options = json.loads((tmp_path / "target" / "options.json").read_text(encoding="utf-8"))
    assert options == PLAIN | {
        "bidirectional": True,
        "char_cnn": PLAIN["char_cnn"] | {"n_characters": 262},
    }
    # The oracle reads what was written.
    options, weights = reference.load_weights(
        tmp_path / "target" / "options.json", tmp_path / "target" / "model.hdf5"
    )
    model = bilm_tf.read(folder).model
    results = reference.embed(options, weights, SENTENCES)
    elmo = to_numpy(model(keras_elmo.character_ids(SENTENCES))["elmo"])
    close(elmo[0], results[0]["elmo"])


@pytest.mark.parametrize("name", ["tiny_en", "bilm_tf_tiny_en"])
def test_real_files_round_trip(name, tmp_path):
    source = shared("models", name)
    bilm_tf.write(bilm_tf.read(source), tmp_path / "target")
    assert datasets(tmp_path / "target" / "model.hdf5") == datasets(source / "model.hdf5")
    assert (tmp_path / "target" / "vocab.txt").read_bytes() == (source / "vocab.txt").read_bytes()


def test_existing_folder_is_refused_and_nothing_half_written(folder, tmp_path, monkeypatch):
    checkpoint = bilm_tf.read(folder)
    before = datasets(folder / "weights.hdf5")
    with pytest.raises(ValueError, match=r"exists already. Remove it, or give another name"):
        bilm_tf.write(checkpoint, folder)
    assert datasets(folder / "weights.hdf5") == before

    def fail(*args):
        raise OSError("no space left on device")

    monkeypatch.setattr(Vocabulary, "save", fail)
    with pytest.raises(OSError, match="no space left"):
        bilm_tf.write(checkpoint, tmp_path / "target")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_overrides_are_arguments_of_the_model(folder):
    model = bilm_tf.read(folder, trainable_bilm=True, layer_norm="sentence").model
    assert model.layer_norm == "sentence"
    assert len(model.trainable_variables) == len(model.variables)
    with pytest.raises(ValueError, match="ElmoModel has no argument `layernorm`"):
        bilm_tf.read(folder, layernorm="sentence")


# What files look like elsewhere ------------------------------------------------------------------


@pytest.mark.parametrize("stated", [261, 262, ..., None])
def test_number_of_characters_261_or_262(folder, stated):
    """User problem 22: the rows of the file decide; row 0 is zero, row 1 is the file's first."""
    edit_options(folder, char_cnn__n_characters=stated)
    model = bilm_tf.read(folder).model
    table = to_numpy(model.encoder.character_embedding.embeddings)
    with h5py.File(folder / "weights.hdf5") as file:
        np.testing.assert_array_equal(table[1:], file["char_embed"][()])
    assert not table[0].any()
    assert len(table) == 262


@pytest.mark.parametrize("rows", [261, 300, 262])
def test_another_number_of_characters(folder, rows):
    """User problem 22: both numbers are named."""
    stated = 300 if rows == 261 else 262
    edit_options(folder, char_cnn__n_characters=stated)
    replace_dataset(folder, "char_embed", np.zeros((rows, 4), "float32"))
    refused(folder, "`char_cnn.n_characters`", stated, rows, "char_embed", "options.json")


def replace_dataset(folder, name, array=None):
    with h5py.File(folder / "weights.hdf5", "a") as file:
        if name in file:
            del file[name]
        if array is not None:
            file[name] = array


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_float_types(folder, dtype):
    with h5py.File(folder / "weights.hdf5", "a") as file:
        names = list(datasets(folder / "weights.hdf5"))
        arrays = {name: file[name][()].astype(dtype) for name in names}
        for name, array in arrays.items():
            del file[name]
            file[name] = array
    checkpoint = bilm_tf.read(folder)
    for variable in checkpoint.model.variables:
        assert variable.dtype == "float32"
    expected = arrays["softmax/W"].astype("float32")
    assert checkpoint.softmax.kernel.dtype == "float32"
    np.testing.assert_array_equal(checkpoint.softmax.kernel, expected)
    bias = checkpoint.model.bilm.forward_stack.cells[0].bias
    stored = arrays["RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/B"]
    np.testing.assert_array_equal(to_numpy(bias), stored.astype("float32"))


def test_integers_are_no_weights(folder):
    replace_dataset(folder, "CNN/b_cnn_0", np.zeros(5, "int32"))
    refused(folder, "`CNN/b_cnn_0`", "floats", "int32", "weights.hdf5")


def test_file_names_of_allennlp(folder):
    prefix = "elmo_2x4096_512_2048cnn_2xhighway_"
    (folder / "options.json").rename(folder / f"{prefix}options.json")
    (folder / "weights.hdf5").rename(folder / f"{prefix}weights.hdf5")
    (folder / "vocab.txt").rename(folder / "vocab-2016-09-10.txt")
    (folder / ".DS_Store.hdf5").write_bytes(b"litter")
    checkpoint = bilm_tf.read(folder)
    assert checkpoint.model.units == 24
    assert checkpoint.vocabulary is None  # it is not called vocab.txt: nobody knows what it is


@pytest.mark.parametrize("name", ["vocab.txt", "vocab.txt.gz", "my_vocab.txt"])
def test_names_of_the_vocabulary(folder, name):
    data = (folder / "vocab.txt").read_bytes()
    (folder / "vocab.txt").unlink()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert list(bilm_tf.read(folder).vocabulary) == VOCABULARY


def test_vocabulary_of_windows(folder):
    """User problem 23: a byte order mark and \\r\\n make no difference."""
    text = "".join(f"{token}\r\n" for token in VOCABULARY)
    (folder / "vocab.txt").write_bytes(text.encode("utf-8-sig"))
    assert list(bilm_tf.read(folder).vocabulary) == VOCABULARY


def test_vocabulary_that_is_wrong(folder):
    """User problem 23: the file is named."""
    (folder / "vocab.txt").write_text("<S>\n<UNK>\nthe\n")
    refused(folder, "vocab.txt", "</S>")
    (folder / "vocab.txt").write_bytes("\n".join(VOCABULARY).encode("utf-16"))
    refused(folder, "vocab.txt", "UTF-8")


def test_skip_connections_are_off_unless_asked_for(folder):
    """User problem 42: the key may be missing."""
    assert bilm_tf.read(folder).model.use_skip_connections
    for value in (False, ...):
        edit_options(folder, lstm__use_skip_connections=value)
        assert not bilm_tf.read(folder).model.use_skip_connections
        edit_options(folder, lstm__use_skip_connections=True)


def test_words_find_their_boundaries_in_the_vocabulary(tmp_path):
    """User problem 34: `<S>` and `</S>` may stand anywhere in it."""
    options = VARIANTS["words"]
    vocabulary = ["The", "bank", "</S>", "is", "<UNK>", "<S>", "near", "the", "."]
    weights = reference.random_model(options, seed=1)
    folder = reference.write_model(tmp_path / "model", options, weights, vocabulary)
    checkpoint = bilm_tf.read(folder)
    assert checkpoint.model.boundary_token_ids == [6, 3]
    results = reference.embed(options, weights, SENTENCES, vocabulary)
    outputs = checkpoint.model(checkpoint.vocabulary.token_ids(SENTENCES))
    close(to_numpy(outputs["elmo"])[0], results[0]["elmo"])
    close(to_numpy(outputs["elmo"])[1, :1], results[1]["elmo"])


# Errors: the files -------------------------------------------------------------------------------


def test_missing_and_ambiguous_files(folder):
    (folder / "other.hdf5").write_bytes((folder / "weights.hdf5").read_bytes())
    refused(folder, "one HDF5 file of weights", "other.hdf5, weights.hdf5", folder)
    assert bilm_tf.read(folder, weights_file=folder / "other.hdf5").model.units == 24
    (folder / "other.hdf5").unlink()
    (folder / "weights.hdf5").unlink()
    refused(folder, "one HDF5 file of weights", "Found: none", folder)


def test_missing_options(folder):
    (folder / "options.json").unlink()
    refused(folder, "one file `options.json`. Found: none", folder)
    for name in ("a_options.json", "b_options.json"):
        (folder / name).write_text("{}")
    refused(folder, "one file `options.json`. Found: a_options.json, b_options.json")


@pytest.mark.parametrize("size", [0, 100, 2000, -500])
def test_truncated_hdf5(folder, size):
    path = folder / "weights.hdf5"
    path.write_bytes(path.read_bytes()[:size])
    refused(folder, path, "not an HDF5 file, or is damaged or cut off")


def test_no_hdf5_at_all(folder):
    (folder / "weights.hdf5").write_text("<html>404 Not Found</html>")
    refused(folder, folder / "weights.hdf5", "not an HDF5 file")


@pytest.mark.parametrize("text", ["", '{"lstm": {"dim": 4', "not JSON", "\udcff"])
def test_options_that_are_not_json(folder, text):
    path = folder / "options.json"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    refused(folder, path, "cannot be read as JSON")


def test_options_that_are_a_list(folder):
    (folder / "options.json").write_text("[]")
    refused(folder, folder / "options.json", "must hold a JSON object. Received: list")


# Errors: the options -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    [
        "lstm",
        "lstm.dim",
        "lstm.projection_dim",
        "char_cnn.activation",
        "char_cnn.filters",
        "char_cnn.embedding",
        "char_cnn.embedding.dim",
    ],
)
def test_missing_key(folder, key):
    edit_options(folder, **{key.replace(".", "__"): ...})
    refused(folder, folder / "options.json", f"the key `{key}", "is missing")


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("lstm.dim", "24", "int"),
        ("lstm.dim", 24.0, "int"),
        ("lstm.dim", True, "int"),
        ("lstm.n_layers", [2], "int"),
        ("lstm.use_skip_connections", 1, "bool"),
        ("lstm.cell_clip", "3", "int or float"),
        ("lstm.proj_clip", True, "int or float"),
        ("bidirectional", "yes", "bool"),
        ("char_cnn", [1], "dict"),
        ("char_cnn.filters", 7, "list"),
        ("char_cnn.activation", 1, "str"),
        ("char_cnn.n_highway", 1.5, "int"),
        ("char_cnn.n_characters", "262", "int"),
        ("char_cnn.max_characters_per_token", "50", "int"),
        ("lstm", 3, "dict"),
        ("char_cnn.embedding", 16, "dict"),
    ],
)
def test_wrong_type(folder, key, value, expected):
    edit_options(folder, **{key.replace(".", "__"): value})
    refused(
        folder, folder / "options.json", f"`{key}` must be of type {expected}. Received: {value!r}"
    )


@pytest.mark.parametrize(
    ("key", "value", "part"),
    [
        ("lstm.dim", 0, "`units` must be a positive integer. Received: units=0"),
        ("lstm.cell_clip", -3, "`cell_clip` must be a positive number"),
        ("char_cnn.activation", "gelu", "`activation` must be one of 'relu', 'tanh'"),
        ("char_cnn.filters", [[1, 2, 3]], "`filters` must be a list of pairs"),
        ("char_cnn.max_characters_per_token", 3, "no smaller than the widest filter, 4"),
    ],
)
def test_value_out_of_range(folder, key, value, part):
    """The sentence speaks of our argument, and of the file that it comes from."""
    edit_options(folder, **{key.replace(".", "__"): value})
    refused(folder, folder / "options.json", part)


def test_one_direction_only(folder):
    edit_options(folder, bidirectional=False)
    refused(folder, folder / "options.json", "`bidirectional` is false", "both directions")


# Errors: the datasets ----------------------------------------------------------------------------

CELL = "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell"


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("char_embed", (261, 4)),
        ("CNN/W_cnn_2", (1, 4, 4, 9)),
        ("CNN_high_0/b_carry", (20,)),
        ("CNN_proj/W_proj", (20, 6)),
        (f"{CELL}/W_0", (12, 96)),
        (f"{CELL}/B", (96,)),
        (f"{CELL}/W_P_0", (24, 6)),
    ],
)
def test_missing_or_misshaped_dataset(folder, name, shape):
    """User problem 42: the dataset and both shapes are named."""
    file = folder / "weights.hdf5"
    replace_dataset(folder, name)
    refused(folder, file, f"the dataset `{name}`", shape, "is missing", "options.json")
    wrong = (*shape[:-1], shape[-1] + 1)
    replace_dataset(folder, name, np.zeros(wrong, "float32"))
    refused(folder, file, f"the dataset `{name}` must have the shape {shape}", wrong)


def test_unused_dataset(folder):
    replace_dataset(folder, "CNN_high_1/W_carry", np.zeros((20, 20), "float32"))
    refused(folder, "`CNN_high_1/W_carry` of shape (20, 20) has no place", "options.json")


def test_options_of_another_model(folder):
    edit_options(folder, lstm__dim=25)
    refused(folder, f"{CELL.replace('1/', '0/')}/W_0"[:5], "(12, 100)", "(12, 96)")


@pytest.mark.parametrize("name", ["softmax/W", "softmax/b"])
def test_half_a_softmax(folder, name):
    replace_dataset(folder, name)
    refused(folder, f"the dataset `{name}` is missing", "weights.hdf5")


@pytest.mark.parametrize(
    ("kernel", "bias"), [((9, 7), (9,)), ((9, 6), (8,)), ((9, 6, 1), (9,)), ((6, 9), (6,))]
)
def test_misshaped_softmax(folder, kernel, bias):
    replace_dataset(folder, "softmax/W", np.zeros(kernel, "float32"))
    replace_dataset(folder, "softmax/b", np.zeros(bias, "float32"))
    refused(folder, "`softmax/W` must have the shape (words, 6)", kernel, bias, "weights.hdf5")


def test_vocabulary_of_another_size(folder):
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in [*VOCABULARY, "more"]))
    refused(folder, "`softmax/W` has 9 rows", "the vocabulary has 10 words", "weights.hdf5")


def test_token_model_without_its_words(folder, tmp_path):
    """User problem 34: no `char_cnn` means a model of words, which needs `embedding`."""
    edit_options(folder, char_cnn=...)
    refused(folder, folder / "options.json", "no key `char_cnn`", "no dataset `embedding`")


def test_token_model_and_vocabulary_of_different_sizes(tmp_path):
    options = VARIANTS["words"]
    weights = reference.random_model(options, seed=1)
    folder = reference.write_model(tmp_path / "a", options, weights, [*VOCABULARY, "more"])
    refused(folder, "`embedding` in", "has 9 rows", "the vocabulary", "10 words")
    (folder / "vocab.txt").unlink()
    edit_options(folder, n_tokens_vocab=11)
    refused(folder, "`embedding` in", "has 9 rows", "`n_tokens_vocab`", "11 words")


def test_checkpoint_made_by_hand(tmp_path):
    """A model from scratch, without a vocabulary or a softmax, can be written, too."""
    model = keras_elmo.ElmoModel(8, 4, filters=[[1, 3], [2, 4]], num_highway_layers=0)
    bilm_tf.write(Checkpoint(model), tmp_path / "model")
    read = bilm_tf.read(tmp_path / "model")
    assert read.vocabulary is None
    assert read.softmax is None
    assert read.model.get_config() == model.get_config() | {"name": read.model.name}
    softmax = Softmax(np.ones((9, 4), "float32"), np.ones(9, "float32"))
    bilm_tf.write(Checkpoint(model, Vocabulary(VOCABULARY), softmax), tmp_path / "with_softmax")
    options = json.loads((tmp_path / "with_softmax" / "options.json").read_text(encoding="utf-8"))
    assert options["n_tokens_vocab"] == 9
    assert keras.backend.standardize_dtype(read.model.variables[0].dtype) == "float32"


def test_damaged_safetensors(tmp_path):
    """Read as the HDF5 files are, and as carefully."""
    weights = reference.random_model(options_for(), seed=1)
    source = reference.write_model(tmp_path / "source", options_for(), weights, VOCABULARY)
    bilm_tf.write(bilm_tf.read(source), tmp_path / "target", safetensors=True)
    file = tmp_path / "target" / "model.safetensors"
    whole = file.read_bytes()
    for data in (whole[:-1], whole[:50], b""):
        file.write_bytes(data)
        with pytest.raises(ValueError, match="is no safetensors file, or is damaged or cut off"):
            bilm_tf.read(tmp_path / "target")
