"""What the streams of the families keep of the sound, by hand."""

import numpy as np
import pytest

from dragoman.audio.chunk import RATE
from dragoman.models import Sound
from dragoman.models.moonshine.encoder import STATE, Encoded
from dragoman.models.moonshine.stream import STATE_MS, MoonshineStream
from dragoman.models.moonshine.units import MoonshineUnits
from dragoman.models.search import Found
from dragoman.models.whisper.alignment import PUBLISHED, alignment_heads
from dragoman.models.whisper.engine import View
from dragoman.models.whisper.stream import PADDING, Encoding, Transcript, WhisperStream
from dragoman.models.window import Bounds, Window

from .toy_net import FIRST, pieces

BOUNDS = Bounds(long=8_000, too_long=12_000, kept=2_000, full=24_000)


def moonshine(samples) -> MoonshineStream:
    one = MoonshineStream("en", Window(BOUNDS, pieces()))
    one.take_in(Sound(np.asarray(samples, np.float32)))
    return one


def test_moonshine_forgets_whole_states():
    assert moonshine(np.zeros(RATE)).heard_ms == 1000.0
    one = moonshine(np.arange(10 * STATE))
    assert (one.heard_ms, one.start_ms) == (10 * STATE_MS, 0.0)
    one.states = Encoded(count=10)
    one.forget(0.5 * STATE_MS)  # less than a state: nothing goes
    assert (one.start_ms, one.states.count) == (0.0, 10)
    one.forget(3.5 * STATE_MS)
    assert one.start_ms == 3 * STATE_MS
    assert one.samples[0] == 3 * STATE
    assert one.states.count == 0  # and the rest is encoded anew
    assert one.heard_ms == 10 * STATE_MS
    assert (one.span.start_ms, one.span.frames, one.span.frame_ms) == (3 * STATE_MS, 7, STATE_MS)
    one.forget(STATE_MS)  # what is gone is gone
    assert one.start_ms == 3 * STATE_MS
    assert len(one.until(5 * STATE_MS)) == 2 * STATE  # from where the window begins
    one.forget(5 * STATE_MS - 1e-9)  # as a sum may have it
    assert one.start_ms == 5 * STATE_MS
    one.forget(6 * STATE_MS - 0.01)
    assert one.start_ms == 5 * STATE_MS
    one.forget(99 * STATE_MS)
    assert (one.start_ms, len(one.samples)) == (10 * STATE_MS, 0)


def test_states_that_are_one_for_the_decoder_are_one_frame():
    one = moonshine(np.zeros(10 * STATE + 7))
    one.joined = 4
    assert (one.span.frames, one.span.frame_ms) == (3, 4 * STATE_MS)  # the last is not whole
    one.samples = one.samples[: 8 * STATE]
    assert one.span.frames == 2


def test_moonshine_knows_the_sound_that_has_no_states_yet():
    one = moonshine(np.arange(5 * STATE + 7))
    assert len(one.unseen) == 5 * STATE + 7
    one.encoded(Encoded(count=3))
    assert one.unseen[0] == len(one.states) * STATE
    assert len(one.until(2 * STATE_MS)) == 2 * STATE


def test_moonshine_settles_at_the_quietest_moment_of_the_second_half():
    levels = np.ones(480)  # states of 24 ms
    levels[100:120] = 0.0  # in the first half, which does not count
    levels[250] = 0.0  # too short
    levels[262:282] = 0.1
    levels[400:420] = 0.2
    sound = np.repeat(levels, STATE)
    sound[::2] *= -1
    one = moonshine([*sound, *np.ones(7)])  # a state more has begun
    # A quarter of a second is ten states; the first that are all quiet begin with the 262nd.
    assert one.quiet_ms() == pytest.approx((262 + 5) * STATE_MS, abs=1)
    one.forget(40 * STATE_MS)  # its second half begins with the 260th
    assert one.quiet_ms() == pytest.approx((262 + 5) * STATE_MS, abs=1)


def test_moonshine_settles_no_more_than_a_full_window():
    sound = np.ones(28 * RATE, np.float32)  # some of it came at once
    sound[26 * RATE : 27 * RATE] = 0.0
    sound[16 * RATE : 17 * RATE] = 0.5
    assert 16_000 <= moonshine(sound).quiet_ms() <= 17_000


