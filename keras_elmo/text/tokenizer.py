"""Tokenizer: sentences to tokens, in the TensorFlow graph: strings in, ragged tokens out."""

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

# How the word cut works: regular expressions put a NUL byte behind every token, so that "It's 5%."
# becomes "It\0's\0 5\0%\0.\0", which is then split at the NUL bytes. Before that, white space and
# NUL bytes of the text itself become as many plain spaces: nothing changes its length, and offsets
# are running sums of lengths. The expressions are RE2's, which takes linear time but has no
# look-around: what depends on the text after a token is put right in a second pass, in which the
# NUL bytes are the anchors. TensorFlow's own operations do it all, without tables or assets.
# The rules are the conventions of the corpus that the bundled models were trained on.
_CUT = "\0"

# NUL and Unicode's White_Space characters, by their length in bytes.
_SPACES = (
    r"[\x00\t-\r]",
    r"[\x{85}\x{A0}]",
    r"[\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}]",
)

# Han and kana with the signs that Unicode shares out between them; half-width voice marks.
_HAN_KANA = r"\p{Han}\p{Hiragana}\p{Katakana}\x{3006}\x{30FC}\x{FF70}"
_VOICE_MARKS = r"\x{FF9E}\x{FF9F}"
# Letters, marks and numbers of all other scripts, and the invisible joiners inside words: all but
# the rest, because RE2 can only subtract. Each use makes the automaton bigger, and one too big for
# RE2's cache is 30 times slower.
_REST = (
    r"\pP\pS\pZ\p{Cc}\p{Co}\p{Cs}\x{200B}\x{200E}\x{200F}\x{202A}-\x{202E}\x{2061}-\x{206F}\x{FEFF}"
    r"\x{FFF9}-\x{FFFB}\x{E0001}-\x{E007F}"
)
_LETTER = rf"[^{_REST}{_HAN_KANA}{_VOICE_MARKS}]"
_HYPHENATED = rf"(?:[-\x{{2010}}\x{{2011}}]{_LETTER}+)*"
# Between the dots of a domain name.
_LATIN = r"[0-9A-Za-z\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{24F}]"
_LABEL = rf"{_LATIN}+(?:-{_LATIN}+)*"
# What belongs to the symbol before it: marks, skin tones, tags of flags.
_SYMBOL_PARTS = r"[\pM\x{1F3FB}-\x{1F3FF}\x{E0020}-\x{E007F}]*"

_ABBREVIATIONS = (
    "Adm|Aug|Ave|Blvd|Bros|Capt|Co|Col|Corp|Cpl|Dec|Dr|Esq|Feb|Figs?|Ft|Gen|Gov|Hon|Inc|Jan|Jr|Lt|"
    "Ltd|Maj|Messrs|Mme|Mrs?|Ms|Mt|Nos?|Nov|Oct|Pres|Prof|Rep|Rev|Sen|Sept|Sgt|Sr|Ste?|Vol|al|"
    "approx|cf|etc|vs"
)

# One token and the space before it. The first alternative that fits wins; the last one fits any
# byte, so that nothing is left over.
_TOKENS = (
    # Addresses and names of the net. Where they can fail late they are bounded, or hold no
    # more than the word rules below take in a few steps: that keeps time linear.
    r"(?i:https?://|ftp://|www\.)[!#-;=?-~]*[#-&*+/-9=@A-Z\\^-z~-]",
    r"[0-9A-Za-z][0-9A-Za-z._%+-]{0,63}@[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)+",
    rf"{_LABEL}(?:\.{_LABEL}){{0,4}}\.(?:com|edu|gov|mil|net|org)\b",
    # 's and the like behind a token that is no word; 'em
    r"['\x{2019}](?i:bout|cause|d|em|ll|m|re|s|til|tis|twas|ve)\b",
    # U.S.  p.m.  U.S.-led; 1,234.5  3:30  9/11  21st  20-year-old; well-known  o'clock
    rf"(?:(?:[A-Za-z]\.){{2,}}|\p{{Nd}}+(?:[.,:/]\p{{Nd}}+)*{_LETTER}*){_HYPHENATED}",
    rf"(?:{_ABBREVIATIONS}|[A-Z])\.",
    rf"{_LETTER}+{_HYPHENATED}(?:['\x{{2019}}]{_LETTER}+)*",
    r"--+|\x{2014}\x{2014}+|\.\.+",
    # One Chinese or Japanese character; a flag; any other character with what belongs to it.
    rf"[{_HAN_KANA}][\pM{_VOICE_MARKS}]*",
    r"[\x{1F1E6}-\x{1F1FF}]{2}",
    rf"[^ ]{_SYMBOL_PARTS}(?:\x{{200D}}\pS{_SYMBOL_PARTS})*",
    # A byte that is not UTF-8; the space at the end of the text.
    r"\C",
)
_TOKEN = f" *(?:{'|'.join(_TOKENS)})"

