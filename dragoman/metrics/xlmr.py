"""XLM-RoBERTa (Conneau et al. 2020), which reads a hundred languages: COMET's encoder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.errors import DragomanError

PIECES = "sentencepiece.bpe.model"
HEAD = 64  # the width of a head, in base and large
EPSILON = 1e-5


class Pieces:
    """Texts to tokens, with the numbers that the net knows them by."""

    BEGIN, PADDING, END, UNKNOWN = range(4)
    SHIFT = 1  # the file has no padding among its first tokens

    def __init__(self, path: Path) -> None:
        from sentencepiece import SentencePieceProcessor

        try:
            self._model = SentencePieceProcessor(model_proto=path.read_bytes())
        except OSError as error:
            raise DragomanError(
                f"Cannot read {path} ({error.strerror}): XLM-RoBERTa's {PIECES} belongs there; it "
                "is a file of FacebookAI/xlm-roberta-large on the model hub."
            ) from error
        except RuntimeError as error:
            raise DragomanError(f"{path} is damaged: it is no model of SentencePiece's.") from error
        self._unknown = self._model.unk_id()

    def encode(self, texts: Sequence[str], longest: int) -> list[list[int]]:
        """The tokens of texts, at most so many, with those that begin and end a text."""
        return [
            [self.BEGIN, *map(self._number, row[: longest - 2]), self.END]
            for row in self._model.encode(list(texts))
        ]

    def _number(self, piece: int) -> int:
        return self.UNKNOWN if piece == self._unknown else piece + self.SHIFT


class XlmRoberta:
    """The net: layers of attention whose sums are normed behind each part."""

    def __init__(self, weights: Mapping[str, Tensor], prefix: str) -> None:
        self._weights, self._prefix = weights, prefix
        self._words = self._weight("embeddings.word_embeddings.weight")
        self._positions = self._weight("embeddings.position_embeddings.weight")
        self._kind = self._weight("embeddings.token_type_embeddings.weight")[0]
        self.layers = 0
        while f"{prefix}encoder.layer.{self.layers}.output.dense.weight" in weights:
            self.layers += 1

    @property
    def longest(self) -> int:
        """How many tokens a text may have; COMET leaves two places free."""
        return len(self._positions) - Pieces.PADDING - 3

    def states(self, ids: Tensor, mask: Tensor) -> Iterator[Tensor]:
        """What goes into the first layer and what every layer makes, `[texts, tokens, width]`."""
        places = mask.cumsum(dim=1) * mask + Pieces.PADDING  # counted from the first token
        embedded = self._words[ids] + self._positions[places] + self._kind
        x = self._norm(embedded, "embeddings.LayerNorm")
        yield x
        for number in range(self.layers):
            layer = f"encoder.layer.{number}."
            x = self._norm(x + self._attend(x, mask, layer), f"{layer}attention.output.LayerNorm")
            inner = functional.gelu(self._linear(x, f"{layer}intermediate.dense"))
            outer = self._linear(inner, f"{layer}output.dense")
            x = self._norm(x + outer, f"{layer}output.LayerNorm")
            yield x

    def _attend(self, x: Tensor, mask: Tensor, layer: str) -> Tensor:
        query, keys, values = (
            self._linear(x, f"{layer}attention.self.{part}")
            .view(*x.shape[:2], -1, HEAD)
            .transpose(1, 2)
            for part in ("query", "key", "value")
        )
        seen = functional.scaled_dot_product_attention(
            query, keys, values, attn_mask=mask[:, None, None]
        )
        joined = seen.transpose(1, 2).flatten(2)
        return self._linear(joined, f"{layer}attention.output.dense")

    def _linear(self, x: Tensor, name: str) -> Tensor:
        return functional.linear(x, self._weight(f"{name}.weight"), self._weight(f"{name}.bias"))

    def _norm(self, x: Tensor, name: str) -> Tensor:
        scale, shift = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        return torch.layer_norm(x, scale.shape, scale, shift, EPSILON)

    def _weight(self, name: str) -> Tensor:
        return self._weights[self._prefix + name]
