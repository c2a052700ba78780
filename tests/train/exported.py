"""Tiny nets, exported once per test run, with units of their own."""

import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest.mock import patch

import sentencepiece
import torch

from dragoman.train.export import export
from dragoman.train.exporting import Surroundings
from dragoman.train.graphs import DecoderGraph, write
from dragoman.train.nets.base import Net, Vocabularies
from dragoman.train.nets.registry import build
from tests.shared import made_once

TEXT = ["guten morgen meine damen und herren", "wie geht es ihnen heute", "das ist ein haus"]
LAYERS = {
    **{"features": 16, "size": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_heads": 2},
    **{"decoder_heads": 2, "encoder_ffn": 24, "decoder_ffn": 24, "conv_channels": 6},
    "ctc_layer": 1,
}
CHUNKS = {"kernel": 5, "chunk": 4, "right": 2, "left": 8}
MONOTONIC = {"decoder_layers": 1, "decoder_heads": 2, "decoder_ffn": 24, "ratio": 3}
# Every encoder once: those that an MMA listens with are not exported by themselves.
NETS = {
    "transformer": ("transformer", LAYERS),
    "incremental": ("incremental", {**LAYERS, **CHUNKS}),
    "vgg-blstm": (
        "vgg-blstm",
        {"features": 16, "channels": 2, "size": 16, "encoder_layers": 1, "attention": 8},
    ),
    "text-transformer": (
        "text-transformer",
        {k: v for k, v in LAYERS.items() if k not in ("features", "conv_channels", "ctc_layer")}
        | {"tied_output": False},  # as its decoder's fellow has it; the exported teacher ties it
    ),
    "mma": (
        "mma",
        {
            **MONOTONIC,
            "encoder": "s-transformer",
            "encoder_settings": {**LAYERS, "maps": 1, "penalty": "gauss", "ctc_layer": 0},
        },
    ),
    "mma-hard": (
        "mma",
        {
            **MONOTONIC,
            "attention": "hard",
            "encoder": "conformer",
            "encoder_settings": LAYERS
            | {"kernel": 5, "encoder_layers": 2, "ctc_compression": True},
        },
    ),
    "mma-learned": (
        "mma",
        {
            **MONOTONIC,
            "decisions": "learned",
            "encoder": "incremental",
            "encoder_settings": {**LAYERS, **CHUNKS},
        },
    ),
    "joint-mma": (
        "joint-mma",
        {
            **{"features": 16, "conv_channels": 6, "size": 16, "speech_layers": 2, "heads": 2},
            **{"text_layers": 1, "decoder_layers": 1, "ffn": 24, "ratio": 3},
        },
    ),
    "caat": (
        "caat",
        {
            **{"features": 16, "conv_channels": 4, "size": 16, "encoder_layers": 1, "heads": 2},
            **{"predictor_layers": 1, "joiner_layers": 1, "encoder_ffn": 24, "decoder_ffn": 24},
            **{"chunk": 4, "right": 2, "left": 8, "decision": 8},
        },
    ),
}
SAME_DECODER = {
    **dict.fromkeys(("incremental", "text-transformer"), "transformer"),
    "joint-mma": "mma",
}
"""Nets whose decoder is that of another one, to the last weight: its graph is made once, and
compared with each of them."""


def make_units(path: Path) -> None:
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT),
        model_prefix=str(path.with_suffix("")),
        vocab_size=40,
        hard_vocab_limit=False,
        treat_whitespace_as_suffix=True,
        **{"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3, "minloglevel": 2},
    )
    path.with_suffix(".model").rename(path)


@dataclass
class Exporter:
    """Exports each net when it is first asked for, into a folder that processes may share."""

    folder: Path

    def __post_init__(self) -> None:
        self.units = made_once(self.folder / "units.model", make_units)
        self.size = sentencepiece.SentencePieceProcessor(model_file=str(self.units)).vocab_size()
        self.nets: dict[str, Net] = {}

    def net(self, label: str) -> Net:
        """The net itself, with weights (and running statistics) that matter."""
        if label not in self.nets:
            torch.manual_seed(0)
            name, settings = NETS[label]
            net = build(name, settings, Vocabularies(self.size, self.size)).eval()
            for key, buffer in net.named_buffers():
                if key.endswith(("running_mean", "norm.mean")):
                    buffer.normal_()
                if key.endswith(("running_var", "deviation")):
                    buffer.uniform_(0.5, 2)
            if label in SAME_DECODER:
                net.decoder.load_state_dict(self.net(SAME_DECODER[label]).decoder.state_dict())
            self.nets[label] = net
        return self.nets[label]

    def folder_of(self, label: str) -> Path:
        around = Surroundings(
            source="en",
            target="de",
            target_units=self.units,
            source_units=self.units,
            suffix=True,
            source_suffix=True,
        )
        with patch("dragoman.train.graphs.write", partial(self.write, label)):
            return made_once(
                self.folder / label, lambda folder: export(self.net(label), folder, around)
            )

    def write(
        self, label: str, graph: torch.nn.Module, inputs: tuple, axes: tuple, folder: Path
    ) -> None:
        if isinstance(graph, DecoderGraph) and label in SAME_DECODER:
            shutil.copy(self.folder_of(SAME_DECODER[label]) / "decoder.onnx", folder)
        else:
            write(graph, inputs, axes, folder)
