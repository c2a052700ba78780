"""Opus, packet by packet, against libopus where it is there, and against whole files."""

import ctypes
import ctypes.util
import io
import struct
from itertools import pairwise

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from dragoman.audio import opus
from dragoman.audio.ogg import OggReader
from dragoman.audio.opus import (
    BEFORE,
    HEADS,
    RATE,
    NotOpus,
    OpusDecoder,
    OpusEncoder,
    count_samples,
    decode,
)
from dragoman.audio.opus_stream import OpusStream, container_of
from dragoman.audio.webm import WebmReader
from dragoman.errors import DragomanError
from tests.audio.matroska import element, webm_of

PACKET = 960  # samples of a packet that libsndfile writes


def melody(seconds: float) -> np.ndarray:
    """Tones that glide, swell and fade: what an encoder has to work on."""
    at = np.arange(round(seconds * RATE)) / RATE
    tone = np.sin(2 * np.pi * (200 * at + 60 * at**2))
    return (0.4 * (1.1 + np.sin(2 * np.pi * 3 * at)) / 2 * tone).astype(np.float32)


@pytest.fixture(scope="module")
def packets():
    encoder = OpusEncoder()
    sound = melody(2.0)
    return [p for at in range(0, len(sound), 1000) for p in encoder.feed(sound[at : at + 1000])] + (
        encoder.finish()
    )


def numbered(packets, first=0):
    starts = np.cumsum([first, *map(count_samples, packets)])
    return list(zip(map(int, starts[:-1]), packets, strict=True))


def heard(decoder, packets):
    """What a decoder says, packet by packet; it leaves nothing out."""
    sounds = [sound for one in packets for sound in decoder.feed([one])] + decoder.flush()
    for (first, samples), (after, _) in pairwise(sounds):
        assert first + len(samples) == after
    return sounds[0][0], np.concatenate([samples for _, samples in sounds])


def decibel(signal, other):
    return 10 * np.log10(np.mean(signal**2) / max(1e-20, np.mean((signal - other) ** 2)))


def test_packet_by_packet_is_as_the_whole(packets):
    whole = decode(packets)
    first, samples = heard(OpusDecoder(), numbered(packets))
    assert (first, len(samples)) == (0, len(whole))
    assert decibel(whole, samples) > 45
    sound = melody(2.0)
    assert np.corrcoef(samples[312 : 312 + 90_000], sound[:90_000])[0, 1] > 0.98  # its delay


def test_a_file_that_another_program_wrote(packets):
    file = io.BytesIO()
    soundfile.write(file, melody(1.0), RATE, format="OGG", subtype="OPUS")
    theirs = soundfile.read(io.BytesIO(file.getvalue()), dtype="float32")[0]
    stream, sounds = OpusStream("ogg"), []
    for at in range(0, len(file.getvalue()), 777):  # pieces that end anywhere
        sounds += stream.feed(file.getvalue()[at : at + 777])
    sounds += stream.flush()
    ours = np.concatenate([samples for _, samples in sounds])
    assert decibel(theirs[: len(ours) - 312], ours[312:][: len(theirs)]) > 45


def test_packets_come_out_as_sound_goes_in():
    encoder, sound, sent = OpusEncoder(), melody(1.0), 0
    for at in range(0, len(sound), 4800):
        sent += sum(map(count_samples, encoder.feed(sound[at : at + 4800])))
        assert at + 4800 - sent <= 4 * PACKET  # and not a second later


def test_speech_goes_over_a_thin_line(packets):
    """The melody takes 32 kbit/s; as the library would have it, it would be 61."""
    assert 20_000 < 8 * sum(map(len, packets)) / 2.0 < 45_000


