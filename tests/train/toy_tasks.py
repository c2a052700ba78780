"""Every task with a tiny net, and the batch that it learns."""

import torch

from dragoman.train.data.front import FrontEnd
from dragoman.train.data.loader import Loader
from dragoman.train.data.plan import Plan
from dragoman.train.nets.base import Vocabularies
from dragoman.train.nets.registry import build
from dragoman.train.recipe import Augment, Batch
from dragoman.train.tasks.base import Words, feature_norm_of
from dragoman.train.tasks.registry import build_task

SMALL = {
    **{"conv_channels": 16, "size": 32, "encoder_layers": 2, "decoder_layers": 1},
    **{"encoder_heads": 2, "decoder_heads": 2, "encoder_ffn": 64, "decoder_ffn": 64},
    **{"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0},
}
ENCODER = {**SMALL, "ctc_layer": 1}
QUIET = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
NETS = {
    "offline": ("transformer", ENCODER, {}),
    "wait-k": ("transformer", ENCODER, {"k": 2, "words": "oracle"}),
    "mma": (
        "mma",
        {
            **{"encoder": "transformer", "encoder_settings": ENCODER, "decoder_layers": 1},
            **{"decoder_heads": 2, "decoder_ffn": 64, "ratio": 3, **QUIET},
        },
        {"latency": {"average": 0.01}, "ctc": 0.2},
    ),
    "joint": (
        "joint-mma",
        {
            **{"conv_channels": 16, "size": 32, "speech_layers": 2, "text_layers": 1},
            **{"decoder_layers": 1, "heads": 2, "ffn": 64, "ratio": 3, **QUIET},
        },
        {},
    ),
    "caat": (
        "caat",
        {
            **{"conv_channels": 16, "size": 32, "encoder_layers": 2, "predictor_layers": 1},
            **{"joiner_layers": 1, "heads": 2, "encoder_ffn": 64, "decoder_ffn": 64},
            **{"decision": 8, **QUIET},
        },
        {"latency": 0.1},
    ),
    "mt": ("text-transformer", {**SMALL, "conv_channels": None}, {}),
}


def make(name, corpus, other_net=None, **changes):
    _, (source, target) = corpus
    net_name, net_settings, settings = NETS[name]
    torch.manual_seed(0)
    net_settings = {k: v for k, v in net_settings.items() if v is not None} | (other_net or {})
    net = build(net_name, net_settings, Vocabularies(len(target), len(source)))
    front = None if name == "mt" else FrontEnd(80, Augment(spec="none"), seed=0)
    words = Words(torch.tensor(source.word_ends(1)), torch.tensor(target.word_ends()))
    if front is not None:
        norm = feature_norm_of(net)
        norm.mean.fill_(10.0)
        norm.deviation.fill_(5.0)
    return build_task(name, settings | changes, net, front, words)


def one_batch(data):
    (batch,) = Loader(data).batches(enumerate(Plan(data, Batch(buckets=1), 0).once()))
    return batch
