"""The model around the network: windows, commits, cuts, silence and batches, on a toy network."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from dragoman.audio.chunk import RATE, Chunk
from dragoman.audio.ear import Ear
from dragoman.detectors import make_detector
from dragoman.errors import DragomanError
from dragoman.interpreter import Interpreter, step
from dragoman.models import Ask, Draft, Sound
from dragoman.models.whisper.model import BOUNDS, STALLED, WRITTEN_SURE, WhisperModel
from dragoman.models.whisper.stream import Transcript
from dragoman.models.window import boundary
from dragoman.policies import make_policy
from dragoman.trace import Trace

from .toy_whisper import ToyEngine, ToyVad, tones, vocabulary


def model(**more) -> WhisperModel:
    return WhisperModel("toy", ToyEngine(), vocabulary(), **more)


def ear() -> Ear:
    return Ear(ToyVad().stream())


def hear(whisper: WhisperModel, stream, words: list[int], **more) -> None:
    whisper.hear([stream], [Sound(tones(words), **more)])


def chunks(sound: np.ndarray, seconds: float = 1.0) -> list[Chunk]:
    size = int(seconds * RATE)
    parts = [sound[i : i + size] for i in range(0, len(sound), size)]
    return [Chunk(part, last=index == len(parts) - 1) for index, part in enumerate(parts)]


def interpret(whisper: WhisperModel, policy: str, sound: np.ndarray, seconds: float = 1.0, **more):
    trace = Trace()
    interpreter = Interpreter(
        whisper, make_policy(policy), source="de", target="en", ear=ear(), record=trace, **more
    )
    longest = 0
    for chunk in chunks(sound, seconds):
        interpreter.hear(chunk)
        longest = max(longest, interpreter.stream.frames)
    return trace, interpreter, longest


def words_of(text: str) -> list[int]:
    return [int(word.strip(".").removeprefix("w")) for word in text.split()]


def talk(seconds: int) -> list[int]:
    """Words without end: no word follows itself, and no phrase comes twice in a row."""
    random = np.random.default_rng(7)
    words = [0]
    while len(words) < seconds:
        word = int(random.integers(20))
        if word != words[-1]:
            words.append(word)
    return words


POLICIES = [
    *(
        "greedy",
        "offline",
        "local-agreement",
        "alignatt:last=80",
        "edatt",
        "agreeatt",
        "wait-k:k=3",
    ),
    *("consensus", "confidence:gamma=0.5", "confidence:gamma=0.5,measure=tokens", "ksn"),
]


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_says_all_words_once(policy: str):
    words = [3, 1, 4, 0, 5, 9, 2, 6]
    trace, _, _ = interpret(model(), policy, tones(words))
    assert words_of(trace.prediction) == words
    assert trace.prediction.endswith(".")


@pytest.mark.parametrize("policy", ["greedy", "local-agreement", "alignatt:last=80"])
@pytest.mark.parametrize("seconds", [0.7, 3.7])
def test_a_long_talk_runs_in_a_short_window(policy: str, seconds: float):
    words = talk(90)
    trace, interpreter, longest = interpret(model(), policy, tones(words), seconds)
    assert words_of(trace.prediction) == words
    assert longest <= BOUNDS.too_long / 10 + 500
    window = interpreter.stream.window
    assert len(window.said) + len(window.before) + len(window.settled.tokens) < 100


def test_a_long_talk_that_nobody_commits_is_drafted_piece_by_piece():
    words = talk(100)
    whisper = model()
    trace, _, longest = interpret(whisper, "offline", tones(words))
    assert words_of(trace.prediction) == words
    assert longest <= BOUNDS.full / 10 + 100
    assert max(whisper._engine.windows) <= 3000
    assert {said.chunk for said in trace.sayings} == {99}


def test_one_huge_chunk_is_heard_like_many_small_ones():
    words = talk(70)
    trace, _, _ = interpret(model(), "greedy", tones(words), seconds=70)
    assert words_of(trace.prediction) == words


def test_silence_costs_nothing_and_says_nothing():
    whisper = model()
    trace, interpreter, longest = interpret(whisper, "greedy", np.zeros(60 * RATE, np.float32))
    assert trace.prediction == ""
    assert whisper._engine.windows == []
    assert longest <= 200
    assert interpreter.stream.voice.silence_ms >= 59_000


def test_a_pause_is_not_looked_at_again():
    whisper = model()
    trace, _, _ = interpret(whisper, "local-agreement", tones([1, 2, 3, *[-1] * 9, 4]))
    assert words_of(trace.prediction) == [1, 2, 3, 4]
    # Three words, at most three looks at the pause, the fourth word.
    assert len(whisper._engine.windows) <= 7
    # The drafts that are not made anew agree with the one before: the pause settles the words.
    assert [said.chunk for said in trace.sayings if "w3" in said.text] == [3]


def test_a_pause_closes_the_utterance():
    whisper = model()
    trace, interpreter, _ = interpret(
        whisper, "offline", tones([1, 2, -1, -1, 3, -1]), utterance_pause_ms=1000
    )
    assert [said.text for said in trace.sayings] == [" w1", " w2.", " w3."]
    assert trace.sayings[1].chunk == 3
    assert interpreter.stream.frames < 4


def test_the_full_stop_of_a_draft_waits():
    whisper = model()
    stream = whisper.open("de", "en")
    hear(whisper, stream, [1, 2])
    draft = whisper.draft([stream], [Ask()])[0]
    assert draft.words == (" w1", " w2")
    assert draft.ended
    final = whisper.draft([stream], [Ask(final=True)])[0]
    assert final.words == (" w1", " w2.")


@pytest.mark.parametrize("policy", ["greedy", "local-agreement", "agreeatt"])
def test_a_long_pause_ends_the_sentence(policy: str):
    trace, interpreter, _ = interpret(model(), policy, tones([1, 2, -1, -1, -1, -1, -1, 5, -1]))
    assert trace.prediction == "w1 w2. w5."
    stop = next(said for said in trace.sayings if said.text.endswith("."))
    assert stop.chunk < 7
    # The next sentence had a window of its own, with some of the silence before it.
    assert interpreter.model._engine.windows[-1] < 900


def test_a_short_pause_does_not_end_the_sentence():
    trace, _, _ = interpret(model(), "local-agreement", tones([1, 2, -1, -1, 5, -1]))
    assert trace.prediction == "w1 w2 w5."


def test_a_word_committed_in_part_is_printed_whole():
    whisper = model()
    stream = whisper.open("de", "en")
    hear(whisper, stream, [4, 3])
    draft = whisper.draft([stream], [Ask()])[0]
    assert draft.words == (" w4.", " w3")
    assert draft.ends == (2, 3)
    whisper.commit(stream, draft, 1)
    again = whisper.draft([stream], [Ask()])[0]
    assert again.words[0].startswith(" w4")
    assert again.ends[-1] == len(again.tokens)


def test_batch_equals_one_by_one():
    sounds = [tones([1, 2, 3, 4, 5]), tones([6, 7, 8, 9, 10]), tones([11, 12, -1, -1, 13])]
    policy = make_policy("local-agreement")
    alone = [interpret(model(), "local-agreement", sound)[0].prediction for sound in sounds]
    whisper = model()
    traces = [Trace() for _ in sounds]
    interpreters = [
        Interpreter(whisper, policy, source="de", target="en", ear=ear(), record=trace)
        for trace in traces
    ]
    for parts in zip(*(chunks(sound) for sound in sounds), strict=True):
        step(interpreters, list(parts))
    assert [trace.prediction for trace in traces] == alone
    assert max(whisper._engine.batches) == 3


def test_words_heard_are_counted_in_the_transcript():
    words = talk(60)
    _, interpreter, _ = interpret(
        model(), "wait-k:k=3", tones(words), detector=make_detector("transcript")
    )
    assert interpreter.stream.words_heard == len(words)


@pytest.mark.parametrize("policy", ["greedy", "local-agreement", "alignatt:last=80", "offline"])
def test_the_transcript_is_told_once_and_in_order(policy):
    """With pauses, in which utterances end, and in a talk that moves the window."""
    words = [*talk(40), -1, -1, -1, 3, 9, 1, -1, -1, -1, *talk(15)]
    interpreter = Interpreter(
        model(), make_policy(policy), source="de", target="en", ear=ear(), transcript=True
    )
    updates = [interpreter.hear(chunk) for chunk in chunks(tones(words))]
    told = "".join(word for update in updates for word in update.transcript)
    assert words_of(told) == [word for word in words if word >= 0]
    for update in updates:  # and how long ago they were spoken
        assert (update.transcript_lag_ms is None) == (not update.transcript)


@pytest.mark.parametrize("policy", ["greedy", "local-agreement", "offline"])
def test_words_whose_stop_looks_behind_the_sound_are_told(policy):
    """Whisper's stop at the end looks at the silence that follows the sound, which is no moment."""
    whisper = model()
    whisper._engine.stop_look = -1
    words = [*talk(40), -1, -1, -1, 3, 9, 1]
    interpreter = Interpreter(
        whisper, make_policy(policy), source="de", target="en", ear=ear(), transcript=True
    )
    updates = [interpreter.hear(chunk) for chunk in chunks(tones(words))]
    told = "".join(word for update in updates for word in update.transcript)
    assert words_of(told) == [word for word in words if word >= 0]


