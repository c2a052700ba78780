"""Exported nets as models: any net of the workshop, heard and drafted without torch.

Three kinds of decoders are at home here. A plain one drafts a continuation of what was said, to the
end of the sentence; a policy decides how much of it counts. A monotonic one (MMA) and a transducer
(CAAT) decide for themselves: their draft is what they have decided to write.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dragoman.audio.chunk import Samples
from dragoman.errors import DragomanError
from dragoman.models.base import Ask, Draft, Feature, Stream
from dragoman.models.exported.counting import WordCounter
from dragoman.models.exported.ears import listen
from dragoman.models.exported.features import FeatureStream
from dragoman.models.exported.net import BOS, Array, Arrays, OnnxNet
from dragoman.models.exported.pieces import Pieces
from dragoman.models.exported.search import Found, Limits, beam_search, greedy
from dragoman.models.exported.stream import OnnxStream, most_attended
from dragoman.models.exported.transducer import read_groups
from dragoman.models.whisper.guard import cut_loop

SPARE_TOKENS = 10  # a draft has at most this many tokens more than there are states


class OnnxModel:
    """Loaded once, shared by all its streams."""

    def __init__(
        self, name: str, net: OnnxNet, target: Pieces, source: Pieces | None, beams: int = 5
    ) -> None:
        self.name, self.net, self.beams = name, net, beams
        self.target, self.source = target, source
        config = net.config
        offers = {
            Feature.ATTENTION: config.attention_layer >= 0,
            Feature.CTC: config.ctc and source is not None,
            Feature.BOUNDARIES: config.boundaries,
            Feature.DECISIONS: config.decides != "no",
        }
        self.features = frozenset(feature for feature, there in offers.items() if there)

    @classmethod
    def load(cls, folder: Path, *, name: str = "", threads: int = 0, beams: int = 5) -> OnnxModel:
        net = OnnxNet(folder, threads=threads)
        config = net.config
        if config.input != "speech":
            raise DragomanError(f"{folder} holds a net that reads text; it cannot hear.")
        target = Pieces.of_target(folder, config)
        path, units = folder / "source.model", config.source_units
        source = None
        if config.ctc and path.exists():
            source = Pieces.load(path, units, suffix=config.source_suffix)
        return cls(name or folder.name, net, target, source, beams)

    def open(self, source: str | None, target: str) -> OnnxStream:
        self.net.config.languages.refuse_others(self.name, source, target)
        return OnnxStream(
            FeatureStream(self.net.config.bands),
            lambda stream: listen(self.net, [stream]),
            lambda: WordCounter(self.source, self.net.blank),
        )

    def hear(
        self, streams: Sequence[Stream], chunks: Sequence[Samples], last: Sequence[bool]
    ) -> None:
        for stream, chunk, ended in zip(streams, chunks, last, strict=True):
            own = _own(stream)
            own.features.hear(chunk, ended)
            own.ended = own.ended or ended

    def draft(self, streams: Sequence[Stream], asks: Sequence[Ask]) -> list[Draft]:
        own = [_own(stream) for stream in streams]
        listen(self.net, own, flush=[ask.final for ask in asks])
        for stream in own:
            self._make_room(stream)
        found: dict[int, Found] = {}
        for members in self._together(own, asks):
            batch = [(own[i], asks[i]) for i in members]
            found |= dict(zip(members, self._search(batch), strict=True))
        return [self._draft(own[i], asks[i], found.get(i)) for i in range(len(own))]

    def _together(self, streams: Sequence[OnnxStream], asks: Sequence[Ask]) -> list[list[int]]:
        """Which streams can be decoded as one batch: greedily, after as many tokens."""
        groups: dict[object, list[int]] = defaultdict(list)
        for i, (stream, ask) in enumerate(zip(streams, asks, strict=True)):
            if stream.ears.memory is None:
                continue
            alone = ask.final or self.net.config.decides == "transducer"
            groups[(i,) if alone else len(stream.mouth.said)].append(i)
        return list(groups.values())

    def _search(self, batch: Sequence[tuple[OnnxStream, Ask]]) -> list[Found]:
        config = self.net.config
        if config.decides == "transducer":
            return [read_groups(self.net, stream, ask.final) for stream, ask in batch]
        memory, lengths = self._memory([stream for stream, _ in batch])
        limits = [self._limits(stream, ask) for stream, ask in batch]
        if config.keeps_past:
            starts = [[stream.mouth.said[-1] if stream.mouth.said else BOS] for stream, _ in batch]
            pasts = [stream.mouth.cache or self.net.begin(1) for stream, _ in batch]
            cache = tuple(np.concatenate(parts) for parts in zip(*pasts, strict=True))
            return greedy(self.net, memory, lengths, starts, limits, cache)
        starts = [[BOS, *stream.mouth.said] for stream, _ in batch]
        if batch[0][1].final and self.beams > 1:
            beams = self.beams
            return [beam_search(self.net, memory, lengths, starts[0], limits[0], beams=beams)]
        return greedy(self.net, memory, lengths, starts, limits)

    def _memory(self, streams: Sequence[OnnxStream]) -> tuple[Arrays, Array]:
        """The streams' memories as one batch, padded to the longest."""
        axis, longest = self.net.config.memory_time, max(s.ears.states for s in streams)
        padded = [
            tuple(_padded(array, axis, longest) for array in stream.ears.memory or ())
            for stream in streams
        ]
        memory = tuple(np.concatenate(parts) for parts in zip(*padded, strict=True))
        return memory, np.array([stream.ears.states for stream in streams], np.int64)

    def _limits(self, stream: OnnxStream, ask: Ask) -> Limits:
        most = SPARE_TOKENS + stream.ears.states - len(stream.mouth.said)
        if ask.max_tokens is not None:
            most = min(most, ask.max_tokens)
        words, unfinished = ask.max_words, list(stream.mouth.unfinished)

        def enough(tokens: Sequence[int]) -> bool:
            if words is None:
                return False
            return len(self.target.words([*unfinished, *tokens], ended=False).words) >= words

        final = ask.final or (self.net.config.keeps_past and stream.overfull)
        return Limits(most, enough, ask.avoid_end, final)

    def _draft(self, stream: OnnxStream, ask: Ask, found: Found | None) -> Draft:
        if found is None:
            return Draft()
        mouth, config = stream.mouth, self.net.config
        count = cut_loop(mouth.said, found.tokens)
        tokens, ended = found.tokens[:count], found.ended and count == len(found.tokens)
        mouth.drafted = found.caches
        grouped = self.target.words([*mouth.unfinished, *tokens], ended=ended or ask.final)
        attention = None
        if config.attention_layer >= 0 and found.attention.size:
            attention = found.attention[:count, config.attention_layer, : stream.ears.states]
        return Draft(
            tokens=tokens,
            words=grouped.words,
            ends=tuple(end - len(mouth.unfinished) for end in grouped.ends),
            tail=grouped.tail,
            log_probs=found.log_probs[:count],
            ended=ended,
            attention=attention,
            frame_ms=config.state_ms,
        )

    def commit(self, stream: Stream, draft: Draft, tokens: int, closed: bool = False) -> None:
        own = _own(stream)
        mouth, said = own.mouth, draft.tokens[:tokens]
        mouth.said += said
        if draft.attention is not None:
            mouth.attended += most_attended(draft.attention[:tokens])
        else:
            mouth.attended += [own.ears.states - 1] * tokens
        if draft.words_within(tokens):
            mouth.unfinished = list(draft.tokens[draft.whole(tokens) : tokens])
        else:
            mouth.unfinished += said
        if self.net.config.keeps_past and tokens < len(mouth.drafted):
            mouth.cache = mouth.drafted[tokens]
        mouth.drafted = ()
        if closed or (self.net.config.keeps_past and own.overfull):
            own.close()

    def _make_room(self, stream: OnnxStream) -> None:
        """Forget the older half of a speech that never pauses, where that does no harm."""
        if not stream.overfull or self.net.config.keeps_past:
            return
        states = stream.forget_half(self.target)
        stream.ears.memory = self.net.cut(stream.ears.memory or (), slice(states, None))


def _padded(array: Array, axis: int, size: int) -> Array:
    """Zeros behind an array until it is `size` long."""
    widths = [(0, 0)] * array.ndim
    widths[axis] = (0, size - array.shape[axis])
    return np.pad(array, widths)


def _own(stream: Stream) -> OnnxStream:
    if not isinstance(stream, OnnxStream):
        raise DragomanError("This stream was opened by another model.")
    return stream
