import sys

import pytest

from dragoman.audio.devices import choose_device, list_devices
from dragoman.errors import DragomanError
from tests.audio.fake_sounddevice import FakeSounddevice

DEVICES = [
    ("Built-in Audio", 2, 2, (48000, 16000)),
    ("Speakers", 0, 2, (44100,)),
    ("USB Headset: mono", 1, 1, (44100,)),
    ("USB Desk Mic", 1, 0, (48000,)),
]


@pytest.fixture
def fake(monkeypatch):
    fake = FakeSounddevice(DEVICES, default=(2, 1))
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    return fake


@pytest.mark.usefixtures("fake")
def test_microphones_and_loudspeakers_are_told_apart():
    assert [device.index for device in list_devices("input")] == [0, 2, 3]
    assert [device.index for device in list_devices("output")] == [0, 1, 2]
    assert [device.default for device in list_devices("input")] == [False, True, False]


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize(
    ("wanted", "index"),
    [(None, 2), (0, 0), ("3", 3), ("desk", 3), ("headset", 2), ("Built-in Audio", 0)],
)
def test_a_microphone_is_chosen(wanted, index):
    assert choose_device("input", wanted).index == index


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize(
    ("wanted", "match"),
    [
        ("usb", "'usb' fits several of the microphones: 2: USB Headset: mono; 3: USB Desk Mic"),
        ("speakers", "'speakers' fits none of the microphones: 0: Built-in"),
        (1, "'1' fits none"),
        ("17", "fits none"),
    ],
)
def test_a_choice_that_is_none(wanted, match):
    with pytest.raises(DragomanError, match=match):
        choose_device("input", wanted)


def test_no_device_at_all(monkeypatch):
    monkeypatch.setitem(sys.modules, "sounddevice", FakeSounddevice())
    with pytest.raises(DragomanError, match="has no microphone"):
        choose_device("input")
    with pytest.raises(DragomanError, match="has no loudspeaker"):
        choose_device("output")


def test_without_a_default_the_first_is_taken(fake):
    fake.default.device = (-1, -1)
    assert choose_device("input").index == 0


def test_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    with pytest.raises(DragomanError, match=r"pip install 'dragoman\[mic\]'"):
        list_devices("input")
