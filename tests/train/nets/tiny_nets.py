"""Tiny versions of every net, and a tiny corpus of noise that any of them can learn by heart."""

import torch

from dragoman.models.exported.net import BOS, EOS
from dragoman.train.nets.base import Net, Vocabularies
from dragoman.train.nets.registry import build

VOCABULARIES = Vocabularies(target=14, source=11)
FEATURES = 8
SMALL = {
    "features": FEATURES,
    "size": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_heads": 2,
    "decoder_heads": 4,
    "encoder_ffn": 64,
    "decoder_ffn": 64,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
}
TINY = {
    "transformer": ("transformer", {**SMALL, "conv_channels": 32, "ctc_layer": 1}),
    "transformer, post-norm, tied": (
        "transformer",
        {**SMALL, "conv_channels": 32, "ctc_layer": 2, "pre_norm": False, "tied_output": True},
    ),
    "transformer, compressed": (
        "transformer",
        {**SMALL, "conv_channels": 32, "ctc_layer": 1, "ctc_compression": True},
    ),
    "conformer": (
        "conformer",
        {**SMALL, "conv_channels": 32, "ctc_layer": 1, "kernel": 5, "boundaries": True},
    ),
    "conformer, rotary, compressed": (
        "conformer",
        {
            **SMALL,
            "conv_channels": 32,
            "ctc_layer": 1,
            "kernel": 5,
            "positions": "rotary",
            "ctc_compression": True,
        },
    ),
    "incremental": (
        "incremental",
        {
            **SMALL,
            # 8 would leave 3 after one layer, where torch's bfloat16 convolution on some
            # processors reads memory that nobody wrote.
            "features": 12,
            "conv_channels": 8,
            "ctc_layer": 2,
            "kernel": 5,
            "chunk": 3,
            "right": 2,
            "left": 4,
            "train_chunks": (2, 4),
            "train_rights": (0, 2),
            "train_lefts": (4, 8),
        },
    ),
    "s-transformer, log": ("s-transformer", {**SMALL, "conv_channels": 4, "maps": 2}),
    "s-transformer, gauss, ctc": (
        "s-transformer",
        {**SMALL, "conv_channels": 4, "maps": 2, "penalty": "gauss", "ctc_layer": 1},
    ),
    "vgg-blstm": (
        "vgg-blstm",
        {
            "features": 7,
            "channels": 8,
            "size": 32,
            "encoder_layers": 2,
            "attention": 16,
            "dropout": 0.0,
        },
    ),
    "text-transformer": (
        "text-transformer",
        {key: value for key, value in SMALL.items() if key != "features"},
    ),
    "caat": (
        "caat",
        {
            "features": FEATURES,
            "conv_channels": 4,
            "size": 32,
            "encoder_layers": 2,
            "predictor_layers": 1,
            "joiner_layers": 2,
            "heads": 2,
            "encoder_ffn": 64,
            "decoder_ffn": 64,
            "dropout": 0.0,
            "attention_dropout": 0.0,
            "activation_dropout": 0.0,
            "chunk": 3,
            "right": 2,
            "left": 6,
            "reach": 4,
            "decision": 3,
        },
    ),
}


def tiny(label: str) -> Net:
    torch.manual_seed(0)
    name, settings = TINY[label]
    return build(name, settings, VOCABULARIES)


def noise(net: Net, items: int, frames: int, seed: int = 1) -> torch.Tensor:
    """Speech features [items, frames, F], or source tokens [items, frames] for a text net."""
    generator = torch.Generator().manual_seed(seed)
    if hasattr(net.config, "features"):
        return torch.randn(items, frames, net.config.features, generator=generator)
    return torch.randint(4, VOCABULARIES.source, (items, frames), generator=generator)


def sentences(items: int, units: int, seed: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    """What the decoder reads (BOS first) and what it should say (EOS last): [items, units]"""
    generator = torch.Generator().manual_seed(seed)
    words = torch.randint(4, VOCABULARIES.target, (items, units - 1), generator=generator)
    ends = torch.ones(items, 1, dtype=torch.long)
    return torch.cat([ends * BOS, words], 1), torch.cat([words, ends * EOS], 1)
