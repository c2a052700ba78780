"""From the tokens that a decoder made to a draft: as far as they can be trusted, in words."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dragoman.models.base import Draft
from dragoman.models.guard import trusted
from dragoman.models.search import Found
from dragoman.models.window import Window
from dragoman.models.words import MARKS, without_stop


@dataclass(frozen=True, slots=True)
class Span:
    """The sound that a draft is about, as frames of attention; they begin at `start_ms`."""

    start_ms: float
    frames: int
    frame_ms: float

    def attention(self, found: Found, tokens: int) -> NDArray[np.float32]:
        """Where the first tokens looked: [tokens, frames]. Silence that came since was not seen."""
        looks = np.zeros((tokens, self.frames), np.float32)
        for row, look in enumerate(found.looks[:tokens]):
            seen = min(self.frames, len(look))
            looks[row, :seen] = look[:seen]
        return looks


@dataclass(frozen=True, slots=True)
class Ending:
    """How the end of a draft is treated."""

    final: bool  # the utterance is over
    late_stop: bool = True  # a full stop waits until something follows,
    rested: bool = False  # or until the pause is so long that the sentence was over


def finished(window: Window, found: Found, span: Span, ending: Ending, *, looks: bool) -> Draft:
    """A draft of all that is not committed; `looks`: its tokens look at moments."""
    keep = trusted(window.said, found)
    ended = found.ended and keep == len(found.tokens)
    stop = 0
    if ended and not ending.final and ending.late_stop:
        stop = keep - without_stop(window.units, found.tokens)
        if not ending.rested:
            keep, stop = keep - stop, 0
    new = Draft(
        tokens=found.tokens[:keep],
        log_probs=found.log_probs[:keep],
        ended=ended,
        silence=found.silence,
        attention=span.attention(found, keep) if looks else None,
        frame_ms=span.frame_ms,
        start_ms=span.start_ms if looks else span.start_ms + span.frames * span.frame_ms,
    )
    return _stop_apart(_with_settled(window, new, whole=ended or ending.final), stop)


def nothing(window: Window, span: Span) -> Draft:
    """The draft of silence."""
    looks = np.zeros((0, span.frames), np.float32)
    new = Draft((), ended=True, silence=1.0, attention=looks)
    new = replace(new, frame_ms=span.frame_ms, start_ms=span.start_ms)
    return _with_settled(window, new, whole=True)


def prolonged(draft: Draft, span: Span) -> Draft:
    """The same draft after more silence, which was not looked at."""
    if draft.attention is None:
        return draft
    more = max(0, span.frames - draft.attention.shape[1])
    return replace(draft, attention=np.pad(draft.attention, ((0, 0), (0, more))))


def _stop_apart(draft: Draft, stop: int) -> Draft:
    """With the full stop, the last `stop` tokens, as a word of its own: the word before it is the
    one that earlier drafts had, and does not have to wait."""
    before = draft.ends[-2] if len(draft.ends) > 1 else 0
    end = len(draft.tokens) - stop
    if not stop or end <= before:
        return draft
    word = draft.words[-1]
    bare = word.rstrip("".join(MARKS))
    return replace(
        draft,
        words=(*draft.words[:-1], bare, word.removeprefix(bare)),
        ends=(*draft.ends[:-1], end, len(draft.tokens)),
    )


def _with_settled(window: Window, new: Draft, *, whole: bool) -> Draft:
    """What was drafted of sound that is gone comes first; all of it looks at the beginning."""
    settled = window.settled
    tokens = settled.tokens + new.tokens
    grouped = window.words(tokens, ended=whole)
    attention = new.attention
    if attention is not None:
        looks = np.zeros((len(settled.tokens), attention.shape[1]), np.float32)
        looks[:, :1] = 1.0
        attention = np.concatenate([looks, attention])
    return replace(
        new,
        tokens=tokens,
        words=grouped.words,
        ends=grouped.ends,
        tail=grouped.tail,
        log_probs=settled.log_probs + new.log_probs,
        attention=attention,
    )
