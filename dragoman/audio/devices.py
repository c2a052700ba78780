"""Microphones and loudspeakers, through the `sounddevice` package of the `mic` extra."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from dragoman.errors import DragomanError

Kind = Literal["input", "output"]
_NAMES: dict[Kind, str] = {"input": "microphone", "output": "loudspeaker"}


@dataclass(frozen=True, slots=True)
class Device:
    """A microphone or a loudspeaker."""

    index: int
    name: str
    kind: Kind
    rate: int
    """The sample rate it likes best."""
    default: bool


def sounddevice() -> Any:
    """The library, or a sentence on how to get it."""
    try:
        import sounddevice
    except ImportError:
        raise DragomanError(
            "Microphone and loudspeaker need the package sounddevice: pip install 'dragoman[mic]'."
        ) from None
    except OSError:
        raise DragomanError(
            "Microphone and loudspeaker need the PortAudio library; install it "
            "(on Debian and Ubuntu: apt install libportaudio2)."
        ) from None
    return sounddevice


def started(stream: Any) -> Any:
    """A stream that runs now; one that cannot gives its device back."""
    try:
        stream.start()
    except BaseException:
        close(stream)
        raise
    return stream


def close(stream: Any) -> None:
    """Give a device back. One that is gone may fail to close; then it is closed."""
    with suppress(Exception):
        stream.close()


def list_devices(kind: Kind) -> list[Device]:
    """All microphones or all loudspeakers, in the system's order."""
    library = sounddevice()
    try:
        found = list(library.query_devices())
        preferred = library.default.device[0 if kind == "input" else 1]
    except library.PortAudioError as error:
        raise DragomanError(f"The {_NAMES[kind]}s cannot be listed: {error}.") from None
    return [
        Device(index, row["name"], kind, int(row["default_samplerate"]), index == preferred)
        for index, row in enumerate(found)
        if row[f"max_{kind}_channels"] > 0
    ]


def choose_device(kind: Kind, wanted: str | int | None = None) -> Device:
    """The device of that number, or with that in its name, or the system's own choice."""
    devices = list_devices(kind)
    if not devices:
        raise DragomanError(f"This machine has no {_NAMES[kind]}; connect one and try again.")
    if wanted is None:
        return next((device for device in devices if device.default), devices[0])
    number = str(wanted).strip()
    if number.isdecimal():
        matches = [device for device in devices if device.index == int(number)]
    else:
        exact = [device for device in devices if device.name == wanted]
        partly = [device for device in devices if number.lower() in device.name.lower()]
        matches = exact or partly
    if len(matches) == 1:
        return matches[0]
    problem = "fits several" if matches else "fits none"
    known = "; ".join(f"{device.index}: {device.name}" for device in matches or devices)
    raise DragomanError(f"'{wanted}' {problem} of the {_NAMES[kind]}s: {known}.")
