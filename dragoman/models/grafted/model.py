"""Moonshine's encoder grafted onto a text model: it hears speech and writes a translation.

    config.json     what the nets are, languages, units, whose encoder is in front
    encoder.onnx    the layers that read Moonshine's states
    decoder.onnx    new tokens and caches -> log-probabilities, attention, caches
    target.model, source.model   the units

Moonshine's encoder is not in the folder: it is the store's.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from dragoman.audio.chunk import Samples
from dragoman.errors import DragomanError
from dragoman.models.exported.config import ExportedNet
from dragoman.models.exported.decoder import Texts
from dragoman.models.exported.pieces import Pieces, open_units, tag_of
from dragoman.models.grafted.encoder import GraftedEncoder, GraftedNet, Heard
from dragoman.models.graphs import Graphs
from dragoman.models.kind import first_file
from dragoman.models.moonshine.encoder import Encoded
from dragoman.models.moonshine.engine import DECODERS, ENCODERS
from dragoman.models.moonshine.stream import MoonshineStream
from dragoman.models.moonshine.trained import Settings, TrainedMoonshine, counting
from dragoman.models.moonshine.weights import moonshine_weights
from dragoman.models.options import Options
from dragoman.models.search import Found, Past, Prompt, search


class GraftedEngine:
    """Moonshine's encoder and the nets of a folder."""

    def __init__(self, net: GraftedNet, encoder: GraftedEncoder) -> None:
        self.net, self._encoder = net, encoder

    @classmethod
    def of(cls, net: GraftedNet, *, threads: int) -> GraftedEngine:
        """With the encoder that the net was trained behind: the store's, or one in a folder."""
        from dragoman.store import get

        named = Path(net.config.encoder).expanduser()
        place = named if named.is_dir() else get(net.config.encoder)
        encoder, decoder = first_file(place, ENCODERS), first_file(place, DECODERS)
        if encoder is None or decoder is None:
            raise DragomanError(
                f"The net needs the encoder of '{net.config.encoder}', but {place} holds no "
                "Moonshine."
            )
        weights = moonshine_weights(encoder, decoder)
        return cls(net, GraftedEncoder(weights, Graphs(place, threads), net))

    device = "cpu"

    def new(self) -> Heard:
        return Heard()

    def encode(self, windows: Sequence[Encoded], sounds: Sequence[Samples]) -> list[Encoded]:
        return self._encoder.encode(windows, sounds)

    def speak(
        self,
        windows: Sequence[Encoded],
        prompts: Sequence[Prompt],
        beams: int,
        pasts: Sequence[Past] | None = None,
    ) -> list[Found]:
        """One after the other: a cache has no room for gaps. Texts are read anew every time."""
        pairs = zip(cast(Sequence[Heard], windows), prompts, strict=True)
        return [self._spoken(window, prompt, beams) for window, prompt in pairs]

    def _spoken(self, window: Heard, prompt: Prompt, beams: int) -> Found:
        if not window.joined:
            return Found()
        texts = Texts(self.net, [window.texts], [window.joined], [prompt])
        return search(texts, [prompt], beams)[0]


class GraftedModel(TrainedMoonshine):
    """Loaded once, shared by all its streams."""

    joined = 1

    @classmethod
    def load(cls, folder: Path, name: str, options: Options) -> GraftedModel:
        options = options.on_cpu("A net behind Moonshine's encoder")
        return cls.behind(GraftedNet(folder, threads=options.threads), folder, name, options)

    @classmethod
    def behind(cls, net: GraftedNet, folder: Path, name: str, options: Options) -> GraftedModel:
        """Of a net that is loaded; the folder has the units."""
        config = net.config
        engine = GraftedEngine.of(net, threads=options.threads)
        codes = config.languages.targets or ("",)
        units = {code: Pieces.of_target(folder, config, code) for code in codes}
        settings = settings_of(folder, config)
        count = counting(folder, settings) if config.ctc else None
        model = cls(name, engine, settings, units, count, beams=options.beams)
        model.joined = int(config.settings["joined"])
        return model

    def open(self, source: str | None, target: str, *, transcript: bool = False) -> MoonshineStream:
        stream = super().open(source, target, transcript=transcript)
        stream.joined = self.joined
        return stream


def settings_of(folder: Path, config: ExportedNet) -> Settings:
    """The settings of the model, as its nets have them."""
    tags = {}
    if len(config.languages.targets) > 1:
        model = open_units(folder / "target.model")
        tags = {code: int(model.piece_to_id(tag_of(code))) for code in config.languages.targets}
    return Settings(
        target_units=config.target_units,
        source_units=config.source_units,
        languages=config.languages,
        tags=tags,
        encoder=config.encoder,
        suffix=config.suffix,
        source_suffix=config.source_suffix,
        precision=config.precision,
    )
