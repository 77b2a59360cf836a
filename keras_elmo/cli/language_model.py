"""`keras-elmo vocabulary`, `evaluate`, `score`, `substitutes`: the biLM as a language model."""

import math
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Column, Table

from keras_elmo import presets
from keras_elmo.checkpoints import language_model_of, load_checkpoint
from keras_elmo.cli.app import PLAIN, Json, Model, app, print_json
from keras_elmo.cli.progress import Bar
from keras_elmo.corpus import (
    build_vocabulary,
    count_words,
    counts_path,
    expand,
    read_sentences,
    save_counts,
)
from keras_elmo.files import written_beside
from keras_elmo.models import BidirectionalLanguageModel
from keras_elmo.models.bidirectional_language_model import Score, Substitute
from keras_elmo.text import tokenize_sentences
from keras_elmo.training import evaluate as evaluate_model
from keras_elmo.vocabulary import (
    BEGIN_OF_SENTENCE_TOKEN,
    END_OF_SENTENCE_TOKEN,
    UNKNOWN_TOKEN,
    Vocabulary,
)

LINES_TOGETHER = 256

Inputs = Annotated[
    list[str],
    typer.Argument(help="Text files, also .gz and .xz; - is standard input.", metavar="INPUT"),
]
_FORMATS = "tokens: a sentence a line, tokens parted by white space; plain: a sentence a line, tokenized here."
Format = Annotated[
    Literal["tokens", "plain"] | None,
    typer.Option(
        help=f"{_FORMATS} By default that of the model's training text, or tokens.",
        show_default=False,
    ),
]


