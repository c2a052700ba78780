"""Every net by name. A new net is one file and one line here."""

from collections.abc import Mapping
from typing import Any

from dragoman.errors import DragomanError
from dragoman.train.nets.base import Net, Vocabularies
from dragoman.train.nets.caat import Caat, CaatConfig
from dragoman.train.nets.conformer import Conformer, ConformerConfig
from dragoman.train.nets.grafted import Grafted, GraftedConfig
from dragoman.train.nets.incremental import Incremental, IncrementalConfig
from dragoman.train.nets.joint import JointConfig, JointMma
from dragoman.train.nets.mma import Mma, MmaConfig
from dragoman.train.nets.moonshine import Moonshine, MoonshineConfig
from dragoman.train.nets.mt import TextTransformer, TextTransformerConfig
from dragoman.train.nets.s_transformer import STransformer, STransformerConfig
from dragoman.train.nets.transformer import Transformer, TransformerConfig
from dragoman.train.nets.vgg_blstm import VggBlstm, VggBlstmConfig
from dragoman.train.settings import convert

# name -> (its config, itself); `NETS[name][1](config, vocabularies)` builds it
NETS: dict[str, tuple[type[Any], type[Net]]] = {
    "transformer": (TransformerConfig, Transformer),
    "conformer": (ConformerConfig, Conformer),
    "incremental": (IncrementalConfig, Incremental),
    "s-transformer": (STransformerConfig, STransformer),
    "vgg-blstm": (VggBlstmConfig, VggBlstm),
    "text-transformer": (TextTransformerConfig, TextTransformer),
    "moonshine": (MoonshineConfig, Moonshine),
    "grafted": (GraftedConfig, Grafted),
    "mma": (MmaConfig, Mma),
    "joint-mma": (JointConfig, JointMma),
    "caat": (CaatConfig, Caat),
}


def build(
    name: str,
    settings: Mapping[str, object],
    vocabularies: Vocabularies,
    where: str = "net_settings",
) -> Net:
    """A net from its name, the settings that differ from the default, and the vocabularies.

    `where` is the key of the settings in a recipe.
    """
    if name not in NETS:
        raise DragomanError(f"There is no net '{name}'; the nets are {', '.join(sorted(NETS))}.")
    config, net = NETS[name]
    return net(convert(config, settings, where), vocabularies)
