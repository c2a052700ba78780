"""Batches: every item in every epoch, few shapes, the same order from anywhere."""

from itertools import combinations, islice, pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.models.exported.net import EOS
from dragoman.train.data.corpus import Ragged, open_set
from dragoman.train.data.faults import Faults
from dragoman.train.data.loader import Loader, Recut
from dragoman.train.data.plan import Place, Plan, Planned, Shape, aligned, played, unplayed
from dragoman.train.data.vocabulary import Pieces, train_pieces
from dragoman.train.recipe import Batch, Data, Units


class FakeSet(SimpleNamespace):
    def __len__(self) -> int:
        return len(self.samples)


def fake_set(samples: list[int], texts: list[tuple[int, int]]) -> FakeSet:
    return FakeSet(
        samples=np.array(samples),
        silent=False,
        source=Ragged.of([[5] * source for source, _ in texts]),
        target=Ragged.of([[5] * target for _, target in texts]),
    )


LENGTHS = st.tuples(st.integers(3200, 480_000), st.tuples(st.integers(1, 90), st.integers(1, 90)))


@settings(max_examples=60)
@given(
    st.lists(LENGTHS, min_size=1, max_size=80),
    st.integers(1, 8),
    st.floats(5, 200),
    st.sampled_from([(1.0,), (0.9, 1.0, 1.1)]),
    st.integers(0, 3),
)
def test_every_epoch_has_every_item_and_only_full_batches_that_fit(
    items, buckets, seconds, speeds, epoch
):
    data = fake_set([item[0] for item in items], [item[1] for item in items])
    plan = Plan(data, Batch(seconds=seconds, buckets=buckets), seed=1, speeds=speeds)
    batches = plan.epoch(epoch)
    assert {int(n) for batch in batches for n in batch.items} == set(range(len(items)))
    assert len(plan.shapes) <= buckets
    for batch in batches:
        assert batch.shape in plan.shapes
        assert len(batch.items) == batch.shape.items
        assert (played(data.samples[batch.items], batch.speeds) <= batch.shape.samples).all()
        assert (data.source.lengths[batch.items] <= batch.shape.source).all()
        assert (data.target.lengths[batch.items] < batch.shape.target).all()  # EOS has a place
        if batch.shape.items > 1:
            assert batch.shape.items * batch.shape.samples <= seconds * 16_000
    once = [int(n) for batch in plan.once() for n in batch.items]
    assert sorted(once) == list(range(len(items)))


def computed(plan: Plan) -> int:
    return sum(batch.shape.items * batch.shape.samples for batch in plan.epoch(0))


def validated(plan: Plan) -> int:
    return sum(batch.shape.items * batch.shape.samples for batch in plan.once())


