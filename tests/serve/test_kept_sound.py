"""The sound that a client keeps: all that may be asked for again, and no more."""

import asyncio

import numpy as np
import pytest

from dragoman.audio import opus
from dragoman.serve.kept_sound import KeptSound
from dragoman.serve.protocol import Audio, read_packet, read_sound


async def pieces(count: int, size: int):
    for number in range(count):
        yield np.full(size, number / 8, np.float32)


def fed(audio: Audio, count: int, size: int) -> KeptSound:
    async def feed() -> KeptSound:
        kept = KeptSound(audio)
        await kept.feed(pieces(count, size))
        return kept

    return asyncio.run(feed())


def ends(kept: KeptSound, sample: int = 0) -> list[int]:
    return [end for end, _ in kept.since(sample)]


def test_of_sound_that_has_not_begun_more_may_come():
    async def begun() -> KeptSound:
        return KeptSound(Audio())

    kept = asyncio.run(begun())
    assert (kept.end, kept.ended, kept.more.is_set(), ends(kept)) == (0, False, False, [])


def test_samples_are_kept_until_all_of_a_frame_is_dealt_with():
    kept = fed(Audio(), 3, 100)
    assert (kept.end, kept.ended, kept.before) == (300, True, 0)
    assert ends(kept) == [100, 200, 300]
    assert ends(kept, 100) == ends(kept, 199) == [200, 300]
    first, samples = read_sound(kept.since(100)[0][1])
    assert (first, samples.tolist()) == (100, [1 / 8] * 100)
    kept.forget(199)
    assert ends(kept) == [200, 300]
    kept.forget(200)
    assert ends(kept) == [300]


def test_of_opus_a_little_more_is_kept_for_its_decoder():
    kept = fed(Audio(encoding="opus"), 10, opus.RATE // 10)
    before = ends(kept)
    assert kept.before == opus.BEFORE
    assert kept.end >= opus.RATE
    assert [read_packet(frame)[0] for _, frame in kept.since(0)] == [0, *before[:-1]]
    kept.forget(opus.RATE // 2)
    assert ends(kept) == [end for end in before if end > opus.RATE // 2 - opus.BEFORE]
    assert ends(kept) != before


def test_what_was_heard_is_kept_though_the_sound_fails():
    async def broken():
        yield np.zeros(100, np.float32)
        raise OSError("the microphone is gone")

    async def feed() -> None:
        kept = KeptSound(Audio())
        with pytest.raises(OSError, match="microphone"):
            await kept.feed(broken())
        assert (kept.end, kept.ended, kept.more.is_set()) == (100, True, True)

    asyncio.run(feed())
