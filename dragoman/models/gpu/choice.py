"""What may follow a text: the decoder's last matrix, and the tokens that may not be made."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from dragoman.models.gpu.beams import GROUP, likeliest
from dragoman.models.gpu.decoder import Decoder
from dragoman.models.search import FORBIDDEN

ROWS = 4096  # texts whose next tokens are looked at together, where there are many


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
        columns = [column.get(token, -1) for token in range(decoder.words)]
        self._columns = torch.tensor(columns, device=device)
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

        def of_texts(flags: Tensor) -> Tensor:
            return flags[:, None].expand(-1, texts).flatten()

        begins = None if first is None else of_texts(first)
        log_probs = self._log_probs(x.flatten(0, 1), of_texts(avoid_end), begins)
        values, places = likeliest(log_probs, count)
        shape = (sounds, texts)
        return values.unflatten(0, shape), self._tokens[places].unflatten(0, shape)

    def of_tokens(
        self, x: Tensor, tokens: Tensor, avoid_end: Tensor, first: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Log-probabilities of tokens `[sounds, n]` behind what is left of those before them,
        `[sounds, n, width]`, and whether they are the likeliest. `first` tells for each whether it
        begins a text."""
        count = tokens.shape[1]
        rows = (x.flatten(0, 1), avoid_end[:, None].expand(-1, count).flatten(), first.flatten())
        found, best = [], []
        for part, ends, begins, columns in zip(
            *(one.split(ROWS) for one in (*rows, self._columns[tokens.flatten()])), strict=True
        ):
            log_probs = self._log_probs(part, ends, begins)
            values = log_probs.gather(1, columns.clamp(min=0)[:, None])[:, 0]
            found.append(values.masked_fill(columns < 0, float(FORBIDDEN)))
            best.append(log_probs.argmax(dim=1) == columns)
        return torch.cat(found).view(tokens.shape), torch.cat(best).view(tokens.shape)

    def _log_probs(self, x: Tensor, avoid_end: Tensor, first: Tensor | None) -> Tensor:
        """Of the tokens that may be made behind each of `[n, width]`."""
        logits = self._decoder.logits(x, self._projection)
        if self._filled:
            logits[:, -self._filled :] = float(FORBIDDEN)
        if self._end_column is not None:
            logits[:, self._end_column] += avoid_end * float(FORBIDDEN)
        if first is not None:
            penalty = first[:, None].expand(-1, len(self._not_first)) * float(FORBIDDEN)
            logits.index_add_(1, self._not_first, penalty)
        return torch.log_softmax(logits, dim=1)

    def silence(self, x: Tensor, starts: Tensor) -> Tensor:
        """The probability of silence, from what is left, `[sounds, n, width]`, of the token that
        starts each text; 0 where there is no token for silence."""
        if self.no_speech is None:
            return starts.new_zeros(starts.shape, dtype=torch.float32)
        x = x.gather(1, starts[:, None, None].expand(-1, -1, x.shape[2]))[:, 0]
        return torch.softmax(self._decoder.logits(x), dim=1)[:, self.no_speech]
