"""Models of ELMoForManyLangs: the tool's own vectors, and what is wrong with a folder in one sentence."""

import json
import shutil
import tarfile
import zipfile

import keras
import numpy as np
import pytest
from harness import close, to_numpy
from paths import DATA
from torch_files import name, storage, table, tensor, write_zip

import keras_elmo
from keras_elmo import ElmoModel
from keras_elmo.checkpoints import load_checkpoint, many_langs, preset

# Keras saves TensorFlow's variables through a call that NumPy 2 warns about.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

FOLDER = DATA / "many_langs"
MODELS = ["words_and_characters", "characters", "words", "square"]
SENTENCES = json.loads((FOLDER / "sentences.json").read_text(encoding="utf-8"))


def layers_of(model, sentences):
    """For each sentence (num_layers + 1, num_tokens, 2 * projection_dim), as the tool gives it."""
    outputs = {name: to_numpy(value) for name, value in model(model.ids(sentences)).items()}
    layers = [np.concatenate([outputs["word_emb"]] * 2, axis=-1)]
    layers += [outputs[f"lstm_outputs{k}"] for k in range(1, model.num_layers + 1)]
    stacked = np.stack(layers, axis=1)
    return [rows[:, : len(tokens)] for rows, tokens in zip(stacked, sentences, strict=True)]


def expected_of(model):
    with np.load(FOLDER / model / "expected.npz") as file:
        return [file[f"sentence_{k}"] for k in range(len(SENTENCES))]


def check(model, name="words_and_characters"):
    for actual, expected in zip(layers_of(model, SENTENCES), expected_of(name), strict=True):
        close(actual, expected)


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(FOLDER / "words_and_characters", tmp_path / "model")


def change_json(path, change):
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def refused(source, message):
    with pytest.raises(ValueError, match=message) as error:
        keras_elmo.load_model(source)
    assert "\n" not in str(error.value)


# The tool's numbers ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_the_tools_vectors(name):
    """Every layer of sentences with Chinese, unknown words and characters, long words, boundaries, and none."""
    checkpoint = load_checkpoint(FOLDER / name)
    assert checkpoint.format == "ELMoForManyLangs"
    assert checkpoint.metadata["tokenizer"] == "whitespace"
    check(checkpoint.model, name)
    # The same alone.
    for sentence, expected in zip(SENTENCES, expected_of(name), strict=True):
        close(layers_of(checkpoint.model, [sentence])[0], expected)


def test_inputs_by_name():
    names = {name: list(keras_elmo.load_model(FOLDER / name).input) for name in MODELS}
    assert {name: sorted(inputs) for name, inputs in names.items()} == {
        "words_and_characters": ["character_ids", "word_ids"],
        "characters": ["character_ids"],
        "words": ["word_ids"],
        "square": ["character_ids", "word_ids"],
    }


def test_overrides():
    model = keras_elmo.load_model(
        FOLDER / "square", trainable_bilm=True, keep_sentence_boundaries=True
    )
    assert model.trainable_bilm
    assert model(model.ids([["The", "cat"]]))["elmo"].shape[1] == 4
    with pytest.raises(ValueError, match="and overrides: ElmoModel has no argument `unitz`"):
        keras_elmo.load_model(FOLDER / "square", unitz=1)


@pytest.mark.parametrize("name", MODELS)
def test_round_trips(name, tmp_path):
    """The lexicon goes along: nothing but the new file is needed."""
    checkpoint = load_checkpoint(FOLDER / name)
    checkpoint.model.save(tmp_path / "model.keras")
    check(keras.saving.load_model(tmp_path / "model.keras"), name)
    preset.write(checkpoint, tmp_path / "preset")
    again = load_checkpoint(tmp_path / "preset")
    check(again.model, name)
    assert again.model.lexicon == checkpoint.model.lexicon
    assert again.metadata["tokenizer"] == "whitespace"
    config = json.loads(json.dumps(checkpoint.model.get_config()))
    assert ElmoModel.from_config(config).get_config() == config


