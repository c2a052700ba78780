"""Lanes: talks that are stepped at the same time, each by one thread at a time."""

import asyncio
import threading

import pytest
from click.testing import CliRunner

from dragoman.cli import serve as command
from dragoman.errors import DragomanError
from dragoman.serve import lanes as module
from dragoman.serve.protocol import Change, Start
from dragoman.serve.service import Service
from dragoman.serve.settings import Settings
from dragoman.setup import Setup, System
from dragoman.store import catalogue, overview
from tests.serve.numbers import NumberModel, sound_of, words_of
from tests.serve.processes import in_time


class Meeting(NumberModel):
    """Its drafts wait for each other, so many at once; none may be of a stream that is at work."""

    def __init__(self, lanes):
        super().__init__()
        self.barrier = threading.Barrier(lanes)
        self.at_work, self.twice, self.met = set(), False, 0

    def draft(self, streams, asks):
        self.twice |= not self.at_work.isdisjoint(streams)
        self.at_work |= set(streams)
        try:
            self.barrier.wait(10)
            self.met += 1
        except threading.BrokenBarrierError:
            pass
        finally:
            self.at_work -= set(streams)
        return super().draft(streams, asks)


async def spoken(model, talks, **settings):
    """So many talks of ten numbers each, all sound at once."""
    setup = Setup(model="x", policy="greedy", step_ms=400.0)
    service = Service(System(setup, model), Settings(**settings))
    scheduler = asyncio.create_task(service.scheduler.run())
    sessions = [await service.start(Start()) for _ in range(talks)]
    for session in sessions:
        session.hear(0, sound_of(0, 10))
        session.stop()
    service.scheduler.wake()
    while not all(session.finished for session in sessions):
        await asyncio.sleep(0.001)
    scheduler.cancel()
    return sessions


@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_lanes_work_at_the_same_time_and_share_the_talks(lanes, caplog):
    caplog.set_level("INFO")
    model = Meeting(lanes)
    sessions = in_time(spoken(model, lanes, streams=lanes, lanes=lanes))
    assert model.met >= lanes  # none has waited in vain
    assert not model.twice
    assert "step failed" not in [record.getMessage() for record in caplog.records]
    for session in sessions:
        assert [(word.word, word.text) for word in session.words] == words_of(10)


def test_whoever_waits_is_shared_among_the_lanes_that_are_free():
    async def shares():
        service = Service(
            System(Setup(model="x", policy="greedy"), NumberModel()), Settings(streams=9, lanes=3)
        )
        sessions = [await service.start(Start()) for _ in range(7)]
        for session in sessions:
            session.hear(0, sound_of(0, 5))
        scheduler, sizes = service.scheduler, []
        for lane in range(3):
            batch = scheduler._due()
            sizes.append(len(batch))
            scheduler._busy.update(batch)
            scheduler._steps.add(lane)
        return sizes

    assert in_time(shares()) == [3, 2, 2]


def test_a_policy_changes_between_two_steps():
    """Also with a lane free, the interpreter that is at work is left alone."""
    begun, go_on = threading.Event(), threading.Event()

    class Slow(NumberModel):
        def draft(self, streams, asks):
            begun.set()
            assert go_on.wait(10)
            return super().draft(streams, asks)

    async def changed():
        setup = Setup(model="x", policy="greedy", step_ms=400.0)
        service = Service(System(setup, Slow()), Settings(lanes=2))
        scheduler = asyncio.create_task(service.scheduler.run())
        session = await service.start(Start())
        before = session.interpreter.policy
        session.hear(0, sound_of(0, 10))
        service.scheduler.wake()
        await asyncio.to_thread(begun.wait, 10)
        changing = asyncio.create_task(service.change(session, Change(policy="local-agreement")))
        await asyncio.sleep(0)  # it has asked
        other = await service.start(Start())  # by the other lane, whose turn comes after that
        assert other.interpreter.policy == before
        assert session.interpreter.policy is before
        assert not changing.done()
        go_on.set()
        await changing
        scheduler.cancel()
        return before, session.interpreter.policy

    before, after = in_time(changed())
    assert before != after


def test_a_gpu_has_one_lane(monkeypatch):
    class OnGpu(NumberModel):
        device = "cuda"

    system = System(Setup(model="x", policy="greedy"), OnGpu())
    seen = {}

    def read(tell, **options):
        seen.update(options)
        return system

    monkeypatch.setattr(command, "read_system", read)
    monkeypatch.setattr(overview, "cores", lambda: 4)
    result = CliRunner().invoke(command.command, ["--lanes", "2", "--port", "0"])
    assert isinstance(result.exception, DragomanError)
    assert "one lane" in str(result.exception)
    assert seen["threads"] == 2  # the lanes share the cores


def test_a_model_that_is_on_no_gpu_may_have_several_lanes():
    class OnCpu(NumberModel):
        device = "cpu"

    for model in (OnCpu(), NumberModel()):  # one of one's own need not say where it is
        module.load(System(Setup(model="x", policy="greedy"), model), 2)