# The period of an abbreviation or initial comes off at the end of the text, before most
# punctuation, and where an initial has no capital or "No." no number after it: World War I .
_BEGIN = r"(?:^|[ \x00])"
_PERIOD = "|".join(
    (
        rf"({_BEGIN}[A-Za-z]+)\.(?:\x00(\.+\x00)|(\x00(?:[^ ,:;)]|[ \x00]*$)))",
        rf"({_BEGIN}[A-Z])\.(\x00(?:[,:;)]| +[^ A-Z]))",
        rf"({_BEGIN}No)\.(\x00(?:[,:;)]| +[^ 0-9a-z]))",
        # Ph . D .
        r"(\.\x00[A-Z])\.(\x00)",
    )
)
_PERIOD_APART = rf"\1\4\6\8{_CUT}.\2\3\5\7\9"

# can not, do n't, it 's, I 'd 've
_CLITIC = r"n['\x{2019}]t|['\x{2019}](?:d|ll|m|re|s|ve)"
_CONTRACTION = rf"(?i:({_BEGIN}can)(not)|((?:{_CLITIC})?)({_CLITIC}))\x00"
_CONTRACTION_APART = rf"\1{_CUT}\2{_CUT}\3{_CUT}\4{_CUT}"


def tokenize(text: tf.Tensor | Sequence[str], tokenizer: str = "word") -> tf.RaggedTensor:
    """Cuts every sentence of a batch into tokens.

    `"word"` cuts English as the Penn Treebank does, but keeps quotes as they are: punctuation and
    clitics apart (`do n't`, `can not`, `it 's`), whole abbreviations (`Mr.`, `U.S.`), hyphenated
    words, numbers, `--` and `...`, addresses of the net; the last period of a sentence apart.
    Chinese characters and kana are tokens of their own, words of all other scripts stay whole, as
    do emoji with their joiners. Every Unicode `White_Space` character and NUL part tokens and are
    dropped; nothing else is, so a zero-width space is a token. A byte that is not UTF-8 is a token.

    `"whitespace"` is TF-Hub's ELMo: cut at the plain space and nowhere else. All other white space,
    NUL and bytes that are not UTF-8 stay inside tokens.

    It works in eager mode and in graphs, exports without assets, but not under XLA.

    Args:
        text: UTF-8 string tensor of shape (batch,), or strings. Without lone surrogates, which
            TensorFlow refuses: `tokenize_sentences` drops them.
        tokenizer: `"word"` or `"whitespace"`. Defaults to `"word"`.

    Returns:
        String `tf.RaggedTensor` of shape (batch, None). A sentence without tokens has an empty row.

    Raises:
        ValueError: If `tokenizer` is unknown, or `text` is not a string tensor of shape (batch,).

    Example:
        >>> tokenize(["It's Mr. Li, isn't it?", ""]).to_list()
        [[b'It', b"'s", b'Mr.', b'Li', b',', b'is', b"n't", b'it', b'?'], []]
    """
    return tokenize_with_offsets(text, tokenizer)[0]


