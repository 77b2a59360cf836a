"""Scores of answers to questions: exact match and F1."""

import collections
import re
import string
import unicodedata
from collections.abc import Sequence

_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_WORD = re.compile(rf"[{_HAN}]|[^\s{_HAN}]+")
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")


def answer_scores(predicted: Sequence[str], answers: Sequence[Sequence[str]]) -> dict[str, float]:
    """The mean exact match and F1 of answers, each from 0 to 1, as SQuAD measures them.

    Two answers match exactly if their `answer_words` are the same; F1 counts the words that they share. What is
    predicted is compared with every right answer, and the best counts.

    Reference: Rajpurkar et al. (2016), "SQuAD", section 6.1 (https://arxiv.org/abs/1606.05250); Cui et al. (2019), "A
    Span-Extraction Dataset for Chinese Machine Reading Comprehension", section 4 (https://arxiv.org/abs/1810.07366).

    Args:
        predicted: An answer to each question; "" if there is none.
        answers: The right answers to each question; none if it has no answer.

    Example:
        >>> scores = answer_scores(["The river!", "", "北京"], [["a river", "the bank"], [], ["北京市"]])
        >>> {name: round(score, 2) for name, score in scores.items()}
        {'exact_match': 0.67, 'f1': 0.93}
    """
    exact, shared = [], []
    for text, right in zip(predicted, answers, strict=True):
        words = answer_words(text)
        possible = [answer_words(answer) for answer in right] or [[]]
        exact.append(float(words in possible))
        shared.append(max(_f1(words, answer) for answer in possible))
    return {
        "exact_match": sum(exact) / max(len(exact), 1),
        "f1": sum(shared) / max(len(shared), 1),
    }


def answer_words(text: str) -> list[str]:
    """What counts of an answer: its words in lower case, without ASCII punctuation and the articles a, an and the.

    In a text with Chinese characters each of these is a word, since no spaces part them, and all of Unicode's
    punctuation is left out.

    Example:
        >>> answer_words("The U.S. Army"), answer_words("“北京”，2008年")
        (['us', 'army'], ['北', '京', '2008', '年'])
    """
    has_han = re.search(f"[{_HAN}]", text) is not None
    kept = "".join(
        character
        for character in text.lower()
        if character not in string.punctuation
        and not (has_han and unicodedata.category(character).startswith("P"))
    )
    return _WORD.findall(_ARTICLE.sub(" ", kept))


def _f1(words: list[str], answer: list[str]) -> float:
    if not words or not answer:
        return float(words == answer)
    num_shared = (collections.Counter(words) & collections.Counter(answer)).total()
    return 2 * num_shared / (len(words) + len(answer))
