"""The biLM in plain NumPy float64: the oracle that the package is tested against.

It follows bilm-tf: its options, its HDF5 names, its formulas; it shares no code with the package.
One sentence at a time, so there is no padding and no mask. Names in the shapes below:

    T tokens of a sentence, without `<S>` and `</S>`;  W characters of a word;
    p = lstm.projection_dim;  d = lstm.dim;  L = lstm.n_layers;  V = n_tokens_vocab.
"""

import json
from pathlib import Path

import h5py
import numpy as np

# Character ids, shifted by one: a byte b is b + 1, and 0 means "no word here".
BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, PADDING = 257, 258, 259, 260, 261
DIRECTIONS = (0, 1)  # forward, backward: `RNN_0`, `RNN_1`


# Files -------------------------------------------------------------------------------------------


def load_weights(options, hdf5_path):
    """Returns (options dict, {dataset path: float64 array}); `options` is a dict or a path."""
    if not isinstance(options, dict):
        options = json.loads(Path(options).read_text(encoding="utf-8"))
    weights = {}

    def collect(name, item):
        if isinstance(item, h5py.Dataset):
            weights[name] = item[()].astype(np.float64)

    with h5py.File(hdf5_path, "r") as file:
        file.visititems(collect)
    return options, weights


def write_model(folder, options, weights, vocabulary=None):
    """Writes options.json, weights.hdf5 (float32) and, if given, vocab.txt; returns the folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "options.json").write_text(json.dumps(options, indent=1), encoding="utf-8")
    with h5py.File(folder / "weights.hdf5", "w") as file:
        for name, value in weights.items():
            file.create_dataset(name, data=value.astype(np.float32))
    if vocabulary is not None:
        lines = "".join(f"{token}\n" for token in vocabulary)
        (folder / "vocab.txt").write_text(lines, encoding="utf-8", newline="\n")
    return folder


# Random models -----------------------------------------------------------------------------------


def random_model(options, seed, softmax=False):
    """Returns float32-representable weights for every dataset that `options` imply.

    Scaled so that activations neither vanish nor saturate, and a clip at 3 bites now and then.
    `softmax=True` adds `softmax/W` and `softmax/b`, which need `n_tokens_vocab`.
    """
    random = np.random.default_rng(seed)

    def normal(*shape, scale, mean=0.0):
        return random.normal(mean, scale, shape).astype(np.float32).astype(np.float64)

    lstm = options["lstm"]
    dim, projection_dim = lstm["dim"], lstm["projection_dim"]
    weights = {}
    if "char_cnn" in options:
        cnn = options["char_cnn"]
        embedding_dim = cnn["embedding"]["dim"]
        num_filters = sum(count for _, count in cnn["filters"])
        weights["char_embed"] = normal(261, embedding_dim, scale=0.6)
        for i, (width, count) in enumerate(cnn["filters"]):
            scale = (width * embedding_dim) ** -0.5
            weights[f"CNN/W_cnn_{i}"] = normal(1, width, embedding_dim, count, scale=scale)
            weights[f"CNN/b_cnn_{i}"] = normal(count, scale=0.2)
        for k in range(cnn.get("n_highway") or 0):
            for name, mean in (("carry", -0.5), ("transform", 0.0)):
                weights[f"CNN_high_{k}/W_{name}"] = normal(
                    num_filters, num_filters, scale=num_filters**-0.5
                )
                weights[f"CNN_high_{k}/b_{name}"] = normal(num_filters, scale=0.5, mean=mean)
        if num_filters != projection_dim:
            weights["CNN_proj/W_proj"] = normal(
                num_filters, projection_dim, scale=2 * num_filters**-0.5
            )
            weights["CNN_proj/b_proj"] = normal(projection_dim, scale=0.2)
    else:
        weights["embedding"] = normal(options["n_tokens_vocab"], projection_dim, scale=1.0)
    for direction in DIRECTIONS:
        for layer in range(lstm.get("n_layers", 1)):
            cell = _cell_name(direction, layer)
            weights[f"{cell}/W_0"] = normal(
                2 * projection_dim, 4 * dim, scale=(2 * projection_dim) ** -0.5
            )
            weights[f"{cell}/B"] = normal(4 * dim, scale=1.0)
            if dim != projection_dim:
                weights[f"{cell}/W_P_0"] = normal(dim, projection_dim, scale=4 * dim**-0.5)
    if softmax:
        vocabulary_size = options["n_tokens_vocab"]
        weights["softmax/W"] = normal(vocabulary_size, projection_dim, scale=projection_dim**-0.5)
        weights["softmax/b"] = normal(vocabulary_size, scale=0.5)
    return weights


# Text to ids -------------------------------------------------------------------------------------


def character_rows(tokens, max_characters=50):
    """Tokens of one sentence -> (T + 2, max_characters) ids, as bilm-tf's `Batcher` makes them."""

    def row(token):
        if token == "<S>":
            characters = [BEGIN_SENTENCE]
        elif token == "</S>":
            characters = [END_SENTENCE]
        else:
            characters = [byte + 1 for byte in token.encode("utf-8", "ignore")]
        ids = [BEGIN_WORD, *characters[: max_characters - 2], END_WORD]
        return ids + [PADDING] * (max_characters - len(ids))

    return np.array([row(token) for token in ["<S>", *tokens, "</S>"]], dtype=np.int64)