def tokenize_with_offsets(
    text: tf.Tensor | Sequence[str], tokenizer: str = "word"
) -> tuple[tf.RaggedTensor, tf.RaggedTensor, tf.RaggedTensor]:
    """Cuts every sentence of a batch into tokens and says where they stand.

    The bytes `text[start:end]` are the token. What lies between tokens is white space or NUL for
    `"word"`, plain spaces for `"whitespace"`. See `tokenize` for how the two cut.

    Args:
        text: UTF-8 string tensor of shape (batch,), or strings.
        tokenizer: `"word"` or `"whitespace"`. Defaults to `"word"`.

    Returns:
        `(tokens, starts, ends)`, `tf.RaggedTensor`s of shape (batch, None) with the same row
        lengths: the tokens as strings, their first byte and the byte behind their last as int64.

    Raises:
        ValueError: If `tokenizer` is unknown, or `text` is not a string tensor of shape (batch,).

    Example:
        >>> tokens, starts, ends = tokenize_with_offsets(["Don't  go."])
        >>> tokens.to_list(), starts.to_list(), ends.to_list()
        ([[b'Do', b"n't", b'go', b'.']], [[0, 2, 7, 9]], [[2, 5, 9, 10]])
    """
    check_tokenizer(tokenizer)
    is_empty_list = isinstance(text, list | tuple) and not text
    text = tf.constant([], tf.string) if is_empty_list else tf.convert_to_tensor(text)
    _check_text(text, "(batch,)", [[None]])
    text = tf.ensure_shape(text, [None])
    if tokenizer == "whitespace":
        pieces = tf.strings.split(text, " ")
        tokens, between = pieces.values, 1
    else:
        pieces = tf.strings.split(_mark_words(text), _CUT)
        # A piece is the space before a token and the token, which holds no white space itself.
        tokens, between = tf.strings.strip(pieces.values), 0

    piece_lengths = tf.cast(tf.strings.length(pieces.values), tf.int64) + between
    lengths = tf.cast(tf.strings.length(tokens), tf.int64)
    ends = tf.cumsum(piece_lengths) - between
    # Lengths were summed over the whole batch: take off what lies before each sentence.
    before = tf.concat([[0], ends + between], axis=0)
    ends -= tf.repeat(tf.gather(before, pieces.row_splits[:-1]), pieces.row_lengths())

    is_token = pieces.with_values(lengths > 0)
    tokens, starts, ends = (
        tf.ragged.boolean_mask(pieces.with_values(values), is_token)
        for values in (tokens, ends - lengths, ends)
    )
    return tokens, starts, ends


def tokenize_sentences(sentences: Sequence[str], tokenizer: str = "word") -> list[list[str]]:
    """Cuts Python strings into tokens: `tokenize` for callers without tensors.

    Lone surrogates, which UTF-8 cannot write, are dropped before.

    Args:
        sentences: Strings, one for each sentence.
        tokenizer: `"word"` or `"whitespace"`. Defaults to `"word"`. See `tokenize`.

    Returns:
        The tokens of every sentence.

    Raises:
        ValueError: If `tokenizer` is unknown, or `sentences` is one string or holds anything but
            strings.

    Example:
        >>> tokenize_sentences(["他买了iPhone 15。", "Thanks!"])
        [['他', '买', '了', 'iPhone', '15', '。'], ['Thanks', '!']]
    """
    if isinstance(sentences, str) or not all(isinstance(text, str) for text in sentences):
        raise ValueError(
            "`sentences` must be a sequence of strings. "
            f"Received: {sentences!r:.80}; put a single sentence into a list."
        )
    rows = _compiled(check_tokenizer(tokenizer))
    if not sentences:
        return []
    tokens, ends = rows(tf.constant([text.encode("utf-8", "ignore") for text in sentences]))
    decoded = [token.decode("utf-8") for token in tokens.numpy()]
    starts = ends.numpy().tolist()
    return [decoded[start:end] for start, end in itertools.pairwise(starts)]


