"""A net that is a table: any row of tokens has a distribution; the cache is the row itself."""

from types import SimpleNamespace

import numpy as np

from dragoman.models.exported.decoder import Texts
from dragoman.models.exported.net import BOS, EOS, Stepped
from dragoman.models.search import Found, Prompt, search

UNITS, WORDS = 6, (4, 5)


class TableNet:
    """Writes token 4 or 5, or ends; `write` decides, by the tokens so far, if it may go on."""

    cache = (SimpleNamespace(shape=(0,)),)
    config = SimpleNamespace(decides="no", attention_layer=0, memory_time=1, cache=cache)

    def __init__(self, write=None) -> None:
        self.batches: list[int] = []
        self._write = write

    def begin(self, batch):
        return (np.zeros((batch, 0), np.int64),)

    def step(self, tokens, memory, lengths, cache, final=None):
        self.batches.append(len(tokens))
        rows = np.concatenate([cache[0], tokens], axis=1)
        new = range(rows.shape[1] - tokens.shape[1] + 1, rows.shape[1] + 1)
        seeds = memory[0][:, 0]
        log_probs = np.stack(
            [[table(seed, row[:u]) for u in new] for seed, row in zip(seeds, rows, strict=True)]
        )
        sums = np.stack([rows[:, :u].sum(1) for u in new], axis=1)  # tell one look from another
        attention = np.tile(sums[:, None, :, None], (1, 1, 1, 2))
        write = None
        if self._write is not None:
            write = np.array(
                [[self._write(row, ends)] for row, ends in zip(rows, final, strict=True)]
            )
        return Stepped(log_probs, attention.astype(np.float32), (rows,), write)


def table(seed, row):
    scores = 2 * np.random.default_rng([int(seed), *row.tolist()]).standard_normal(UNITS)
    scores[[0, 3]] = -30  # padding and unknown
    return (scores - np.log(np.exp(scores).sum())).astype(np.float32)


def texts_of(net, seeds, prompts, caches=None) -> Texts:
    memories = [(np.full((1, 2), seed),) for seed in seeds]
    return Texts(net, memories, [2] * len(seeds), prompts, caches)


def found(seeds, prompts, beams=1, net=None) -> list[Found]:
    return search(texts_of(net or TableNet(), seeds, prompts), prompts, beams)


def prompt(most, said=(), **more) -> Prompt:
    return Prompt((BOS,), most, tuple(said), **more)


def log_prob(seed, prefix, text, ended) -> float:
    row, total = np.array([BOS, *prefix]), 0.0
    for token in (*text, EOS) if ended else text:
        total += float(table(seed, row)[token])
        row = np.append(row, token)
    return total
