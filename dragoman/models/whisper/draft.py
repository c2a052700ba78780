"""From the tokens that the decoder made to a draft: as far as they can be trusted, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dragoman.models.base import Draft
from dragoman.models.whisper.guard import cut_loop, invented
from dragoman.models.whisper.mel import FRAME_MS
from dragoman.models.whisper.search import Spoken
from dragoman.models.whisper.stream import WhisperStream
from dragoman.models.whisper.tokens import Vocabulary
from dragoman.text.languages import written_without_spaces

STATE_MS = 2 * FRAME_MS
STOPS = frozenset(".,!?;:…-–—。、！？，।؟")


def finished(
    vocabulary: Vocabulary, stream: WhisperStream, spoken: Spoken, *, final: bool
) -> Draft:
    """A draft of all that is not committed."""
    keep = 0 if invented(spoken) else cut_loop(stream.said, spoken.tokens)
    ended = spoken.ended and keep == len(spoken.tokens)
    stop = 0
    if ended and not final:
        stop = keep - _without_stop(vocabulary, spoken.tokens)
        if not stream.rested:
            keep, stop = keep - stop, 0
    heard = stream.frames // 2
    looks = np.zeros((keep, heard), np.float32)
    for row, look in enumerate(spoken.looks[:keep]):
        seen = min(heard, len(look))  # silence that came since was not looked at
        looks[row, :seen] = look[:seen]
    new = Draft(
        tokens=spoken.tokens[:keep],
        log_probs=spoken.log_probs[:keep],
        ended=ended,
        silence=spoken.silence,
        attention=looks,
        frame_ms=STATE_MS,
    )
    return _stop_apart(_with_settled(vocabulary, stream, new, whole=ended or final), stop)


def nothing(vocabulary: Vocabulary, stream: WhisperStream) -> Draft:
    """The draft of silence."""
    looks = np.zeros((0, stream.frames // 2), np.float32)
    new = Draft(ended=True, silence=1.0, attention=looks, frame_ms=STATE_MS)
    return _with_settled(vocabulary, stream, new, whole=True)


def prolonged(draft: Draft, frames: int) -> Draft:
    """The same draft after more silence, which nobody looked at."""
    assert draft.attention is not None
    more = max(0, frames // 2 - draft.attention.shape[1])
    return replace(draft, attention=np.pad(draft.attention, ((0, 0), (0, more))))


def _without_stop(vocabulary: Vocabulary, tokens: Sequence[int]) -> int:
    """How many tokens there are before the full stop at the end of a draft.

    Whisper ends every window with a stop, though the speaker may go on: it is said when something
    follows, after a long pause, or at the end of the utterance.
    """
    count = len(tokens)
    while count and set(vocabulary.text(tokens[count - 1 : count]).strip()) <= STOPS:
        count -= 1
    return count


def _stop_apart(draft: Draft, stop: int) -> Draft:
    """With the full stop, the last `stop` tokens, as a word of its own: the word before it is the
    one that earlier drafts had, and does not have to wait."""
    before = draft.ends[-2] if len(draft.ends) > 1 else 0
    end = len(draft.tokens) - stop
    if not stop or end <= before:
        return draft
    word = draft.words[-1]
    bare = word.rstrip("".join(STOPS))
    return replace(
        draft,
        words=(*draft.words[:-1], bare, word.removeprefix(bare)),
        ends=(*draft.ends[:-1], end, len(draft.tokens)),
    )


def _with_settled(
    vocabulary: Vocabulary, stream: WhisperStream, new: Draft, *, whole: bool
) -> Draft:
    """What was drafted of sound that is gone comes first; all of it looks at the beginning."""
    settled = stream.settled
    assert new.attention is not None
    looks = np.zeros((len(settled.tokens), new.attention.shape[1]), np.float32)
    looks[:, :1] = 1.0
    tokens = settled.tokens + new.tokens
    grouped = vocabulary.words(
        [*stream.unfinished, *tokens],
        spaceless=written_without_spaces(stream.target),
        ended=whole,
    )
    return replace(
        new,
        tokens=tokens,
        words=grouped.words,
        ends=tuple(max(0, end - len(stream.unfinished)) for end in grouped.ends),
        tail=grouped.tail,
        log_probs=settled.log_probs + new.log_probs,
        attention=np.concatenate([looks, new.attention]),
    )
