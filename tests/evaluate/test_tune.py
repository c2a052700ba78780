"""Grids and tuning, on the scripted model."""

from random import Random

import numpy as np
import pytest
import soundfile

from dragoman.corpora import Clip
from dragoman.errors import DragomanError
from dragoman.evaluate.grid import STANDARD, expand, grid, slug
from dragoman.evaluate.tune import Trial, _better_half, _dropped, _rank, tune
from dragoman.setup import Setup, System

BASE = Setup(model="tests.scripted:steady", source="de")


def test_alternatives_are_multiplied_out():
    assert expand("greedy") == ["greedy"]
    assert expand("ksn:k=100|200, s=10|20, n=1") == [
        *("ksn:k=100,s=10,n=1", "ksn:k=100,s=20,n=1"),
        *("ksn:k=200,s=10,n=1", "ksn:k=200,s=20,n=1"),
    ]
    with pytest.raises(DragomanError, match="should read key=value"):
        expand("ksn:k")


def test_a_grid_names_each_of_its_setups_differently():
    setups = grid(BASE, STANDARD, [500.0, 1000.0])
    assert len({slug(s) for s in setups}) == len(setups) == 2 * sum(map(len, map(expand, STANDARD)))
    with pytest.raises(DragomanError, match="no policy"):
        grid(BASE, ["wait"], [500.0])


def test_a_policy_that_is_named_twice_is_tried_once():
    setups = grid(BASE, ["wait-k:k=1|3|1", "wait-k:k=3|5"], [500.0])
    assert [setup.policy for setup in setups] == [f"wait-k:k={k}" for k in (1, 3, 5)]


def test_a_policy_that_does_not_exist_is_told_before_anything_runs():
    with pytest.raises(DragomanError, match="k"):
        grid(BASE, ["greedy", "wait-k:k=0"], [500.0])


def trial(quality, latency_ms, *, whole=False):
    """A trial that is named by what it reached."""
    setup = BASE.with_changes(policy=f"wait-k:k={1 + round(10 * quality + latency_ms)}")
    return Trial(setup, 5, quality, latency_ms, whole)


@pytest.mark.parametrize(
    ("trials", "kept"),
    [
        ([(1, 900), (2, 900), (3, 900), (4, 900), (5, 900)], [(5, 900), (4, 900), (3, 900)]),
        ([(1, 900), (2, 900), (3, 900), (4, 900)], [(4, 900), (3, 900)]),
        ([(1, 900), (2, 900), (3, 900)], [(3, 900), (2, 900)]),
        ([(1, 900)], [(1, 900)]),
        ([(1, 9000), (3, 7000), (2, 8000)], [(3, 7000), (2, 8000)]),  # the two fastest
        ([(3, 900), (3, 800), (3, 700), (2, 100)], [(3, 700), (3, 800)]),  # the faster of equals
        # Those just over it are better, but the best that keeps to it stays.
        ([(1, 900), (2, 1000), (3, 1001), (4, 1001)], [(4, 1001), (3, 1001), (2, 1000)]),
    ],
)
def test_the_better_half_goes_on(trials, kept):
    assert _better_half([trial(*one) for one in trials], 1000.0) == [
        trial(*one).setup for one in kept
    ]


def test_the_first_has_seen_all_and_keeps_to_the_budget_to_the_millisecond():
    best, over, early, worse = (
        trial(2, 1000, whole=True),
        trial(9, 1001, whole=True),
        trial(9, 100),
        trial(1, 100, whole=True),
    )
    equal = trial(2, 999, whole=True)
    ranked = sorted([over, early, worse, best, equal], key=lambda one: _rank(one, 1000.0))
    assert ranked == [equal, best, worse, over, early]


def test_who_met_the_budget_exactly_on_a_few_clips_is_tried_again():
    met = trial(2, 1000)
    assert _dropped([trial(1, 900), met, trial(9, 1001)], 1000.0) == met
    assert _dropped([met, trial(2, 999)], 1000.0) == trial(2, 999)
    assert _dropped([trial(9, 1001)], 1000.0) is None


@pytest.fixture
def clips(tmp_path):
    made = []
    for index in range(20):
        path = tmp_path / f"{index}.wav"
        soundfile.write(path, np.zeros(16000 * 5, np.float32), 16000)
        made.append(Clip(index, path, {"en": "x"}))
    return made


def by_delay(traces):
    """The later the better, for a contest whose outcome is known."""
    mean = float(np.mean([d for t in traces for d in t.instance().delays]))
    return {"LAAL": mean, "BLEU": mean}


