"""Text as a recogniser in mid-sentence hands it on: without case or marks, with slips, cut off.

A translator that stands behind a recogniser reads such text; trained on clean sentences alone it
takes a missing full stop for another sentence, and finishes sentences that nobody has finished.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.text.languages import written_without_spaces
from dragoman.text.plain import plain
from dragoman.text.sentences import without_comma
from dragoman.text.words import join_words, split_words

FILLERS = ("uh", "um", "er", "well", "so", "you know")
SLIPS = 0.3  # share of heard texts in which somebody stumbles or the recogniser does
FEWEST = 4  # words that a text must have to be cut off
BEHIND = 1  # words that the translation of a cut-off text stays behind its share


@dataclass(frozen=True)
class Hearing:
    """Which shares of some texts are changed; all chance comes from the seed and the row."""

    source: str = "en"  # the language that is heard
    heard: float = 0.0
    cut: float = 0.0
    seed: int = 1

    def change(self, number: int, texts: dict[str, str]) -> dict[str, str]:
        """The texts of a row as they are learned from."""
        if not (self.heard or self.cut):
            return texts
        chance = random.Random(f"{self.seed} {number}")
        heard, cut = chance.random() < self.heard, chance.random() < self.cut
        if cut:
            texts = cut_off(texts, self.source, chance)
        if heard:
            texts = texts | {self.source: as_heard(texts[self.source], chance, self.source)}
        return texts


def words_in(text: str, language: str) -> list[str]:
    """What a text is cut between: its words, or its characters where there are no spaces."""
    return split_words(text, language) if written_without_spaces(language) else text.split()


def together(words: Sequence[str], language: str) -> str:
    """The other way round."""
    return join_words(words, language) if written_without_spaces(language) else " ".join(words)


def as_heard(text: str, chance: random.Random, language: str = "en") -> str:
    """As a recogniser writes it: lower case, no marks, or both; sometimes with a slip."""
    way = chance.choice(("plain", "plain", "lower", "unmarked", "unended"))
    words = words_in(plain(text) if way == "plain" else text, language)
    if way == "lower":
        words = [word.lower() for word in words]
    elif way == "unmarked":
        words = [kept for word in words if (kept := word.strip('.,;:!?"()。、，！？「」'))]
    elif way == "unended" and words:
        words[-1] = words[-1].rstrip(".!?。！？")
    if chance.random() < SLIPS:
        words = slip(words, chance)
    return together([word for word in words if word], language) or text


def slip(words: list[str], chance: random.Random) -> list[str]:
    """A filler, a word said twice, or a short word that was not heard."""
    if not words:
        return words
    place = chance.randrange(len(words))
    kind = chance.choice(("filler", "twice", "missed"))
    if kind == "filler":
        return [*words[:place], chance.choice(FILLERS), *words[place:]]
    if kind == "twice":
        return [*words[: place + 1], *words[place:]]
    if len(words[place]) <= 3 and len(words) > 2:
        return [*words[:place], *words[place + 1 :]]
    return words


def words_heard(count: int, chance: random.Random) -> int:
    """How far a speaker has come in a sentence of so many words; a short one is not cut off."""
    return max(1, round(chance.uniform(0.15, 0.95) * count)) if count >= FEWEST else count


def cut_off(texts: dict[str, str], source: str, chance: random.Random) -> dict[str, str]:
    """A sentence in which the speaker has come so far, and what can be said of it by then.

    Where exactly the translation stands is not known without an alignment: it has the same share
    of its words, less one, so that it rather waits than guesses.
    """
    words = {code: words_in(text, code) for code, text in texts.items()}
    if min(map(len, words.values())) < FEWEST:
        return texts
    heard = words_heard(len(words[source]), chance)
    share = heard / len(words[source])
    if share == 1:
        return texts

    def kept(code: str) -> int:
        return heard if code == source else max(1, int(share * len(words[code])) - BEHIND)

    said = {code: together(one[: kept(code)], code) for code, one in words.items()}
    return {code: without_comma(text) for code, text in said.items()}