@functools.cache
def _compiled(tokenizer: str) -> Any:
    """All tokens of sentences in one row, and where each sentence begins and the last one ends."""

    @tf.function(input_signature=[tf.TensorSpec((None,), tf.string)])
    def cut(text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        rows = tokenize(text, tokenizer)
        return rows.values, rows.row_splits

    return cut


@keras.saving.register_keras_serializable(package="keras_elmo")
class Tokenizer(keras.layers.Layer):
    """Cuts sentences into tokens: strings in, a dense batch of tokens and their number out.

    The layer form of `tokenize`, for models that take text. It runs on the TensorFlow backend only
    and cannot be compiled by XLA.

    Args:
        tokenizer: `"word"` or `"whitespace"`. Defaults to `"word"`. See `tokenize`.
        **kwargs: Of `keras.layers.Layer`: `name`, `dtype`, `trainable`.

    Call arguments:
        text: UTF-8 string tensor of shape (batch,) or (batch, 1).

    Output shape:
        A tuple `(tokens, sequence_len)`. `tokens`: (batch, num_tokens), string, padded with `""` to
        the longest sentence of the batch. `sequence_len`: (batch,), int32, the number of tokens.

    Masking:
        None; `sequence_len` says what is padding.

    Raises:
        ValueError: If `tokenizer` is unknown; in a call, if `text` is not a string tensor of shape
            (batch,) or (batch, 1).

    Example:
        >>> tokens, sequence_len = Tokenizer()(tf.constant(["I can't.", "No"]))
        >>> tokens.numpy().tolist(), sequence_len.numpy().tolist()
        ([[b'I', b'ca', b"n't", b'.'], [b'No', b'', b'', b'']], [4, 1])
    """

    def __init__(self, tokenizer: str = "word", **kwargs: Any):
        super().__init__(**kwargs)
        self.tokenizer = check_tokenizer(tokenizer)
        self.supports_jit = False

    def call(self, text: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        _check_text(text, "(batch,) or (batch, 1)", [[None], [None, 1]])
        rows = tokenize(tf.reshape(text, [-1]), self.tokenizer)
        tokens = tf.ensure_shape(rows.to_tensor(), [text.shape[0], None])
        sequence_len = tf.cast(rows.row_lengths(), tf.int32)
        return tokens, tf.ensure_shape(sequence_len, [text.shape[0]])

    def compute_output_spec(
        self, text: keras.KerasTensor
    ) -> tuple[keras.KerasTensor, keras.KerasTensor]:
        _check_text(text, "(batch,) or (batch, 1)", [[None], [None, 1]])
        batch = text.shape[0]
        return (
            keras.KerasTensor((batch, None), dtype="string"),
            keras.KerasTensor((batch,), dtype="int32"),
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "tokenizer": self.tokenizer}


def check_tokenizer(tokenizer: str) -> str:
    """Returns `tokenizer` if there is one of that name, else raises a ValueError."""
    if tokenizer not in ("word", "whitespace"):
        raise ValueError(
            f'`tokenizer` must be "word" or "whitespace". Received: tokenizer={tokenizer!r}'
        )
    return tokenizer


def _check_text(text: Any, expected: str, shapes: list[list[int | None]]) -> None:
    """Refuses wrong types and shapes, of tensors as of Keras' symbolic ones."""
    shape, dtype = tf.TensorShape(text.shape), tf.as_dtype(text.dtype)
    if dtype != tf.string or not any(shape.is_compatible_with(allowed) for allowed in shapes):
        raise ValueError(
            f"`text` must be a string tensor of shape {expected}. "
            f"Received: shape={shape}, dtype={dtype.name}; "
            "give one string for each sentence, and put a single sentence into a batch of one."
        )


def _mark_words(text: tf.Tensor) -> tf.Tensor:
    """Puts `_CUT` behind every word token, and turns all white space into plain spaces."""
    for length, characters in enumerate(_SPACES, start=1):
        text = tf.strings.regex_replace(text, characters, " " * length)
    text = tf.strings.regex_replace(text, _TOKEN, rf"\0{_CUT}")
    text = tf.strings.regex_replace(text, _PERIOD, _PERIOD_APART)
    return tf.strings.regex_replace(text, _CONTRACTION, _CONTRACTION_APART)