@pytest.mark.parametrize("root", ["", "144/"])
@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_archives(root, kind, tmp_path):
    archive = tmp_path / f"144.{kind}"
    files = sorted((FOLDER / "words_and_characters").iterdir())
    if kind == "zip":
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for file in files:
                packed.write(file, root + file.name)
    else:
        with tarfile.open(archive, "w:gz") as packed:
            for file in files:
                packed.add(file, root + file.name)
    check(keras_elmo.load_model(archive))


# Configurations ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "named",
    [
        "words_and_characters.json",
        "configs/words_and_characters.json",
        "/users4/somebody/configs/words_and_characters.json",
        "../configs/words_and_characters.json",
        "C:\\models\\configs\\words_and_characters.json",
    ],
)
@pytest.mark.parametrize("place", [".", "configs"])
def test_the_path_of_another_machine(folder, named, place):
    """User problem 45: the configuration's name is looked for in the folder and its `configs`."""
    change_json(folder / "config.json", lambda config: config.update(config_path=named))
    (folder / place).mkdir(exist_ok=True)
    (folder / "words_and_characters.json").rename(folder / place / "words_and_characters.json")
    check(keras_elmo.load_model(folder))


def test_nothing_outside_of_the_folder_is_read(folder, tmp_path):
    outside = tmp_path / "outside.json"
    (folder / "words_and_characters.json").rename(outside)
    for named in (str(outside), "../outside.json"):
        change_json(
            folder / "config.json", lambda config, named=named: config.update(config_path=named)
        )
        refused(
            folder,
            "config.json: `config_path` is .*outside.json.*, but there is neither .*model/outside.json nor",
        )


def test_no_configuration(folder):
    (folder / "words_and_characters.json").unlink()
    refused(
        folder,
        r"`config_path` is 'configs/words_and_characters.json', but there is neither "
        r".*model/configs/words_and_characters.json nor .*model/words_and_characters.json. Put that file into",
    )
    change_json(folder / "config.json", lambda config: config.update(config_path=3))
    refused(folder, "config.json: `config_path` must be of type str. Received: 3")
    (folder / "config.json").unlink()
    refused(folder, "model must have the file config.json")


def test_the_configuration_that_comes_with_the_tool(folder):
    """Published models name it without having it: its sizes are known, and here they do not fit."""
    named = "/home/somebody/configs/cnn_50_100_512_4096_sample.json"
    change_json(folder / "config.json", lambda config: config.update(config_path=named))
    refused(
        folder,
        r"token_embedder.pkl: the array `word_emb_layer.embedding.weight` must have the shape \(20, 100\)",
    )


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("encoder.name", "lstm", "`encoder.name` must be 'elmo', .* Received: 'lstm'"),
        ("token_embedder.name", "lstm", "`token_embedder.name` must be 'cnn', .* Received: 'lstm'"),
        ("encoder.dim", "10", "words_and_characters.json: `encoder.dim` must be of type int"),
        ("encoder.dim", None, "the key `encoder.dim` is missing"),
        ("encoder.dim", 2**40, r"input_linearity.weight` must have the shape \(4398046511104, 6\)"),
        (
            "encoder.n_layers",
            2**40,
            "`forward_layer_2.input_linearity.weight` must .* no such array",
        ),
        ("encoder.n_layers", 1, "`backward_layer_1.input_linearity.weight` has no place"),
        ("token_embedder.n_highway", 1, "`highways._layers.1.bias` has no place in the model"),
        ("token_embedder.n_highway", -1, "`highways._layers.0.bias` has no place in the model"),
        (
            "token_embedder.filters",
            [[1, 3]],
            r"`highways._layers.0.weight` must have the shape \(6, 3\)",
        ),
        ("token_embedder.filters", [[1]], "`filters` must be a list of pairs"),
        ("token_embedder.activation", "gelu", "`activation` must be one of 'relu', 'tanh'"),
        ("token_embedder.max_characters_per_token", 4, "no smaller than the widest filter, 5"),
        ("token_embedder.word_dim", 3, r"`word_emb_layer.embedding.weight` must .* \(20, 3\)"),
        ("token_embedder.word_dim", 0, r"`projection.weight` must have the shape \(6, 9\)"),
        ("encoder.cell_clip", -1, "`cell_clip` must be a positive number"),
    ],
)
def test_wrong_configurations(folder, key, value, message):
    part, field = key.split(".")
    change_json(
        folder / "words_and_characters.json", lambda config: config[part].update({field: value})
    )
    refused(folder, message)


