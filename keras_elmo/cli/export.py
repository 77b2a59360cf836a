"""`keras-elmo export`: a model as a SavedModel for TensorFlow Serving."""

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import keras
import typer

from keras_elmo import presets
from keras_elmo.checkpoints import Checkpoint, language_model_of, load_checkpoint
from keras_elmo.cli.app import app
from keras_elmo.cli.list_options import list_options
from keras_elmo.elmo_embedding import ElmoEmbedding
from keras_elmo.export import (
    LabelledClassifier,
    LabelledTagger,
    LanguageModelServer,
    export_saved_model,
)
from keras_elmo.models.reads_bytes import check_reads_bytes
from keras_elmo.vocabulary import Vocabulary


@app.command(cls=list_options("--outputs", "--labels"))
def export(
    model: Annotated[
        str,
        typer.Argument(
            help="A preset's name, or a folder, archive or file of weights; or the .keras file of a "
            "model of yours.",
            metavar="MODEL",
        ),
    ],
    folder: Annotated[
        Path,
        typer.Argument(
            help="The served model's folder, of its name: versions 1, 2, .. are made in it.",
            metavar="OUT_DIR",
        ),
    ],
    outputs: Annotated[
        list[str] | None,
        typer.Option(help="What to serve; by default all outputs.", metavar="NAME..."),
    ] = None,
    tokenizer: Annotated[
        Literal["word", "whitespace"] | None,
        typer.Option(help="How text is cut; by default as the model's training text was."),
    ] = None,
    substitutes: Annotated[
        bool,
        typer.Option(
            "--substitutes",
            help="Serve, too, which words the language model would put into a place.",
            metavar="",
        ),
    ] = False,
    labels: Annotated[
        list[str] | None,
        typer.Option(
            help="Names of the classes of a text classifier or tagger (.keras), in the order of its output.",
            metavar="LABEL...",
        ),
    ] = None,
    precision: Annotated[
        Literal["float32", "bfloat16"],
        typer.Option(help="bfloat16 is faster where the processor has it, and rougher."),
    ] = "float32",
    weights: Annotated[
        Literal["float32", "float16"],
        typer.Option(help="float16 stores half as much."),
    ] = "float32",
    word_cache: Annotated[
        int | None,
        typer.Option(
            help="Store the vectors of the N most frequent words; the character CNN reads only the others. Same "
            "numbers, larger, faster where the CNN takes much of the time.",
            min=1,
            metavar="N",
        ),
    ] = None,
) -> None:
    """Write a model as the next version of a SavedModel that takes plain strings.

    TensorFlow Serving loads it as it is (see saved_models/README.md), and so does `tf.saved_model.load`.
    """
    if Path(model).suffix == ".keras":
        if tokenizer or substitutes or precision != "float32":
            raise ValueError(
                f"{model} has its own tokenizer and precision and no language model: leave `--tokenizer`, "
                "`--precision` and `--substitutes` out."
            )
        if word_cache is not None:
            raise ValueError(
                f"`--word-cache` goes with models that serve the vectors of words: a preset, or weights with their "
                f"vocabulary. Received: {model}, a Keras model's file. Leave it out."
            )
        served = keras_model(model, labels)
        metadata: dict[str, Any] = {}
        vocabulary = None
    else:
        if labels:
            raise ValueError(
                f"`--labels` are the classes of a classifier or tagger, the .keras file of a Keras model. "
                f"Received: {model}"
            )
        checkpoint = load_checkpoint(model, dtype=precision)
        served, metadata = elmo(checkpoint, model, tokenizer, substitutes)
        vocabulary = None if word_cache is None else _vocabulary(checkpoint, model)
    path = export_saved_model(
        served, folder, outputs or None, weights, metadata, word_cache, vocabulary
    )
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    print(f"Wrote {path} ({size / 1e6:,.1f} MB).", file=sys.stderr)


def keras_model(path: str, labels: list[str] | None = None) -> Any:
    """A Keras model's file, as it is served.

    Args:
        path: The file.
        labels: Names of its classes. `None` (default): it has them, or none.

    Raises:
        ValueError: if it is no such file, or does not go with labels.
    """
    if not Path(path).is_file():
        raise ValueError(f"{path} must be a Keras model's file, which does not exist")
    try:
        model = keras.saving.load_model(path, compile=False)
    except (ValueError, TypeError, KeyError, OSError) as error:
        raise ValueError(
            f"{path} must be a Keras model's file, as `model.save` writes it ({' '.join(str(error).split())[:300]})."
        ) from error
    if not labels:
        return model
    if hasattr(model, "serving_signatures"):
        raise ValueError(f"{path} says itself what it serves: leave `--labels` out.")
    is_tagger = [len(tensor.shape) for tensor in model.outputs] == [3]
    return (LabelledTagger if is_tagger else LabelledClassifier)(model, labels)


def _vocabulary(checkpoint: Checkpoint, source: str) -> Vocabulary:
    if checkpoint.vocabulary is None:
        raise ValueError(
            f"{source} has no vocabulary, whose first words `--word-cache` stores. Put `{presets.VOCABULARY_FILE}`, "
            "one word a line and the most frequent first, beside the weights, or leave `--word-cache` out."
        )
    return checkpoint.vocabulary


def elmo(
    checkpoint: Checkpoint, source: str, tokenizer: str | None, substitutes: bool
) -> tuple[Any, dict[str, Any]]:
    """A biLM, as it is served, and what its export says of it.

    Args:
        checkpoint: The biLM.
        source: What it was loaded from.
        tokenizer: "word" or "whitespace". `None`: the one that it was trained with.
        substitutes: Whether to serve the language model's substitutes, too.

    Raises:
        ValueError: if it has no language model to serve.
    """
    tokenizer = tokenizer or checkpoint.metadata.get("tokenizer") or "word"
    metadata = {"source": Path(source).name} | {
        name: checkpoint.metadata[name]
        for name in ("description", "language", "license")
        if name in checkpoint.metadata
    }
    check_reads_bytes("A SavedModel that takes strings", checkpoint.model)
    if substitutes:
        return LanguageModelServer(language_model_of(checkpoint, source), tokenizer), metadata
    return ElmoEmbedding(checkpoint.model, tokenizer=tokenizer), metadata
