"""Whisper as a simultaneous model: an offline model that is asked again and again.

Each draft looks at the sound of the current window, followed by just enough silence to keep the
network stable, and goes on from what was already said of it. Where nobody speaks, nothing is
encoded and nothing said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError
from dragoman.models.base import Ask, Feature
from dragoman.models.choose import with_translator
from dragoman.models.guard import cut_loop, led_astray
from dragoman.models.life import WindowModel
from dragoman.models.options import Options
from dragoman.models.search import Found, Prompt
from dragoman.models.whisper.engine import Engine, View, load_engine, release_memory
from dragoman.models.whisper.mel import FRAME_MS
from dragoman.models.whisper.stream import Transcript, WhisperStream
from dragoman.models.whisper.tokens import Vocabulary, WhisperUnits
from dragoman.models.window import Bounds, Window

BOUNDS = Bounds(long=12_000, too_long=20_000, kept=6_000, full=26_000, context=48)
WRITTEN_SURE = 0.3  # how likely a token that was written down must be, not to be doubted
STALLED = 3  # tokens before which a text does not end, where the net was silent too long


class WhisperModel(WindowModel[WhisperStream]):
    """Loaded once, shared by all its streams."""

    stream_type = WhisperStream
    features = frozenset({Feature.ATTENTION, Feature.SILENCE, Feature.TRANSCRIPT})

    def __init__(
        self,
        name: str,
        engine: Engine[Any],
        vocabulary: Vocabulary,
        *,
        beams: int = 5,
        final_beams: int = 5,
        translates: bool = True,
    ) -> None:
        """`beams` is how many texts the search for a draft follows, `final_beams` at the end;
        without `translates` it writes down what it hears, and nothing else."""
        self.name = name
        self._engine = engine
        self._vocabulary = vocabulary
        self._beams = beams
        self._final_beams = final_beams
        self._translates = translates

    @classmethod
    def load(
        cls, folder: Path, name: str = "whisper", options: Options | None = None
    ) -> WhisperModel:
        """Load a folder in CTranslate2's format."""
        options = options or Options()
        vocabulary = Vocabulary.load(folder)
        engine = load_engine(folder, vocabulary, options)
        translates = vocabulary.multilingual and not engine.copies
        return cls(name, engine, vocabulary, beams=options.beams, translates=translates)

    @property
    def device(self) -> str:
        """Where it works: cpu or cuda."""
        return self._engine.device

    @property
    def hears(self) -> tuple[str, ...]:
        return tuple(self._vocabulary.languages)

    @property
    def speaks(self) -> tuple[str, ...]:
        """English, and each language that it hears, of that language itself."""
        return self.hears

    def open(self, source: str | None, target: str, *, transcript: bool = False) -> WhisperStream:
        if source is not None and source not in self._vocabulary.languages:
            raise DragomanError(
                f"Model '{self.name}' does not know the language '{source}'.",
                advice="see 'dragoman languages'.",
            )
        if source is None and len(self.hears) == 1:
            (source,) = self.hears
        if not self._translates and target != source:
            raise DragomanError(
                f"Model '{self.name}' writes down what it hears and was not trained to translate.",
                advice="name the same language with --from and --to, take another Whisper, or put "
                f"a translator behind it: {with_translator(self.name, source, target)}.",
            )
        if target not in ("en", source):
            heard = f"'{source}'" if source else "a language to be detected"
            raise DragomanError(
                f"Model '{self.name}' cannot translate from {heard} into '{target}': it translates "
                "into English, or writes down what it hears in one language.",
                advice="put a translator behind it: "
                f"{with_translator(self.name, source, target, pivots=True)}.",
            )
        return WhisperStream(
            target,
            Window(BOUNDS, self._units(target)),
            source,
            mel=self._engine.new_mel(),
            detects=source is None,
            writes=Transcript() if transcript else None,
        )

    # Encoding.

    def encode(self, streams: Sequence[WhisperStream], closing: Sequence[bool]) -> None:
        """Encode the windows that have new sound: plainly where the utterance ends."""
        looking = [(s, end) for s, end in zip(streams, closing, strict=True) if not s.nothing_new()]
        if not looking:
            return
        views = [stream.view(plain=end) for stream, end in looking]
        made = self._engine.encode(views)
        for (stream, _), view, states in zip(looking, views, made, strict=True):
            stream.encoded(states, view)
        seen = [stream for stream, _ in looking]
        self._detect(seen, made)
        self._doubt(seen, made)
        self._write_down(seen, made, views)

    def _doubt(self, streams: Sequence[WhisperStream], states: Sequence[Any]) -> None:
        """Find out whether the language is spoken that was told."""
        due = [i for i, one in enumerate(streams) if self._vocabulary.multilingual and one.doubtful]
        if due:
            told = self._engine.languages([states[index] for index in due])
            for index, found in zip(due, told, strict=True):
                streams[index].judge(found.get(streams[index].target, 0.0))

    def _detect(self, streams: Sequence[WhisperStream], states: Sequence[Any]) -> None:
        """Find languages out, as long as nothing was said in the belief that they are known."""
        unsure = [i for i, one in enumerate(streams) if one.detects and one.window.untouched]
        if unsure:
            told = self._engine.languages([states[index] for index in unsure])
            for index, found in zip(unsure, told, strict=True):
                streams[index].detected(max(found, key=found.__getitem__))

    def _write_down(
        self, streams: Sequence[WhisperStream], states: Sequence[Any], views: Sequence[View[Any]]
    ) -> None:
        """The words of the windows in their own language, where they are wanted."""
        every = zip(streams, states, views, strict=True)
        wanted = [one for one in every if one[0].writes is not None]
        if not wanted:
            return
        prompts = [self._transcript_prompt(stream) for stream, *_ in wanted]
        spoken = self._engine.speak([made for _, made, _ in wanted], prompts, 1)
        for (stream, _, view), found in zip(wanted, spoken, strict=True):
            keep = cut_loop((), found.tokens)
            # A full stop looks at the silence behind the sound; its word was heard before that.
            sound = max(1, (view.sound or 0) - 1)
            looks = tuple(look[:sound] for look in found.looks[:keep])
            kept = replace(found, tokens=found.tokens[:keep], looks=looks)
            stream.written(self._units(stream.language or "en"), kept)

    def _transcript_prompt(self, stream: WhisperStream) -> Prompt:
        language = stream.language or "en"
        most = most_tokens(stream.frames * FRAME_MS, language == "en")
        guess = stream.writes.tokens[: most - 1] if stream.writes else ()
        return Prompt(self._start(stream, language), most, guess=guess)

    # Searching.

    def speak(self, streams: Sequence[WhisperStream], asks: Sequence[Ask]) -> list[Found]:
        def spoken(chosen: Sequence[int]) -> list[Found]:
            return self._spoken([streams[i] for i in chosen], [asks[i] for i in chosen])

        return _not_led_astray(streams, spoken)

    def _spoken(self, streams: Sequence[WhisperStream], asks: Sequence[Ask]) -> list[Found]:
        """Drafts with the same number of beams are made together; none of another language."""
        prompts = [self._prompt(s, ask) for s, ask in zip(streams, asks, strict=True)]
        spoken = {index: Found() for index, stream in enumerate(streams) if stream.foreign}
        widths = [self._beams_for(ask) for ask in asks]
        for beams in set(widths):
            chosen = [i for i, width in enumerate(widths) if width == beams and i not in spoken]
            if not chosen:
                continue
            states = [streams[i].states for i in chosen]
            made = self._engine.speak(states, [prompts[i] for i in chosen], beams)
            spoken |= dict(zip(chosen, made, strict=True))
        return [spoken[i] for i in range(len(streams))]

    def speak_part(self, stream: WhisperStream) -> tuple[Found, float]:
        end = stream.quiet_frame()
        view = stream.view_until(end)
        states = self._engine.encode([view])[0]
        self._detect([stream], [states])
        self._write_down([stream], [states], [view])
        if stream.foreign:
            return Found(), end * FRAME_MS

        def spoken(_: Sequence[int]) -> list[Found]:
            prompt = self._prompt(stream, Ask(final=True))
            return self._engine.speak([states], [prompt], self._final_beams)

        (found,) = _not_led_astray([stream], spoken)
        return found, end * FRAME_MS

    def committed(self, stream: WhisperStream, tokens: int) -> None:
        stream.tell_written()

    def trimmed(self) -> None:
        release_memory()  # once per window: it costs a little

    def _beams_for(self, ask: Ask) -> int:
        if ask.hasty:
            return 1
        return self._final_beams if ask.final else self._beams

    def _prompt(self, stream: WhisperStream, ask: Ask) -> Prompt:
        window = stream.window
        most = most_tokens(stream.frames * FRAME_MS, stream.target == "en") - len(window.said)
        if ask.max_tokens is not None:
            most = min(most, ask.max_tokens - len(window.settled.tokens))
        return Prompt(
            start=self._start(stream, stream.target),
            most=max(0, most),
            said=tuple(window.said),
            context=(self._vocabulary.previous, *window.before) if window.before else (),
            guess=self._guess(window, most) if self._goes_on(stream, ask) else (),
            sure=WRITTEN_SURE,
            avoid_end=ask.avoid_end,
            least=min(STALLED, max(0, most)) if stream.stalled and not ask.final else 0,
        )

    def _goes_on(self, stream: WhisperStream, ask: Ask) -> bool:
        """Whether a draft goes on from the one before, as far as that is still likely: what is
        written down changes little when more is heard, where a translation may begin otherwise."""
        return self._beams_for(ask) == 1 or (stream.writes_down and not ask.final)

    def _guess(self, window: Window, most: int) -> tuple[int, ...]:
        """What the draft before said beyond what was committed of it."""
        tokens = window.rest.tokens[len(window.settled.tokens) :]
        return tokens[: max(0, most - 1)]

    def _start(self, stream: WhisperStream, target: str) -> tuple[int, ...]:
        v = self._vocabulary
        if not v.multilingual or stream.language is None:
            return v.start, v.no_times
        task = v.transcribe if stream.language == target else v.translate
        return v.start, v.languages[stream.language], task, v.no_times

    def _units(self, language: str) -> WhisperUnits:
        return WhisperUnits.of(self._vocabulary, language)


def _not_led_astray(
    streams: Sequence[WhisperStream], search: Callable[[Sequence[int]], list[Found]]
) -> list[Found]:
    """What a search finds for streams; where what was said before leads astray, without that."""
    found = search(range(len(streams)))
    windows = [stream.window for stream in streams]
    astray = [
        index
        for index, (window, one) in enumerate(zip(windows, found, strict=True))
        if window.before and led_astray(window.before, window.said, one.tokens)
    ]
    if astray:
        for index in astray:
            windows[index].forget_before()
        for index, again in zip(astray, search(astray), strict=True):
            found[index] = again
    return found


def most_tokens(ms: float, english: bool) -> int:
    """The most tokens that so much speech can hold; other scripts take more tokens a word."""
    return 10 + int(ms / 1000.0 * (7.0 if english else 20.0))