def test_a_sentence_is_told_when_its_translation_is_said_though_the_window_stays():
    words = [1, 2, 4, 6, 7, 8]  # a sentence ends with 4
    interpreter = Interpreter(
        model(), make_policy("greedy"), source="de", target="en", ear=ear(), transcript=True
    )
    said, told = [], []
    for chunk in chunks(tones(words)):
        update = interpreter.hear(chunk)
        said += words_of("".join(update.said))
        told += words_of("".join(update.transcript))
        if not chunk.last:
            assert interpreter.stream.start_ms == 0.0
            assert told == ([1, 2, 4] if 6 in said else [])
    assert told == words


def words_in(spoken):
    return tuple(word for word, _ in spoken)


def test_words_are_told_with_their_moments():
    words = (" Es", " ist.", " Und", " so")
    written = Transcript(looks=[100.0, 900.0, 2000.0, 2500.0], words=words)
    assert written.tell(2100.0) == [(" Es", 100.0), (" ist.", 900.0)]
    assert written.forget(2300.0) == [(" Und", 2000.0)]


def test_a_word_that_is_heard_at_another_moment_is_not_told_again():
    """Whisper writes the window down anew each time: looks move, words become others."""
    words = (" Es", " ist.", " Und", " so")
    written = Transcript(looks=[100.0, 900.0, 2000.0, 2500.0], words=words)
    assert words_in(written.tell(1000.0)) == ()
    assert words_in(written.tell(2100.0)) == (" Es", " ist.")
    written.looks, written.words = [100.0, 1900.0, 2000.0, 2600.0], (" Er", " ist.", " Und", " so")
    assert words_in(written.tell(2700.0)) == ()
    assert words_in(written.forget(2300.0)) == (" Und",)
    assert words_in(written.forget(9000.0)) == (" so",)
    assert written.told == ()
    assert written.count == 4


