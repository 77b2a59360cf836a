"""RunFiles: the folder of a pre-training run.

| name | what it holds |
|---|---|
| `run.json` | the configuration, the corpus, the vocabulary's hash |
| `vocab.txt`, `vocab.counts.tsv` | the vocabulary, and how frequent its words are |
| `log.jsonl` | a JSON object for each line of the log |
| `tensorboard/` | the same numbers as curves |
| `checkpoints/STEP/` | a preset folder, with `training_state.h5` (slots, LSTM states) and `progress.json` besides |
"""

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from keras_elmo import presets
from keras_elmo.checkpoints import run_folder
from keras_elmo.corpus import counts_path, load_counts, save_counts
from keras_elmo.files import written_beside
from keras_elmo.models import BidirectionalLanguageModel
from keras_elmo.vocabulary import Vocabulary

_LOG_FILE = "log.jsonl"
_STATE_FILE = "training_state.h5"
_TENSORBOARD_FOLDER = "tensorboard"
# What is in the folder, and what it is made of.
_ENTRIES = (
    run_folder.CHECKPOINTS_FOLDER,
    presets.VOCABULARY_FILE,
    counts_path(presets.VOCABULARY_FILE).name,
    _LOG_FILE,
)
_PARTS = ".run.*.part"


class RunFiles:
    """Reads and writes what a run leaves on disk; nobody ever finds half of a checkpoint there.

    Args:
        folder: The run's folder.
    """

    def __init__(self, folder: str | os.PathLike):
        self.folder = Path(folder)

    @staticmethod
    def check_new(folder: str | os.PathLike) -> None:
        """Raises a ValueError if there is something in the place of a new run's folder.

        What a start that was killed has left there is removed.
        """
        path = Path(folder)
        if path.is_dir() and not run_folder.recognizes(path):
            parts = list(path.glob(_PARTS))
            # The folder was empty before: what has got its name already is of that start, too.
            for entry in [*parts, *(path / name for name in _ENTRIES if parts)]:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink(missing_ok=True)
        # A disk of its own has a folder for what was lost.
        left = [entry.name for entry in path.iterdir()] if path.is_dir() else [path.name]
        if path.exists() and set(left) - {"lost+found"}:
            mend = (
                "Go on with that run by --resume, or give"
                if run_folder.recognizes(path)
                else "Give"
            )
            raise ValueError(f"{path} exists already. {mend} another folder.")

    @classmethod
    @contextmanager
    def made(
        cls,
        folder: str | os.PathLike,
        run: dict[str, Any],
        vocabulary: Vocabulary,
        counts: np.ndarray,
    ) -> Iterator["RunFiles"]:
        """Makes the folder of a new run: in the block, more may be put into it before it takes its name."""
        with _new_folder(Path(folder)) as beside:
            files = cls(beside)
            (beside / run_folder.CHECKPOINTS_FOLDER).mkdir(parents=True)
            presets.write_json(beside / run_folder.RUN_FILE, run)
            vocabulary.save(files.vocabulary_file)
            save_counts(counts_path(files.vocabulary_file), vocabulary, counts)
            (beside / _LOG_FILE).touch()
            yield files

    @property
    def vocabulary_file(self) -> Path:
        """The file of the vocabulary."""
        return self.folder / presets.VOCABULARY_FILE

    @property
    def tensorboard_folder(self) -> Path:
        """The folder of the curves."""
        return self.folder / _TENSORBOARD_FOLDER

    def read_run(self) -> dict[str, Any]:
        """What `run.json` says.

        Raises:
            ValueError: If the folder is not that of a run.
        """
        if not run_folder.recognizes(self.folder):
            raise ValueError(
                f"{self.folder} must be the folder of a pre-training run to go on with, but has no "
                f"{run_folder.RUN_FILE}. Start one without --resume."
            )
        return presets.read_json(self.folder / run_folder.RUN_FILE)

    def write_run(self, run: dict[str, Any]) -> None:
        """Replaces `run.json`."""
        with written_beside(self.folder / run_folder.RUN_FILE, overwrite=True) as beside:
            presets.write_json(beside, run)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other processes from going on with the same run meanwhile.

        Raises:
            ValueError: If one does.
        """
        # The folder itself: the files in it are replaced by others now and then.
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ValueError(
                    f"{self.folder} must not be trained by two at once, but another process is at it. Wait for its "
                    "end, or stop it."
                ) from error
            yield
        finally:
            os.close(folder)

    def read_vocabulary(self) -> tuple[Vocabulary, np.ndarray]:
        """The vocabulary and the counts of its words."""
        vocabulary = Vocabulary.load(self.vocabulary_file)
        return vocabulary, load_counts(counts_path(self.vocabulary_file), vocabulary)

    def log(self, entry: Mapping[str, Any]) -> None:
        """Appends a line to the log."""
        with (self.folder / _LOG_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")

    def go_back_to(self, step: int) -> None:
        """Takes away what an interrupted run left behind its last checkpoint: lines of the log, half-written files."""
        log = self.folder / _LOG_FILE
        with written_beside(log, overwrite=True) as beside:
            with beside.open("w", encoding="utf-8") as kept, log.open(encoding="utf-8") as lines:
                for line in lines:
                    if _step_of(line) <= step:
                        kept.write(line)
        for folder in (self.folder, self.folder / run_folder.CHECKPOINTS_FOLDER):
            for litter in folder.glob(".*.part"):
                shutil.rmtree(litter, ignore_errors=True)

    def last_step(self) -> int:
        """The step of the last checkpoint.

        Raises:
            ValueError: If there is none.
        """
        steps = run_folder.checkpoint_steps(self.folder)
        if not steps:
            raise ValueError(f"The run {self.folder} has no whole checkpoint. Start it anew.")
        return steps[-1]

    def checkpoint(self, step: int) -> Path:
        """The folder of a checkpoint."""
        return run_folder.checkpoint_folder(self.folder, step)

    def write_checkpoint(
        self,
        model: BidirectionalLanguageModel,
        arrays: Mapping[str, np.ndarray],
        progress: Mapping[str, Any],
        metadata: dict[str, Any],
    ) -> None:
        """Writes the checkpoint of `progress["step"]`, beside and renamed.

        Raises:
            OSError: If it cannot be written. Earlier checkpoints are untouched.
        """
        step = progress["step"]
        try:
            with written_beside(self.checkpoint(step), overwrite=True) as beside:
                model.save_to_preset(beside, metadata=metadata)
                _set_float32(beside / presets.CONFIG_FILE)
                with h5py.File(beside / _STATE_FILE, "w") as file:
                    for name, array in arrays.items():
                        file.create_dataset(name, data=array)
                presets.write_json(beside / run_folder.PROGRESS_FILE, dict(progress))
        except (OSError, RuntimeError) as error:  # HDF5 has its own way to say that a disk is full
            raise OSError(
                f"The checkpoint of step {step} could not be written ({error}). Those before it are whole: mend "
                "that and go on with --resume."
            ) from error

    def read_progress(self, step: int) -> dict[str, Any]:
        """The progress at a checkpoint."""
        return presets.read_json(self.checkpoint(step) / run_folder.PROGRESS_FILE)

    def read_arrays(self, step: int) -> dict[str, np.ndarray]:
        """Slots and LSTM states of a checkpoint.

        Raises:
            ValueError: If the file is missing or damaged.
        """
        path = self.checkpoint(step) / _STATE_FILE
        arrays: dict[str, np.ndarray] = {}

        def read(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset):
                arrays[name] = item[()]

        try:
            with h5py.File(path, "r") as file:
                file.visititems(read)
        except OSError as error:
            raise ValueError(f"{path} is missing or damaged ({error}).") from error
        return arrays

    def remove_old_checkpoints(self, keep: int, best_step: int | None) -> None:
        """Removes all checkpoints but the last `keep` and the best."""
        for step in run_folder.checkpoint_steps(self.folder)[:-keep]:
            if step != best_step:
                # Out of sight at once: a half-removed folder must not pass for a checkpoint.
                parent = self.folder / run_folder.CHECKPOINTS_FOLDER
                aside = Path(tempfile.mkdtemp(prefix=f".{step}.", suffix=".part", dir=parent))
                self.checkpoint(step).rename(aside / str(step))
                shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """A folder to fill that then becomes `path`, which is not there or is empty."""
    if not path.is_dir():
        with written_beside(path) as beside:
            yield beside
        return
    # It may be where a disk is mounted, or a link: it stays, and is filled. The last name makes it a run.
    beside = Path(tempfile.mkdtemp(prefix=".run.", suffix=".part", dir=path))
    try:
        yield beside
        for entry in sorted(beside.iterdir(), key=lambda entry: entry.name == run_folder.RUN_FILE):
            entry.rename(path / entry.name)
    finally:
        shutil.rmtree(beside)


def _step_of(line: str) -> float:
    """The step of a line of the log; that of a line which was cut off is past any other."""
    try:
        return json.loads(line)["step"]
    except (json.JSONDecodeError, KeyError, TypeError):
        return float("inf")


def _set_float32(config_file: Path) -> None:
    """Weights are kept in float32 whatever they are computed with: who loads them chooses for himself."""
    config = presets.read_json(config_file)
    config["config"]["dtype"] = "float32"
    presets.write_json(config_file, config)
