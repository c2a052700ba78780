"""Whisper as a simultaneous model: an offline model that is asked again and again.

Each draft looks at the sound of the current window, followed by just enough silence to keep the
network stable, and goes on from what was already said of it. Where nobody speaks, nothing is
encoded and nothing said.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from dragoman.audio.chunk import RATE, Samples
from dragoman.audio.vad import Vad
from dragoman.errors import DragomanError
from dragoman.models.base import Ask, Draft, Feature, Stream
from dragoman.models.whisper.decoder import States
from dragoman.models.whisper.draft import finished, nothing, prolonged
from dragoman.models.whisper.engine import Engine, WhisperEngine, release_memory
from dragoman.models.whisper.guard import cut_loop, most_tokens
from dragoman.models.whisper.mel import LogMel, Mel
from dragoman.models.whisper.search import Prompt, Spoken
from dragoman.models.whisper.stream import SECOND, Ear, WhisperStream, Window
from dragoman.models.whisper.tokens import Vocabulary
from dragoman.models.whisper.trim import quietest, trim
from dragoman.text.languages import written_without_spaces

PADDING = 4 * SECOND  # silence after the sound; with less of it the network loops
SHORTEST = SECOND // 5  # sound that is worth a look
FULL = 30 * SECOND - PADDING  # more sound than this the encoder cannot see
PIECE = 5 * RATE  # samples heard at a time, however long the chunk


class WhisperModel:
    """Loaded once, shared by all its streams."""

    features = frozenset({Feature.ATTENTION, Feature.SILENCE, Feature.TRANSCRIPT})

    def __init__(
        self,
        name: str,
        engine: Engine,
        vocabulary: Vocabulary,
        *,
        vad: Vad | None = None,
        beams: int = 5,
        final_beams: int = 5,
    ) -> None:
        """`beams` is how many texts the search for a draft follows, `final_beams` at the end."""
        self.name = name
        self._engine = engine
        self._vocabulary = vocabulary
        self._vad = vad
        self._beams = beams
        self._final_beams = final_beams

    @classmethod
    def load(
        cls,
        folder: Path,
        *,
        name: str = "whisper",
        threads: int = 0,
        compute: str = "int8",
        beams: int = 5,
        final_beams: int = 5,
    ) -> WhisperModel:
        """Load a folder in CTranslate2's format; `threads` 0 leaves their number to the library."""
        vocabulary = Vocabulary.load(folder)
        engine = WhisperEngine(folder, vocabulary, threads=threads, compute=compute)
        vad = Vad.load()
        return cls(name, engine, vocabulary, vad=vad, beams=beams, final_beams=final_beams)

    @property
    def languages(self) -> tuple[str, ...]:
        """Codes of the languages that it understands."""
        return tuple(self._vocabulary.languages)

    def open(self, source: str | None, target: str) -> WhisperStream:
        for language in (source, target):
            if language is not None and language not in self._vocabulary.languages:
                raise DragomanError(
                    f"Model '{self.name}' does not know the language '{language}'; "
                    "see 'dragoman languages'."
                )
        if target not in ("en", source):
            heard = f"'{source}'" if source else "a language to be detected"
            raise DragomanError(
                f"Model '{self.name}' cannot translate from {heard} into '{target}': "
                "it translates into English, or writes down what it hears in one language."
            )
        ear = Ear(self._vad.stream() if self._vad else None)
        stream = WhisperStream(LogMel(self._engine.bands), ear, source, target, source)
        stream.transcribe = self._transcribe
        return stream

    def hear(
        self, streams: Sequence[Stream], chunks: Sequence[Samples], last: Sequence[bool]
    ) -> None:
        for stream, chunk in zip(streams, chunks, strict=True):
            own = _own(stream)
            for begin in range(0, max(1, len(chunk)), PIECE):
                own.hear(chunk[begin : begin + PIECE])
                if own.frames > FULL:
                    self._settle(own)

    def draft(self, streams: Sequence[Stream], asks: Sequence[Ask]) -> list[Draft]:
        drafts: list[Draft | None] = []
        for stream, ask in zip(streams, asks, strict=True):
            drafts.append(self._without_looking(_own(stream), ask))
        todo = [index for index, draft in enumerate(drafts) if draft is None]
        looking = [_own(streams[index]) for index in todo]
        self._look(looking)
        spoken = self._speak(looking, [asks[index] for index in todo])
        for index, stream, one in zip(todo, looking, spoken, strict=True):
            final = asks[index].final
            drafts[index] = finished(self._vocabulary, stream, one, final=final)
        return [draft for draft in drafts if draft is not None]

    def commit(self, stream: Stream, draft: Draft, tokens: int, closed: bool = False) -> None:
        own = _own(stream)
        own.take(draft, tokens)
        if closed:
            own.close()
        elif trim(self._vocabulary, own):
            release_memory()  # once per window: it costs a little

    # Drafting.

    def _without_looking(self, stream: WhisperStream, ask: Ask) -> Draft | None:
        """The draft where no network has to be asked."""
        if stream.frames < SHORTEST or not stream.ear.spoken:
            return nothing(self._vocabulary, stream)
        if not ask.final and stream.nothing_new() and stream.rest.ended:
            return prolonged(stream.rest, stream.frames)
        return None

    def _look(self, streams: Sequence[WhisperStream]) -> None:
        """Encode the windows that have new sound; windows of equal length go together."""
        groups: dict[int, list[WhisperStream]] = {}
        for stream in streams:
            if not stream.nothing_new():
                groups.setdefault(stream.frames, []).append(stream)
        for group in groups.values():
            windows = [_padded(stream) for stream in group]
            for stream, states in zip(group, self._engine.encode(windows), strict=True):
                stream.seen = Window(stream.mel.start, stream.mel.frames, states)
                self._detect(stream, states)

    def _detect(self, stream: WhisperStream, states: States) -> None:
        """Find the language out, as long as nothing was said in the belief that it is known."""
        if stream.source is None and not (stream.said or stream.settled.tokens or stream.before):
            found = self._engine.languages([states])[0]
            stream.language = max(found, key=found.__getitem__)

    def _speak(self, streams: Sequence[WhisperStream], asks: Sequence[Ask]) -> list[Spoken]:
        """Drafts with the same number of beams are made together."""
        prompts = [self._prompt(s, ask) for s, ask in zip(streams, asks, strict=True)]
        spoken: dict[int, Spoken] = {}
        for beams in {self._beams, self._final_beams}:
            chosen = [i for i, ask in enumerate(asks) if self._beams_for(ask) == beams]
            if chosen:
                states = [_states(streams[i]) for i in chosen]
                made = self._engine.speak(states, [prompts[i] for i in chosen], beams)
                spoken |= dict(zip(chosen, made, strict=True))
        return [spoken[i] for i in range(len(streams))]

    def _beams_for(self, ask: Ask) -> int:
        return self._final_beams if ask.final else self._beams

    def _prompt(self, stream: WhisperStream, ask: Ask) -> Prompt:
        most = most_tokens(stream.frames / SECOND, stream.target == "en") - len(stream.said)
        if ask.max_tokens is not None:
            most = min(most, ask.max_tokens - len(stream.settled.tokens))
        context = stream.context
        return Prompt(
            start=self._start(stream, stream.target),
            most=max(0, most),
            said=tuple(stream.said),
            context=(self._vocabulary.previous, *context) if context else (),
            guess=self._guess(stream, most) if self._beams_for(ask) == 1 else (),
            avoid_end=ask.avoid_end,
        )

    def _guess(self, stream: WhisperStream, most: int) -> tuple[int, ...]:
        """What the draft before said beyond what was committed of it."""
        tokens = stream.rest.tokens[len(stream.settled.tokens) :]
        return tokens[: max(0, most - 1)]

    def _start(self, stream: WhisperStream, target: str) -> tuple[int, ...]:
        v = self._vocabulary
        if not v.multilingual or stream.language is None:
            return v.start, v.no_times
        task = v.transcribe if stream.language == target else v.translate
        return v.start, v.languages[stream.language], task, v.no_times

    def _transcribe(self, stream: WhisperStream) -> None:
        """Write down the words of the window in their own language, to count them."""
        if self._without_looking(stream, Ask()) is not None:
            return
        self._look([stream])
        language = stream.language or "en"
        most = most_tokens(stream.frames / SECOND, language == "en")
        start = self._start(stream, language)
        prompt = Prompt(start, most, guess=stream.transcript.tokens[: most - 1])
        spoken = self._engine.speak([_states(stream)], [prompt], 1)[0]
        tokens = spoken.tokens[: cut_loop((), spoken.tokens)]
        spaceless = written_without_spaces(language)
        words = self._vocabulary.words(tokens, spaceless=spaceless, ended=spoken.ended)
        stream.transcript.tokens = tokens
        stream.transcript.looks = [
            stream.mel.start + 2 * max(int(look.argmax()) for look in spoken.looks[begin:end])
            for begin, end in pairwise((0, *words.ends))
        ]

    # A window that is full.

    def _settle(self, stream: WhisperStream) -> None:
        """Nobody commits: draft the first part of the window for good, and drop its sound."""
        end = quietest(stream)
        states = self._engine.encode([_padded(stream, end)])[0]
        self._detect(stream, states)
        prompt = self._prompt(stream, Ask(final=True))
        spoken = self._engine.speak([states], [prompt], self._final_beams)[0]
        keep = cut_loop(stream.said, spoken.tokens)
        stream.settle(spoken.tokens[:keep], spoken.log_probs[:keep], end)


def _own(stream: Stream) -> WhisperStream:
    if not isinstance(stream, WhisperStream):
        raise DragomanError("This stream was opened by another model.")
    return stream


def _states(stream: WhisperStream) -> States:
    assert stream.seen is not None
    return stream.seen.states


def _padded(stream: WhisperStream, end: int | None = None) -> Mel:
    frames = stream.frames if end is None else end - stream.mel.start
    return stream.mel.window(PADDING + frames % 2, stream.loudest, end)
