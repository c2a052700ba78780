"""A sounddevice without devices: what it brings and takes is up to the test."""

import threading
import time
from types import SimpleNamespace

import numpy as np


class PortAudioError(Exception):
    pass


class FakeSounddevice:
    """Stands in for the module. A device is (name, inputs, outputs, rates, the first preferred)."""

    PortAudioError = PortAudioError

    def __init__(self, devices=(), default=(0, 0)):
        self.rows = [
            {
                "name": name,
                "max_input_channels": inputs,
                "max_output_channels": outputs,
                "default_samplerate": float(rates[0]),
                "rates": rates,
            }
            for name, inputs, outputs, rates in devices
        ]
        self.default = SimpleNamespace(device=default)
        self.busy = False
        self.stuck = False  # streams can be opened, and do not start
        self.script = []
        self.played = []
        self.dead = threading.Event()
        self.streams = []

    def query_devices(self):
        return self.rows

    def check_input_settings(self, device, channels, dtype, samplerate):
        if samplerate not in self.rows[device]["rates"]:
            raise PortAudioError("Invalid sample rate")

    check_output_settings = check_input_settings

    def InputStream(self, **how):  # noqa: N802
        return self._stream(Input, how)

    def OutputStream(self, **how):  # noqa: N802
        return self._stream(Output, how)

    def _stream(self, kind, how):
        if self.busy:
            raise PortAudioError("Device unavailable")
        self.streams.append(kind(self, how))
        return self.streams[-1]


class Stream:
    """A driver's thread that runs as fast as it can."""

    def __init__(self, fake, how):
        self.fake, self.how = fake, how
        self.active = False
        self.closed = False
        self.thread = threading.Thread(target=self.run, daemon=True)

    def start(self):
        if self.fake.stuck:
            raise PortAudioError("Unanticipated host error")
        self.active = True
        self.thread.start()

    def close(self):
        self.active, self.closed = False, True


class Input(Stream):
    """Brings the blocks of the script, one after the other; an error ends the stream there.

    A number in the script is a pause in seconds, None goes on bringing nothing for good: then a
    test may bring sound itself.
    """

    def run(self):
        for item in self.fake.script:
            if item is None:
                return
            if isinstance(item, float):
                time.sleep(item)
            else:
                self.bring(item)
        self.active = False

    def bring(self, samples):
        size = self.how["blocksize"]
        for at in range(0, len(samples), size):
            if self.closed:
                return
            block = samples[at : at + size]
            status = SimpleNamespace(input_overflow=False)
            self.how["callback"](block[:, None], len(block), None, status)


class Output(Stream):
    """Asks for 10 ms again and again, and keeps what it gets."""

    def run(self):
        frames = round(self.how["samplerate"] * 0.01)
        while not self.closed and not self.fake.dead.is_set():
            out = np.full((frames, 1), np.nan, np.float32)
            self.how["callback"](out, frames, None, None)
            self.fake.played.append(out[:, 0])
            time.sleep(0.0005)