def test_a_lost_packet_is_made_up_for(packets):
    given, whole = numbered(packets), decode(packets)
    kept = given[:40] + given[41:]
    _, samples = heard(OpusDecoder(), kept)
    assert len(samples) == len(whole)
    gap = slice(40 * PACKET, 41 * PACKET)
    assert np.sqrt(np.mean(samples[gap] ** 2)) > 0.3 * np.sqrt(np.mean(whole[gap] ** 2))
    assert decibel(whole[60 * PACKET :], samples[60 * PACKET :]) > 30  # and then it goes on


def test_a_long_gap_is_silence(packets):
    given = numbered(packets[:20]) + numbered(packets[20:], first=20 * PACKET + 2 * RATE)
    _, samples = heard(OpusDecoder(), given)
    assert len(samples) == len(decode(packets)) + 2 * RATE
    assert not samples[30 * PACKET : 20 * PACKET + 2 * RATE].any()


def test_a_gap_without_end_is_refused(packets):
    decoder = OpusDecoder()
    decoder.feed([(0, packets[0])])
    with pytest.raises(DragomanError, match=r"sample 960 comes next, not 1000000000000"):
        decoder.feed([(10**12, packets[1])])


def test_the_longest_gap_is_ten_seconds(packets):
    (first, samples), silence = OpusDecoder().feed([(0, packets[0]), (960 + 10 * RATE, packets[1])])
    assert (first, len(samples), silence[0], len(silence[1])) == (0, 960 * 6, 960 * 6, 475_200)
    with pytest.raises(DragomanError, match="Sound is missing: sample 960 comes next, not 480961"):
        OpusDecoder().feed([(0, packets[0]), (961 + 10 * RATE, packets[1])])


@pytest.mark.parametrize(
    ("gap", "concealed"),
    [(960, 960), (1000, 960), (959, 0), (5 * 960, 5 * 960), (6 * 960, 5 * 960)],
)
def test_five_packets_of_a_gap_are_made_up_for_and_the_rest_is_silence(packets, gap, concealed):
    decoder, given = OpusDecoder(), numbered(packets[:20])
    heard(decoder, given)
    sounds = decoder.feed([(20 * PACKET + gap, packets[20])])
    parts = [(first - 20 * PACKET, len(samples)) for first, samples in sounds]
    wanted = [(0, concealed), (concealed, gap - concealed)]
    assert parts == [(first, count) for first, count in wanted if count]
    if gap > concealed:
        assert not sounds[-1][1].any()


def test_packets_are_decoded_by_the_tenth_of_a_second_with_the_two_before(packets, monkeypatch):
    decoder, counts = OpusDecoder(), []
    monkeypatch.setattr(opus, "decode", lambda some: counts.append(len(some)) or decode(some))
    sounds = [decoder.feed([one]) for one in numbered(packets[:23])]
    # A packet is 20 ms: five at once, and of what came before up to ten again.
    assert [len(one) for one in sounds] == [0, 0, 0, 0, 1] * 4 + [0, 0, 0]
    assert [(first, len(samples)) for one in sounds for first, samples in one] == [
        (4800 * number, 4800) for number in range(4)
    ]
    assert [(first, len(samples)) for first, samples in decoder.flush()] == [(19_200, 2880)]
    assert counts == [5, 10, 15, 15, 13]
    assert decoder.flush() == []


def test_the_two_tenths_before_are_whole_packets(packets, monkeypatch):
    """Without the first, of 60 ms, the eight of 20 ms after it would be less."""
    decoder, counts = OpusDecoder(), []
    monkeypatch.setattr(opus, "decode", lambda some: counts.append(len(some)) or decode(some))
    given = numbered([b"\x18", *packets[:13]])
    for one in given[:9]:
        decoder.feed([one])
    decoder.flush()
    for one in given[9:]:
        decoder.feed([one])
    assert counts == [3, 8, 9, 14]


def test_after_a_silence_nothing_of_before_is_decoded_again(packets, monkeypatch):
    decoder, counts = OpusDecoder(), []
    heard(decoder, numbered(packets[:20]))
    decoder.feed([(30 * PACKET, packets[30])])  # ten are missing, and five of them made up for
    monkeypatch.setattr(opus, "decode", lambda some: counts.append(len(some)) or decode(some))
    decoder.feed(numbered(packets[31:35], first=31 * PACKET))
    assert counts == [5]


