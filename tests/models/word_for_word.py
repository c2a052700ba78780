"""A translator that tests know word for word."""

import numpy as np

from dragoman.models.cascade.translator import Sentence, Translation
from dragoman.models.exported.config import Languages
from dragoman.models.exported.pieces import Pieces

GERMAN = {
    **{"Red": "rot", "Green": "grün", "Blue": "blau", "Mr.": "Herr"},
    **{"See": "seh en", "Learn": "ler n en"},
}
STOP = "."


def translated(translator, words, said=(), guess=(), **more) -> Translation:
    """One sentence alone."""
    one = Sentence(tuple(words), said=tuple(said), guess=tuple(guess), **more)
    (made,) = translator.translate([one])
    return made


class WordForWord:
    """Translates sentence by sentence, each word by one token or more; remembers what it read."""

    speaks = ("de",)

    def __init__(self) -> None:
        spelled = ["", "", "", "", STOP]
        for german in GERMAN.values():
            first, *rest = german.split()
            spelled += [f"▁{first}", *rest]
        self.target = Pieces(tuple(spelled), "prefix")
        self.read: list[tuple[tuple[str, ...], bool]] = []
        self.guesses: list[tuple[int, ...]] = []

    def between(self, source, target):
        Languages("en", "de").refuse_others("words", source, target)
        return source or "en", target

    def words(self, tokens, *, ended, pair):
        return self.target.words(tokens, ended=ended)

    def translate(self, sentences) -> list[Translation]:
        return [self.translate_one(one) for one in sentences]

    def translate_one(self, sentence) -> Translation:
        words, said = sentence.words, sentence.said
        self.read.append((words, sentence.closed))
        self.guesses.append(sentence.guess)
        tokens, looks = [], []
        for place, word in enumerate(words):
            bare = word.strip()
            key = bare if bare in GERMAN else bare.removesuffix(STOP)
            pieces = [f"▁{GERMAN[key].split()[0]}", *GERMAN[key].split()[1:]]
            tokens += [self.target.names.index(piece) for piece in pieces]
            if key != bare:
                tokens.append(4)
            looks += [place] * (len(tokens) - len(looks))
        assert tuple(tokens[: len(said)]) == said
        rows = np.eye(len(words), dtype=np.float32)[looks[len(said) :]]
        rest = tuple(tokens[len(said) :])
        return Translation(rest, (-0.05,) * len(rest), rows.reshape(len(rest), len(words)), True)
