"""Where the command `keras-elmo` starts.

TensorFlow writes several lines of its own to standard error while it is imported, and
`import keras_elmo` imports it. They are held back here, outside of the package, and shown only if
the import fails.
"""

import os
import sys
import tempfile


def main() -> None:
    """Runs the command line."""
    # Behind the import, this alone keeps TensorFlow's C++ side quiet; whoever set it knows better.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.stderr.flush()
    real = os.dup(2)
    with tempfile.TemporaryFile() as held_back:
        os.dup2(held_back.fileno(), 2)
        try:
            from keras_elmo.cli import run
        except BaseException:
            os.dup2(real, 2)
            held_back.seek(0)
            os.write(2, held_back.read())
            raise
        finally:
            os.dup2(real, 2)
            os.close(real)
    run()


if __name__ == "__main__":
    main()
