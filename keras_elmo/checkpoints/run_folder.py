"""The folder of a pre-training run, as far as others need to know it: where its models are.

Each checkpoint is a preset folder with the state of training beside the model; `keras_elmo.training` writes them.
"""

from pathlib import Path

from keras_elmo import presets

RUN_FILE = "run.json"
CHECKPOINTS_FOLDER = "checkpoints"
PROGRESS_FILE = "progress.json"


def recognizes(folder: Path) -> bool:
    """Whether the folder is that of a run."""
    return (folder / RUN_FILE).is_file() and (folder / CHECKPOINTS_FOLDER).is_dir()


def checkpoint_folder(folder: Path, step: int) -> Path:
    """Where the checkpoint of a step is."""
    return folder / CHECKPOINTS_FOLDER / str(step)


def checkpoint_steps(folder: Path) -> list[int]:
    """The steps of which there is a whole checkpoint, rising."""
    return sorted(
        int(entry.name)
        for entry in (folder / CHECKPOINTS_FOLDER).iterdir()
        if entry.name.isascii()
        and entry.name.isdigit()
        and presets.is_preset_folder(entry)
        and (entry / PROGRESS_FILE).is_file()
    )


def best_checkpoint(folder: Path) -> Path:
    """The folder of the best checkpoint by validation; of the last one, if there was no validation.

    Raises:
        ValueError: If there is no checkpoint, or the last one's progress is damaged.
    """
    steps = checkpoint_steps(folder)
    if not steps:
        raise ValueError(f"The run {folder} has no checkpoint yet.")
    last = checkpoint_folder(folder, steps[-1])
    best = presets.read_json(last / PROGRESS_FILE).get("best")
    step = best.get("step") if isinstance(best, dict) else None
    return checkpoint_folder(folder, step) if step in steps else last