def test_a_model_that_is_on_a_gpu_has_one_lane():
    class OnGpu(NumberModel):
        device = "cuda"

    system = System(Setup(model="x", policy="greedy"), OnGpu())
    module.load(system, 1)
    with pytest.raises(DragomanError, match="one lane"):
        module.load(system, 2)


@pytest.mark.parametrize(
    ("model", "cores", "streams", "setup", "lanes", "threads"),
    [
        ("quick", 2, 4, {}, 2, 1),
        ("quick", 8, 4, {}, 4, 2),  # no more lanes than talks
        ("quick", 7, 3, {}, 3, 2),
        ("quick", 1, 4, {}, 1, 0),
        ("slow", 2, 4, {}, 1, 0),  # one core would not keep up with a talk
        ("slow", 4, 4, {}, 2, 2),
        ("own", 2, 4, {}, 1, 0),  # nobody knows what it costs
        ("quick", 2, 4, {"threads": 2}, 1, 2),  # as it was said
        ("quick", 2, 4, {"device": "cuda"}, 1, 0),
    ],
)
def test_a_lane_for_every_core_that_keeps_up(
    monkeypatch, model, cores, streams, setup, lanes, threads
):
    monkeypatch.setattr(module, "cores", lambda: cores)
    monkeypatch.setattr(module, "gpu_found", lambda: False)
    monkeypatch.setattr(module, "cost_of", {"quick": 0.8, "slow": 0.81, "own": None}.get)
    system = System(Setup(model=model, policy="greedy", **setup), NumberModel())
    shared, found = module.with_lanes(system, streams)
    assert (found, shared.setup.threads) == (lanes, threads)


def test_a_gpu_that_is_found_has_one_lane(monkeypatch):
    monkeypatch.setattr(module, "gpu_found", lambda: True)
    monkeypatch.setattr(module, "cost_of", lambda name: 0.1)
    monkeypatch.setattr(module, "cores", lambda: 8)
    system = System(Setup(model="x", policy="greedy"), NumberModel())
    assert module.with_lanes(system, 4) == (system, 1)


@pytest.mark.parametrize(
    ("model", "device", "gpu"),
    [
        *(("moonshine-base+mt-en", "auto", True), ("whisper-base", "auto", True)),
        *(("st-en", "auto", False), ("whisper-base", "cpu", False), ("st-en", "cuda", True)),
    ],
)
def test_a_gpu_is_of_use_to_models_that_work_on_it(monkeypatch, model, device, gpu):
    """What has no engine for one keeps its lanes, whatever else the machine has."""
    monkeypatch.setattr(module, "gpu_found", lambda: True)
    monkeypatch.setattr(module, "cores", lambda: 8)
    setup = Setup(model=model, policy="greedy", device=device)
    system = System(setup, NumberModel())
    assert module.on_gpu(system) is gpu
    assert module.with_lanes(system, 4)[1] == (1 if gpu else 4)
    assert module.talks_in_a_step(system, 4) == (4 if gpu else 1)


@pytest.mark.parametrize(
    ("model", "gpu", "lanes", "apart"),
    [
        ("known", False, 1, True),
        ("known", True, 1, False),
        ("own", False, 1, False),  # perhaps one thread at a time may use it
        ("own", False, 2, True),  # somebody has said that more may
    ],
)
def test_files_have_a_thread_of_their_own_where_the_model_bears_it(
    monkeypatch, model, gpu, lanes, apart
):
    monkeypatch.setattr(module, "gpu_found", lambda: gpu)
    monkeypatch.setattr(module, "cost_of", {"known": 9.0, "own": None}.get)
    system = System(Setup(model=model, policy="greedy"), NumberModel())
    assert module.files_apart(system, lanes) is apart


@pytest.mark.parametrize(
    ("arguments", "gpu", "batch"),
    [
        ([], False, 1),  # the first would only wait for the others
        ([], True, 7),
        (["--batch", "3"], False, 3),
        (["--batch", "3"], True, 3),
    ],
)
def test_talks_in_a_step(monkeypatch, arguments, gpu, batch):
    seen = []

    def service(system, settings):
        seen.append(settings)
        raise DragomanError("seen")

    system = System(Setup(model="x", policy="greedy"), NumberModel())
    monkeypatch.setattr(command, "read_system", lambda tell, **options: system)
    monkeypatch.setattr(module, "gpu_found", lambda: gpu)
    monkeypatch.setattr("dragoman.serve.service.Service", service)
    CliRunner().invoke(command.command, ["--streams", "7", "--port", "0", *arguments])
    assert [(settings.batch, settings.apart) for settings in seen] == [(batch, False)]


def test_what_a_model_costs():
    base = overview.cost_of("whisper-base")
    assert base == catalogue.model("whisper-base").cost
    assert overview.cost_of("moonshine-base+mt-en") == catalogue.model("moonshine-base").cost
    assert overview.cost_of("whisper-small") > base  # estimated
    assert overview.cost_of("/somewhere/a model") is None
    assert overview.cost_of("mt-en") is None