def test_tuning_finds_the_slowest_policy_within_the_budget(tmp_path, clips):
    candidates = grid(BASE, ["wait-k:k=1|2|3|4|5|6|7|8|9", "offline"], [280.0])
    seen = []
    tuned = tune(
        clips, candidates, 4000, tmp_path / "t", by_delay, first=5,
        on_trial=lambda trial, done, total: seen.append(trial),
    )  # fmt: skip
    everyone = {s.policy: by_delay_alone(s, clips, tmp_path) for s in candidates}
    best = max((v, k) for k, v in everyone.items() if v <= 4000)
    assert tuned.best.setup.policy == best[1]
    assert tuned.best.latency_ms == pytest.approx(best[0])
    assert tuned.best.clips == 20
    # Most candidates never saw the whole corpus.
    assert sum(t.clips for t in tuned.trials) < 0.6 * len(candidates) * 20
    assert {(t.clips, t.whole) for t in seen} == {(5, False), (10, False), (20, True)}


def by_delay_alone(setup, clips, tmp_path):
    from dragoman.evaluate.run import run_corpus

    run = run_corpus(clips, setup, tmp_path / "alone" / slug(setup))
    return by_delay(run.traces)["LAAL"]


def test_a_budget_may_be_met_exactly_and_all_clips_are_heard_once(tmp_path, clips):
    seen = []
    tuned = tune(
        clips, grid(BASE, ["wait-k:k=1|2"], [280.0]), 1000.0, tmp_path / "t",
        lambda traces: {"LAAL": 1000.0, "BLEU": 1.0}, first=50,
        on_trial=lambda trial, done, total: seen.append((done, total)),
    )  # fmt: skip
    assert tuned.best.latency_ms == 1000.0
    assert seen == [(1, 2), (2, 2)]  # a first round that is larger than the corpus is the last


def test_a_budget_that_nothing_meets_says_what_the_fastest_needs(tmp_path, clips):
    candidates = grid(BASE, ["wait-k:k=3|5", "offline"], [1000.0])
    with pytest.raises(DragomanError, match=r"No policy kept to 10 ms; the fastest, wait-k:k=3"):
        tune(clips, candidates, 10, tmp_path / "t", by_delay)


def test_who_was_dropped_is_tried_where_the_last_are_over_the_budget(tmp_path, clips):
    """The first clips are kinder than the rest: everybody seems faster there by a fifth."""

    def score(traces):
        found = by_delay(traces)
        return found | {"LAAL": found["LAAL"] * (1.0 if len(traces) == 20 else 0.8)}

    candidates = grid(BASE, ["wait-k:k=1|3|5|7|9|11|13|15"], [280.0])
    everyone = {s.policy: by_delay_alone(s, clips, tmp_path) for s in candidates}
    budget, heard = everyone["wait-k:k=5"] + 1, []
    tuned = tune(
        clips, candidates, budget, tmp_path / "t", score, first=5,
        on_trial=lambda trial, done, total: heard.append((trial, done, total)),
    )  # fmt: skip
    assert tuned.best.setup.policy == "wait-k:k=5"
    assert tuned.best.whole
    assert heard[-1] == (tuned.best, 1, 1)


def test_a_clip_that_nobody_can_read_is_named_and_left_out(tmp_path, clips):
    """It was the budget that was blamed: no candidate had seen the whole corpus."""
    clips[7].audio.write_bytes(b"not sound at all")
    candidates = grid(BASE, ["wait-k:k=1|3|5|7", "offline"], [280.0])
    failures, trials = [], []
    tuned = tune(
        clips, candidates, 4000, tmp_path / "t", by_delay, first=5,
        on_failure=lambda failure, setup: failures.append(failure),
        on_trial=lambda trial, done, total: trials.append(trial),
    )  # fmt: skip
    assert [str(f).partition(":")[0] for f in failures] == ["clip 7 (7.wav)"]  # once, not per trial
    without = [clip for clip in clips if clip.index != 7]
    everyone = {s.policy: by_delay_alone(s, without, tmp_path) for s in candidates}
    best = max((v, k) for k, v in everyone.items() if v <= 4000)
    assert (tuned.best.latency_ms, tuned.best.setup.policy) == (pytest.approx(best[0]), best[1])
    assert tuned.best.clips == 19


def test_a_first_round_of_broken_clips_drops_nobody(tmp_path, clips):
    for index in first_heard(clips, 5):
        clips[index].audio.write_bytes(b"not sound at all")
    candidates = grid(BASE, ["wait-k:k=1|2|3|4|5|6|7|8|9"], [280.0])
    tuned = tune(clips, candidates, 4000, tmp_path / "t", by_delay, first=5)
    assert tuned.best.clips == 15
    assert tuned.best.setup.policy == "wait-k:k=9"


def first_heard(clips, count):
    order = [clip.index for clip in clips]
    Random(1).shuffle(order)
    return order[:count]