@pytest.mark.parametrize("then", [" Es", " Er"])  # what was told stays as it was, or does not
def test_the_first_word_of_the_next_sentence_is_not_taken_for_told(then):
    """The full stop before it looks where it looks, and looks move."""
    written = Transcript(looks=[100.0, 900.0, 900.0, 1500.0], words=(" Es", " ist.", " Ja", " so"))
    assert words_in(written.tell(1000.0)) == (" Es", " ist.")
    written.looks[2], written.words = 800.0, (then, *written.words[1:])
    assert words_in(written.forget(9000.0)) == (" Ja", " so")


def test_the_first_word_after_a_pause_is_told_though_it_looks_into_the_pause():
    written = Transcript(looks=[100.0, 900.0, 5000.0, 5500.0], words=(" Es", " ist.", " Ja", " so"))
    assert words_in(written.tell(5100.0)) == (" Es", " ist.")
    written.looks[2] = 1700.0
    assert written._told_before() == 2
    assert words_in(written.forget(1150.0)) == ()  # the window begins behind them
    written.start_ms = 1150.0
    written.looks, written.words = [1700.0, 5500.0], (" Ja", " so")
    assert words_in(written.forget(9000.0)) == (" Ja", " so")


def test_a_word_that_looks_astray_costs_no_other_its_telling():
    """The last is made up and looks at the beginning: a word before a moment too many."""
    words = (" Es", " ist.", " Ja", " so.", " Und")
    written = Transcript(looks=[100.0, 900.0, 2000.0, 2500.0, 3000.0], words=words)
    assert words_in(written.tell(2100.0)) == (" Es", " ist.")
    for first in (" Es", " Er"):  # the text of what was told is the same, or another
        written.words, written.looks[-1] = (first, *words[1:]), 40.0
        assert written._told_before() == 2
    assert words_in(written.tell(2600.0)) == (" Ja", " so.")
    assert words_in(written.forget(9000.0)) == (" Und",)


