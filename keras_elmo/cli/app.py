"""The command line's frame: the application, its common options, how it ends."""

import io
import json
import logging
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import keras_elmo

app = typer.Typer(
    name="keras-elmo",
    help="ELMo for Keras 3: contextual word vectors, from characters.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Model = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        help="A preset's name, or a folder, archive or file of weights (see `keras-elmo info`).",
        metavar="M",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object and nothing else.", metavar="")
]

Inputs = Annotated[
    list[str],
    typer.Argument(help="Text files, also .gz and .xz; - is standard input.", metavar="INPUT"),
]
TextFormat = Annotated[
    Literal["plain", "tokens", "conllu"],
    typer.Option(
        help="plain: a sentence a line, tokenized here; tokens: a sentence a line, tokens parted by white "
        "space; conllu: CoNLL-U."
    ),
]


def picture(help: str) -> Any:
    """The option that names a picture to draw."""
    return typer.Option(help=help, metavar="OUT.png")


# Words and paths are printed as they are, whatever brackets and colons they have.
PLAIN: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}


def run() -> None:
    """Runs the command; a user's mistake is one line on standard error and exit code 2, no traceback."""
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What the terminal cannot show is escaped. Standard error is so from the start.
        sys.stdout.reconfigure(errors="backslashreplace")
    warnings.showwarning = lambda message, *_: complain(f"note: {message}")
    try:
        code = app(standalone_mode=False)
        print(end="", flush=True)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "keras-elmo"
        complain(f"{error.format_message().rstrip('.')}. See `{command} -h`.")
        code = 2
    except BrokenPipeError:
        # The reader has left, as `| head` does: no more is to be written, not at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = 1
    except (ValueError, OSError, ModuleNotFoundError) as error:
        complain(_text_of(error))
        code = 2
    sys.exit(code)


def _text_of(error: Exception) -> str:
    """What an error says; the operating system's own without their numbers."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return str(error)


def complain(message: str) -> None:
    """Prints one line for a person to standard error."""
    print("keras-elmo:", *message.split(), file=sys.stderr)


def print_json(answer: dict[str, Any]) -> None:
    """Prints one JSON object, escaped where standard output has no such characters."""
    text = json.dumps(answer, ensure_ascii=False)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(answer)
    print(text)


def draw_if_asked(path: Path | None, draw: Callable[[Path], None], as_json: bool = False) -> None:
    """Draws a picture, if one is asked for, and says where it is; matplotlib's warnings become lines for a person."""
    if path is None:
        return
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        draw(path)
    for note in notes:
        complain(str(note.message))
    if not as_json:
        print(f"Picture: {path}", file=sys.stderr)


@app.callback(invoke_without_command=True)
def _global_options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and leave.", metavar="")
    ] = False,
) -> None:
    if version:
        print(keras_elmo.__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help(), end="")
        raise typer.Exit(2)
