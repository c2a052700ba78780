"""What a client tells of a talk that another process began, and how far that is believed."""

import asyncio

import pytest
from msgspec import structs

from dragoman.serve import service as services
from dragoman.serve.past import Past
from dragoman.serve.protocol import (
    Audio,
    Code,
    Elsewhere,
    Fault,
    Resume,
    Said,
    Start,
    Summary,
    Transcript,
)
from tests.serve.clients import make_service
from tests.serve.processes import in_time


def said(word, at_ms):
    return Said(word, f" {word}", at_ms - 500, at_ms, 500.0)


ELSEWHERE = Elsewhere(Start(), 16000, 3, 0, [said(n, 2500.0 * n) for n in range(1, 7)])


@pytest.mark.parametrize(
    ("clock_ms", "elapsed_ms"),
    [
        (17_000.0, 17_000.0),  # a second and a half after the last word and sound
        (15_500.0, 15_500.0),
        (600_000.0, 600_000.0),  # it may have been away for ten minutes
        (14_000.0, 15_500.0),  # set back: what was heard was heard
        (-3_600_000.0, 15_500.0),
        (3_600_000.0, 15_500.0),  # set forward by an hour, or another machine's
    ],
)
def test_a_clock_is_believed_as_far_as_it_can_be_true(clock_ms, elapsed_ms):
    assert Past.of(ELSEWHERE, 16000 * 15 + 8000, clock_ms).elapsed_ms == elapsed_ms


def test_words_may_be_later_than_the_sound_that_is_known_to_be_heard():
    assert Past.of(ELSEWHERE, 16000, 0.0).elapsed_ms == 15_000.0
    opus = Elsewhere(Start(audio=Audio(encoding="opus")), 0, 0)
    assert Past.of(opus, 96000, 0.0).elapsed_ms == 2000.0


@pytest.mark.parametrize(("heard", "until"), [(8000, 16_000), (32_000, 32_000), (10**9, 1_936_000)])
def test_of_two_minutes_of_sound_words_may_have_been_said_elsewhere(heard, until):
    """From the first sample that is heard again, the 16,000th, which was there before."""
    assert Past.of(ELSEWHERE, heard, 0.0).until == until


@pytest.mark.parametrize("jump", [-3600.0, 3600.0, 1e9, -1e9])
def test_words_are_told_in_order_of_time_whatever_the_clock_does(jump, monkeypatch):
    """Also what is spoken aloud is stamped since the talk began, not since this process had it."""

    async def taken_over():
        service = make_service()
        token = service._tickets.make("a talk")
        now = services.time.time()
        monkeypatch.setattr(services.time, "time", lambda: now + jump)
        request = Resume("a talk", token, 6, 0, 240_000, ELSEWHERE)
        return await service.resume(request)

    session = in_time(taken_over())
    assert 15_000 <= session.now_ms < 15_000 + 60_000
    assert session.last_word == 6


@pytest.mark.parametrize("heard", [240_000, 16000 * 600])  # also more than is heard again
def test_a_connection_that_is_lost_before_its_sound_was_sent_again_loses_no_talk(heard):
    """The client knows how much the process before had heard; this one has not come as far."""

    async def resumed_twice():
        service = make_service()
        request = Resume("a talk", service._tickets.make("a talk"), 6, 0, heard, ELSEWHERE)
        session = await service.resume(request)
        again = structs.replace(request, resume_token=session.resume_token)
        assert await service.resume(again) is session
        with pytest.raises(Fault) as caught:
            await service.resume(structs.replace(again, sample=heard + 1))
        return session.sample, caught.value.code

    assert in_time(resumed_twice()) == (16000, "no_session")