def test_a_corpus_of_broken_clips_is_not_the_budget_s_fault(tmp_path, clips):
    for clip in clips:
        clip.audio.write_bytes(b"not sound at all")
    with pytest.raises(DragomanError, match=r"None of the 20 clips could be interpreted"):
        tune(clips, grid(BASE, ["offline"], [280.0]), 2000, tmp_path / "t", by_delay)


def test_silence_is_not_the_budget_s_fault(tmp_path, clips):
    with pytest.raises(DragomanError, match="No policy said anything"):
        tune(clips, grid(BASE, ["offline"], [280.0]), 2000, tmp_path / "t", lambda traces: {})


def test_all_are_judged_on_the_clips_that_all_could_hear(tmp_path, clips, monkeypatch):
    """The second candidate fails on a clip that the first one had heard."""
    from dragoman.evaluate import tune as tuning
    from dragoman.evaluate.run import Failure, Run, run_corpus

    def failing(clips, setup, folder, **more):
        run = run_corpus(clips, setup, folder, **more)
        if setup.policy != "wait-k:k=2":
            return run
        heard = [trace for trace in run.traces if trace.index != 3]
        return Run(heard, [Failure(3, "3.wav", "no")] if len(heard) < len(run.traces) else [])

    monkeypatch.setattr(tuning, "run_corpus", failing)
    candidates = grid(BASE, ["wait-k:k=1|2"], [280.0])
    tuned = tune(clips, candidates, 9000, tmp_path / "t", by_delay)
    assert [trial.clips for trial in tuned.trials] == [19, 19]


def test_a_candidate_whose_own_code_fails_is_out_and_the_clips_stay(tmp_path, clips):
    """One fails at once, one on the longer clips alone, which are not in the first round."""
    first = first_heard(clips, 5)
    for clip in clips:
        if clip.index not in first:
            soundfile.write(clip.audio, np.zeros(16000 * 6, np.float32), 16000)
    own = "tests.own_policies.Fails:at=200|5500"
    candidates, failures = grid(BASE, [own, "wait-k:k=1|9"], [280.0]), []
    tuned = tune(
        clips, candidates, 9000, tmp_path / "t", by_delay, first=5,
        on_failure=lambda failure, setup: failures.append((setup.policy, failure.own)),
    )  # fmt: skip
    assert failures == [(policy, True) for policy in expand(own)]
    assert [(t.setup.policy, t.clips) for t in tuned.trials] == [
        ("wait-k:k=9", 20),
        ("wait-k:k=1", 5),  # as good as the second that failed
    ]
    with pytest.raises(DragomanError, match="No policy could be tried: each failed in code of"):
        tune(clips, candidates[:2], 9000, tmp_path / "u", by_delay, first=5)


def test_who_was_dropped_may_fail_when_it_is_tried_again(tmp_path, clips):
    """Of the dropped the better is over the budget on all clips, the other fails on the longer."""
    first = first_heard(clips, 5)
    for clip in clips:
        if clip.index not in first:
            soundfile.write(clip.audio, np.zeros(16000 * 6, np.float32), 16000)

    def score(traces):
        found = by_delay(traces)
        return found | {"LAAL": found["LAAL"] * (1.0 if len(traces) == 20 else 0.5)}

    candidates, failures = [], []
    for spec in ("tests.own_policies.Fails:at=5500", "wait-k:k=9|11|13|15"):
        candidates += grid(BASE, [spec], [280.0])
    budget = by_delay_alone(candidates[1], clips, tmp_path) - 1
    with pytest.raises(DragomanError, match=r"No policy kept to .* the fastest, wait-k:k=9,"):
        tune(
            clips, candidates, budget, tmp_path / "t", score, first=5,
            on_failure=lambda failure, setup: failures.append(setup.policy),
        )  # fmt: skip
    assert failures == ["tests.own_policies.Fails:at=5500"]


def test_candidates_tell_speech_from_silence_as_the_lent_system_does(tmp_path, monkeypatch):
    """Whatever the number of processes: the lent model is not one of the user's own."""
    system, lent = System(Setup(model="any")), []
    system.__dict__.update(model=object(), vad=object())

    def run_corpus(*_, system, **__):
        lent.append(system)
        raise DragomanError("enough")

    from dragoman.evaluate import tune as tuning

    monkeypatch.setattr(tuning, "run_corpus", run_corpus)
    candidate = Setup(model="any", policy="offline", step_ms=500)
    with pytest.raises(DragomanError, match="enough"):
        tune([], [candidate], 2000, tmp_path, lambda traces: {}, system=system)
    assert lent[0].setup == candidate
    assert (lent[0].model, lent[0].vad) == (system.model, system.vad)
