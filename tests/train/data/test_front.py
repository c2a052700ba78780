"""The front end: features of a batch, changed in training as the seed and its number say."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from dragoman.train.data.augment import play_at, shift_pitch
from dragoman.train.data.corpus import Ragged, open_set
from dragoman.train.data.faults import Faults
from dragoman.train.data.fbank import Fbank
from dragoman.train.data.front import FrontEnd
from dragoman.train.data.loader import Loader
from dragoman.train.data.plan import Plan
from dragoman.train.recipe import Augment, Batch, Data

ALL = Augment(spec="LD", speeds=(0.9, 1.1), effects=0.5, rooms=0.5, noise=0.5)


@pytest.fixture(scope="module")
def batches(sung):
    data = open_set([sung], Data((str(sung),)), Faults())
    data.source = data.target = Ragged.of([[4]] * len(data))
    plan = Plan(data, Batch(seconds=11, buckets=1), seed=0, speeds=(0.9, 1.1))
    return list(Loader(data).batches(enumerate(plan.epoch(0)[:2])))


def test_plain_features_are_those_of_the_sound(sung):
    data = open_set([sung], Data((str(sung),)), Faults())
    data.source = data.target = Ragged.of([[4]] * len(data))
    batch = next(Loader(data).batches(enumerate(Plan(data, Batch(seconds=5), 0).once())))
    features, lengths = FrontEnd(80, ALL, seed=1)(batch)
    alone = torch.from_numpy(data.sound(int(batch.items[0])).astype(np.float32))[None]
    wanted, frames = Fbank(80)(alone, torch.tensor([alone.shape[1]]))
    assert int(frames) == int(lengths[0])
    torch.testing.assert_close(features[0, : int(frames)], wanted[0])


def test_chance_comes_from_the_seed_and_the_number_alone(batches):
    fill = torch.zeros(80)
    first, second = FrontEnd(80, ALL, seed=1), FrontEnd(80, ALL, seed=1)
    torch.manual_seed(1)
    one, lengths = first(batches[0], fill)
    torch.manual_seed(2)
    second(batches[1], fill)
    again, _ = second(batches[0], fill)
    assert torch.equal(one, again)
    assert torch.isfinite(one).all()
    assert int(lengths.max()) <= one.shape[1]
    other, _ = FrontEnd(80, ALL, seed=2)(batches[0], fill)
    assert not torch.equal(one, other)


@pytest.mark.parametrize(
    "only", [{"spec": "LD"}, {"effects": 1.0}, {"rooms": 1.0}, {"noise": 1.0}], ids=str
)
def test_every_batch_is_augmented_otherwise(batches, only):
    """The same sound under two numbers: each kind of change is drawn anew."""
    front, fill = FrontEnd(80, Augment(**({"spec": "none"} | only)), seed=1), torch.zeros(80)
    heard = []
    for number in (3, 4, 3):
        batch = batches[0].each(lambda tensor: tensor)
        batch.number = number
        heard.append(front(batch, fill)[0])
    assert torch.equal(heard[0], heard[2])
    changed = (heard[0] != heard[1]).any(2).any(1)
    assert changed.float().mean() > 0.7  # two may be in the same one of 64 rooms
    rows = heard[0] - front(batches[0])[0]
    assert not torch.equal(rows[0], rows[1])  # and items are changed each in its way


def test_nothing_is_augmented_without_being_told(batches):
    quiet = Augment(spec="none")
    plain, _ = FrontEnd(80, quiet, seed=1)(batches[0])
    trained, lengths = FrontEnd(80, quiet, seed=1)(batches[0], torch.zeros(80))
    for row, length in enumerate(lengths.tolist()):
        # The frame that reaches past the end differs: what lies there is silenced in training.
        torch.testing.assert_close(plain[row, : length - 1], trained[row, : length - 1])


def changed_rows(batch, share: float = 1.0, **kind) -> torch.Tensor:
    """Which rows of a batch sound otherwise in training than in validation."""
    quiet = Augment(spec=kind.pop("spec", "none"), **dict.fromkeys(kind, share))
    front = FrontEnd(80, quiet, seed=1)
    plain, lengths = front(batch)
    trained, _ = front(batch, torch.zeros(80))
    inside = torch.arange(plain.shape[1]) < lengths.unsqueeze(1) - 1
    return ((plain - trained).abs().amax(2) * inside).amax(1) > 1e-3


@pytest.mark.parametrize("kind", ["effects", "rooms", "noise"])
def test_each_kind_changes_its_share_of_the_batch(batches, kind):
    assert changed_rows(batches[0], **{kind: 1.0}).all()
    changed = sum(changed_rows(batch, 0.15, **{kind: 1.0}).sum() for batch in batches)
    assert 0 < changed < sum(len(batch.items) for batch in batches)


def test_masks_show_the_mean_of_the_corpus(batches):
    front, mean = FrontEnd(80, Augment(spec="LD"), seed=1), torch.linspace(-3, 3, 80)
    plain, _ = front(batches[0])
    masked, lengths = front(batches[0], mean)
    other = (plain - masked).abs() > 1e-3
    for row, length in enumerate(lengths.tolist()):
        inside = other[row, : length - 1]
        assert inside.any()
        assert torch.equal(masked[row, : length - 1][inside], mean.expand(length - 1, -1)[inside])


def test_speed_changes_what_is_heard_in_training_and_out_of_it(batches):
    batch = batches[0]
    assert batch.perturbed
    heard, lengths = FrontEnd(80, Augment(spec="none"), seed=1)(batch)
    for row in range(3):
        sound = play_at(batch.sound[row : row + 1].float(), batch.speeds[row : row + 1], 9 * 16_000)
        samples = batch.samples[row : row + 1]
        wanted, frames = Fbank(80)(sound[:, : int(samples)], samples)
        assert int(frames) == int(lengths[row])
        torch.testing.assert_close(heard[row, : int(frames)], wanted[0], atol=1e-3, rtol=1e-3)


def test_speed_whose_pitch_is_undone_is_tempo(monkeypatch):
    where = "dragoman.train.data.front."
    for kind in ("echoes", "tilt"):
        monkeypatch.setattr(where + kind, lambda sound, *_: sound)
    shifts = iter([lambda sound, _: sound, shift_pitch])  # the drawn pitch; then tempo's
    monkeypatch.setattr(where + "shift_pitch", lambda *given: next(shifts)(*given))
    front = FrontEnd(80, Augment(spec="none", effects=1.0), seed=1)
    tone = 4000 * torch.sin(2 * torch.pi * 484 * torch.arange(16_000) / 16_000)
    batch = SimpleNamespace(speeds=torch.tensor([1.1, 1.0]), samples=torch.full((2,), 16_000))
    heard = front.world(tone.expand(2, -1), batch, torch.Generator().manual_seed(0))
    pitch = torch.fft.rfft(heard[0, 4000:12_000] * torch.hann_window(8000)).abs().argmax() * 2
    assert abs(float(pitch) - 440) <= 4  # 484 Hz were 440 before it was played faster
    assert torch.equal(heard[1], tone)