def test_moonshine_takes_the_silence_of_a_machine_for_quiet():
    sound = np.ones(20 * RATE, np.float32)
    sound[12 * RATE : 13 * RATE] = 0.0
    with np.errstate(all="raise"):
        assert 12_000 <= moonshine(sound).quiet_ms() <= 13_000


def test_moonshine_counts_the_words_of_sound_that_is_gone():
    one = moonshine(np.zeros(10 * STATE))
    one.words_in = lambda labels: int((labels > 0).sum())
    one.encoded(Encoded(count=9, labels=np.array([1, 0, 1, 1, 0, 0, 1, 0, 1])))
    assert one.words_heard == 5
    one.forget(3 * STATE_MS)  # with two of them
    assert one.words_before == 2
    one.encoded(Encoded(count=6, labels=np.array([1, 0, 0, 1, 0, 1])))
    assert one.words_heard == 5
    one.forget(3 * STATE_MS)  # nothing goes, nothing is counted
    assert (one.words_before, one.states.count) == (2, 6)


def test_moonshine_keeps_the_newest_of_much_sound_that_is_not_understood():
    def trimmed(seconds, doubted, gone=0.0):
        one = moonshine(np.zeros(seconds * RATE))
        one.forget(gone)
        one.window.said, one.window.looks = [FIRST + 1, FIRST + 2], [1000.0, 2000.0]
        one.doubted, one.sureness = doubted, (-0.5,)
        return one.trim(), one.start_ms, len(one.window.said), one.sureness

    # Of nine seconds, two; what a state begins with is rounded down.
    kept = 7000 - 7000 % STATE_MS
    assert trimmed(9, (-1.5, -1.6)) == (True, pytest.approx(kept), 0, (-0.5, -1.5, -1.6))
    assert trimmed(8, (-1.5,)) == (False, 0.0, 2, (-0.5,))  # that is not yet much
    assert trimmed(9, ()) == (False, 0.0, 2, (-0.5,))
    begin = 50 * STATE_MS
    assert trimmed(9, (-1.5,), begin) == (False, begin, 2, (-0.5,))  # of what there is


def written(*words: int, at, ended=True) -> Found:
    looks = tuple(np.eye(50, dtype=np.float32)[place] for place in at)
    return Found(tuple(word + FIRST for word in words), (0.0,) * len(words), looks, ended)


def test_a_transcript_keeps_where_its_words_are():
    one = Transcript()
    one.renew(pieces(), written(1, 2, 3, at=(5, 20, 40)), start_ms=1000.0)
    assert one.words == (" w1", " w2", " w3")
    assert one.looks == [1100.0, 1400.0, 1800.0]  # states of 20 ms
    assert (one.count, one.tokens) == (3, (FIRST + 1, FIRST + 2, FIRST + 3))
    assert one.forget(1100.0) == []
    assert (one.count, len(one.tokens)) == (3, 3)
    assert one.forget(1400.1) == [(" w1", 1100.0), (" w2", 1400.0)]
    assert (one.words, one.looks, one.tokens) == ((" w3",), [1800.0], ())
    assert (one.words_before, one.count) == (2, 3)  # those that are gone were heard, too
    one.renew(pieces(), written(3, 4, at=(2, 9)), start_ms=1500.0)
    assert (one.count, one.looks) == (4, [1540.0, 1680.0])
    # Of a word of two tokens, the later look; what the word before looked at is its own.
    parts = MoonshineUnits(("", "", "", "", "▁in", "ter", "▁pre"))
    one.renew(parts, written(0, 1, 2, at=(20, 5, 7)), start_ms=0.0)
    assert (one.words, one.looks) == ((" inter", " pre"), [400.0, 140.0])
    # A full stop looks at the next sentence; a mark that stands alone, wherever it does.
    parts = MoonshineUnits(("", "", "", "", "▁so", ".", "▁pre", "▁–"))
    one.renew(parts, written(0, 1, 2, 3, at=(5, 44, 45, 49)), start_ms=0.0)
    assert (one.words, one.looks) == ((" so.", " pre", " –"), [100.0, 900.0, 980.0])