def test_a_decoder_that_gives_up_leaves_silence_or_a_sentence(packets, monkeypatch):
    few = np.full(1000, 0.5, np.float32)
    monkeypatch.setattr(soundfile, "read", lambda file, **more: (few, RATE))
    samples = decode(packets[:2])
    assert (len(samples), samples.dtype) == (1920, np.float32)
    np.testing.assert_array_equal(samples, np.r_[few, np.zeros(920)])

    def fails(file, **more):
        raise soundfile.LibsndfileError(1)

    monkeypatch.setattr(soundfile, "read", fails)
    with pytest.raises(NotOpus):
        decode(packets[:2])


def test_what_an_encoder_writes_is_taken_once():
    out = opus._Outflow()
    assert (out.write(b"ab"), out.tell(), out.seek(0)) == (2, 2, 2)
    assert (out.taken(), out.taken()) == (b"ab", b"")
    assert (out.write(b"c"), out.tell(), out.taken()) == (1, 3, b"c")


def test_packets_are_decoded_as_a_file_of_ogg(packets, monkeypatch):
    """Its pages as RFC 3533 and RFC 7845 have them, a packet on each."""
    read, files = soundfile.read, []
    monkeypatch.setattr(
        soundfile, "read", lambda file, **more: files.append(file.getvalue()) or read(file, **more)
    )
    decode(packets[:3])
    pages, data = [], files[0]
    while data:
        flags, samples, _, number, _, sizes = struct.unpack("<5xBqIIIB", data[:27])
        head, size = 27 + sizes, sum(data[27 : 27 + sizes])
        pages.append((flags, samples, number, data[head : head + size]))
        data = data[head + size :]
    opening = b"OpusHead" + bytes([1, 1]) + struct.pack("<HIhB", 0, RATE, 0, 0)
    tags = b"OpusTags" + struct.pack("<I", 8) + b"dragoman" + struct.pack("<I", 0)
    assert pages == [
        (2, 0, 0, opening),
        (0, 0, 1, tags),
        (0, 960, 2, packets[0]),
        (0, 1920, 3, packets[1]),
        (4, 2880, 4, packets[2]),
    ]


def test_what_came_before_is_left_out(packets):
    decoder, whole = OpusDecoder(), decode(packets)
    given = numbered(packets)
    _, samples = heard(decoder, given[:30] + given[10:30] + given[30:])
    assert len(samples) == len(whole)
    assert decibel(whole, samples) > 45
    with pytest.raises(DragomanError, match="overlap"):
        decoder.feed([(given[-1][0] + 100, packets[5])])


def test_who_goes_on_is_at_home_after_a_moment(packets):
    """A decoder that begins in mid-talk, with the packets before the one that is wanted."""
    wanted = 50 * PACKET
    given = [one for one in numbered(packets) if one[0] >= wanted - BEFORE]
    first, samples = heard(OpusDecoder(), given)
    assert decibel(decode(packets)[wanted:], samples[wanted - first :]) > 30


