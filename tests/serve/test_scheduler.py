"""Who is stepped next, what a step leads to, and what is given up: by hand, at a clock that stands
still."""

import asyncio
import logging
import os
import sys
import threading
from types import SimpleNamespace

import pytest

from dragoman.serve import scheduler as module
from dragoman.serve.pressure import Level
from dragoman.serve.protocol import Code
from dragoman.serve.scheduler import Scheduler
from tests.serve.processes import in_time

NOW = 100.0


class Figure:
    """A gauge or a histogram that keeps what it is told."""

    def __init__(self):
        self.told = []

    def observe(self, value):
        self.told.append(value)

    set = observe


class Talk:
    """What a scheduler asks of a session."""

    rate, stopped, live = 16_000, False, True

    def __init__(self, name, due=None):
        self.id, self.due = name, due
        self.interpreter = SimpleNamespace(name=name, hasty=None)
        self.words, self.sample, self.degraded, self.fault = [], 40_000, None, None
        self.finished, self.taken, self.breaks = False, [], False

    def __repr__(self):
        return self.id

    def degrade(self, degraded):
        self.degraded = degraded

    def next_chunk(self):
        assert self.due is not None, "no sound waits"
        return f"sound of {self.id}"

    def take(self, chunk, update):
        if self.breaks:
            try:
                raise OSError("hidden")
            except OSError:
                raise KeyError("broken")  # noqa: B904  whose context is not its cause
        self.taken.append((chunk, update))
        self.words += update.words
        self.finished = update.last

    def fail(self, fault=None):
        self.fault, self.finished, self.due = fault or "failed", True, None


class Load:
    """Pressure that is told its level."""

    late = 0.5

    def __init__(self, level=Level.NORMAL):
        self.level, self.noted, self.relieved = level, [], 0

    def note(self, late):
        self.noted.append(late)
        return self.level

    def eased(self):
        self.relieved += 1


@pytest.fixture(autouse=True)
def still(monkeypatch):
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: NOW))


def scheduler(*talks, batch=8, level=Level.NORMAL, **lanes) -> Scheduler:
    names = ("streams", "late", "level", "wait", "step", "batch", "lag")
    one = Scheduler(SimpleNamespace(**{name: Figure() for name in names}), batch, **lanes)
    one._pressure = Load(level)
    for talk in talks:
        one.add(talk)
    return one


@pytest.mark.parametrize(
    ("batch", "lanes", "at_work", "names"),
    [
        (8, {}, 0, "bca"),  # one lane
        (2, {}, 0, "bc"),
        (8, {"lanes": 2}, 0, "bc"),  # two lanes share the three
        (8, {"lanes": 2}, 1, "bca"),  # one of them is at work
        (8, {"lanes": 3}, 0, "b"),
        (8, {"lanes": 1}, 1, "bca"),
    ],
)
def test_who_has_waited_longest_comes_first(batch, lanes, at_work, names):
    talks = [Talk("a", 5.0), Talk("b", 3.0), Talk("silent"), Talk("c", 4.0), Talk("busy", 1.0)]
    one = scheduler(*talks, batch=batch, **lanes)
    one._busy.add(talks[-1])
    one._steps.update(range(at_work))
    assert "".join(talk.id for talk in one._due()) == names


def recording(name, due=None):
    """A file, for which nobody waits live."""
    talk = Talk(name, due)
    talk.live = False
    return talk


def test_a_file_is_stepped_when_nobody_live_waits():
    live, file = Talk("live", NOW), recording("file", NOW - 60)  # however long that has waited
    one = scheduler(live, file)
    assert one._due() == [live]  # and not both: the live one would wait for the other's step
    live.due = None
    assert one._due() == [file]
    one._busy.add(file)
    assert one._due() == []


def test_files_that_are_stepped_apart_take_no_lane():
    live, files = Talk("live", NOW), [recording("a", NOW - 3), recording("b", NOW - 5)]
    one = scheduler(live, *files, apart=True)
    assert one._due() == [live]
    live.due = None
    assert one._due() == []
    assert one._waiting(live=False) == [files[1], files[0]]


def test_a_file_that_waits_does_not_make_the_machine_late(monkeypatch):
    live, file = Talk("live", NOW - 0.5), recording("file", NOW - 60)
    one = scheduler(live, file)
    stepped(one, [file], monkeypatch, {"file": update(9000.0)})
    assert one._pressure.noted == [0.5]
    assert one._metrics.wait.told == one._metrics.lag.told == []


def test_a_file_goes_before_any_live_talk_does(monkeypatch):
    talks = [Talk("a", NOW), recording("b", NOW), recording("c", NOW), Talk("d", NOW)]
    one = scheduler(*talks, level=Level.SHEDDING)
    stepped(one, talks[:1], monkeypatch, {"a": update()})
    assert [talk.fault is not None for talk in talks] == [False, False, True, False]


