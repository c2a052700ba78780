"""Wait-k training: how many source states each target unit may see.

Target word v (from 0) sees the first min(J, b(k + v)) states, where b(w) is the state on which
source word w ends. Fixed detection: b(w) = w r, every word lasts r states. CTC detection: b(w) is
read off the CTC labels; once words run out, all J states are seen.

The result, `seen` [B, U], becomes a mask by `nets.layers.seen_bias`. A decoder mask over an encoder
that looks ahead leaks the future (the papers accept it and re-encode at test time); over a causal
or chunked encoder it is exact.
"""

import torch
from torch import Tensor


def seen_fixed(k: int, ratio: int, words: Tensor, lengths: Tensor) -> Tensor:
    """words [B, U]: the target word each unit belongs to (or the unit's own index, to advance per
    unit as fairseq does); lengths [B] states -> seen [B, U]"""
    return torch.minimum((k + words) * ratio, lengths.unsqueeze(1))


def seen_adaptive(k: int, word_ends: Tensor, words: Tensor, lengths: Tensor) -> Tensor:
    """word_ends [B, W] as `ends_of` returns them, words [B, U], lengths [B] -> seen [B, U]"""
    everything = lengths.unsqueeze(1)
    ends = torch.cat([word_ends, everything], dim=1)
    index = (k + words - 1).clamp(0, ends.shape[1] - 1)
    return torch.minimum(ends.gather(1, index), everything)


def ctc_marks(labels: Tensor, lengths: Tensor, ends_word: Tensor) -> Tensor:
    """In which states a source word ends, by the greedy CTC labels.

    labels [B, S] with the blank as the last unit, lengths [B], ends_word [V + 1] (True for units
    that end a word, never for blank) -> [B, S]. A run of equal labels is one unit, heard when it
    begins.
    """
    new = torch.ones_like(labels, dtype=torch.bool)
    new[:, 1:] = labels[:, 1:] != labels[:, :-1]
    inside = torch.arange(labels.shape[1], device=labels.device) < lengths.unsqueeze(1)
    return new & ends_word[labels] & inside


def ends_of(marks: Tensor, lengths: Tensor) -> Tensor:
    """How many states are heard when each source word ends: marks [B, S] -> [B, S], word after
    word, and the length where an item has no more words. As wide as the states, so that no number
    has to come back from a GPU."""
    state = torch.arange(1, marks.shape[1] + 1, device=marks.device)
    heard = torch.where(marks, state, marks.shape[1] + 1).sort(1).values
    return torch.minimum(heard, lengths.unsqueeze(1))


def target_words(tokens: Tensor, ends_word: Tensor) -> Tensor:
    """Which word each unit to be written belongs to, from 0: tokens [B, U] -> [B, U].

    ends_word [V]: True for units that end a word.
    """
    ended = ends_word[tokens].long()
    return ended.cumsum(1) - ended


def draw_k(longest: int, k_max: int) -> int:
    """Multi-path training (Elbayad 2020): one k per batch, uniform on 1 .. min(|x|, k_max)."""
    return int(torch.randint(1, max(1, min(longest, k_max)) + 1, ()))
