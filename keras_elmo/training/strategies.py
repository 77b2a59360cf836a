"""Which devices train: one, those of one machine, or those of several."""

import contextlib
import functools
import json
import os
import shutil
import signal
import threading
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

STRATEGIES = ("single", "mirrored", "multiworker")

_HOW = (
    '{"cluster": {"worker": ["host1:port", "host2:port"]}, "task": {"type": "worker", "index": 0}}, '
    "with an index of its own for each process"
)


def make_strategy(name: str) -> tf.distribute.Strategy:
    """Makes the strategy of a name, before anything else is computed.

    Args:
        name: "single", one device; "mirrored", all GPUs of this machine, or its logical CPUs if there are none;
            "multiworker", the devices of several processes that were started alike. These find each other by the
            environment variable `TF_CONFIG` or by Slurm's, and each waits for all others.

    Returns:
        The strategy. Of "single" it is the one in force, TensorFlow's default.

    Raises:
        ValueError: If there is no such strategy, or the environment describes no cluster with this process in it.

    Example:
        >>> make_strategy("single").num_replicas_in_sync
        1
    """
    if name == "single":
        return tf.distribute.get_strategy()
    if name == "mirrored":
        return _mirrored()
    if name == "multiworker":
        cluster = _cluster()
        with _ended_by_interrupt():
            return tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=cluster)
    raise ValueError(f"`strategy` must be one of {', '.join(STRATEGIES)}. Received: {name}")


@functools.cache
def _mirrored() -> tf.distribute.Strategy:
    # One for the process: two would number their messages between devices alike, and take each other's.
    return tf.distribute.MirroredStrategy()


@contextlib.contextmanager
def _ended_by_interrupt() -> Iterator[None]:
    """Lets Ctrl-C end the process while TensorFlow waits, when Python's handler gets no turn.

    SIGTERM TensorFlow keeps to itself meanwhile.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _cluster() -> Any:
    if "TF_CONFIG" in os.environ:
        _check_tf_config(os.environ["TF_CONFIG"])
        return tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if "SLURM_PROCID" in os.environ:
        return _slurm_cluster()
    raise ValueError(
        "The strategy `multiworker` needs a cluster: in the environment variable TF_CONFIG, "
        f"{_HOW}; or Slurm's variables, which `srun` sets. There is neither."
    )


def _check_tf_config(text: str) -> None:
    """TensorFlow would wait for ever, or take a task that is not there for another one."""
    try:
        config = json.loads(text)
        cluster, task = config["cluster"], config["task"]
        kind, index = task["type"], int(task["index"])
        is_right = set(cluster) <= {"chief", "worker"} and 0 <= index < len(cluster[kind])
    except (ValueError, KeyError, TypeError):
        is_right = False
    if not is_right:
        raise ValueError(f"TF_CONFIG must be JSON as {_HOW}. Received: TF_CONFIG={text!r}")


def _slurm_cluster() -> Any:
    # TensorFlow's resolver shares out GPUs, and fails where there are none: there it shares out nothing.
    no_gpus = {} if shutil.which("nvidia-smi") else {"gpus_per_node": 4096, "gpus_per_task": 1}
    try:
        resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
            **no_gpus, auto_set_gpu=not no_gpus
        )
        resolver.cluster_spec()
    except (RuntimeError, ValueError, KeyError) as error:
        raise ValueError(
            f"Slurm's environment variables must describe the job's tasks, as `srun` sets them ({error})."
        ) from error
    return resolver
