"""Detectors: by name, and when the loop asks them."""

from dataclasses import dataclass, field

import pytest

from dragoman.detectors import Boundaries, CtcWords, FixedStep, make_detector
from dragoman.errors import DragomanError
from dragoman.interpreter import Interpreter
from dragoman.knobs import is_own
from dragoman.models import Feature
from dragoman.policies import (
    Greedy,
    WaitK,
)
from dragoman.setup import Setup, System
from tests.scripted import SCRIPT, DiaryModel, ScriptedModel, chunks_of, spell


def test_detectors_by_name():
    assert make_detector("fixed", 320) == FixedStep(320)
    assert make_detector("fixed:120", 320) == make_detector("fixed:120ms") == FixedStep(120)
    for wrong in ("fixed:0", "fixed:slow", "fixed:1.5"):
        with pytest.raises(DragomanError, match="as fixed:120 does"):
            make_detector(wrong)
    assert make_detector("ctc") == CtcWords()
    with pytest.raises(DragomanError, match="There is no detector 'oracle'"):
        make_detector("oracle")
    with pytest.raises(DragomanError, match="above 0 ms"):
        FixedStep(0)
    with pytest.raises(DragomanError, match="not in order"):
        Boundaries((3.0, 2.0))


def test_a_word_counts_at_the_very_moment_at_which_it_ends():
    """However that was rounded, and no hundredth of a millisecond before."""
    step, words = FixedStep(333.3), range(1, 400)
    assert any(int(k * 333.3 / 333.3) < k for k in words)  # as it would be without care
    assert [step.count(k * 333.3, None) for k in words] == list(words)
    assert [step.count(k * 333.3 - 0.01, None) for k in words] == [k - 1 for k in words]
    ends = Boundaries((100.1, 250.3))
    heard = (100.09, 100.1, 250.29, 250.3 - 1e-9)
    assert [ends.count(ms, None) for ms in heard] == [0, 1, 1, 2]


def test_word_ends_from_a_file(tmp_path):
    path = tmp_path / "ends.tsv"
    path.write_text("# of two recordings\n001.ogg\t100 250.5\n002.ogg\t70\n")
    assert make_detector(f"boundaries:{path}", recording="001.ogg") == Boundaries((100.0, 250.5))
    later = make_detector(f"boundaries:{path}", recording="001.ogg", start_ms=100.0)
    assert later == Boundaries((150.5,))
    with pytest.raises(DragomanError, match=r"no word ends of '003.ogg'"):
        make_detector(f"boundaries:{path}", recording="003.ogg")
    path.write_text("100 250\n")
    assert make_detector(f"boundaries:{path}", recording="any.wav") == Boundaries((100.0, 250.0))
    path.write_text("100 soon\n")
    with pytest.raises(DragomanError, match=r"Line 1 of .* should hold word ends in ms"):
        make_detector(f"boundaries:{path}")
    path.write_text("a.wav\t100 90\n")
    with pytest.raises(DragomanError, match=r"Line 1 of .* word ends that are not in order"):
        make_detector(f"boundaries:{path}", recording="a.wav")
    path.write_text("\ufeffa.wav\t100\n")  # as Windows writes it
    assert make_detector(f"boundaries:{path}", recording="a.wav") == Boundaries((100.0,))
    with pytest.raises(DragomanError, match="Cannot read the word ends"):
        make_detector(f"boundaries:{tmp_path}")


@dataclass(frozen=True)
class Pace:
    """Somebody's own: so many words a minute."""

    words: float = 160.0
    needs = frozenset()

    def count(self, heard_ms, stream):
        return int(heard_ms * self.words / 60_000)


@dataclass(frozen=True)
class Undecided:
    ends: tuple = ()

    def count(self, heard_ms, stream):
        return 0


HERE = __name__


@dataclass
class Remembers:
    """Somebody's own: counts how often it was asked."""

    every: int = 1
    asked: list[float] = field(default_factory=list)
    times: int = field(default=0, init=False)
    needs = frozenset()

    def count(self, heard_ms, stream):
        self.asked.append(heard_ms)
        return len(self.asked) // self.every


