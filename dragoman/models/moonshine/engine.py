"""Moonshine's network: an encoder that goes on from what it heard, a decoder that tells where it
looks; both made from the weights of its files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from dragoman.audio.chunk import RATE, Samples
from dragoman.errors import DragomanError
from dragoman.models.graphs import Graphs
from dragoman.models.kind import first_file
from dragoman.models.moonshine.alignment import alignment
from dragoman.models.moonshine.encoder import STATE, Encoded, Encoder, Labels, Pace, no_labels
from dragoman.models.moonshine.stream import EncodedWindow
from dragoman.models.moonshine.tongue import no_judgement, tongues
from dragoman.models.moonshine.units import END, MoonshineUnits
from dragoman.models.moonshine.weights import moonshine_weights
from dragoman.models.options import Options
from dragoman.models.search import Floats, Found, Past, Prompt
from dragoman.models.whisper.decoder import Decoder, Rules
from dragoman.models.whisper.graph import Shape
from dragoman.models.whisper.weights import Weights

ENCODERS = ("encoder_model.onnx", "encoder_model.ort")
DECODERS = ("decoder_model_merged.onnx", "decoder_model_merged.ort")
# Newest sound that Moonshine hears anew whenever there is more, in seconds. Its encoder was not
# trained in steps: with one second behind it, a word that is hard to understand is wrong for good.
# What is older than this is about to be final, anyhow (`cascade/stream.py`).
ANEW = 2
CTC = "ctc/weight"  # of a net that counts source words


class Engine(Protocol):
    """Every operation takes a batch; its windows are its own kind of `EncodedWindow`."""

    @property
    def device(self) -> str:
        """Where it works: cpu or cuda."""

    def new(self) -> EncodedWindow:
        """A window of which nothing was heard yet, of somebody who has not spoken yet."""

    def encode(self, windows: Sequence[Any], sounds: Sequence[Samples]) -> Sequence[EncodedWindow]:
        """Encode the sound behind each window; its first sample belongs to a new state."""

    def speak(
        self,
        windows: Sequence[Any],
        prompts: Sequence[Prompt],
        beams: int,
        pasts: Sequence[Past] | None = None,
    ) -> list[Found]:
        """Continue every prompt; what is in its past is not computed again."""


class MoonshineRules(Rules):
    """There is no token for silence."""

    def silence(self, log_probs: Floats) -> float:
        return 0.0


class MoonshineEngine:
    """Made of weights under the names of CTranslate2."""

    def __init__(
        self,
        weights: Weights,
        rules: Rules,
        graphs: Graphs,
        *,
        of_encoder: Graphs | None = None,
        judge: Callable[[Floats], Floats] = no_judgement,
        pace: Pace | None = None,
        exact: bool = False,
    ) -> None:
        """`of_encoder`: where the encoder's graphs are kept, if it is another model's; `judge`:
        what tells the language of states; `exact`: in 32-bit floats."""
        heads = alignment(Shape.of(weights))
        self._decoder = Decoder(weights, rules, heads, graphs, exact=exact)
        self._encoder = Encoder(
            weights,
            of_encoder or graphs,
            self._decoder.remember,
            label=CtcHead(weights) if CTC in weights else no_labels,
            judge=judge,
            pace=pace,
            exact=exact,
        )

    device = "cpu"

    def new(self) -> Encoded:
        return Encoded()

    def encode(self, windows: Sequence[Encoded], sounds: Sequence[Samples]) -> list[Encoded]:
        return self._encoder.encode(windows, sounds)

    def first(self, window: Encoded, token: int) -> Floats:
        """The logits of what follows the first token of a text."""
        return self._decoder.first(window.memory, token)

    def speak(
        self,
        windows: Sequence[Encoded],
        prompts: Sequence[Prompt],
        beams: int,
        pasts: Sequence[Past] | None = None,
    ) -> list[Found]:
        memories = [window.memory for window in windows]
        return self._decoder.go_on(memories, prompts, beams, pasts=pasts)


def load_engine(folder: Path, units: MoonshineUnits, options: Options) -> Engine:
    """The engine for the device that is wanted, or that is there, of a folder with an encoder and a
    decoder, both .onnx or .ort."""
    encoder, decoder = first_file(folder, ENCODERS), first_file(folder, DECODERS)
    if encoder is None or decoder is None:
        raise DragomanError(f"{folder} holds no Moonshine: it lacks its encoder or decoder.")
    options = options.placed()
    weights = moonshine_weights(encoder, decoder)
    shape = Shape.of(weights)
    never = [number for number in range(shape.words) if number != END and not units.name(number)]
    tongue = tongues().get(shape.width)
    if options.device == "cpu":
        rules = MoonshineRules(shape.words, end=END, no_speech=END, never=never, not_first=[])
        return MoonshineEngine(
            weights,
            rules,
            Graphs(folder, options.threads),
            judge=tongue or no_judgement,
            pace=Pace(ahead=ANEW * RATE // STATE + 1),
            exact=options.compute == "float32",
        )
    from dragoman.models.moonshine.gpu.engine import TorchEngine

    return TorchEngine.load(weights, options, end=END, never=never, tongue=tongue)


class CtcHead:
    """From states to source units; the last one is the blank."""

    def __init__(self, weights: Weights) -> None:
        self._weight, self._bias = weights.array(CTC), weights.array("ctc/bias")

    def __call__(self, states: Floats) -> Labels:
        labels: Labels = (states @ self._weight.T + self._bias).argmax(axis=1)
        return labels
