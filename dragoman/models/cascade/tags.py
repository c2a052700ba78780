"""How a text model of CTranslate2 is told the languages: NLLB-200, M2M-100, OPUS-MT (Marian)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from dragoman.errors import DragomanError
from dragoman.text.model_languages import M2M, NLLB, PAIR, our_code

OPUS = re.compile(r">>([a-z]{2,3})(?:_[A-Za-z]+)?<<")  # >>deu<<, of the target, before the source
# Groups of languages (ISO 639-5) that such names have in place of one; of which, nobody says.
GROUPS = {
    *("aav", "afa", "alv", "bat", "bnt", "cel", "dra", "fiu", "gem", "gmq", "gmw", "iir", "inc"),
    *("ine", "itc", "map", "mul", "nic", "roa", "sem", "sla", "trk", "zle", "zls", "zlw"),
}
SHOWN = 12  # languages that an error names


@dataclass(frozen=True)
class Tags:
    """The tokens for languages, by our codes and by the model's own; none: it knows one pair."""

    tokens: dict[str, str] = field(default_factory=dict)
    both: bool = False  # whether the source's language is told as well
    pair: tuple[str, str] | None = None  # the only one, as far as the name tells

    @classmethod
    def of(cls, vocabulary: Sequence[str], name: str) -> Tags:
        """What the vocabulary has, and what the model's name says."""
        for form, both in ((NLLB, True), (M2M, True), (OPUS, False)):
            found = {token: match[1] for token in vocabulary if (match := form.fullmatch(token))}
            if found:
                return cls(_by_code(found), both)
        match = PAIR.search(name)
        if match is None or GROUPS.intersection(match.groups()):
            return cls()
        return cls(pair=(our_code(match[1]), our_code(match[2])))

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes of the languages that it can write; none: it does not say."""
        if self.pair:
            return (self.pair[1],)
        return tuple(dict.fromkeys(map(our_code, self.tokens)))

    def told(self, name: str, source: str, target: str) -> tuple[list[str], list[str]]:
        """The tokens before the source and before the target; raises if a language is unknown."""
        if self.pair and (our_code(source), our_code(target)) != self.pair:
            raise DragomanError(
                f"Model '{name}' translates from '{self.pair[0]}' into '{self.pair[1]}', "
                f"not from '{source}' into '{target}'."
            )
        if not self.tokens:
            return [], []
        if not self.both:
            return [self._token(name, target)], []
        return [self._token(name, source)], [self._token(name, target)]

    def _token(self, name: str, language: str) -> str:
        token = self.tokens.get(language) or self.tokens.get(our_code(language))
        if token is None:
            known = self.languages
            more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
            raise DragomanError(
                f"Model '{name}' does not know the language '{language}'; "
                f"it knows {', '.join(known[:SHOWN])}{more}."
            )
        return token


def _by_code(tokens: dict[str, str]) -> dict[str, str]:
    """By our codes and by the model's own; of several scripts of a language, the first is ours."""
    named: dict[str, str] = {}
    for token, own in tokens.items():
        named.setdefault(own, token)
    for token, own in tokens.items():
        named.setdefault(our_code(own), token)
    return named
