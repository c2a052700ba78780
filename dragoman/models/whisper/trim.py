"""Where to cut the window: behind what was said, and as late as possible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dragoman.models.whisper.stream import SECOND, WhisperStream
from dragoman.models.whisper.tokens import Vocabulary
from dragoman.text.sentences import STOPS

LONG = 12 * SECOND  # a window longer than this is cut at the end of a sentence that was said,
TOO_LONG = 20 * SECOND  # one longer than this, behind any word that was said,
KEPT = 6 * SECOND  # but this much sound stays
REST = SECOND // 4  # how much of a word may come after the moment that the decoder looked at


def trim(vocabulary: Vocabulary, stream: WhisperStream) -> bool:
    """Cut the window of a stream if it is long and enough was said, or if all was said before a
    long pause; whether it was cut."""
    if _all_said(vocabulary, stream):
        stream.close()
        return True
    if stream.frames <= LONG:
        return False
    tokens = _last_sentence(vocabulary, stream)
    if not tokens and stream.frames > TOO_LONG:
        tokens = _old_words(vocabulary, stream)
    if tokens:
        stream.cut(tokens, boundary(stream.looks[:tokens], stream.looks[tokens:]))
    return tokens > 0


def _all_said(vocabulary: Vocabulary, stream: WhisperStream) -> bool:
    """Whether a long pause follows a whole sentence of which nothing is left to say.

    Asked about the silence, Whisper would say "Thank you."; asked about the next sentence together
    with this one and the gap between, it is slow to hear that there is more; told what was said
    before the gap, it says that again.
    """
    left = stream.rest.tokens or stream.unfinished or stream.settled.tokens
    if left or not (stream.rested and stream.rest.ended):
        return False
    return len(stream.said) > 0 and _last_sentence(vocabulary, stream) == len(stream.said)


def _last_sentence(vocabulary: Vocabulary, stream: WhisperStream) -> int:
    """How many of the tokens said make whole sentences."""
    for count in range(len(stream.said) - len(stream.unfinished), 0, -1):
        if vocabulary.text(stream.said[count - 1 : count]).rstrip().endswith(STOPS):
            return count
    return 0


def _old_words(vocabulary: Vocabulary, stream: WhisperStream) -> int:
    """How many of the tokens said make words of sound that is old."""
    old = stream.mel.frames - KEPT
    grouped = vocabulary.words(stream.said, spaceless=False, ended=False)
    return max((end for end in grouped.ends if max(stream.looks[:end]) < old), default=0)


def boundary(dropped: Sequence[int], kept: Sequence[int]) -> int:
    """The frame that parts the looks of dropped words from those of kept ones most cleanly.

    Attention strays now and then, so no single look is trusted: as few looks as can be lie on the
    wrong side. Between the last word that goes and the first that stays, the cut is midway.
    """

    def astray(frame: int) -> int:
        return sum(look > frame for look in dropped) + sum(look <= frame for look in kept)

    last = min(sorted(set(dropped)), key=astray)
    following = min((look for look in kept if look > last), default=last + 2 * REST)
    return min((last + following) // 2, last + REST)


def quietest(stream: WhisperStream) -> int:
    """The quietest moment in the second half of the window, as a frame of the stream."""
    middle = stream.mel.start + stream.frames // 2
    levels = stream.mel.level(middle, stream.mel.frames)
    smooth = np.convolve(levels, np.ones(SECOND // 4), "valid")
    frame = middle + int(smooth.argmin()) + SECOND // 8
    return frame - frame % 2