@app.command()
def vocabulary(
    corpus: Annotated[
        list[str],
        typer.Argument(
            help="Text files or patterns like 'train-*.xz', also .gz and .xz; - is standard input.",
            metavar="CORPUS",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to make.", metavar="vocab.txt")
    ],
    max_size: Annotated[
        int | None,
        typer.Option(help="Words at most, three specials included.", min=4, metavar="N"),
    ] = None,
    min_count: Annotated[
        int, typer.Option(help="How often a word must occur.", min=1, metavar="N")
    ] = 1,
    format: Annotated[Literal["tokens", "plain"], typer.Option(help=_FORMATS)] = "tokens",
) -> None:
    """Count the words of a corpus and write the frequent ones, the most frequent first.

    <S>, </S> and <UNK> come first; the counts are written beside, to vocab.counts.tsv.
    """
    files = expand(corpus)
    with (
        written_beside(output) as beside,
        written_beside(counts_path(output)) as counts_beside,
        Bar() as bar,
    ):
        num_lines = num_words = 0
        bar.show("counting", 0, None, 0)

        def tokenize(lines: Sequence[str]) -> list[list[str]]:
            nonlocal num_lines, num_words
            is_plain = format == "plain"
            cut = tokenize_sentences(lines) if is_plain else [line.split() for line in lines]
            num_lines += len(cut)
            num_words += sum(map(len, cut))
            bar.show("counting", num_lines, None, num_words)
            return cut

        counts = count_words(files, "plain", tokenize)
        words, kept = build_vocabulary(counts, max_size, min_count)
        words.save(beside)
        save_counts(counts_beside, words, kept)
    num_distinct = len(counts.keys() - {BEGIN_OF_SENTENCE_TOKEN, END_OF_SENTENCE_TOKEN})
    covered = 1 - kept[words.unknown_id] / max(num_words, 1)
    print(
        f"Wrote {output}: {len(words):,} words with the three specials, and {counts_path(output).name}.\n"
        f"The corpus has {num_words:,} tokens in {num_lines:,} lines, {num_distinct:,} distinct words; "
        f"{covered:.2%} of the tokens are in the vocabulary.",
        file=sys.stderr,
    )


@app.command()
def evaluate(
    inputs: Inputs,
    model: Model = presets.DEFAULT_PRESET,
    format: Format = None,
    as_json: Json = False,
) -> None:
    """Measure the perplexity of a language model on text, forward and backward.

    Under the full softmax, each sentence alone; <UNK> and the ends of sentences are predicted, too.
    """
    with Bar() as bar:
        total = _count(inputs, bar)
        if total == 0:
            raise ValueError(
                f"There must be at least one line of text. Received: nothing in {', '.join(inputs)}"
            )
        language_model, metadata = _load(model)
        num_sentences = num_tokens = 0

        def on_batch(sentences: int, tokens: int) -> None:
            nonlocal num_sentences, num_tokens
            num_sentences += sentences
            num_tokens += tokens
            bar.show("evaluating", num_sentences, total, num_tokens)

        on_batch(0, 0)
        sentences = _sentences(inputs, format, metadata)
        result = evaluate_model(language_model, sentences, on_batch=on_batch)
    answer = {name: value for name, value in result._asdict().items() if name != "num_sentences"}
    if as_json:
        print_json(answer)
        return
    print(f"perplexity  {result.perplexity:,.2f}")
    print(f"forward     {result.forward_perplexity:,.2f}")
    print(f"backward    {result.backward_perplexity:,.2f}")
    print(
        f"{result.num_tokens:,} predictions in each direction, {result.num_sentences:,} sentences"
    )


@app.command()
def score(
    inputs: Inputs,
    model: Model = presets.DEFAULT_PRESET,
    format: Format = None,
    as_json: Json = False,
) -> None:
    """Print the log-probability of every token and sentence, forward and backward.

    Natural logarithms. A word that is not in the vocabulary is predicted as <UNK>.
    """
    scored: list[dict[str, Any]] = []
    # On a terminal the bar and the scores would write over each other.
    with Bar(hidden=not as_json and sys.stdout.isatty()) as bar:
        total = _count(inputs, bar)
        language_model, metadata = _load(model)
        sentences = iter(_sentences(inputs, format, metadata))
        number = num_words = 0
        bar.show("scoring", 0, total, 0)
        while block := list(islice(sentences, LINES_TOGETHER)):
            for tokens, found in zip(block, language_model.score(block), strict=True):
                number += 1
                num_words += len(tokens)
                if as_json:
                    scored.append(_scored(tokens, found, language_model.vocabulary))
                else:
                    _print_score(number, tokens, found, language_model.vocabulary)
            bar.show("scoring", number, total, num_words)
    if as_json:
        print_json({"sentences": scored})


@app.command()
def substitutes(
    sentence: Annotated[
        str,
        typer.Argument(
            help="A sentence, cut as the model's training text was.",
            metavar="SENTENCE",
        ),
    ],
    word: Annotated[
        str,
        typer.Option("--word", "-w", help="The word to replace; its first place.", metavar="W"),
    ],
    model: Model = presets.DEFAULT_PRESET,
    top: Annotated[int, typer.Option(help="How many.", min=1, metavar="N")] = 10,
    as_json: Json = False,
) -> None:
    """Suggest words for the place of a word in a sentence, by what stands before and behind it."""
    language_model, metadata = _load(model)
    [tokens] = tokenize_sentences([sentence], _tokenizer_of(metadata))
    if word not in tokens:
        raise ValueError(
            f"The word {_cut(word, 200)!r} is not in the sentence {_cut(sentence, 80)!r}, which was cut into "
            f"{_cut(' '.join(tokens), 80)!r}. Give a word of these, in the same upper and lower case."
        )
    position = tokens.index(word)
    found = language_model.substitutes(tokens, position, top)
    if as_json:
        print_json(
            {
                "tokens": tokens,
                "word": word,
                "position": position,
                "substitutes": [_rounded(substitute) for substitute in found],
            }
        )
        return
    columns = (Column(name, justify="right") for name in ("probability", "forward", "backward"))
    table = Table("word", *columns)
    for substitute in found:
        logs = (f"{value:.2f}" for value in (substitute.forward, substitute.backward))
        probability = f"{math.exp(substitute.log_probability):.2%}"
        table.add_row(_cut(substitute.word, 24), probability, *logs)
    console = Console(**PLAIN)
    before, after = (
        " ".join(_cut(token, 24) for token in part)
        for part in (tokens[:position], tokens[position + 1 :])
    )
    console.print(f"{before} [{_cut(word, 24)}] {after}".strip())
    console.print(table)


# --- files ---


def _count(inputs: list[str], bar: Bar) -> int | None:
    """Counts the lines, so that errors in the files come first; `None` for what cannot be read twice."""
    sentences = read_sentences(inputs)
    if not all(path != "-" and os.path.isfile(path) for path in inputs):
        return None
    bar.show("counting", 0, None, 0)
    return sum(1 for _ in sentences)


def _load(model: str) -> tuple[BidirectionalLanguageModel, dict[str, Any]]:
    """A language model, and what is known of it."""
    checkpoint = load_checkpoint(model)
    return language_model_of(checkpoint, model), checkpoint.metadata


def _sentences(
    inputs: list[str], format: str | None, metadata: dict[str, Any]
) -> Iterable[list[str]]:
    """The sentences of files, those of plain text cut as the model's training text was."""
    if (format or _format_of(metadata)) == "tokens":
        return read_sentences(inputs, "tokens")
    return _tokenized(read_sentences(inputs), _tokenizer_of(metadata))


def _format_of(metadata: dict[str, Any]) -> str:
    return metadata.get("text_format") or "tokens"


def _tokenizer_of(metadata: dict[str, Any]) -> str:
    return metadata.get("tokenizer") or "word"


def _tokenized(lines: Iterator[str], tokenizer: str) -> Iterator[list[str]]:
    while block := list(islice(lines, LINES_TOGETHER)):
        yield from tokenize_sentences(block, tokenizer)


# --- answers ---


def _scored(tokens: list[str], score: Score, vocabulary: Vocabulary) -> dict[str, Any]:
    """A sentence with its boundaries: every list has a place for each token, null where nothing is predicted."""
    forward, backward = ([round(float(x), 6) for x in values] for values in score)
    return {
        "tokens": [BEGIN_OF_SENTENCE_TOKEN, *tokens, END_OF_SENTENCE_TOKEN],
        "forward": [None, *forward],
        "backward": [*backward, None],
        "unknown": [k for k, token in enumerate(tokens, 1) if token not in vocabulary],
        "forward_log_probability": round(float(score.forward.sum(dtype="float64")), 6),
        "backward_log_probability": round(float(score.backward.sum(dtype="float64")), 6),
    }


def _print_score(number: int, tokens: list[str], score: Score, vocabulary: Vocabulary) -> None:
    answer = _scored(tokens, score, vocabulary)
    unknown = set(answer["unknown"])
    print(
        f"sentence {number}: forward {answer['forward_log_probability']:.3f}, "
        f"backward {answer['backward_log_probability']:.3f}"
    )
    for k, (token, *logs) in enumerate(
        zip(answer["tokens"], answer["forward"], answer["backward"], strict=True)
    ):
        numbers = ("" if log is None else f"{log:.3f}" for log in logs)
        note = f"  (as {UNKNOWN_TOKEN})" if k in unknown else ""
        print("".join(f"{number:>10}" for number in numbers), f" {token}{note}")


def _rounded(substitute: Substitute) -> dict[str, Any]:
    word, *logs = substitute
    names = substitute._fields[1:]
    return {"word": word} | {name: round(value, 6) for name, value in zip(names, logs, strict=True)}


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else text[: size - 1] + "…"
