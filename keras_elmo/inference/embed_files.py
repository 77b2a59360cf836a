"""embed_files: whole files to a file of vectors, in pieces that survive an interruption.

The vectors go to a folder beside the output first, as shards: whole windows of sentences, each finished by renaming one
small file. Only when all are there is the output written, beside, and renamed. So what has the output's name is whole,
and a run that was killed loses no more than its last window.
"""

import hashlib
import json
import math
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from keras_elmo.corpus import read_sentences
from keras_elmo.corpus.readers import AnyPath, Format
from keras_elmo.files import written_beside
from keras_elmo.inference.embedder import Embedder
from keras_elmo.inference.rows import MAX_BYTES_IN_MEMORY
from keras_elmo.inference.sentence_blocks import Sentence
from keras_elmo.inference.writers import (
    BYTES_PER_BLOCK,
    Embedded,
    Sentences,
    row_blocks,
    writer_for,
)
from keras_elmo.models import ElmoModel
from keras_elmo.presets import read_json, write_json

SETTINGS_FILE = "settings.json"
STANDARD_INPUT = "-"


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    Attributes:
        num_sentences: Sentences done, those of an earlier, interrupted run included.
        total_sentences: All sentences, or `None` if they cannot be counted beforehand.
        num_words: Words embedded in this run.
        stage: "counting", "embedding" or "writing".
    """

    num_sentences: int
    total_sentences: int | None
    num_words: int
    stage: str


def embed_files(
    inputs: AnyPath | Iterable[AnyPath],
    output: AnyPath,
    embedder: Embedder,
    format: Format = "plain",
    resume: bool = False,
    on_progress: Callable[[Progress], None] = lambda progress: None,
) -> int:
    """Embeds every sentence of files and writes the vectors to one file.

    Args:
        inputs: One file or several, also gzip or xz; "-" is standard input.
        output: File to write: `.hdf5` or `.h5`, `.npz`, `.jsonl`; see `keras_elmo.inference.writers`.
        embedder: The `Embedder`.
        format: "plain" (default): one sentence a line, tokenized by us; "tokens": tokens parted by white space;
            "conllu".
        resume: Whether to go on with a run that was interrupted. Defaults to `False`.
        on_progress: Called now and then with the `Progress`.

    Returns:
        The number of sentences in the output.

    Raises:
        ValueError: if the output exists, is one of the inputs or has an unknown ending; if there is an unfinished
            run and `resume` is `False`, or it had other settings or other text; or if a file of the inputs is
            missing or damaged, or is not UTF-8, with file, line and byte.
        OSError: if the output cannot be written.
    """
    paths = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs)
    names = [os.fspath(path) for path in paths]
    if not names:
        raise ValueError("`inputs` must name at least one file. Received: none")
    output = Path(output)
    writer = writer_for(output)
    _check_output(output, names)
    read_sentences(names, format)
    shards = _Shards(
        unfinished_run(output),
        {
            "inputs": names,
            "format": format,
            "tokenizer": embedder.tokenizer if format == "plain" else None,
            "layers": embedder.layers,
            "batch_tokens": embedder.batch_tokens,
            "dtype": embedder.model.compute_dtype,
            "model": _fingerprint(embedder.model),
        },
        embedder.shape,
        resume,
    )
    # Every byte is read once before anything is computed: errors come first, and the time left is known. A pipe
    # cannot be read twice.
    total: int | None = None
    if all(path != STANDARD_INPUT and os.path.isfile(path) for path in names):
        on_progress(Progress(0, None, 0, "counting"))
        total = sum(1 for _ in read_sentences(names, format))
    done = shards.num_sentences
    words = 0

    def count(num_sentences: int, num_words: int) -> None:
        nonlocal done, words
        done += num_sentences
        words += num_words
        on_progress(Progress(done, total, words, "embedding"))

    try:
        shards.open()
        on_progress(Progress(done, total, 0, "embedding"))
        texts = _Recorder(shards.skip_done(read_sentences(names, format)))
        for tokens, arrays in embedder.windows(texts, count):
            shards.add(texts.take(len(tokens)), tokens, arrays)
        on_progress(Progress(done, done, words, "writing"))
        shards.write(writer, output)
    except OSError as error:
        shards.close()
        raise OSError(
            f"{output} cannot be written: {_reason(error)}{shards.how_to_go_on()}"
        ) from error
    except BaseException:
        shards.close()
        raise
    return done


def unfinished_run(output: Path) -> Path:
    """The folder beside an output in which an unfinished run keeps what it has done."""
    return output.with_name(output.name + ".part")


def _check_output(output: Path, inputs: list[str]) -> None:
    if any(os.path.realpath(path) == os.path.realpath(output) for path in inputs):
        raise ValueError(f"The output {output} is one of the inputs. Give it another name.")
    if os.path.lexists(output):
        raise ValueError(f"{output} exists already. Remove it, or give another name.")
    folder = Path(os.path.abspath(output)).parent
    while not os.path.lexists(folder):
        folder = folder.parent
    if not folder.is_dir():
        raise ValueError(f"{output} cannot be written: {folder} is not a folder.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"{output} cannot be written: the folder {folder} is write-protected.")


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).rstrip(".") + "."


class _Recorder:
    """Hands sentences on and remembers them until they are taken."""

    def __init__(self, sentences: Iterable[Sentence]):
        self._sentences = iter(sentences)
        self._seen: list[Sentence] = []

    def __iter__(self) -> Iterator[Sentence]:
        for sentence in self._sentences:
            self._seen.append(sentence)
            yield sentence

    def take(self, count: int) -> list[Sentence]:
        taken, self._seen = self._seen[:count], self._seen[count:]
        return taken


class _Shards:
    """The folder of an unfinished run: pairs of N.vectors (float32) and N.json, which is renamed last."""

    def __init__(
        self,
        folder: Path,
        settings: dict[str, Any],
        shape: Callable[[int], tuple[int, ...]],
        resume: bool,
    ):
        self._folder = folder
        self._settings = settings
        self._shape = shape
        self._count = 0
        self._hash = hashlib.sha256()
        self.num_sentences = 0
        if not os.path.lexists(folder):
            return
        if not resume:
            raise ValueError(
                f"There is an unfinished run in {folder}. Go on with it by `--resume`, or remove the folder."
            )
        self._check_settings()
        while (content := self._finished()) is not None:
            self.num_sentences += len(content["tokens"])
            self._count += 1

    def _check_settings(self) -> None:
        path = self._folder / SETTINGS_FILE
        if not path.is_file():
            raise ValueError(
                f"{self._folder} is not an unfinished run: it has no {SETTINGS_FILE}. Rename or remove it."
            )
        before = read_json(path)
        for name, value in self._settings.items():
            if before.get(name) != value:
                was = "another model" if name == "model" else f"{name}={before.get(name)!r}"
                received = "" if name == "model" else f" Received: {name}={value!r}."
                raise ValueError(
                    f"The unfinished run in {self._folder} had {was}.{received} Give the same, or remove the folder "
                    "to start anew."
                )

    def _path(self, ending: str, number: int | None = None) -> Path:
        return self._folder / f"{self._count if number is None else number:08}.{ending}"

    def _finished(self) -> dict[str, Any] | None:
        """The content of the next shard, if it is there and whole."""
        if not self._path("json").is_file() or not self._path("vectors").is_file():
            return None
        content = read_json(self._path("json"))
        values = sum(math.prod(self._shape(len(tokens))) for tokens in content["tokens"])
        return content if self._path("vectors").stat().st_size == 4 * values else None

    def open(self) -> None:
        """Makes the folder, if it is not there."""
        if not self._folder.exists():
            with written_beside(self._folder) as beside:
                beside.mkdir()
                write_json(beside / SETTINGS_FILE, self._settings)

    def close(self) -> None:
        """Leaves the folder to a later run; removes it if there is nothing in it to go on with."""
        if self._count == 0:
            shutil.rmtree(self._folder, ignore_errors=True)

    def how_to_go_on(self) -> str:
        """What to tell after an error."""
        if self._count == 0:
            return ""
        return f" What is done is kept in {self._folder}: `--resume` goes on from there."

    def skip_done(self, sentences: Iterator[Sentence]) -> Iterator[Sentence]:
        """The sentences that are not in a shard yet; those that are must be what they were."""
        for number in range(self._count):
            content = read_json(self._path("json", number))
            for sentence in islice(sentences, len(content["tokens"])):
                self._note(sentence)
            if content["sha256"] != self._hash.hexdigest():
                raise ValueError(
                    f"The text is not that of the unfinished run in {self._folder}: something in the first "
                    f"{self.num_sentences} sentences has changed. Remove the folder to start anew."
                )
        yield from sentences

    def _note(self, sentence: Sentence) -> None:
        self._hash.update(json.dumps(sentence).encode("ascii"))

    def add(self, texts: list[Sentence], tokens: list, arrays: list[np.ndarray]) -> None:
        """Adds a window of sentences; it counts once its second file has its name."""
        with open(self._path("vectors"), "wb", buffering=BYTES_PER_BLOCK) as file:
            for array in arrays:
                for rows in row_blocks(array):
                    file.write(rows.data)
        for text in texts:
            self._note(text)
        with written_beside(self._path("json"), overwrite=True) as beside:
            content = {
                "tokens": tokens,
                "texts": [text if isinstance(text, str) else " ".join(text) for text in texts],
                "sha256": self._hash.hexdigest(),
            }
            beside.write_text(json.dumps(content), encoding="ascii")
        self._count += 1
        self.num_sentences += len(tokens)

    def write(self, writer: Callable[[Path, Sentences, int], None], output: Path) -> None:
        """Writes the output of all shards and removes them."""
        needed = sum(self._path("vectors", number).stat().st_size for number in range(self._count))
        free = shutil.disk_usage(self._folder).free
        if free < needed:
            raise OSError(
                f"the disk has {free / 1e6:,.0f} MB free and the output needs {needed / 1e6:,.0f} MB."
            )
        # In this folder it is out of the way if the run is killed meanwhile, and goes with the folder in the end.
        unfinished = self._folder / f"output{output.suffix}"
        try:
            writer(unfinished, self._sentences, self.num_sentences)
            unfinished.replace(output)
        finally:
            unfinished.unlink(missing_ok=True)
        shutil.rmtree(self._folder)

    def _sentences(self) -> Iterator[Embedded]:
        """All sentences from the first, whenever it is called."""
        for number in range(self._count):
            content = read_json(self._path("json", number))
            with open(self._path("vectors", number), "rb", buffering=BYTES_PER_BLOCK) as file:
                for text, tokens in zip(content["texts"], content["tokens"], strict=True):
                    yield Embedded(text, tokens, _read_array(file, self._shape(len(tokens))))


def _fingerprint(model: ElmoModel) -> str:
    """A hash of all that the vectors depend on: a run is only resumed with the same."""
    config = model.get_config()
    for name in ("name", "trainable", "trainable_bilm"):
        del config[name]
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
    for weight in model.weights:
        digest.update(weight.value.numpy().tobytes())
    return digest.hexdigest()


def _read_array(file: BinaryIO, shape: tuple[int, ...]) -> np.ndarray:
    """The next array of a file; a large one stays there and is read as it is used."""
    size = 4 * math.prod(shape)
    if size <= MAX_BYTES_IN_MEMORY:
        return np.frombuffer(file.read(size), np.float32).reshape(shape)
    start = file.tell()
    array = np.memmap(file, np.float32, "r", start, shape)
    # The map has moved the file's position.
    file.seek(start + size)
    return array