@settings(max_examples=40)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=40), st.integers(1, 4), st.integers(8, 60))
def test_no_other_cut_into_as_many_buckets_computes_less(tenths, buckets, seconds):
    """Every way to cut the lengths that there are, by hand: full batches in training, short ones
    in validation."""
    lengths = [aligned(tenth * 16_000) for tenth in tenths]
    kinds = sorted(set(lengths))
    full, short = [], []
    for many in range(min(buckets, len(kinds))):
        for cuts in combinations(kinds[:-1], many):
            ends = [*cuts, kinds[-1]]
            sizes = [sum(a < n <= b for n in lengths) for a, b in pairwise([0, *ends])]
            room = [max(1, seconds * 16_000 // end) for end in ends]
            room = [items - items % 8 if items > 8 else items for items in room]
            full.append(sum(-(-n // r) * r * e for n, r, e in zip(sizes, room, ends, strict=True)))
            short.append(sum(n * e for n, e in zip(sizes, ends, strict=True)))
    data = fake_set(lengths, [(3, 3)] * len(lengths))
    plan = Plan(data, Batch(seconds=seconds, buckets=buckets), seed=1)
    assert computed(plan) == min(full)
    assert validated(plan) == min(short)


def test_the_stream_goes_on_from_anywhere():
    random = np.random.default_rng(0)
    items = random.integers(16_000, 160_000, 50)
    data = fake_set(list(items), [(10, 10)] * 50)
    plan = Plan(data, Batch(seconds=30, buckets=3), seed=4, speeds=(0.9, 1.1))
    whole = list(islice(plan.stream(Place(0, 0)), 60))
    for start in (1, 17, 43):
        place = whole[start].place
        again = list(islice(plan.stream(place), 5))
        for one, other in zip(again, whole[start:], strict=False):
            assert one.place == other.place
            np.testing.assert_array_equal(one.items, other.items)
            np.testing.assert_array_equal(one.speeds, other.speeds)
    orders = [[tuple(b.items) for b in plan.epoch(n)] for n in (0, 1)]
    assert orders[0] != orders[1]


def test_items_and_batches_are_shuffled_anew_in_every_epoch():
    """Who is with whom changes, and so does when they come; short and long ones are mixed."""
    data = fake_set([16_000] * 80 + [32_000] * 40, [(10, 10)] * 120)
    plan = Plan(data, Batch(seconds=8, buckets=2), seed=4)
    epochs = [plan.epoch(number) for number in range(2)]
    for batches in epochs:
        longer = [batch.shape.samples for batch in batches]
        assert longer not in (sorted(longer), sorted(longer, reverse=True))
        for samples in set(longer):
            rows = np.concatenate([b.items for b in batches if b.shape.samples == samples])
            assert rows.tolist() != sorted(rows.tolist())
    company = [{frozenset(batch.items.tolist()) for batch in batches} for batches in epochs]
    assert len(company[0] & company[1]) < len(company[0]) / 2
    one = Plan(fake_set([16_000] * 40, [(10, 10)] * 40), Batch(seconds=8, buckets=1), seed=4)
    firsts = {tuple(one.epoch(number)[0].items.tolist()) for number in range(5)}
    assert len(firsts) == 5


@settings(max_examples=40)
@given(st.integers(1, 480_000))
def test_states_come_in_eights(samples):
    """Kernels for such sizes are faster; at most a third of a second is added."""
    from dragoman.train.data.fbank import frame_count

    longer = aligned(samples)
    frames = int(frame_count(torch.tensor(longer)))
    states = ((frames + 1) // 2 + 1) // 2  # two convolutions of stride 2
    assert states % 8 == 0
    assert samples <= longer < max(samples, 400) + 8 * 640


@pytest.fixture
def sung_set(sung):
    data = open_set([sung], Data((str(sung),)), Faults())
    data.source = Ragged.of([[7, 8, 9][: n % 3 + 1] for n in range(len(data))])
    data.target = Ragged.of([[4, 5, 6][: n % 2 + 1] for n in range(len(data))])
    return data


def test_batches_hold_what_the_pack_holds(sung_set):
    plan = Plan(sung_set, Batch(seconds=10, buckets=2), seed=0)
    seen = 0
    for batch in Loader(sung_set).batches(enumerate(plan.once())):
        for row, number in enumerate(batch.items):
            length = int(batch.samples[row])
            np.testing.assert_array_equal(batch.sound[row, :length], sung_set.sound(number))
            assert not batch.sound[row, length:].any()
            target = sung_set.target[number].tolist()
            units = int(batch.target_lengths[row])
            assert batch.tokens[row, :units].tolist() == [1, *target]
            assert batch.labels[row, :units].tolist() == [*target, 2]
            assert not batch.labels[row, units:].any()
            ends = batch.word_ends[row]
            assert ends[ends >= 0].tolist() == sung_set.item(number).word_ends
            seen += 1
    assert seen == len(sung_set)


def test_resident_sound_is_the_same_sound(sung_set):
    plan = Plan(sung_set, Batch(seconds=10, buckets=2), seed=0, speeds=(0.9, 1.1))
    planned = list(enumerate(islice(plan.stream(Place(0, 0)), 6)))
    from_disk = list(Loader(sung_set).batches(planned))
    from_memory = list(Loader(sung_set, resident="host").batches(planned))
    for one, other in zip(from_disk, from_memory, strict=True):
        assert torch.equal(one.sound, other.sound)
        assert torch.equal(one.word_ends, other.word_ends)


def test_word_ends_follow_the_speed(sung_set):
    plan = Plan(sung_set, Batch(seconds=10, buckets=1), seed=0, speeds=(0.5,))
    batch = next(Loader(sung_set).batches([(0, plan.epoch(0)[0])]))
    first = sung_set.item(int(batch.items[0])).word_ends
    assert batch.word_ends[0, : len(first)].tolist() == [2 * end for end in first]
    assert int(batch.samples[0]) == 2 * sung_set.item(int(batch.items[0])).samples


@given(st.integers(1, 480_000), st.lists(st.floats(0.5, 2), min_size=1, max_size=3))
def test_no_sound_is_longer_than_its_batch_has_room_for(samples, paces):
    """Every length that a pace leaves so many samples of, around the longest one."""
    longest = max(round(samples * pace) for pace in paces)
    near = np.arange(max(1, longest - 4), longest + 5)
    fits = [int(near[played(near, pace) <= samples].max(initial=0)) for pace in paces]
    assert max(fits) <= unplayed(samples, paces) <= max(fits) + 2
    assert unplayed(samples, [1.0]) == samples  # what is not played at a speed has no more room


@pytest.mark.parametrize("resident", ["disk", "host"])
def test_a_sound_that_fills_its_batch_when_played_faster_is_heard_whole(resident):
    """17,161 samples at 1.1 are 15,600.9: the batch is 15,600 wide, what was recorded is not."""
    sound = np.arange(17_161).astype(np.int16)
    data = fake_set([len(sound)], [(1, 1)])
    data.word_ends, data.most_words, data.first = Ragged.of([[5]]), 1, np.array([1])
    data.sound = lambda number: sound
    planned = Planned(
        Place(0, 0), np.array([0]), np.array([1.1]), Shape(1, 15_600, 8, 8), (1.0, 1.1)
    )
    batch = Loader(data, resident=resident).make(0, planned)
    assert int(batch.samples[0]) == batch.width == 15_600
    assert torch.equal(batch.sound[0, : len(sound)], torch.from_numpy(sound))


def test_with_bpe_dropout_texts_differ_by_batch_and_not_by_run(sung_set, tmp_path):
    """The number of the batch alone decides, so a resumed run sees the same."""
    units = Units("bpe", 40, dropout=0.5)
    for side in ("en", "de"):
        train_pieces(sung_set.texts(side), units, tmp_path / side)
    source, target = (Pieces(tmp_path / side, units) for side in ("en", "de"))
    data = sung_set.with_units(source, target, Faults())
    recut = Recut.of(source, target, seed=3)
    planned = Plan(data, Batch(seconds=10, buckets=2), 0, room=recut.room).epoch(0)[0]
    loader = Loader(data, recut=recut)
    first, again, other = (loader.make(number, planned) for number in (7, 7, 8))
    assert torch.equal(first.labels, again.labels)
    assert torch.equal(first.source, again.source)
    assert not torch.equal(first.labels, other.labels)
    assert first.units > Loader(data).make(7, planned).units
    for row, number in enumerate(planned.items):
        length = int(first.target_lengths[row])
        assert first.labels[row, length - 1] == EOS
        assert target.decode(first.labels[row].tolist()) == data.item(number).text["de"]
