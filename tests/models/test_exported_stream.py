"""What the stream of an exported net keeps and counts, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from dragoman.audio.chunk import RATE
from dragoman.models import Sound
from dragoman.models.exported.caat_search import Hypothesis
from dragoman.models.exported.config import Chunks
from dragoman.models.exported.counting import Counted, Evidence, WordCounter
from dragoman.models.exported.encoder import encode_at_once, encode_windows
from dragoman.models.exported.net import Encoding
from dragoman.models.exported.stream import Decoded, ExportedStream
from dragoman.models.exported.transducer import _score
from dragoman.models.window import Bounds, Window

from .toy_net import FIRST, LIKELY, ToyFeatures, ToyNet, pieces

BLANK = 0


def evidence(*labels: int, ends=()) -> Evidence:
    return Evidence(np.array(labels), np.array(ends, dtype=float))


def test_a_unit_is_heard_once_until_another_or_a_blank_comes():
    counter = WordCounter(pieces(), BLANK)
    assert counter.hear(evidence(5, 5, BLANK, 5, 6)) == Counted(words=3)
    assert counter.hear(evidence(6, 6)) == Counted(words=3)  # the state before was one, too
    assert counter.hear(evidence(BLANK, 6)) == Counted(words=4)
    assert WordCounter(None, BLANK).hear(evidence(5, 6)) == Counted()


def test_neighbouring_states_above_one_half_are_one_end():
    counter = WordCounter(None, BLANK)
    assert counter.hear(evidence(ends=(0.6, 0.7, 0.2, 0.5, 0.51))) == Counted(ends=2)
    assert counter.hear(evidence(ends=(0.9, 0.1, 0.9))) == Counted(ends=3)


def test_what_is_counted_adds_up():
    assert Counted(3, 5) + Counted(1, 2) == Counted(4, 7)
    assert Counted(3, 5) - Counted(1, 2) == Counted(2, 3)
    part = evidence(1, 2, 3, ends=(0.1, 0.2, 0.3)).part(slice(1, None))
    assert (part.labels.tolist(), part.boundaries.tolist()) == ([2, 3], [0.2, 0.3])


def stream(kind: str, seconds: float = 4.0) -> ExportedStream:
    """Four seconds were heard, and encoded as a hundred states; a word ends with every tenth."""
    one = ExportedStream(
        "de",
        Window(Bounds(12_000, 20_000, 6_000, 26_000), pieces()),
        net=ToyNet(kind),
        sound=ToyFeatures(1),
        new_counter=lambda: WordCounter(None, BLANK),
    )
    one.take_in(Sound(np.arange(seconds * RATE, dtype=np.float32)))
    return one


def looked(one: ExportedStream) -> ExportedStream:
    ends = np.arange(100) % 10 == 9
    one.encoded_anew((np.arange(100)[None],), 100, Evidence(boundaries=ends.astype(float)))
    return one


def test_a_net_that_encodes_anew_forgets_whole_states():
    one = looked(stream("whole"))
    assert (one.heard_ms, one.start_ms, one.ends_heard) == (4000.0, 0.0, 10)
    assert (one.span.frames, one.span.frame_ms) == (99, 40.0)  # the last only collects attention
    one.forget(1030.0)  # 25 states and three quarters
    assert (one.start_ms, one.encoded.states) == (1000.0, 75)
    assert one.encoded.memory[0][0, 0] == 25
    assert one.sound.start == 100
    assert len(one.levels) == 300
    assert one.counted_before == Counted(ends=2)
    assert one.encoded.counted == Counted(ends=8)
    assert one.span.start_ms == 1000.0
    assert one.states_before(1000.0 + 3 * 40 - 1e-9) == 3
    assert one.states_before(900.0) == 0
    one.forget(1079.0)
    assert (one.start_ms, one.encoded.states) == (1040.0, 74)
    one.forget(2000.0)  # before it is encoded again: of the ends that are left three go, too
    assert (one.counted_before, one.encoded.counted) == (Counted(ends=5), Counted(ends=5))
    assert one.ends_heard == 10  # nothing was heard anew


def test_a_net_that_goes_on_from_its_past_begins_anew_at_the_moment():
    one = looked(stream("keeps-past"))
    one.decoded = Decoded(cache=(np.ones(1),), groups=3)
    one.forget(1030.0)
    assert (one.start_ms, one.encoded.states, one.encoded.memory) == (1030.0, 0, None)
    assert (one.decoded.cache, one.decoded.groups) == (None, 0)
    assert one.counted_before == Counted(ends=10)
    assert (one.sound.start, len(one.levels)) == (103, 297)
    one.forget(9000.0)  # further than was heard
    assert (one.start_ms, one.sound.start, len(one.levels)) == (4000.0, 400, 0)
    one.forget(100.0)
    assert one.start_ms == 4000.0


def test_a_window_that_is_gone_is_forgotten_whole():
    one = looked(stream("whole"))
    one.forget(4000.0)
    assert (one.start_ms, one.encoded.states) == (4000.0, 0)
    assert one.counted_before == Counted(ends=10)
    one.encoded_anew((np.zeros((1, 10)),), 10, Evidence(boundaries=np.ones(10)))
    assert one.ends_heard == 11


def test_it_settles_at_the_quietest_moment_of_the_second_half():
    one = stream("whole", seconds=10.0)
    one.levels[:] = 5.0
    one.levels[100:140] = 0.0  # in the first half
    one.levels[700:740] = 1.0
    assert one.quiet_ms() == 7000.0 + 120.0  # a quarter of a second fits first at frame 700
    one.forget(2000.0)
    assert one.quiet_ms() == 7120.0


def test_it_settles_no_more_than_a_full_window():
    one = stream("whole", seconds=40.0)  # some of it came at once
    frames = int(one.window.bounds.full / 10)
    one.levels[:] = 5.0
    one.levels[frames + 10 : frames + 60] = 0.0
    one.levels[frames - 200 : frames - 160] = 1.0
    assert one.quiet_ms() == 10.0 * (frames - 200) + 120.0


@pytest.mark.parametrize(("kind", "cache"), [("keeps-past", "b"), ("whole", None)])
def test_what_was_committed_is_gone_on_from(kind, cache):
    one = stream(kind)
    one.keep_trail(["a", "b", "c"])
    one.committed(1)
    assert (one.decoded.cache, one.decoded.drafted) == (cache, ("b", "c"))
    one.committed(2)  # further than is known
    assert (one.decoded.cache, one.decoded.drafted) == (cache, ())


def test_a_tenth_of_a_second_can_be_encoded_and_less_waits():
    net, frames = ToyNet("whole"), np.zeros((20, 1), np.float32)
    streams = [stream("whole") for _ in range(3)]
    encode_at_once(net, streams, [frames[:10], frames[:9], frames])
    assert [one.encoded.states for one in streams] == [3, 0, 5]
    assert [one.encoded.memory is None for one in streams] == [False, True, False]
    encode_at_once(net, streams[1:2], [frames[:9]])
    assert streams[1].encoded.memory is None


def test_hypotheses_of_any_length_are_scored_each_with_what_was_kept_of_it():
    """The first word is spoken in twenty states, then the second; the toy keeps what it read."""
    one = stream("transducer")
    one.encoded.memory, one.encoded.states = (np.repeat([1, 2], 20)[None],), 40

    def hypothesis(*tokens):
        return Hypothesis(tokens, 0.0, (), (np.array([tokens[:-1]]),) if tokens[1:] else None)

    right, wrong = FIRST + 1, FIRST + 3
    hypotheses = [hypothesis(1, wrong), hypothesis(1), hypothesis(1, right)]
    rows, after = _score(one.net, one, 40, hypotheses)
    assert [kept[0].tolist() for kept in after] == [[[1, wrong]], [[1]], [[1, right]]]
    assert rows[1].argmax() == right
    assert rows[2].argmax() == FIRST + 2
    assert rows[0].max() < LIKELY  # nobody knows what follows a word that was not spoken
    assert (rows[:, 0] == -np.inf).all()  # padding is never written
    rows, _ = _score(one.net, one, 20, hypotheses[2:])
    assert rows[0].argmax() == 2  # of the states that it may see, all is said


class Echo:
    """A net whose states are the frames that it was given; heads and what it keeps tell the row."""

    def __init__(self, chunks=None):
        self.config = SimpleNamespace(chunks=chunks, bands=2)
        self.given = []

    def begin_stream(self, batch):
        return (np.full((batch, 1), -1.0),)

    def cut(self, memory, states):
        return tuple(array[:, states] for array in memory)

    def encode(self, features, lengths):
        self.given.append((features.shape, lengths.tolist()))
        rows = np.arange(len(features))[:, None]
        labels = rows * 100 + np.arange(features.shape[1])
        boundaries = rows + np.arange(features.shape[1]) / 100
        return Encoding(lengths, (features[..., 0],), labels, lengths - 1, boundaries)

    def hear(self, features, frames, stream):
        self.given.append(stream[0].ravel().tolist())
        return self.encode(features, frames), (stream[0] + 10,)


class Told:
    """A stream that notes what was encoded of it, and keeps what it is told to keep."""

    def __init__(self, first, count):
        frames = np.arange(first, first + count, dtype=np.float32)
        self.sound = SimpleNamespace(frames=np.stack([frames, frames], axis=1))
        self.encoded = SimpleNamespace(kept=None)
        self.told = []

    def encoded_anew(self, memory, states, evidence):
        self.told.append((memory[0].ravel().tolist(), states, evidence))

    def encoded_more(self, memory, states, kept, evidence):
        self.encoded_anew(memory, states, evidence)
        self.encoded.kept = kept
        self.sound.frames = self.sound.frames[16:]


def test_windows_of_different_lengths_are_encoded_together_each_as_it_is():
    net, streams = Echo(), [Told(100, 12), Told(500, 3), Told(200, 15)]
    encode_windows(net, streams, [False] * 3)
    assert net.given == [((2, 15, 2), [12, 15])]
    assert [len(one.told) for one in streams] == [1, 0, 1]
    memory, states, evidence = streams[2].told[0]
    assert (memory, states) == ([*range(200, 215)], 15)
    assert evidence.labels.tolist() == [*range(100, 114)]  # of its own row, as many as there are
    assert evidence.boundaries == pytest.approx(1 + np.arange(15) / 100)
    memory, states, evidence = streams[0].told[0]
    assert (memory, states) == ([*range(100, 112)], 12)
    assert (evidence.labels.tolist(), len(evidence.boundaries)) == ([*range(11)], 12)


def test_chunks_are_heard_when_they_are_whole_and_the_rest_at_the_end():
    chunks = Chunks(4, 2, ())
    net, window = Echo(chunks), chunks.window
    streams = [Told(100, window + 16), Told(300, window - 1), Told(500, 5), Told(700, window)]
    encode_windows(net, streams, [False, False, True, False])
    assert [[states for _, states, _ in one.told] for one in streams] == [
        [window, window], [], [5], [window],
    ]  # fmt: skip
    assert [memory[:3] for memory, _, _ in streams[0].told] == [[100, 101, 102], [116, 117, 118]]
    # What the first has kept goes with it, though it is alone by then.
    assert net.given[::2] == [[-1.0] * 3, [9.0]]
    assert [one.encoded.kept and one.encoded.kept[0].item() for one in streams] == [
        19.0, None, 9.0, 9.0,
    ]  # fmt: skip
    assert [len(one.sound.frames) for one in streams] == [window - 16, window - 1, 0, window - 16]