def test_a_live_talk_does_not_wait_for_a_step_of_a_file(monkeypatch):
    """The file is stepped on a thread of its own, one step at a time, and with a lower priority."""
    begun, go_on, seen = threading.Event(), threading.Event(), []

    def step(interpreters, chunks):
        (name,) = (one.name for one in interpreters)
        seen.append((name, threading.current_thread().name.partition("_")[0]))
        if name == "live":
            go_on.set()
        else:
            begun.set()
            assert go_on.wait(60)
        return [update(last=True)]

    async def talked():
        files, live = [recording("file", NOW), recording("other", NOW + 1)], Talk("live")
        one = scheduler(*files, live, batch=1, apart=True)
        working = asyncio.create_task(one.run())
        one.wake()
        await asyncio.to_thread(begun.wait, 60)
        live.due = NOW
        one.wake()
        while not all(talk.finished for talk in (*files, live)):
            await asyncio.sleep(0.001)
        working.cancel()
        await asyncio.wait([working])

    monkeypatch.setattr(module, "step", step)
    in_time(talked())
    assert seen == [("file", "files"), ("live", "model"), ("other", "files")]


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
def test_the_thread_of_files_yields_the_processor():
    def own():
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    one = scheduler(apart=True)
    assert one._worker.submit(own).result() == own()
    assert one._apart.submit(own).result() == min(19, own() + 10)


def test_talks_are_counted():
    first, second = Talk("a"), Talk("b")
    one = scheduler(first, second)
    assert len(one) == 2
    one.remove(first)
    one.remove(first)  # may be gone already
    assert len(one) == 1
    assert one._metrics.streams.told == [1, 2, 1, 1]


@pytest.mark.parametrize("level", Level)
def test_all_talks_learn_how_far_behind_the_machine_is(level):
    talks = [Talk("a", NOW - 1), Talk("b", NOW - 2.5), Talk("c"), Talk("d", NOW + 9)]
    one = scheduler(*talks, level=level)
    assert one.refusing is (level in (Level.REFUSING, Level.SHEDDING))
    assert one._pressure.noted == [2.5]  # whoever waits longest
    assert [talk.degraded for talk in talks] == [level != Level.NORMAL] * 4
    hasty = level in (Level.HASTY, Level.REFUSING, Level.SHEDDING)
    assert [talk.interpreter.hasty for talk in talks] == [hasty] * 4
    assert (one._metrics.late.told, one._metrics.level.told) == ([0.5], [level])


def test_where_nobody_waits_the_machine_is_not_late():
    for talks in ((), (Talk("a", NOW + 5),), (Talk("b"),)):
        one = scheduler(*talks)
        one._look()
        assert one._pressure.noted == [0.0]


def update(*lags, last=False, error=None):
    words = [SimpleNamespace(lag_ms=lag) for lag in lags]
    return SimpleNamespace(words=words, last=last, error=error)


def stepped(one, batch, monkeypatch, updates):
    """Let a scheduler step talks; what they lead to is known."""

    def step(interpreters, chunks):
        names = [interpreter.name for interpreter in interpreters]
        assert chunks == [f"sound of {name}" for name in names]
        if isinstance(updates, Exception):
            raise updates
        return [updates[name] for name in names]

    monkeypatch.setattr(module, "step", step)

    in_time(one._step(batch))


def noted(caplog, event):
    """The values of what was noted of an event."""
    return [record.values for record in caplog.records if record.getMessage() == event]


