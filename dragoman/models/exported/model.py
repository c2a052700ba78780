"""Exported nets as models: any net of the workshop, heard and drafted without torch.

Three kinds of decoders are at home here. A plain one drafts a continuation of what was said, to the
end of the sentence; a policy decides how much of it counts. A monotonic one (MMA) and a transducer
(CAAT) decide for themselves: their draft is what they have decided to write.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.models.base import Ask, Feature
from dragoman.models.exported.counting import WordCounter
from dragoman.models.exported.decoder import Texts
from dragoman.models.exported.encoder import encode_at_once, encode_windows
from dragoman.models.exported.features import FRAMES_PER_STATE, FeatureStream
from dragoman.models.exported.net import BOS, OnnxNet
from dragoman.models.exported.pieces import Pieces
from dragoman.models.exported.stream import ExportedStream
from dragoman.models.exported.transducer import read_groups
from dragoman.models.life import WindowModel
from dragoman.models.options import Options
from dragoman.models.search import Found, Prompt, search
from dragoman.models.window import Bounds, Window
from dragoman.text.languages import written_without_spaces

SPARE_TOKENS = 10  # a draft has at most this many tokens more than there are states
BOUNDS = Bounds(long=24_000, too_long=27_000, kept=12_000, full=30_000)
# The past of a decoder that keeps it cannot be cut: all of it is said, and then it begins anew.
KEPT_PAST = Bounds(long=inf, too_long=inf, kept=inf, full=30_000)


class ExportedModel(WindowModel[ExportedStream]):
    """Loaded once, shared by all its streams."""

    stream_type = ExportedStream

    def __init__(
        self, name: str, net: OnnxNet, target: Pieces, source: Pieces | None, beams: int = 5
    ) -> None:
        self.name, self._net, self._beams = name, net, beams
        self._target, self._source = target, source
        config = net.config
        self.late_stop = config.decides == "no"
        offers = {
            Feature.ATTENTION: config.attention_layer >= 0,
            Feature.CTC: config.ctc and source is not None,
            Feature.BOUNDARIES: config.boundaries,
            Feature.DECISIONS: config.decides != "no",
        }
        self.features = frozenset(feature for feature, there in offers.items() if there)

    @classmethod
    def load(cls, folder: Path, name: str = "", options: Options | None = None) -> ExportedModel:
        options = options or Options()
        net = cls.open_net(folder, options)
        config = net.config
        if config.input != "speech":
            raise DragomanError(f"{folder} holds a net that reads text; it cannot hear.")
        target = Pieces.of_target(folder, config)
        path, units = folder / "source.model", config.source_units
        source = None
        if config.ctc and path.exists():
            spaced = not written_without_spaces(config.languages.source)
            source = Pieces.load(path, units, suffix=config.source_suffix, spaced=spaced)
        return cls(name or folder.name, net, target, source, options.beams)

    @classmethod
    def open_net(cls, folder: Path, options: Options) -> OnnxNet:
        options = options.on_cpu("An exported net")
        return OnnxNet(folder, threads=options.threads)

    @property
    def hears(self) -> tuple[str, ...]:
        return tuple(filter(None, [self._net.config.languages.source]))

    @property
    def speaks(self) -> tuple[str, ...]:
        return self._net.config.languages.targets

    def open(self, source: str | None, target: str, *, transcript: bool = False) -> ExportedStream:
        config = self._net.config
        config.languages.refuse_others(self.name, source, target)
        return ExportedStream(
            target,
            Window(KEPT_PAST if config.keeps_past else BOUNDS, self._target),
            source or config.languages.source or None,
            net=self._net,
            sound=FeatureStream(config.bands),
            new_counter=lambda: WordCounter(self._source, self._net.blank),
        )

    def encode(self, streams: Sequence[ExportedStream], closing: Sequence[bool]) -> None:
        new = [
            (stream, ends)
            for stream, ends in zip(streams, closing, strict=True)
            if ends or not stream.nothing_new()
        ]
        encode_windows(self._net, [stream for stream, _ in new], [ends for _, ends in new])

    def committed(self, stream: ExportedStream, tokens: int) -> None:
        stream.committed(tokens)

    # Searching.

    def speak(self, streams: Sequence[ExportedStream], asks: Sequence[Ask]) -> list[Found]:
        """Streams of which as much was said are searched together, those of which all care is
        taken for themselves."""
        groups: dict[tuple[bool, object], list[int]] = defaultdict(list)
        spoken = [Found()] * len(streams)
        for index, (stream, ask) in enumerate(zip(streams, asks, strict=True)):
            if stream.encoded.memory is None:
                continue
            if self._net.config.decides == "transducer":
                spoken[index] = read_groups(self._net, stream, ask.final)
            else:
                known: object = len(stream.window.said)
                if self._net.config.keeps_past:
                    known = stream.decoded.past
                groups[_careful(ask), known].append(index)
        for members in groups.values():
            chosen = [streams[i] for i in members]
            states = [stream.encoded.states for stream in chosen]
            found = self._search(chosen, [asks[i] for i in members], states)
            for index, one in zip(members, found, strict=True):
                spoken[index] = one
        return spoken

    def speak_part(self, stream: ExportedStream) -> tuple[Found, float]:
        config, closing = self._net.config, Ask(final=True)
        if config.keeps_past:
            encode_windows(self._net, [stream], [True])
            return self.speak([stream], [closing])[0], stream.heard_ms
        end_ms = stream.quiet_ms()
        states = max(1, stream.states_before(end_ms))
        if config.chunks is None:
            encode_at_once(self._net, [stream], [stream.sound.frames[: FRAMES_PER_STATE * states]])
        else:
            encode_windows(self._net, [stream], [False])
        states = min(states, stream.encoded.states)
        found = self._search([stream], [closing], [states])[0]
        return found, stream.start_ms + states * config.state_ms

    def _search(
        self, streams: Sequence[ExportedStream], asks: Sequence[Ask], states: Sequence[int]
    ) -> list[Found]:
        """Continue what was said of so many states of each stream."""
        net = self._net
        triples = zip(streams, asks, states, strict=True)
        prompts = [self._prompt(stream, ask, count) for stream, ask, count in triples]
        caches = None
        if net.config.keeps_past:
            caches = [stream.decoded.cache or net.begin(1) for stream in streams]
        memories = [
            net.cut(stream.encoded.memory or (), slice(count))
            for stream, count in zip(streams, states, strict=True)
        ]
        texts = Texts(net, memories, states, prompts, caches)
        careful = _careful(asks[0]) and not net.config.keeps_past
        found = search(texts, prompts, self._beams if careful else 1)
        if caches is not None:
            for stream, one, trail in zip(streams, found, texts.trails, strict=True):
                stream.keep_trail(trail[: len(one.tokens) + 1])
        return found

    def _prompt(self, stream: ExportedStream, ask: Ask, states: int) -> Prompt:
        said = stream.window.said
        most = SPARE_TOKENS + states - len(said)
        if ask.max_tokens is not None:
            most = min(most, ask.max_tokens - len(stream.window.settled.tokens))
        enough = self._enough(stream.window, ask.max_words)
        start, prefix = (BOS,), tuple(said)
        if self._net.config.keeps_past:
            start, prefix = (said[-1] if said else BOS,), ()
        return Prompt(start, most, prefix, avoid_end=ask.avoid_end, final=ask.final, enough=enough)

    def _enough(self, window: Window, words: int | None) -> Callable[[Sequence[int]], bool] | None:
        if words is None:
            return None
        settled = window.settled.tokens
        return lambda tokens: len(window.words([*settled, *tokens], ended=False).words) >= words


def _careful(ask: Ask) -> bool:
    """Whether a text is searched with all beams: it will not be drafted again, and time is not
    short."""
    return ask.final and not ask.hasty