@pytest.mark.parametrize(
    ("packet", "samples"),
    [
        (b"\x08", 960),  # a frame of 20 ms that holds nothing: silence, or a loss
        (b"\x00" + bytes(9), 480),
        (b"\x18" + bytes(9), 2880),
        (b"\x60" + bytes(9), 480),
        (b"\x80" + bytes(9), 120),
        (b"\xf9" + bytes(10), 1920),  # two of the same length
        (b"\xfa\x03" + bytes(9), 1920),  # two, the first of three bytes
        (b"\xfb\x03" + bytes(9), 2880),  # three of the same length
        (b"\xfb\x83\x01\x02" + bytes(9), 2880),  # three of any length
        (b"\xfb\x41\x02" + bytes(9), 960),  # one, with two bytes of padding
        (b"\x08" + bytes(1275), 960),  # the longest frame,
        (b"\xf9" + bytes(2550), 1920),  # and two of them
        (b"\xfa\xfb" + bytes(251), 1920),  # lengths are a byte,
        (b"\xfa\xfc\x01" + bytes(256), 1920),  # or 252 and four times the next
        (b"\xfb\x83\xfc\x00\x02" + bytes(254), 2880),
        (b"\xfb\x83\x02\xfc\x01" + bytes(258), 2880),
        (b"\xfb\x41\xff\x02" + bytes(256), 960),  # padding of 254 bytes, and two more
        (b"\xfb\x41\x00", 960),  # or of none
    ],
)
def test_the_length_of_a_packet(packet, samples):
    assert count_samples(packet) == samples
    assert len(decode([packet])) == samples


def test_the_length_of_a_frame_is_told_by_its_kind():
    """RFC 6716, table 2, in samples at 48 kHz."""
    voices, both, music = (480, 960, 1920, 2880), (480, 960), (120, 240, 480, 960)
    told = [count_samples(bytes([kind << 3, 0])) for kind in range(32)]
    assert told == [*voices * 3, *both * 2, *music * 4]


GARBAGE = {
    "nothing": b"",
    "a frame that is too long": bytes(1277),
    "two halves of an odd length": b"\xf9" + bytes(9),
    "a first frame beyond the end": b"\xfa\x30" + bytes(9),
    "half a length": b"\xfa\xfc",
    "no count": b"\xfb",
    "no frames": b"\xfb\x00",
    "more than 120 ms": b"\xfb\x07" + bytes(7),
    "three that do not come out even": b"\xfb\x03" + bytes(10),
    "padding beyond the end": b"\xfb\x41\x30" + bytes(9),
    "padding without an end": b"\xfb\x41" + b"\xff" * 9,
    "two frames of which one is too long": b"\xf9" + bytes(2552),
    "a byte less than the first frame": b"\xfa\xfb" + bytes(250),
    "a byte less than a long first frame": b"\xfa\xfc\x01" + bytes(255),
    "a byte less than three frames": b"\xfb\x83\xfc\x00\x02" + bytes(253),
    "no length of the second frame": b"\xfb\x83\x00",
    "half a length of the second frame": b"\xfb\x83\x00\xfc",
    "a byte less than its padding": b"\xfb\x41\xff\x02" + bytes(255),
    "no length of its padding": b"\xfb\x41",
    "two halves of an odd length, and padding": b"\xfb\x42\x02" + bytes(9 + 2),
}


@pytest.mark.parametrize("what", GARBAGE)
def test_garbage_is_no_packet(what):
    with pytest.raises(NotOpus, match=r"This is no packet of Opus\."):
        OpusDecoder().feed([(0, GARBAGE[what])])
    with pytest.raises(NotOpus):
        count_samples(GARBAGE[what])


def libopus():
    name = ctypes.util.find_library("opus")
    return ctypes.CDLL(name) if name else None


@pytest.mark.skipif(libopus() is None, reason="libopus is not installed")
@given(
    head=st.integers(0, 255),
    more=st.one_of(
        st.binary(max_size=40),
        st.tuples(st.integers(0, 255), st.integers(0, 1400), st.integers(0, 255)).map(
            lambda three: bytes([three[0]]) + bytes([three[2]]) * three[1]
        ),
    ),
)
def test_what_is_a_packet_is_what_libopus_says(head, more):
    packet = bytes([head]) + more
    frames = libopus().opus_packet_parse(
        packet, len(packet), None, None, (ctypes.c_short * 48)(), None
    )
    per_frame = libopus().opus_packet_get_samples_per_frame(packet, RATE)
    if frames < 0 or frames * per_frame > 5760:
        with pytest.raises(NotOpus):
            count_samples(packet)
    else:
        assert count_samples(packet) == frames * per_frame


