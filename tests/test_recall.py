"""What another process has said already is not said again."""

from dataclasses import replace

import numpy as np
import pytest

from dragoman.audio.chunk import Chunk
from dragoman.interpreter import Interpreter
from dragoman.policies import (
    Greedy,
    Offline,
)
from tests.scripted import SCRIPT, DiaryModel, ScriptedEar, ScriptedModel, chunks_of, spell


def test_what_was_said_elsewhere_is_not_said_again():
    """Another process said three of the words; this one hears their sound again."""
    model = ScriptedModel(SCRIPT)
    interpreter = Interpreter(model, Greedy())
    interpreter.recall((" the", " old", " man"))
    update = interpreter.hear(Chunk(np.zeros(19200, np.float32), last=False))  # 1200 ms
    assert (update.said, update.probabilities, update.lag_ms) == ((), (), None)
    assert interpreter.stream.committed == [" the", " old", " man"]
    said = [interpreter.hear(chunk).said for chunk in chunks_of(1800, 600)]
    assert said == [(), (" sings", " well"), ()]


def test_words_that_come_later_than_elsewhere_are_still_known():
    """The other was faster: of its words one is drafted in each of the first three chunks. Then
    nothing more is taken for said, though a word of it never came."""
    drafts = iter([[" a"], [" b"], [" c"], [" d"], [" e"]])
    model = DiaryModel(lambda stream, ask: spell(next(drafts), 1, False))
    interpreter = Interpreter(model, Offline())  # asked in spite of the policy, to find where it is
    interpreter.recall((" a", " b", " c", " d"))
    said = [interpreter.hear(chunk).said for chunk in chunks_of(1000, 200)[:3]]
    assert said == [(), (), ()]
    assert interpreter.stream.committed == [" a", " b", " c"]
    interpreter.policy = Greedy()
    assert interpreter.hear(chunks_of(1000, 200)[3]).said == (" d",)


def test_a_word_that_the_other_had_left_out_uses_up_none_of_its_words():
    drafts = iter([[" alpha", " beta", " gamma"], [" delta", " epsilon"]])
    model = DiaryModel(lambda stream, ask: spell(next(drafts), 1, False))
    interpreter = Interpreter(model, Greedy())
    interpreter.recall((" alpha", " gamma", " delta"))
    assert interpreter.hear(chunks_of(1000, 200)[0]).said == ()
    assert interpreter.hear(chunks_of(1000, 200)[1]).said == ()  # delta is known; who knows of more
    assert interpreter.stream.committed == [" alpha", " beta", " gamma", " delta"]


def test_the_end_of_the_source_says_what_was_not_said_elsewhere():
    model = DiaryModel(lambda stream, ask: replace(spell([" one", " two"], 1, True), tail=" three"))
    interpreter = Interpreter(model, Greedy())
    interpreter.recall((" one", " two"))
    update = interpreter.hear(Chunk(np.zeros(3200, np.float32), last=True))
    assert update.said == (" three",)
    interpreter = Interpreter(model, Greedy())
    interpreter.recall((" one", " two", " three"))
    assert interpreter.hear(Chunk(np.zeros(3200, np.float32), last=True)).said == ()


def test_where_another_would_have_to_begin():
    ends = (300.0, 600.0, 2900.0)
    model = ScriptedModel([("one", 300.0), ("two", 600.0), ("three", 2900.0)])
    interpreter = Interpreter(model, Greedy(), utterance_pause_ms=700, ear=ScriptedEar(ends))
    seen = []
    for chunk in chunks_of(3000, 200)[:8]:
        interpreter.hear(chunk)
        seen.append(interpreter.open)
    assert seen[0] == (0.0, 0)
    assert seen[1] == (0.0, 3)  # one
    assert seen[2] == (0.0, 6)  # one two
    assert seen[6] == (1400.0, 0)  # the pause: all is said
    for window in ((1500.0, 4), (1400.0, 2)):  # the model's begins no earlier: it knows better
        interpreter.stream.open = window
        assert interpreter.open == window
    interpreter.stream.open = (1300.0, 9)
    assert interpreter.open == (1400.0, 0)


def test_nothing_is_known_again_in_a_draft_of_nothing():
    drafts = iter([[], [" one", " two"]])
    model = DiaryModel(lambda stream, ask: spell(next(drafts), 1, False))
    interpreter = Interpreter(model, Greedy())
    interpreter.recall((" one",))
    assert interpreter.hear(chunks_of(1000, 200)[0]).said == ()
    assert interpreter.hear(chunks_of(1000, 200)[1]).said == ()
    assert [tokens for _, tokens, _ in interpreter.stream.commits] == [0, 1]


def test_of_words_that_are_partly_known_the_rest_is_told_with_its_probabilities():
    def draft(stream, ask):
        return replace(spell([" one", " two"], 1, True), log_probs=tuple(np.log([0.5, 0.25])))

    interpreter = Interpreter(DiaryModel(draft), Greedy())
    interpreter.recall((" one",))
    update = interpreter.hear(Chunk(np.zeros(3200, np.float32), last=True))
    assert update.said == (" two",)
    assert update.probabilities == pytest.approx([0.25])


def test_what_was_said_elsewhere_is_of_one_utterance():
    drafts = iter([[" a"], [" b"]])
    model = DiaryModel(lambda stream, ask: spell(next(drafts), 1, False))
    interpreter = Interpreter(model, Greedy())
    interpreter.recall((" a", " b"))
    assert interpreter.hear(replace(chunks_of(1000, 200)[0], closes=True)).said == ()
    assert interpreter.hear(chunks_of(1000, 200)[1]).said == (" b",)
