"""What may follow a text: the decoder's last matrix, and the tokens that may not be made."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dragoman.models.gpu.beams import GROUP, likeliest
from dragoman.models.gpu.decoder import Decoder
from dragoman.models.search import FORBIDDEN


class Choice:
    """Which tokens may be made: the rows of the decoder's last matrix that stand for them."""

    def __init__(
        self,
        decoder: Decoder,
        device: torch.device,
        *,
        end: int,
        no_speech: int | None,
        never: Sequence[int],
        not_first: Sequence[int],
    ) -> None:
        self.end, self.no_speech = end, no_speech
        forbidden = set(never)
        allowed = [token for token in range(decoder.words) if token not in forbidden]
        self._filled = -len(allowed) % GROUP  # up to a multiple, with tokens that are not taken
        column = {token: index for index, token in enumerate(allowed)}
        self._end_column = column.get(end)
        self._tokens = torch.tensor(allowed + [0] * self._filled, device=device)
        self._not_first = torch.tensor(
            [column[token] for token in not_first if token in column],
            dtype=torch.long,
            device=device,
        )
        self._projection = decoder.projection(self._tokens).contiguous()
        self._decoder = decoder

    def likeliest(
        self, x: Tensor, count: int, *, avoid_end: Tensor, first: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Log-probabilities of the likeliest tokens that may follow `[sounds, texts, width]`, and
        the tokens, `[sounds, texts, count]`.

        `avoid_end` and `first` tell for which sounds the text may not end, or begins.
        """
        sounds, texts = x.shape[:2]
        logits = self._decoder.logits(x.flatten(0, 1), self._projection)
        if self._filled:
            logits[:, -self._filled :] = float(FORBIDDEN)
        view = logits.unflatten(0, (sounds, texts))
        if self._end_column is not None:
            view[:, :, self._end_column] += avoid_end[:, None] * float(FORBIDDEN)
        if first is not None:
            penalty = first[:, None].expand(-1, len(self._not_first)) * float(FORBIDDEN)
            view.index_add_(2, self._not_first, penalty[:, None].expand(-1, texts, -1))
        values, places = likeliest(torch.log_softmax(logits, dim=1), count)
        shape = (sounds, texts)
        return values.unflatten(0, shape), self._tokens[places].unflatten(0, shape)

    def silence(self, x: Tensor, starts: Tensor) -> Tensor:
        """The probability of silence, from what is left, `[sounds, n, width]`, of the token that
        starts each text; 0 where there is no token for silence."""
        if self.no_speech is None:
            return starts.new_zeros(starts.shape, dtype=torch.float32)
        x = x.gather(1, starts[:, None, None].expand(-1, -1, x.shape[2]))[:, 0]
        return torch.softmax(self._decoder.logits(x), dim=1)[:, self.no_speech]