def test_neither_words_nor_characters(folder):
    change_json(
        folder / "words_and_characters.json",
        lambda config: config["token_embedder"].update(word_dim=0, char_dim=0),
    )
    refused(folder, "A Lexicon must have `characters` or `words`")


# Lexicons and weights ----------------------------------------------------------------------------


def test_a_lexicon_of_another_size(folder):
    """User problem 25."""
    with (folder / "word.dic").open("a", encoding="utf-8") as file:
        file.write("more\t20\n")
    refused(folder, "word.dic has 21 entries, but the weights have vectors for 20")
    lines = (folder / "char.dic").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "char.dic").write_text("".join(lines[:-1]), encoding="utf-8")
    refused(folder, "char.dic has 66 entries, but the weights have vectors for 67")


def test_a_lexicon_without_its_special_entries(folder):
    text = (folder / "char.dic").read_text(encoding="utf-8")
    (folder / "char.dic").write_text(text.replace("<bow>", "<b>"), encoding="utf-8")
    refused(folder, "`characters` must hold .* 67 entries without <bow>")


@pytest.mark.parametrize("file", ["char.dic", "word.dic", "token_embedder.pkl", "encoder.pkl"])
def test_missing_files(folder, file):
    (folder / file).unlink()
    refused(folder, f"{file} cannot be read as a lexicon|must have the file {file}")


def test_arrays_of_integers(folder):
    write_zip(
        folder / "token_embedder.pkl",
        table(
            {
                "word_emb_layer.embedding.weight": tensor(
                    storage("0", 80, "LongStorage"), [20, 4], [4, 1]
                ),
                "char_emb_layer.embedding.weight": tensor(storage("1", 335), [67, 5], [5, 1]),
            }
        ),
        {"0": np.ones(80, "<i8"), "1": np.ones(335, "<f4")},
    )
    refused(folder, r"the shape \(20, 4\) of floats, which .* Received: \(20, 4\) of int64")


def test_files_of_another_model(folder):
    shutil.copy(FOLDER / "square" / "encoder.pkl", folder)
    refused(folder, r"encoder.pkl: the array `forward_layer_0.input_linearity.weight` .* \(40, 6\)")


def test_a_download_that_was_cut_off(folder):
    path = folder / "encoder.pkl"
    path.write_bytes(path.read_bytes()[:-1000])
    refused(folder, "encoder.pkl is no file of PyTorch weights, or is damaged or cut short")


def test_a_malicious_pickle(folder, tmp_path):
    """In an archive, from which the message names archive and file."""
    write_zip(folder / "encoder.pkl", name("os", "system") + b"X\x04\x00\x00\x00true\x85R")
    shutil.make_archive(str(tmp_path / "packed"), "zip", folder)
    refused(
        tmp_path / "packed.zip", "packed.zip/encoder.pkl names 'os.system', which builds no array"
    )


def test_arrays_without_axes(folder):
    scalar = tensor(storage("0", 1), [], [])
    write_zip(
        folder / "token_embedder.pkl",
        table({"char_emb_layer.embedding.weight": scalar}),
        {"0": np.ones(1, "f4")},
    )
    refused(folder, "char.dic has 67 entries, but the weights have vectors for 0")


def test_recognized_by_its_weights(tmp_path):
    assert not many_langs.recognizes(tmp_path)
    refused(tmp_path, "nor token_embedder.pkl and encoder.pkl, nor weights.th. Found: nothing")
    (tmp_path / "encoder.pkl").write_bytes(b"")
    assert many_langs.recognizes(tmp_path)
    refused(tmp_path, "must have the file config.json")