def token_rows(tokens, vocabulary):
    """Tokens of one sentence -> (T + 2,) vocabulary ids plus one, as bilm-tf's `TokenBatcher`."""
    ids = {token: i for i, token in enumerate(vocabulary)}
    unknown = ids["<UNK>"]
    return np.array([ids.get(token, unknown) + 1 for token in ["<S>", *tokens, "</S>"]])


# Ids to token vectors ----------------------------------------------------------------------------


def token_embeddings(options, weights, rows):
    """Character ids (n, W), or for a model without `char_cnn` token ids (n,) -> (n, p)."""
    if "char_cnn" not in options:
        return _with_zero_row(weights["embedding"])[rows]
    cnn = options["char_cnn"]
    activation = {"relu": relu, "tanh": np.tanh}[cnn["activation"]]
    characters = _with_zero_row(weights["char_embed"])[rows]  # (n, W, embedding dim)
    features = []
    for i, (width, _) in enumerate(cnn["filters"]):
        kernel = weights[f"CNN/W_cnn_{i}"][0]  # (width, embedding dim, filters)
        positions = characters.shape[1] - width + 1
        windows = sum(characters[:, k : k + positions] @ kernel[k] for k in range(width))
        features.append(activation((windows + weights[f"CNN/b_cnn_{i}"]).max(axis=1)))
    x = np.concatenate(features, axis=-1)
    for k in range(cnn.get("n_highway") or 0):
        name = f"CNN_high_{k}"
        gate = sigmoid(x @ weights[f"{name}/W_carry"] + weights[f"{name}/b_carry"])
        transformed = relu(x @ weights[f"{name}/W_transform"] + weights[f"{name}/b_transform"])
        x = gate * transformed + (1 - gate) * x
    if "CNN_proj/W_proj" in weights:
        x = x @ weights["CNN_proj/W_proj"] + weights["CNN_proj/b_proj"]
    return x


# Token vectors to layers -------------------------------------------------------------------------


def bilm(options, weights, token_vectors, state=None):
    """One sentence with its boundaries, (T + 2, p) -> ([layer 0, .., layer L], new state).

    Every layer is (T + 2, 2 p): forward, then backward; layer 0 is the token vector twice.
    A state is `state[direction][layer] = (cell (d,), output (p,))`; None is all zeros.
    """
    layers_by_direction, new_state = [], []
    for direction in DIRECTIONS:
        # Each direction reads its own way; its outputs are turned back to sentence order.
        order = slice(None) if direction == 0 else slice(None, None, -1)
        layers, final = lstm_stack(
            options, weights, direction, token_vectors[order], state and state[direction]
        )
        layers_by_direction.append([layer[order] for layer in layers])
        new_state.append(final)
    forward, backward = layers_by_direction
    layers = [np.concatenate(pair, axis=-1) for pair in zip(forward, backward, strict=True)]
    return layers, new_state


def lstm_stack(options, weights, direction, inputs, state=None):
    """One direction in its reading order, (n, p) -> ([inputs, layer 1, .., layer L], new state)."""
    lstm = options["lstm"]
    layers, new_state = [inputs], []
    for layer in range(lstm.get("n_layers", 1)):
        cell = _cell_name(direction, layer)
        projection = weights.get(f"{cell}/W_P_0")
        outputs, final = lstm_layer(
            layers[-1],
            weights[f"{cell}/W_0"],
            weights[f"{cell}/B"],
            projection,
            lstm.get("cell_clip"),
            lstm.get("proj_clip"),
            state and state[layer],
        )
        if layer > 0 and lstm.get("use_skip_connections", False):
            outputs = outputs + layers[-1]
        layers.append(outputs)
        new_state.append(final)
    return layers, new_state