def test_a_detector_of_your_own_may_remember_things():
    first, second = (make_detector(f"{HERE}.Remembers:every=2") for _ in range(2))
    assert [first.count(ms, None) for ms in (100.0, 200.0)] == [0, 1]
    assert second.asked == []
    with pytest.raises(DragomanError, match="begins with no number and no word"):
        make_detector(f"{HERE}.Remembers:asked=1")
    with pytest.raises(DragomanError, match="has no knob 'times'"):
        make_detector(f"{HERE}.Remembers:times=1")


def test_a_detector_of_your_own_is_named_by_where_it_is():
    assert make_detector(f"{HERE}.Pace:words=120") == Pace(120.0)
    assert make_detector(f"{HERE}.Pace") == Pace()
    assert is_own(f"{HERE}.Pace:words=120")
    assert not any(map(is_own, ("fixed:120", "boundaries:./of/mine.txt", "ctc")))
    setup = Setup(model="any", policy="wait-k:k=1", detector=f"{HERE}.Pace:words=60")
    system = System(setup, ScriptedModel(SCRIPT))
    assert system.interpreter().detector == Pace(60.0)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("no.such.Detector", "There is no detector 'no.such.Detector' (No module named 'no')."),
        (
            "os.path.join",
            "'os.path.join' is no detector: one is a dataclass with a method 'count'.",
        ),
        (
            f"{HERE}.Counting",
            f"'{HERE}.Counting' is no detector: one is a dataclass with a method 'count'.",
        ),
        (
            f"{HERE}.Pace:word=1",
            f"Detector '{HERE}.Pace' has no knob 'word'. Did you mean 'words'?",
        ),
        (
            f"{HERE}.Pace:words=many",
            f"Knob 'words' of detector '{HERE}.Pace' takes a number, not 'many'.",
        ),
        (
            f"{HERE}.Undecided:ends=3",
            f"Knob 'ends' of detector '{HERE}.Undecided' begins with no number and no word, so "
            "that no text sets it.",
        ),
        (
            f"{HERE}.Undecided",
            f"Detector '{HERE}.Undecided' does not say what it needs of a model: needs = "
            "frozenset(), if nothing.",
        ),
    ],
)
def test_a_detector_of_your_own_that_is_none_gets_a_sentence(spec, sentence):
    with pytest.raises(DragomanError) as caught:
        Setup(detector=spec)
    assert str(caught.value) == sentence


class Counting:
    """A detector of the test's own; it notes what the stream knew when it was asked."""

    def __init__(self, needs, counts):
        self.needs, self.counts, self.asked = frozenset(needs), iter(counts), []

    def count(self, heard_ms, stream):
        self.asked.append((heard_ms, stream.heard_ms))
        return next(self.counts)


class Watching(DiaryModel):
    """Notes the sounds that it is given."""

    def __init__(self, drafter, **more):
        super().__init__(drafter, **more)
        self.looks = []

    def hear(self, streams, sounds):
        self.looks += [sound.look for sound in sounds]
        super().hear(streams, sounds)


@pytest.mark.parametrize("needs", [(), (Feature.CTC,)])
def test_a_detector_that_needs_the_model_is_asked_after_it_has_heard(needs):
    allowed = []

    class Patient(WaitK):
        def allow(self, heard, said):
            allowed.append(heard.words)
            return super().allow(heard, said)

    model = Watching(lambda stream, ask: spell([" w"] * (ask.max_words or 1), 1, False))
    detector = Counting(needs, [0, 1, 1, 2, 3])
    interpreter = Interpreter(model, Patient(k=1), detector=detector)
    said = [interpreter.hear(chunk).said for chunk in chunks_of(1000, 200)]
    assert said == [(), (" w",), (), (" w",), (" w",)]
    before = 0 if needs else 200  # a chunk further than the stream
    heard = [200.0, 400.0, 600.0, 800.0, 1000.0]
    assert detector.asked == [(ms, ms - before) for ms in heard]
    assert allowed == [0, 1, 1, 2]  # once a chunk; at the end nobody is asked
    # Who needs the model has it look at every chunk, the other only where something may be said.
    assert model.looks == ([True] * 5 if needs else [False, True, False, True, True])


def test_a_detector_that_reads_the_source_gets_it_written_down():
    asked = []

    class Telling(ScriptedModel):
        def open(self, source, target, *, transcript=False):
            asked.append(transcript)
            return super().open(source, target)

    Interpreter(Telling(SCRIPT), Greedy(), detector=Counting({Feature.TRANSCRIPT}, []))
    assert asked == [True]
