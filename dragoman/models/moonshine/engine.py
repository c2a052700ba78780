"""Moonshine's network: its own encoder, and a decoder of ours that tells where it looks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dragoman.audio.chunk import Samples
from dragoman.errors import DragomanError
from dragoman.models.graphs import Graphs
from dragoman.models.moonshine.units import END, MoonshineUnits
from dragoman.models.moonshine.weights import decoder_weights
from dragoman.models.search import Floats, Found, Prompt
from dragoman.models.whisper.decoder import Decoder, Rules
from dragoman.models.whisper.graph import Shape

ENCODERS = ("encoder_model.onnx", "encoder_model.ort")
DECODERS = ("decoder_model_merged.onnx", "decoder_model_merged.ort")
# Heads that follow the sound, by layers of the decoder: found by comparing the moments they look at
# with those of Whisper base on read speech.
ALIGNMENT = {
    6: [(3, 0), (3, 5), (3, 6), (4, 3), (4, 6), (4, 7), (5, 6)],
    8: [(4, 2), (5, 3), (5, 5), (5, 6), (6, 0), (6, 4)],
}


class MoonshineRules(Rules):
    """There is no token for silence."""

    def silence(self, logits: Floats) -> float:
        return 0.0


class MoonshineEngine:
    """Loaded from a folder with an encoder and a decoder, both .onnx or .ort."""

    def __init__(self, folder: Path, units: MoonshineUnits, *, threads: int) -> None:
        import onnxruntime

        encoder, decoder = first_file(folder, ENCODERS), first_file(folder, DECODERS)
        if encoder is None or decoder is None:
            raise DragomanError(f"{folder} holds no Moonshine: it lacks its encoder or decoder.")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.enable_cpu_mem_arena = False  # windows differ in length all the time
        options.enable_mem_pattern = False
        try:
            self._encoder = onnxruntime.InferenceSession(
                str(encoder), options, ["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's own errors have no common base
            raise DragomanError(f"Cannot load {encoder}: {error}.") from error
        weights = decoder_weights(decoder)
        shape = Shape.of(weights)
        never = [number for number in range(shape.words) if not units.name(number)]
        never.remove(END)
        rules = MoonshineRules(shape.words, end=END, no_speech=END, never=never, not_first=[])
        later = [(layer, head) for layer in range(shape.layers) for head in range(shape.heads)]
        heads = ALIGNMENT.get(shape.layers, later[len(later) // 2 :])
        self._decoder = Decoder(weights, rules, heads, Graphs(folder, threads))

    def encode(self, sounds: Sequence[Samples]) -> list[Floats]:
        """Encode windows of equal length together."""
        states = self._encoder.run(None, {"input_values": np.stack(sounds)})[0]
        return list(states)

    def speak(self, states: Sequence[Floats], prompts: Sequence[Prompt], beams: int) -> list[Found]:
        return self._decoder.speak(states, prompts, beams)


def first_file(folder: Path, names: Sequence[str]) -> Path | None:
    return next((folder / name for name in names if (folder / name).is_file()), None)