def numbered(kept, numbers, written):
    """A talk whose words up to `kept` are not wanted, and these that it brings, or transcripts."""
    if written:
        return Elsewhere(Start(), 0, 0, kept, [], [Transcript(n, "a", 0.0, None) for n in numbers])
    return Elsewhere(Start(), 0, kept, 0, [said(n, 1000.0) for n in numbers])


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize(
    "numbers",
    [
        *([4, 6], [6, 5, 4], [4, 4]),  # one is missing, or they are in another order
        *([5, 6], [1, 2]),  # the fourth is missing, or the third
        [0, 1, 2, 3, 4],  # the first is 1
    ],
)
def test_a_talk_whose_words_are_not_all_there_is_refused(numbers, written):
    """Those who listen would be told the wrong words, or some twice: they are told by number."""
    with pytest.raises(Fault, match="after number 3 are not all there, in order") as caught:
        Past.of(numbered(3, numbers, written), 0, 0.0)
    assert caught.value.code == Code.MALFORMED


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("numbers", [[], [4, 5], [3], [1, 2, 3, 4]])
def test_words_before_those_that_are_wanted_may_be_there_too(numbers, written):
    past = Past.of(numbered(3, numbers, written), 0, 0.0)
    assert (past.last_transcript if written else past.last_word) == max(numbers, default=3)


@pytest.mark.parametrize(("word", "transcript"), [(5, 0), (7, 0), (6, 1)])
def test_what_the_client_has_ends_with_the_last_that_it_knows(word, transcript):
    async def resume():
        service = make_service()
        token = service._tickets.make("a talk")
        await service.resume(Resume("a talk", token, word, transcript, 0, ELSEWHERE))

    with pytest.raises(Fault, match="'elsewhere' ends with the last word"):
        in_time(resume())


def test_two_that_resume_at_once_are_one_talk():
    async def both():
        service = make_service(streams=2)
        token = service._tickets.make("a talk")
        request = Resume("a talk", token, 6, 0, 240_000, ELSEWHERE)
        await asyncio.gather(service.resume(request), service.resume(request))
        return service

    service = in_time(both())
    assert service.streams == len(service._sessions) == 1  # and the other seat is free


@pytest.mark.parametrize("ahead", [{"word": 1}, {"transcript": 1}, {"sample": 1}])
def test_a_client_cannot_be_ahead_of_its_talk(ahead):
    async def resumed():
        service = make_service()
        session = await service.start(Start())
        return await service.resume(Resume(session.id, session.resume_token, **ahead))

    with pytest.raises(Fault, match="has not come as far"):
        in_time(resumed())


def test_a_talk_that_was_given_up_begins_anew_where_its_client_can():
    async def looked():
        service = make_service()
        session = await service.start(Start())
        bare = Resume(session.id, session.resume_token)
        kept = structs.replace(bare, elsewhere=Elsewhere(Start(), 0, 0))
        assert service.known(kept) is session
        session.fail(Fault(Code.OVERLOADED, "gone"))
        assert service.known(kept) is None
        assert service.known(bare) is session  # who is told why it has ended
        anew = await service.resume(kept)
        assert anew is not session
        assert (anew.id, anew.fault) == (session.id, None)

    in_time(looked())


def test_a_talk_that_comes_back_from_elsewhere_has_the_place_of_what_is_left_of_it_here():
    """Also where there is no other place."""

    async def resumed():
        service = make_service(streams=1, secret="a secret of many letters")
        session = await service.start(Start())
        began = service._tickets.began(session.id, session.resume_token)
        token = service._tickets.make(session.id, began - 1)  # of the process that went on with it
        kept = Elsewhere(Start(), 0, 0)
        anew = await service.resume(Resume(session.id, token, elsewhere=kept))
        assert anew is not session
        assert session.finished
        assert service.streams == 1
        service.drop(session)  # once more, when its time is over
        assert service.keeps(anew.id)
        assert service.streams == 1

    in_time(resumed())


def test_a_process_that_ends_hands_on_those_who_can_come_back_and_are_not_done():
    async def ended():
        service = make_service(secret="a secret of many letters")
        going, bound, done = [await service.start(Start()) for _ in range(3)]
        bound.lasting = False  # as Deepgram's clients are
        done.summary = Summary(0, 0.0, None, 0.0, None)
        service.stop_all()
        assert (going.fault.code, going.stopped) == (Code.DRAINING, False)
        assert (bound.fault, bound.stopped) == (None, True)
        assert done.fault is None

    in_time(ended())
