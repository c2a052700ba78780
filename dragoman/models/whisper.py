"""Whisper as a simultaneous model: an offline model that is asked again and again.

Each draft looks at the sound of the current window, followed by just enough silence to keep the
network stable, and goes on from what was already said of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.audio.chunk import Samples
from dragoman.errors import DragomanError
from dragoman.models.base import Ask, Draft, Feature, Stream
from dragoman.models.whisper_engine import CTranslate2Engine, Engine, Generated, Prompt
from dragoman.models.whisper_guard import cut_loop, most_tokens
from dragoman.models.whisper_mel import FRAME_MS, LogMel
from dragoman.models.whisper_stream import WhisperStream
from dragoman.models.whisper_tokens import Vocabulary

STATE_MS = 2 * FRAME_MS  # one encoder state
MAX_FRAMES = 3000
PADDING = 400  # frames of silence after the sound


class WhisperModel:
    """Loaded once, shared by all its streams."""

    def __init__(self, name: str, engine: Engine, vocabulary: Vocabulary, beams: int = 5) -> None:
        self.name = name
        self.engine = engine
        self.vocabulary = vocabulary
        self.beams = beams  # for the final draft; interim drafts are greedy
        self.features = frozenset({Feature.ATTENTION, Feature.SILENCE})

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        name: str = "whisper",
        threads: int = 1,
        compute: str = "int8",
        device: str = "cpu",
        beams: int = 5,
    ) -> WhisperModel:
        """Load a folder in CTranslate2's format."""
        vocabulary = Vocabulary.load(folder)
        engine = CTranslate2Engine(folder, threads=threads, compute=compute, device=device)
        return cls(name, engine, vocabulary, beams)

    def open(self, source: str | None, target: str) -> WhisperStream:
        for language in (source, target):
            if language is not None and language not in self.vocabulary.languages:
                raise DragomanError(f"Model '{self.name}' does not know language '{language}'.")
        if target not in ("en", source):
            raise DragomanError(
                f"Model '{self.name}' translates into English only, not from "
                f"'{source or 'any language'}' into '{target}'."
            )
        return WhisperStream(LogMel(self.engine.bands), source, target)

    def hear(
        self, streams: Sequence[Stream], chunks: Sequence[Samples], last: Sequence[bool]
    ) -> None:
        for stream, chunk in zip(streams, chunks, strict=True):
            _own(stream).mel.hear(chunk)

    def draft(self, streams: Sequence[Stream], asks: Sequence[Ask]) -> list[Draft]:
        return [self._draft(_own(s), ask) for s, ask in zip(streams, asks, strict=True)]

    def _draft(self, stream: WhisperStream, ask: Ask) -> Draft:
        if stream.window_ms < 100:
            return Draft()
        encoded = self._encode(stream)
        if stream.language is None:
            probabilities = self.engine.languages(encoded)[0]
            stream.language = max(probabilities, key=probabilities.__getitem__)
        start = self._start(stream)
        most = most_tokens(stream.window_ms / 1000, stream.target == "en") - len(stream.said)
        if ask.max_tokens is not None:
            most = min(most, ask.max_tokens)
        if most < 1:
            return Draft()
        generated = self.engine.generate(
            encoded,
            [Prompt(start, tuple(stream.said), tuple(stream.context))],
            most=most,
            beams=self.beams if ask.final else 1,
            suppress=[self.vocabulary.end] if ask.avoid_end else [],
        )[0]
        return self._finish(stream, encoded, generated, ask)

    def _finish(self, stream: WhisperStream, encoded: Any, generated: Generated, ask: Ask) -> Draft:
        keep = cut_loop(stream.said, generated.tokens)
        tokens = generated.tokens[:keep]
        ended = generated.ended and keep == len(generated.tokens)
        grouped = self.vocabulary.words(
            [*stream.unfinished, *tokens],
            spaceless=stream.spaceless_target,
            ended=ended or ask.final,
        )
        ends = tuple(end - len(stream.unfinished) for end in grouped.ends)
        text = [*stream.said, *tokens]
        log_probs: tuple[float, ...] = ()
        attention = None
        if tokens and not ask.final:
            frames = self.engine_frames(stream)
            aligned = self.engine.align(encoded, self._start(stream), [text], 2 * frames)[0]
            log_probs = tuple(
                float(np.log(max(p, 1e-9))) for p in aligned.probabilities[len(stream.said) :]
            )
            attention = np.zeros((len(tokens), frames), np.float32)
            for row, frame in enumerate(aligned.frames[len(stream.said) :]):
                attention[row, min(frame, frames - 1)] = 1.0
        return Draft(
            tokens,
            grouped.words,
            ends,
            grouped.tail,
            log_probs,
            ended,
            generated.silence,
            attention,
            STATE_MS,
        )

    def engine_frames(self, stream: WhisperStream) -> int:
        return -(-(stream.mel.frames - stream.mel.start) // 2)

    def _start(self, stream: WhisperStream) -> tuple[int, ...]:
        v = self.vocabulary
        assert stream.language is not None
        task = v.transcribe if stream.language == stream.target else v.translate
        return v.start, v.languages[stream.language], task, v.no_times

    def _encode(self, stream: WhisperStream) -> Any:
        key = (stream.mel.start, stream.mel.heard)
        if stream.encoded is None or stream.encoded[:2] != key:
            frames = stream.mel.frames - stream.mel.start
            padding = min(PADDING, MAX_FRAMES - frames)
            padding += (frames + padding) % 2
            stream.encoded = (*key, self.engine.encode([stream.mel.window(padding)]))
        return stream.encoded[2]

    def commit(self, stream: Stream, draft: Draft, tokens: int, closed: bool = False) -> None:
        own = _own(stream)
        own.said += draft.tokens[:tokens]
        if draft.words_within(tokens):
            own.unfinished = list(draft.tokens[draft.whole(tokens) : tokens])
        else:
            own.unfinished += draft.tokens[:tokens]
        if closed:
            own.mel.forget(own.mel.frames)
            own.said, own.unfinished = [], []


def _own(stream: Stream) -> WhisperStream:
    if not isinstance(stream, WhisperStream):
        raise DragomanError("This stream was opened by another model.")
    return stream