def lstm_layer(inputs, kernel, bias, projection, cell_clip, projection_clip, state=None):
    """(n, p) -> ((n, p), (cell, output)). Without a projection `projection_clip` does nothing."""
    dim = bias.shape[0] // 4
    cell, output = (np.zeros(dim), np.zeros(inputs.shape[1])) if state is None else state
    outputs = []
    for x in inputs:
        i, j, f, o = np.split(np.concatenate([x, output]) @ kernel + bias, 4)
        cell = sigmoid(f + 1) * cell + sigmoid(i) * np.tanh(j)
        if cell_clip is not None:
            cell = np.clip(cell, -cell_clip, cell_clip)
        output = sigmoid(o) * np.tanh(cell)
        if projection is not None:
            output = output @ projection
            if projection_clip is not None:
                output = np.clip(output, -projection_clip, projection_clip)
        outputs.append(output)
    return np.array(outputs).reshape(len(inputs), -1), (cell, output)


# Layers to vectors -------------------------------------------------------------------------------


def scalar_mix(batch, w, gamma=1.0, layer_norm=None):
    """AllenNLP's mix. `batch` is a list of sentences, each the list of layers that `bilm` returns.

    gamma * sum_k softmax(w)_k * layer_k, one (T + 2, 2 p) per sentence. With `layer_norm` each
    layer is first shifted and scaled by one mean and one variance, over the `"sentence"` or over
    the whole `"batch"`, boundaries included.
    """
    softmax = np.exp(w - np.max(w))
    softmax = softmax / softmax.sum()
    if layer_norm == "batch":
        over_batch = [_moments(np.concatenate(layer)) for layer in zip(*batch, strict=True)]
    mixed = []
    for layers in batch:
        if layer_norm is not None:
            if layer_norm == "batch":
                moments = over_batch
            elif layer_norm == "sentence":
                moments = [_moments(layer) for layer in layers]
            else:
                raise ValueError(f"layer_norm={layer_norm!r}")
            layers = [
                (layer - mean) / np.sqrt(variance + 1e-13)
                for layer, (mean, variance) in zip(layers, moments, strict=True)
            ]
        mixed.append(gamma * sum(s * x for s, x in zip(softmax, layers, strict=True)))
    return mixed


def embed(options, weights, sentences, vocabulary=None, w=None, gamma=1.0, layer_norm=None):
    """Lists of tokens -> per sentence a dict of the model's outputs, without boundaries.

    `word_emb` (T, p), `lstm_outputs1`.. (T, 2 p), `elmo` (T, 2 p), `default` (2 p,).
    `w=None` mixes uniformly. A model without `char_cnn` needs the `vocabulary` (list of tokens).
    """
    batch = []
    for tokens in sentences:
        if "char_cnn" in options:
            rows = character_rows(tokens, options["char_cnn"]["max_characters_per_token"])
        else:
            rows = token_rows(tokens, vocabulary)
        layers, _ = bilm(options, weights, token_embeddings(options, weights, rows))
        batch.append(layers)
    if w is None:
        w = np.zeros(options["lstm"].get("n_layers", 1) + 1)
    results = []
    for layers, mixed in zip(batch, scalar_mix(batch, w, gamma, layer_norm), strict=True):
        elmo = mixed[1:-1]
        result = {"word_emb": layers[0][1:-1, : layers[0].shape[-1] // 2]}
        result |= {f"lstm_outputs{k}": layers[k][1:-1] for k in range(1, len(layers))}
        result["elmo"] = elmo
        result["default"] = elmo.sum(axis=0) / max(len(elmo), 1)
        results.append(result)
    return results


# Small pieces ------------------------------------------------------------------------------------


def relu(x):
    """max(x, 0)."""
    return np.maximum(x, 0)


def sigmoid(x):
    """1 / (1 + exp(-x)), written so that it cannot overflow."""
    return 0.5 * (1 + np.tanh(0.5 * x))


def _with_zero_row(table):
    return np.concatenate([np.zeros_like(table[:1]), table])


def _cell_name(direction, layer):
    return f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"


def _moments(x):
    return x.mean(), x.var()