def test_a_word_of_which_some_sound_is_left_is_not_told_again():
    written = Transcript(looks=[100.0, 900.0, 1500.0], words=(" Die", " Karriere", " ist."))
    assert words_in(written.forget(1600.0)) == (" Die", " Karriere", " ist.")
    written.start_ms = 1500.0
    written.looks, written.words = [1600.0, 1700.0, 3000.0], (" karriere", " ist.", " Karriere")
    assert words_in(written.forget(9000.0)) == (" Karriere",)  # said again, later


def test_a_told_sentence_that_becomes_longer_is_not_told_again():
    words = (" Wir", " mitzuteilen.", " Ja", " so")
    written = Transcript(looks=[100.0, 900.0, 2000.0, 2500.0], words=words)
    assert words_in(written.tell(2100.0)) == (" Wir", " mitzuteilen.")
    written.looks = [100.0, 700.0, 900.0, 1000.0, 2000.0, 2500.0]
    written.words = (" Wir", " mit", " zu", " teilen.", " Ja", " so")
    assert words_in(written.tell(2600.0)) == ()
    assert words_in(written.forget(9000.0)) == (" Ja", " so")


def test_wait_k_on_detected_words():
    trace, _, _ = interpret(
        model(), "wait-k:k=3", tones([1, 2, 3, 5, 6, 7]), detector=make_detector("transcript")
    )
    assert [said.chunk for said in trace.sayings] == [2, 3, 4, 5, 5, 5]


class Speechless(ToyEngine):
    """Takes every sentence for over, unless it must go on: then it says a word that it heard."""

    def _speak(self, states, prompt):
        found = super()._speak(states, prompt)
        keep = min(prompt.least, 1)
        return replace(
            found,
            tokens=found.tokens[:keep],
            log_probs=found.log_probs[:keep],
            looks=found.looks[:keep],
            ended=True,
        )


def test_a_net_that_is_mute_while_somebody_speaks_must_go_on():
    engine = Speechless()
    whisper = WhisperModel("toy", engine, vocabulary())
    interpreter = Interpreter(
        whisper, make_policy("alignatt:last=0"), source="de", target="en", ear=ear()
    )
    said = [interpreter.hear(chunk).said for chunk in chunks(tones(talk(8)), 0.5)[:-1]]
    # Mute after half a second, for a second: then it must; what it says ends that, and so on.
    asked = [prompt.least for prompt, _ in engine.prompts]
    assert asked[:7] == [0, 0, STALLED, 0, 0, STALLED, 0]
    assert [bool(words) for words in said[:7]] == [False, False, True, False, False, True, False]


def test_nobody_must_go_on_in_a_pause_or_at_the_end():
    engine = Speechless()
    whisper = WhisperModel("toy", engine, vocabulary())
    interpreter = Interpreter(
        whisper, make_policy("alignatt:last=0"), source="de", target="en", ear=ear()
    )
    for chunk in chunks(tones([3, -1, -1, -1, -1]), 0.5):
        interpreter.hear(chunk)
    assert [prompt.least for prompt, _ in engine.prompts] == [0] * len(engine.prompts)