@pytest.mark.parametrize(
    ("start_ms", "level", "like"),
    [(100.0, 1.0, True), (120.0, 1.0, False), (100.0, 1.09, True), (100.0, 0.89, False)],
)
def test_what_was_encoded_is_used_again_for_sound_that_looks_the_same(start_ms, level, like):
    assert Encoding(None, 100.0, 900.0, 1.0).like(start_ms, level) is like


def test_heads_that_tell_where_a_decoder_looks():
    base = PUBLISHED[6, 8, 51865]
    assert alignment_heads(None, layers=6, heads=8, words=51865) == base
    assert alignment_heads([], layers=6, heads=8, words=51865) == base
    assert alignment_heads([[1, 2]], layers=6, heads=8, words=51865) == [(1, 2)]
    # A distilled model names those of its teacher: what it has of them, else the later half.
    assert alignment_heads([[5, 1], [1, 7], [1, 8], [2, 0]], layers=2, heads=8, words=9) == [(1, 7)]
    assert alignment_heads([[9, 9]], layers=3, heads=2, words=9) == [(1, 0), (1, 1), (2, 0), (2, 1)]


class BareMel:
    """Tells its windows by what was asked for."""

    def __init__(self, frames, start=0, loudest=1.0):
        self.frames, self.start, self.loudest = frames, start, loudest
        self.heard = frames * RATE // 100
        self.levels = np.ones(frames, np.float32)

    def window(self, padding, end=None):
        return padding, end

    def level(self, begin, end):
        return self.levels[begin:end]

    def forget(self, frame):
        self.start = max(self.start, frame)


def whisper(frames, start=0, **more) -> WhisperStream:
    window = Window(BOUNDS, pieces())
    return WhisperStream("de", window, mel=BareMel(frames, start), detects=False, **more)


@pytest.mark.parametrize(("frames", "odd"), [(101, 1), (100, 0)])
def test_whisper_sees_an_even_number_of_frames(frames, odd):
    one = whisper(frames)
    assert one.view() == View((PADDING + odd, None), 50, None, plain=False)
    assert (one.span.frames, one.span.frame_ms) == (49, 20.0)  # the last only collects attention
    assert whisper(1).span.frames == 0


def test_whisper_sees_a_window_again_in_part_if_it_looks_the_same():
    one = whisper(300, 20)
    first = one.view()
    assert first == View((PADDING, None), 140)  # all of it
    one.encoded("all", first)
    assert one.whole == Encoding("all", 200.0, 3000.0, 1.0)
    one.mel.frames, one.mel.heard = 448, 448 * RATE // 100  # 1.48 s later
    assert one.view() == View((PADDING, None), 214, "all", renew=False)
    assert one.view(plain=True) == View((PADDING, None), 214, "all", plain=True)
    one.encoded("part", one.view())  # what was made of all is what the next look goes on from
    assert (one.states, one.whole) == ("part", Encoding("all", 200.0, 3000.0, 1.0))
    one.mel.frames, one.mel.heard = 450, 450 * RATE // 100
    assert one.view() == View((PADDING, None), 215, "all", renew=True)
    one.mel.loudest = 2.0  # nothing of before looks as it did
    assert one.view() == View((PADDING, None), 215)


def test_whisper_settles_at_a_quiet_even_frame():
    one = whisper(2100, 100)
    one.mel.levels[500:600] = 0.0  # in the first half, which ends at frame 1100
    one.mel.levels[1401:1441] = 0.5
    assert one.quiet_frame() == 1412  # a quarter of a second, 25 frames, first fits at 1401
    assert one.view_until(1411) == View((PADDING + 1, 1411), 655, None, plain=True)


def test_whisper_settles_no_more_than_it_can_encode():
    """The net has positions for a full window, and for the silence behind it."""
    one = whisper(3200, 100)  # 31 s: five of them came at once
    one.mel.levels[2800:2900] = 0.0
    one.mel.levels[2000:2100] = 0.5
    assert one.quiet_frame() == 2012
    one.window.looks.append(29_000.0)  # of a word that was said
    assert one.quiet_frame() == 100 + BOUNDS.full / 10


def test_whisper_forgets_up_to_an_even_frame():
    one = whisper(300)
    one.forget(1019.0)
    assert one.start_ms == 1000.0
    one.forget(1020.0 - 1e-9)  # as a sum may have it
    assert one.start_ms == 1020.0
