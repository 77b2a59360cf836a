"""Where the command `keras-elmo` starts.

TensorFlow writes several lines of its own to standard error while it is imported, and `import keras_elmo` imports
it. They are held back here, outside of the package, and shown only if the import fails.
"""

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


def main() -> None:
    """Runs the command line."""
    # Behind the import, this alone keeps TensorFlow's C++ side quiet; whoever set it knows better.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if sys.stderr is None:  # closed by `2>&-`
        sys.stderr = open(os.devnull, "w")
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        # The import takes seconds, and an exception that hits it anywhere would come out as anything.
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    try:
        with _standard_error_held_back():
            from keras_elmo.cli import run
    except (ModuleNotFoundError, ValueError) as error:
        # What is missing is most often the backend that was asked for.
        backend = os.environ.get("KERAS_BACKEND", "")
        asked = f" KERAS_BACKEND is {backend!r}." if backend else ""
        print(
            f"keras-elmo: cannot start: {' '.join(str(error).split())}.{asked} "
            "`python -c 'import keras_elmo'` tells more.",
            file=sys.stderr,
        )
        sys.exit(2)
    if interruptible:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


@contextmanager
def _standard_error_held_back() -> Iterator[None]:
    """Keeps what is written to standard error, by C++ code too; shows it if the block fails unforeseen."""
    sys.stderr.flush()
    real = os.dup(2)
    with tempfile.TemporaryFile() as held_back:
        os.dup2(held_back.fileno(), 2)
        try:
            yield
        except (ModuleNotFoundError, ValueError):
            raise
        except BaseException:
            held_back.seek(0)
            os.write(real, held_back.read())
            raise
        finally:
            sys.stderr.flush()
            os.dup2(real, 2)
            os.close(real)


if __name__ == "__main__":
    main()