@given(st.binary(min_size=1, max_size=60))
def test_whatever_comes_there_is_sound_or_a_sentence(packet):
    try:
        samples = decode([packet])
    except NotOpus:
        return
    assert len(samples) == count_samples(packet)
    assert np.isfinite(samples).all()


def test_ogg_that_is_cut_or_damaged(packets):
    file = io.BytesIO()
    soundfile.write(file, melody(0.5), RATE, format="OGG", subtype="OPUS")
    data = bytearray(file.getvalue())
    assert [packet[:8] for packet in OggReader().feed(bytes(data))[:2]] == list(HEADS)
    data[-5] ^= 1
    with pytest.raises(DragomanError, match="damaged"):
        OggReader().feed(bytes(data))
    with pytest.raises(DragomanError, match="no stream of Ogg"):
        OggReader().feed(bytes(data[3:]))


@pytest.mark.parametrize(("size", "told"), [(126, "fe"), (127, "407f"), (16383, "203fff")])
def test_a_block_of_webm_is_as_long_as_its_size_says_in_as_many_bytes_as_browsers_take(size, told):
    """127 in one byte would say that nobody knows, so it is written in two."""
    whole = webm_of([b"first"])
    packet = bytes(range(1, 124)) + bytes(size - 127 if size > 127 else 0)
    packet = packet[: size - 4]
    block = element("a3", b"\x82\0\0\x80" + packet, bytes.fromhex(told))
    assert WebmReader().feed(whole + block) == [b"first", packet]


def test_webm_in_pieces_of_any_size(packets):
    data = webm_of(packets)
    for size in (1, 7, 1000, len(data)):
        stream, sounds = OpusStream("webm"), []
        for at in range(0, len(data), size):
            sounds += stream.feed(data[at : at + size])
        sounds += stream.flush()
        ours = np.concatenate([samples for _, samples in sounds])
        assert decibel(decode(packets), ours) > 45


@given(st.binary(max_size=300), st.integers(0, 4000))
def test_webm_that_is_damaged_is_told(noise, at):
    data = webm_of([b"\x08"] * 100)
    damaged = data[: at % len(data)] + noise + data[at % len(data) :]
    stream = OpusStream("webm")
    try:
        sounds = stream.feed(damaged) + stream.flush()
    except DragomanError:
        return
    assert all(np.isfinite(samples).all() for _, samples in sounds)


def test_a_few_bytes_are_no_hours_of_sound():
    longest = b"\xfb\x06" + bytes(0)  # six empty frames: 120 ms
    assert count_samples(longest) == 5760
    with pytest.raises(DragomanError, match="At most 20 s"):
        OpusStream("webm").feed(webm_of([longest] * 200))


def test_twenty_seconds_may_come_in_each_message():
    silence = b"\x08"  # 20 ms
    sounds = OpusStream("webm").feed(webm_of([silence] * 1000))
    assert (sounds[0][0], sum(len(samples) for _, samples in sounds)) == (0, 20 * RATE)
    with pytest.raises(DragomanError, match="At most 20 s"):
        OpusStream("webm").feed(webm_of([silence] * 1001))
    data, stream = webm_of([silence] * 1500), OpusStream("webm")
    halves = stream.feed(data[: len(data) // 2]) + stream.feed(data[len(data) // 2 :])
    assert sum(len(samples) for _, samples in halves) == 30 * RATE


def test_bare_packets_are_numbered_from_nothing_on(packets):
    stream = OpusStream("packets")
    sounds = [sound for packet in packets[:7] for sound in stream.feed(packet)] + stream.flush()
    assert [(first, len(samples)) for first, samples in sounds] == [(0, 4800), (4800, 1920)]


def test_what_a_container_begins_with(packets):
    assert container_of(webm_of(packets)) == "webm"
    assert container_of(b"OggS\0") == "ogg"
    assert container_of(bytes(100)) is None
