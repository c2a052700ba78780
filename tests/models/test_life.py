"""The life of a stream, moment by moment, on one that has no net at all."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from dragoman.audio.chunk import RATE
from dragoman.audio.ear import Voice
from dragoman.errors import DragomanError
from dragoman.models import Ask, BatchError, Draft, Feature, Sound
from dragoman.models.base import fail_alone
from dragoman.models.drafting import Span
from dragoman.models.life import WindowModel, WindowStream
from dragoman.models.search import Found
from dragoman.models.window import Bounds, Window

from .toy_net import FIRST, pieces
from .word_for_word import WordForWord

SPEAKING = Voice(spoken=True, speaking=True, silence_ms=0.0)
BOUNDS = Bounds(long=12_000, too_long=20_000, kept=6_000, full=26_000)


@dataclass(slots=True, eq=False)
class BareStream(WindowStream):
    """Knows how much it heard, and where its window begins."""

    heard_ms: float = 0.0
    start_ms: float = 0.0

    @property
    def span(self):
        return Span(self.start_ms, int((self.heard_ms - self.start_ms) / 40), 40.0)

    def take_in(self, sound):
        if sound.samples.ndim > 1:
            raise ValueError("no sound")
        self.heard_ms += len(sound.samples) * 1000 / RATE

    def forget(self, until_ms):
        self.start_ms = max(self.start_ms, until_ms)


class BareModel(WindowModel):
    """Notes what it is asked; it says one word, that of its prompt."""

    stream_type = BareStream
    features = frozenset({Feature.ATTENTION})
    hears = speaks = ("en",)
    name = "bare"

    def __init__(self):
        self.encoded, self.spoken, self.kept, self.cuts = [], [], [], 0
        self.found = Found((FIRST + 1,), (-0.1,), (np.ones(3, np.float32),), True)

    def open(self, source, target, *, transcript=False):
        return stream()

    def encode(self, streams, closing):
        self.encoded.append(list(closing))

    def speak(self, streams, asks):
        self.spoken.append(list(asks))
        return [self.found] * len(streams)

    def speak_part(self, stream):
        return self.found, stream.settle_after_ms

    def committed(self, stream, tokens):
        self.kept.append(tokens)

    def trimmed(self):
        self.cuts += 1


def stream(heard_ms=0.0, start_ms=0.0, said=(), looks=(), **more) -> BareStream:
    tokens = [word + FIRST for word in said]
    window = Window(BOUNDS, pieces(), tokens, list(looks))
    return BareStream("en", window, heard_ms=heard_ms, start_ms=start_ms, **more)


def sound(ms, voice=SPEAKING, **more) -> Sound:
    return Sound(np.zeros(int(ms * RATE / 1000), np.float32), voice, **more)


def quiet(ms) -> Voice:
    return Voice(spoken=False, speaking=False, silence_ms=ms)


def test_until_somebody_speaks_two_seconds_are_kept():
    one = stream()
    one.hear(sound(3000, quiet(3000)))
    assert (one.start_ms, one.spoken) == (1000.0, False)
    one.hear(sound(500, quiet(3500)))
    assert one.start_ms == 1500.0
    one.transcript = (" old",)
    one.hear(sound(500))
    assert (one.start_ms, one.spoken, one.transcript) == (1500.0, True, ())
    one.hear(sound(5000, quiet(5000)))  # a pause is part of what is spoken
    assert (one.start_ms, one.spoken, one.voice) == (1500.0, True, quiet(5000))


def test_a_family_encodes_and_its_life_notes_what_was_seen():
    """One that had to note it by itself, and did not know, would never be asked for a word."""
    model = BareModel()
    one = model.open(None, "en")
    model.hear([one], [sound(1000)])
    assert (one.seen, one.fresh, model.encoded) == ((0.0, 1000.0), True, [[False]])
    assert model.draft([one], [Ask()])[0].words == (" w1",)
    model.hear([one], [sound(1100, quiet(1100))])
    model.hear([one], [sound(500, quiet(1600))])  # nothing new
    assert one.seen == (0.0, 2100.0)


def test_a_window_that_moved_on_behind_all_speech_is_silence():
    """As that of a policy that says nothing before the end does, when it is full."""
    model = BareModel()
    one = model.open(None, "en")
    model.hear([one], [sound(7000, look=False)])
    for silence_ms in range(5000, 100_001, 5000):
        model.hear([one], [sound(5000, quiet(silence_ms), look=False)])
    assert one.window.settled.tokens == (FIRST + 1,)  # the net was asked once
    assert (one.start_ms, one.spoken) == (105_000.0, False)
    model.hear([one], [sound(400, quiet(100_400), last=True, closing=True)])
    (draft,) = model.draft([one], [Ask(final=True)])
    assert (draft.words, model.spoken) == ((" w1",), [])
    model.hear([one], [sound(1000)])
    assert (one.start_ms, one.spoken) == (105_400.0, True)


@pytest.mark.parametrize(
    ("voice", "said", "rest", "spoken"),
    [
        (quiet(5000), (), 0, False),
        (quiet(4999), (), 0, True),  # the last of a word is in the window
        (quiet(5000), (1,), 0, True),
        (quiet(5000), (), 1, True),  # a word that is not said yet
        (Voice(spoken=True, speaking=True, silence_ms=5000), (), 0, True),  # nobody is sure
    ],
)
def test_what_of_a_window_may_still_be_said_is_kept(voice, said, rest, spoken):
    one = stream(14_000, 10_000, said, [10_000.0] * len(said), spoken=True)
    one.window.rest = Draft((FIRST,) * rest)
    one.hear(sound(1000, voice))
    assert one.spoken is spoken
    assert one.start_ms == (10_000 if spoken else 13_000)


def test_a_moment_of_speech_is_worth_a_look():
    assert not stream(heard_ms=5000, start_ms=4801, spoken=True).worth_a_look
    assert stream(heard_ms=5000, start_ms=4800, spoken=True).worth_a_look
    assert not stream(heard_ms=5000).worth_a_look


def test_a_full_window_settles_in_its_second_half_behind_what_was_said():
    assert stream(heard_ms=30_000, start_ms=10_000).settle_after_ms == 20_000
    assert stream(30_000, 10_000, [1, 2], [12_000, 25_000]).settle_after_ms == 25_000
    assert stream(30_000, 10_000, [1], [31_000]).settle_after_ms == 30_000


@pytest.mark.parametrize(
    ("seen", "silence_ms", "old"),
    [
        (None, 0, False),
        ((1000.0, 9000.0), 9000, False),  # the window begins elsewhere now
        ((2000.0, 10_000.0), 0, True),  # nothing came since
        ((2000.0, 9999.5), 0, False),
        ((2000.0, 9000.0), 2000, False),  # a second unseen: silent for two is not yet longer
        ((2000.0, 9000.0), 2001, False),  # it is rested by now, which is worth one more look
        ((2000.0, 9800.0), 1201, True),  # 200 ms unseen, silent for a second before
        ((2000.0, 9800.0), 1200, False),
        ((2000.0, 9800.0), 2200, False),  # rested, and not seen so
        ((2000.0, 9800.0), 2201, True),
    ],
)
def test_what_is_new_to_see(seen, silence_ms, old):
    one = stream(10_000.0, 2000.0, seen=seen, voice=quiet(silence_ms))
    assert one.nothing_new() is old


def test_a_look_is_fresh_until_it_is_drafted():
    one = stream(3000.0, 1000.0)
    one.look()
    assert (one.seen, one.fresh) == ((1000.0, 3000.0), True)
    one.drafted(Draft((5,)))
    assert not one.fresh


def test_a_sentence_that_ended_too_soon_stalls_until_something_is_said():
    over = Draft(ended=True)
    one = stream(5000.0, voice=SPEAKING)
    for draft in (Draft((5,), ended=True), Draft(ended=False)):
        one.drafted(draft)
        assert one.mute_from is None
    one.drafted(over)
    assert one.mute_from == 5000.0
    one.heard_ms = 5999.0
    one.drafted(over)
    assert (one.mute_from, one.stalled) == (5000.0, False)
    one.heard_ms = 6000.0
    assert one.stalled
    one.voice = replace(SPEAKING, silence_ms=1.0)  # the last of it was silence
    assert not one.stalled
    one.voice = SPEAKING
    one.drafted(Draft((5,)))  # said, since it had to be: the stall lasts until it is final
    assert one.mute_from == 5000.0
    one.voice, one.heard_ms = quiet(100), 9000.0
    assert not one.stalled
    one.drafted(over)
    assert one.mute_from is None


def test_a_closed_stream_begins_anew_where_it_is():
    one = stream(8000.0, 1000.0, [1, 2], [2000, 3000], voice=quiet(500), spoken=True, mute_from=7.0)
    one.close()
    assert (one.start_ms, one.spoken, one.mute_from) == (8000.0, False, None)
    assert one.window == Window(BOUNDS, pieces())
    one = stream(8000.0, voice=SPEAKING, spoken=True)
    one.close()
    assert one.spoken  # and somebody goes on


def test_in_a_long_pause_after_whole_sentences_the_window_closes():
    def after(silence_ms, rest):
        one = stream(9000.0, 0.0, [1, 4], [1000, 2000], voice=quiet(silence_ms))
        one.window.rest = rest
        return one.trim(), one.start_ms

    assert after(2001, Draft(ended=True)) == (True, 9000.0)
    assert after(2000, Draft(ended=True)) == (False, 0.0)
    assert after(2001, Draft((7,), ended=True)) == (False, 0.0)


def test_a_long_window_is_cut_behind_a_sentence():
    one = stream(12_001.0, 0.0, [1, 4, 2], [1000, 2000, 6000])
    assert one.trim()
    assert (one.start_ms, one.window.said) == (2250.0, [FIRST + 2])
    assert not one.trim()


def test_where_the_window_begins_and_how_much_was_said_of_it():
    one = stream(9000.0, 500.0, [1, 4], [1000, 2000])
    assert one.open == (500.0, 5)  # w1 w4.
    one.window.unfinished = one.window.said[1:]  # that is no word yet, and was not said
    assert one.open == (500.0, 2)
    one.window.unfinished = [FIRST, *one.window.said]  # it began before the window
    assert one.open == (500.0, 0)
    one.window.unfinished = []
    one.window.settled = Draft((7,))
    assert one.open is None


def test_who_may_not_look_or_has_nothing_to_see_is_not_encoded():
    model = BareModel()
    streams = [model.open(None, "en") for _ in range(4)]
    sounds = [
        sound(400, closing=True),
        sound(400, look=False),
        sound(400, quiet(400)),
        sound(400),
    ]
    model.hear(streams, sounds)
    assert model.encoded == [[True, False]]
    assert [one.seen is not None for one in streams] == [True, False, False, True]


def test_sound_that_cannot_be_taken_ends_one_alone():
    model = BareModel()
    streams = [model.open(None, "en") for _ in range(3)]
    model.hear(streams, [sound(400, look=False)] * 3)
    broken = replace(sound(400), samples=np.zeros((4, 4), np.float32))
    with pytest.raises(BatchError) as caught:
        model.hear(streams, [sound(400), broken, sound(400)])
    assert list(caught.value.errors) == [1]
    assert [one.seen is not None for one in streams] == [True, False, True]


def test_a_stream_of_another_model_is_refused():
    with pytest.raises(DragomanError, match="another model"):
        BareModel().draft([object()], [Ask()])


def test_no_net_is_asked_about_silence_or_twice_about_the_same():
    model = BareModel()
    one = model.open(None, "en")
    model.hear([one], [sound(400, quiet(400))])
    (draft,) = model.draft([one], [Ask()])
    assert (draft.tokens, draft.ended, model.spoken) == ((), True, [])
    model.hear([one], [sound(400)])
    (draft,) = model.draft([one], [Ask()])
    assert draft.words == (" w1",)
    model.commit(one, draft, 0)
    (again,) = model.draft([one], [Ask()])  # not fresh, and its text had ended
    assert again.tokens == draft.tokens
    assert len(model.spoken) == 1
    model.draft([one], [Ask(final=True)])  # what is final is searched once more
    assert len(model.spoken) == 2
    model.hear([one], [sound(400)])
    model.draft([one], [Ask()])
    assert len(model.spoken) == 3


def test_what_no_encoder_has_seen_is_not_drafted():
    model = BareModel()
    one = model.open(None, "en")
    model.hear([one], [sound(400, look=False)])
    assert model.draft([one], [Ask(final=True)])[0].tokens == ()
    model.hear([one], [sound(400)])
    model.commit(one, model.draft([one], [Ask(final=True)])[0], 1, closed=True)
    assert model.draft([one], [Ask(final=True)])[0].tokens == ()  # of the next, nothing was heard
    assert len(model.spoken) == 1


def test_a_draft_has_attention_if_its_model_has():
    model = BareModel()
    one = model.open(None, "en")
    model.hear([one], [sound(400)])
    assert model.draft([one], [Ask(final=True)])[0].attention.shape == (1, 10)
    model.features = frozenset()
    assert model.draft([one], [Ask(final=True)])[0].attention is None


def test_several_streams_are_drafted_together_each_for_itself():
    model = BareModel()
    streams = [model.open(None, "en") for _ in range(3)]
    model.hear(streams, [sound(400), sound(400, quiet(400)), sound(400)])
    asks = [Ask(max_tokens=1), Ask(max_tokens=2), Ask(max_tokens=3)]
    drafts = model.draft(streams, asks)
    assert model.spoken == [[asks[0], asks[2]]]
    assert [draft.words for draft in drafts] == [(" w1",), (), (" w1",)]
    assert [one.fresh for one in streams] == [False, False, False]


def test_a_draft_that_had_not_ended_is_made_again():
    model = BareModel()
    model.found = replace(model.found, ended=False)
    one = model.open(None, "en")
    model.hear([one], [sound(400)])
    (draft,) = model.draft([one], [Ask()])
    model.commit(one, draft, 0)
    model.draft([one], [Ask()])
    assert len(model.spoken) == 2


def test_a_full_window_is_settled_in_parts_and_what_is_committed_is_told_to_the_family():
    model = BareModel()
    one = model.open(None, "en")
    model.hear([one], [sound(26_000, look=False)])
    assert one.window.settled.tokens == ()
    model.hear([one], [sound(1000, look=False)])  # more than is full: half of it goes
    assert (one.start_ms, one.window.settled.tokens) == (13_500.0, (FIRST + 1,))
    model.hear([one], [sound(400)])
    model.found = Found((FIRST + 2, FIRST + 3), (-0.1, -0.2), model.found.looks * 2, True)
    (draft,) = model.draft([one], [Ask()])
    assert draft.words == (" w1", " w2", " w3")
    one.mute_from = 5.0
    model.commit(one, draft, 0)
    assert (one.mute_from, model.kept) == (5.0, [0])
    model.commit(one, draft, 3)
    assert one.mute_from is None
    assert model.kept == [0, 2]  # one of the three was of sound that is gone


def test_what_is_settled_does_not_loop():
    model = BareModel()
    model.found = Found((FIRST + 1,) * 6, (-0.1, -0.2, -0.3, -0.4, -0.5, -0.6))
    one = model.open(None, "en")
    model.hear([one], [sound(27_000, look=False)])
    assert one.window.settled.tokens == (FIRST + 1,)
    assert one.window.settled.log_probs == (-0.1,)


def test_much_sound_at_once_is_settled_until_the_rest_fits():
    model = BareModel()
    one = model.open(None, "en")
    # Of 60 s a full window, 26; of the 34 that are still too many the first half.
    model.hear([one], [sound(60_000, look=False)])
    assert (one.start_ms, one.window.settled.tokens) == (43_000.0, (FIRST + 1,) * 2)


def test_what_settles_does_not_go_on_with_a_loop_that_was_said():
    model = BareModel()
    model.found = Found((FIRST + 1,) * 2, (-0.1, -0.2))
    one = stream(26_000.0, 0.0, [1] * 4, [1000.0, 2000.0, 3000.0, 4000.0])
    model.hear([one], [sound(1000, look=False)])
    assert (one.window.settled.tokens, one.start_ms) == ((), 13_500.0)


def test_what_was_made_up_of_noise_does_not_settle():
    model = BareModel()
    model.found = Found((FIRST + 1, FIRST + 2), (-2.0, -3.0), silence=0.9)
    one = model.open(None, "en")
    model.hear([one], [sound(27_000, look=False)])
    assert one.window.settled.tokens == ()
    assert one.start_ms == 13_500.0


@pytest.mark.parametrize(("closed", "cuts", "start_ms"), [(False, 1, 1370.0), (True, 0, 13_000.0)])
def test_a_commit_cuts_the_window_or_closes_it(closed, cuts, start_ms):
    model = BareModel()
    one = model.open(None, "en")
    model.hear([one], [sound(13_000)])
    looks = np.eye(325, dtype=np.float32)[[28]]  # at 1120 ms
    model.commit(
        one, Draft((FIRST + 4,), (" w4.",), (1,), attention=looks, frame_ms=40.0), 1, closed
    )
    assert (model.cuts, one.start_ms) == (cuts, start_ms)
    assert one.window.said == []


def test_a_family_holds_a_full_stop_back_unless_it_says_otherwise():
    """A net ends every window with one, though the speaker may go on."""
    model, units = BareModel(), WordForWord().target
    tokens = (units.names.index("▁rot"), units.names.index("."))
    model.found = Found(tokens, (-0.1,) * 2, (np.ones(3, np.float32),) * 2, True)
    one = stream()
    one.window.units = units
    model.hear([one], [sound(1000)])
    assert model.draft([one], [Ask()])[0].text == " rot"
    assert model.draft([one], [Ask(final=True)])[0].text == " rot."
    model.late_stop = False
    assert model.draft([one], [Ask()])[0].text == " rot."


def test_who_has_heard_nothing_has_counted_nothing():
    one = stream()
    assert (one.words_heard, one.ends_heard, one.transcript) == (0, 0, ())


def test_what_fails_for_several_is_done_again_for_each_and_for_one_it_is_not():
    done = []

    def work(members):
        done.append([*members])
        if 2 in members:
            raise ValueError("two")

    failed = fail_alone(work, [1, 2, 3])
    assert [(one, str(error)) for one, error in failed.items()] == [(2, "two")]
    assert done == [[1, 2, 3], [1], [2], [3]]
    done.clear()
    assert [*fail_alone(work, [2])] == [2]
    assert fail_alone(work, [5, 6]) == {}
    assert done == [[2], [5, 6]]
    assert fail_alone(work, []) == {}
    assert done == [[2], [5, 6]]