def test_a_step_gives_every_talk_its_own_and_is_measured(monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    first, second = Talk("a", NOW - 2), Talk("b", NOW + 3)
    one = scheduler(first, second)
    first.words = [SimpleNamespace(lag_ms=9000.0)]  # of an earlier step
    updates = {"a": update(1500.0, None, 250.0), "b": update(2000.0, last=True)}
    stepped(one, [first, second], monkeypatch, updates)
    assert first.taken == [("sound of a", updates["a"])]
    assert second.taken == [("sound of b", updates["b"])]
    assert one._metrics.wait.told == [2.0, 0.0]
    assert (one._metrics.batch.told, one._metrics.step.told) == ([2], [0.0])
    assert one._metrics.lag.told == [1.5, 0.25, 2.0]
    assert [*one._sessions] == [first]  # the other is finished
    assert noted(caplog, "finished") == [{"session": "b", "words": 1}]


def test_who_fails_in_a_step_fails_alone(monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    talks = one, _, gone, torn = [Talk(name, NOW) for name in ("a", "b", "c", "d")]
    lost, torn.breaks = ValueError("secret words"), True
    lost.__cause__ = KeyError("more of them")
    gone.finished = True  # given up meanwhile
    work = scheduler(*talks)
    updates = {"a": update(), "b": update(error=lost), "c": update(error=lost), "d": update()}
    stepped(work, talks, monkeypatch, updates)
    assert [talk.fault for talk in talks] == [None, "failed", None, "failed"]
    assert [len(talk.taken) for talk in talks] == [1, 0, 0, 0]
    assert [*work._sessions] == [one, gone]
    told = noted(caplog, "failed")
    kinds = [(one["session"], one["error"], one["cause"]) for one in told]
    assert kinds == [("b", "ValueError", "KeyError"), ("d", "KeyError", "OSError")]
    assert (told[0]["heard_s"], told[0]["pressure"], told[0]["talks"]) == (2.5, "normal", 3)
    assert "test_scheduler.take:" in told[1]["where"]
    assert "secret" not in caplog.text


def test_a_step_that_fails_as_a_whole_ends_all_of_its_talks(monkeypatch):
    first, second, other = Talk("a", NOW), Talk("b", NOW), Talk("c")
    one = scheduler(first, second, other)
    stepped(one, [first, second], monkeypatch, RuntimeError("lost"))
    assert [talk.fault for talk in (first, second, other)] == ["failed", "failed", None]
    assert [*one._sessions] == [other]


def test_the_talk_that_came_last_is_sent_elsewhere_when_nothing_helps(monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    first, last = Talk("a", NOW), Talk("b", NOW)
    one = scheduler(first, last, level=Level.SHEDDING)
    stepped(one, [first, last], monkeypatch, {"a": update()})
    assert (first.fault, last.fault.code) == (None, Code.OVERLOADED)
    assert (len(first.taken), one._metrics.batch.told) == (1, [1])
    assert one._pressure.relieved == 1
    assert noted(caplog, "shed") == [{"session": "b"}]
    stepped(one, [first], monkeypatch, {"a": update()})  # the only one stays
    assert (first.fault, len(first.taken), one._pressure.relieved) == (None, 2, 1)


def test_who_is_gone_when_the_step_begins_is_left_out(monkeypatch):
    """Between the choice and the step nobody wanted the talk any more."""
    first, gone, last = Talk("a", NOW), Talk("b", NOW), Talk("c", NOW)
    one = scheduler(first, gone, last)
    gone.fail()
    stepped(one, [first, gone, last], monkeypatch, {"a": update(), "c": update()})
    assert [len(talk.taken) for talk in (first, gone, last)] == [1, 0, 1]
    assert one._metrics.wait.told == [0.0, 0.0]


def test_a_step_without_talks_is_none(monkeypatch):
    first, last = Talk("a"), Talk("b", NOW)
    one = scheduler(first, last, level=Level.SHEDDING)
    stepped(one, [last], monkeypatch, {})
    assert last.fault.code == Code.OVERLOADED
    assert one._metrics.batch.told == one._metrics.step.told == []


def test_no_more_batches_are_made_than_there_are_lanes(monkeypatch):
    """What waits for a lane goes on waiting for sound, too."""
    begun, go_on = threading.Event(), threading.Event()

    def step(interpreters, chunks):
        begun.set()
        assert go_on.wait(10)
        return [update(last=True) for _ in chunks]

    monkeypatch.setattr(module, "step", step)

    async def work():
        first, second = Talk("a", NOW), Talk("b", NOW)
        one = scheduler(first)
        running = asyncio.create_task(one.run())
        one.wake()
        await asyncio.to_thread(begun.wait, 10)
        one.add(second)
        one.wake()
        for _ in range(9):  # the loop has its turn
            await asyncio.sleep(0)
        assert (len(one._steps), one._busy) == (1, {first})
        go_on.set()
        while not second.taken:
            await asyncio.sleep(0.001)
        running.cancel()
        await asyncio.wait([running])
        assert first.finished
        with pytest.raises(RuntimeError, match="after shutdown"):
            one._worker.submit(len, "")

    in_time(work())


def test_work_on_a_talk_waits_until_its_step_is_over():
    async def work():
        talk, other = Talk("a"), Talk("b")
        one = scheduler(talk, other, lanes=2)
        with one._occupied([talk]):
            waiting = asyncio.create_task(one.between_steps(talk, lambda x, y=0: x + y, 3, y=4))
            assert await one.between_steps(other, len, "ab") == 2  # nobody is at work with it
            assert not waiting.done()
            assert one._busy == {talk}
        assert await waiting == 7
        assert one._busy == set()
        assert one._wake.is_set()

    in_time(work())


def test_a_step_that_breaks_is_noted_and_its_lane_is_free_again(caplog):
    caplog.set_level(logging.INFO)

    async def work():
        one = scheduler()

        async def breaks():
            raise KeyError("what was said")

        task = asyncio.create_task(breaks())
        one._steps.add(task)
        await asyncio.wait([task])
        one._stepped(task)
        assert one._steps == set()
        assert one._wake.is_set()
        cancelled = asyncio.create_task(asyncio.sleep(60))
        cancelled.cancel()
        await asyncio.wait([cancelled])
        one._stepped(cancelled)

    in_time(work())
    (told,) = noted(caplog, "step failed")
    assert told["error"] == "KeyError"
    assert "test_scheduler.breaks:" in told["where"]
    assert "what was said" not in caplog.text
