"""A text Transformer: the teacher of knowledge distillation, the second half of a cascade.

The default is the base size; Papi et al. 2022 (A.3) use size 1024, 16 heads, feed-forward 4096
and one shared vocabulary of about 32,000 units: 212 M parameters.
"""

from dataclasses import dataclass

from torch import Tensor, nn

from dragoman.errors import DragomanError
from dragoman.train.nets.base import Encoded, Vocabularies
from dragoman.train.nets.decoder import TransformerDecoded, TransformerDecoder
from dragoman.train.nets.layers import Embedding, EncoderLayer, LayerSettings, padding_bias
from dragoman.train.settings import Whole


@dataclass(frozen=True)
class TextTransformerConfig(LayerSettings):
    size: Whole = 512
    encoder_layers: Whole = 6
    decoder_layers: Whole = 6
    encoder_heads: Whole = 8
    decoder_heads: Whole = 8
    encoder_ffn: Whole = 2048
    decoder_ffn: Whole = 2048
    tied_output: bool = True
    shared_vocabulary: bool = False  # source and target use the same units and embeddings


class TextTransformer(TransformerDecoded):
    """Source units [B, T] -> as many states -> target units."""

    config: TextTransformerConfig
    source_rows = ("embedding",)

    def __init__(self, config: TextTransformerConfig, vocabularies: Vocabularies):
        super().__init__(config, vocabularies)
        if config.shared_vocabulary and vocabularies.source != vocabularies.target:
            raise DragomanError(
                f"A shared vocabulary has one size, not {vocabularies.source} source and "
                f"{vocabularies.target} target units; set shared_vocabulary to false."
            )
        encoder = config.layer(config.size, config.encoder_heads, config.encoder_ffn)
        decoder = config.layer(config.size, config.decoder_heads, config.decoder_ffn)
        self.decoder = TransformerDecoder(
            vocabularies.target, config.decoder_layers, decoder, config.tied_output
        )
        self.embedding = (
            self.decoder.embedding
            if config.shared_vocabulary
            else Embedding(vocabularies.source, config.size)
        )
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(EncoderLayer(encoder) for _ in range(config.encoder_layers))
        self.norm = nn.LayerNorm(config.size) if config.pre_norm else nn.Identity()

    def encode(self, features: Tensor, lengths: Tensor) -> Encoded:
        """`features` are source units [B, T]"""
        x = self.dropout(self.embedding(features))
        bias = padding_bias(lengths, x.shape[1])
        for layer in self.layers:
            x = layer(x, bias)
        return Encoded(self.norm(x), lengths)
