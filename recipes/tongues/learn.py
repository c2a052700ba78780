"""python recipes/tongues/learn.py --english RECORDING... --foreign RECORDING... [--try ...]

Learns to tell English from other languages by the states of Moonshine's encoder, and writes
dragoman/models/moonshine/tongues.json. Other languages are spoken by eSpeak NG, the sentences are
beside this file, and in recordings; so is English: neither a synthetic voice nor a bad microphone
shall be taken for a language. For the same reason every piece is heard twice, also in some room,
from afar and with noise. Pieces of six seconds are judged by a logistic regression over the
mean of their states; 0 is put where a share of LOST of the recorded English lies below, each half
of the recordings judged by what was learned from the other. Recordings to --try are only counted.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import soxr
from numpy.typing import NDArray

from dragoman.audio.chunk import RATE
from dragoman.audio.source import read_audio
from dragoman.files import whole_file
from dragoman.models.graphs import Graphs
from dragoman.models.kind import first_file
from dragoman.models.moonshine import tongue
from dragoman.models.moonshine.encoder import Encoded, Encoder, no_labels
from dragoman.models.moonshine.engine import DECODERS, ENCODERS
from dragoman.models.moonshine.weights import moonshine_weights
from dragoman.store import get
from dragoman.train.data.rooms import add_noise, impulse_response, in_room, random_room
from dragoman.train.voicing.espeak import Espeak

HERE = Path(__file__).parent
MODELS = ("moonshine-tiny", "moonshine-base")
PIECE = 6 * RATE
VOICES = 4  # that speak each sentence
MOST = 8  # pieces of a recording
LOST = 0.01
STRENGTH = 0.01  # of the regression's penalty
FAINT = 0.002  # below it a piece is silence
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Piece:
    """Six seconds of somebody."""

    language: str
    origin: str  # a recording; "" is a synthetic voice
    sound: NDArray[np.float32]


def spoken() -> Iterator[Piece]:
    """Every sentence with the next one of its language, by several voices."""
    rows = [line.split("\t") for line in (HERE / "sentences.tsv").read_text("utf-8").splitlines()]
    texts: dict[str, list[str]] = {}
    for language, text in rows:
        texts.setdefault(language, []).append(text)
    engine, random = Espeak(), np.random.default_rng(1)
    for language, sentences in texts.items():
        for number, text in enumerate(sentences):
            text = f"{text} {sentences[(number + 1) % len(sentences)]}"
            for _ in range(VOICES):
                said = engine.say(text, engine.draw(language, random), random)
                sound = soxr.resample(said.sound, said.rate, RATE).astype(np.float32)
                yield Piece(language, "", sound[:PIECE])


def recorded(paths: list[Path], language: str) -> Iterator[Piece]:
    random = np.random.default_rng(2)
    for path in paths:
        sound = read_audio(path)
        starts = np.arange(0, max(1, len(sound) - PIECE // 2), PIECE)
        for start in random.permutation(starts)[:MOST]:
            piece = sound[start : start + PIECE]
            if np.sqrt((piece**2).mean()) > FAINT:
                yield Piece(language, path.name, piece)


def far(piece: Piece, random: np.random.Generator) -> Piece:
    """The same, as a microphone on the table hears it."""
    sound = in_room(piece.sound, impulse_response(random_room(random), RATE, random))
    noise, slope = random.uniform(3, 20), random.uniform(0, 2)
    return replace(piece, sound=add_noise(sound, noise, slope, random))


def means(model: str, pieces: list[Piece]) -> Floats:
    """The mean state of every piece."""
    folder = get(model)
    encoder, decoder = first_file(folder, ENCODERS), first_file(folder, DECODERS)
    assert encoder is not None
    assert decoder is not None
    made: list[NDArray[np.float32]] = []

    def keep(states: NDArray[np.float32]) -> NDArray[np.float32]:
        made.append(states)
        return tongue.no_judgement()

    weights = moonshine_weights(encoder, decoder)
    hear = Encoder(weights, Graphs(folder, 1), lambda states: {}, label=no_labels, judge=keep)
    found = []
    for piece in pieces:
        made.clear()
        hear.encode([Encoded()], [piece.sound])
        found.append(made[-1].mean(0))
    return np.array(found, np.float64)


def learned(x: Floats, english: Flags, synthetic: Flags) -> Floats:
    """Weights and, last, the bias of a regression in which English counts as much as all other
    languages, and of each, recordings as much as synthetic voices (Newton's method)."""
    share = np.zeros(len(x))
    for side in (english, ~english):
        groups = [group for group in (side & synthetic, side & ~synthetic) if group.any()]
        for group in groups:
            share[group] = 0.5 / len(groups) / group.sum()
    mean, spread = x.mean(0), x.std(0) + 1e-6
    z = np.c_[(x - mean) / spread, np.ones(len(x))]
    penalty = np.r_[np.full(x.shape[1], STRENGTH), 1e-9]
    sign = np.where(english, 1.0, -1.0)

    def loss(w: Floats) -> float:
        return float(share @ np.logaddexp(0, -sign * (z @ w)) + penalty @ w**2)

    w = np.zeros(z.shape[1])
    for _ in range(100):
        p = 1 / (1 + np.exp(-(z @ w)))
        slope = z.T @ (share * (p - english)) + 2 * penalty * w
        curve = (z * (share * p * (1 - p))[:, None]).T @ z + 2 * np.diag(penalty)
        step = np.linalg.solve(curve, slope)
        if slope @ step < 1e-10:
            break
        while loss(w - step) > loss(w):  # it went too far
            step /= 2
        w -= step
    scaled = w[:-1] / spread
    return np.r_[scaled, w[-1] - scaled @ mean]


def judged(x: Floats, w: Floats) -> Floats:
    return x @ w[:-1] + w[-1]


def learn(model: str, pieces: list[Piece], tried: list[Piece]) -> tongue.Tongue:
    x, other = means(model, pieces), means(model, tried)
    english = np.array([piece.language == "en" for piece in pieces])
    synthetic = np.array([not piece.origin for piece in pieces])
    names = sorted({piece.origin for piece in pieces})
    half = np.array([names.index(piece.origin) % 2 for piece in pieces])
    blind = np.zeros(len(x))
    for part in (0, 1):  # each half of the recorded English is judged by what is learned without it
        asked = english & ~synthetic & (half == part)
        blind[asked] = judged(x[asked], learned(x[~asked], english[~asked], synthetic[~asked]))
    edge = float(np.quantile(blind[english & ~synthetic], LOST))
    w = learned(x, english, synthetic)
    print(f"{model}: 0 is put at {edge:.2f}")
    strange = judged(x, w)[~english] < edge
    print(f"  other languages told: {strange.mean():.1%} of {len(strange)} that it learned from")
    if tried:
        told = judged(other, w) < edge
        print(f"  tried: {told.sum()} of {len(told)} pieces are taken for another language")
    return tongue.Tongue(w[:-1].astype(np.float32), float(w[-1]) - edge)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--english", type=Path, nargs="+", required=True)
    parser.add_argument("--foreign", type=Path, nargs="+", required=True)
    parser.add_argument("--try", type=Path, nargs="*", default=[], dest="tried")
    asked = parser.parse_args()
    pieces = [*spoken(), *recorded(asked.english, "en"), *recorded(asked.foreign, "")]
    random = np.random.default_rng(3)
    pieces += [far(piece, random) for piece in pieces]
    tried = list(recorded(asked.tried, ""))
    print(f"{len(pieces)} pieces, {sum(not one.origin for one in pieces)} of them synthetic")
    found = {}
    for model in MODELS:
        made = learn(model, pieces, tried)
        weight = [round(float(one), 5) for one in made.weight]
        found[len(weight)] = {"bias": round(made.bias, 5), "weight": weight}
    with whole_file(Path(tongue.__file__).parent / tongue.FILE) as file:
        file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