def test_only_a_window_that_went_on_is_encoded_in_part():
    whisper = model()
    stream = whisper.open("de", "en")
    views = []
    engine = whisper._engine
    encode = engine.encode
    engine.encode = lambda new: views.extend(new) or encode(new)

    def hear_half(word: int, loudness: float = 1.0, *, closing: bool = False) -> tuple[bool, ...]:
        """Whether what was made before is of use, whether all is made again, and how."""
        sound = Sound(loudness * tones([word])[: RATE // 2], closing=closing)
        whisper.hear([stream], [sound])
        view = views[-1]
        return view.before is not None, view.renew, view.plain

    assert hear_half(1) == (False, True, False)
    first = stream.whole
    assert hear_half(1) == (True, False, False)  # half a second later,
    assert stream.whole is first
    assert views[-1].before is first.states
    assert hear_half(2) == (True, False, False)  # and a second; still of the first look
    assert views[-1].before is first.states
    assert hear_half(2) == (True, True, False)
    assert stream.whole.states is stream.states
    assert hear_half(3) == (True, False, False)
    assert hear_half(3, closing=True) == (True, True, True)  # for good: as the net was made for
    assert hear_half(4) == (True, False, False)
    stream.forget(stream.start_ms + 1000)
    assert hear_half(4) == (False, True, False)
    assert hear_half(4) == (True, False, False)
    assert hear_half(5, 3.0) == (False, True, False)  # louder: all of it is scaled anew
    assert hear_half(5) == (True, False, False)


def test_final_drafts_take_more_care():
    whisper = model(beams=1, final_beams=4)
    interpret(whisper, "greedy", tones([1, 2, 3]))
    assert [beams for _, beams in whisper._engine.prompts] == [1, 1, 4]


def test_what_is_written_down_goes_on_from_the_draft_before():
    """A translation is searched anew each time, since it may begin otherwise; so is the end."""

    def asked(target: str) -> list[tuple[int, ...]]:
        whisper = model(beams=5)
        stream = whisper.open("de", target)
        for words, final in (([1, 2, 3], False), ([4, 5], False), ([6], True)):
            hear(whisper, stream, words)
            (draft,) = whisper.draft([stream], [Ask(final=final)])
            whisper.commit(stream, draft, 0)
        assert {prompt.sure for prompt, _ in whisper._engine.prompts} == {WRITTEN_SURE}
        return [prompt.guess for prompt, _ in whisper._engine.prompts]

    first, second, last = asked("de")
    assert first == last == ()
    assert second[:3] == (1, 2, 3)
    assert asked("en") == [()] * 3


def test_limits_of_an_ask_are_kept():
    whisper = model()
    stream = whisper.open("de", "en")
    hear(whisper, stream, [1, 2, 3])
    draft = whisper.draft([stream], [Ask(max_tokens=2)])[0]
    assert len(draft.tokens) == 2
    assert not draft.ended


def test_task_follows_the_languages():
    whisper = model()
    for source, target, expected in [
        ("de", "en", ["de", "translate"]),
        ("de", "de", ["de", "transcribe"]),
        ("en", "en", ["en", "transcribe"]),
        (None, "en", ["de", "translate"]),
    ]:
        stream = whisper.open(source, target)
        hear(whisper, stream, [1])
        whisper.draft([stream], [Ask()])
        prompt, _ = whisper._engine.prompts[-1]
        names = [whisper._vocabulary.names[token].strip("<|>") for token in prompt.start]
        assert names[1:3] == expected


@pytest.mark.parametrize(
    ("source", "target"), [("xx", "en"), ("de", "xx"), ("de", "ja"), (None, "de")]
)
def test_languages_it_cannot_serve_are_refused(source, target):
    with pytest.raises(DragomanError, match="toy"):
        model().open(source, target)


def test_a_stream_of_another_model_is_refused():
    with pytest.raises(DragomanError, match="another model"):
        model().commit(object(), Draft(), 0)


def test_boundary_ignores_a_stray_look():
    dropped, kept = [1000, 1600, 400, 2200], [4000, 200, 4600]
    assert boundary(dropped, kept) == 2450  # a quarter of a second after the last word that goes
    assert boundary(dropped, []) == 2450
    assert boundary([1000, 2000], [2200]) == 2100  # midway, where the next word is near
    assert boundary([1000, 9000, 2000], [2600, 3000, 3400]) == 2250  # 9000 is astray
    assert boundary([1000, 2000, 300], [4000], 300) == 3500  # the last word is before the next
    assert boundary([1000, 2000, 1500], [4000], 1500) == 2250
    assert boundary([1000, 2000, 300], [2600], 300) == 2300
    for cut, later in pairwise(boundary([1000, 2000], [2010 + gap]) for gap in range(0, 999, 99)):
        assert 2000 <= cut <= later
