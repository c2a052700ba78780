"""A Whisper decoder small enough to compute by hand, written in CTranslate2's file format."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

LAYERS, HEADS, WIDTH, INNER, WORDS, POSITIONS = 2, 2, 8, 16, 30, 40
END, NO_SPEECH = 29, 28
ALIGNMENT = [(0, 1), (1, 0)]
TYPES = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4}


def weights(seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)

    def normal(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32)

    made = {
        "decoder/embeddings/weight": normal(WORDS, WIDTH) * 1.5,
        "decoder/position_encodings/encodings": normal(POSITIONS, WIDTH),
        "decoder/num_heads": np.int16(HEADS),
    }
    sizes = {
        "self_attention/linear_0": (3 * WIDTH, WIDTH),
        "self_attention/linear_1": (WIDTH, WIDTH),
        "attention/linear_0": (WIDTH, WIDTH),
        "attention/linear_1": (2 * WIDTH, WIDTH),
        "attention/linear_2": (WIDTH, WIDTH),
        "ffn/linear_0": (INNER, WIDTH),
        "ffn/linear_1": (WIDTH, INNER),
    }
    norms = ["decoder/layer_norm"]
    for layer in range(LAYERS):
        for name, size in sizes.items():
            made[f"decoder/layer_{layer}/{name}/weight"] = normal(*size) * 0.7
            made[f"decoder/layer_{layer}/{name}/bias"] = normal(size[0]) * 0.3
        norms += [
            f"decoder/layer_{layer}/{name}/layer_norm"
            for name in ("self_attention", "attention", "ffn")
        ]
    for name in norms:
        made[f"{name}/gamma"] = 1 + 0.1 * normal(WIDTH)
        made[f"{name}/beta"] = 0.1 * normal(WIDTH)
    return made


def write(path: Path, arrays: dict[str, np.ndarray], aliases: dict[str, str]) -> None:
    def name(text: str) -> bytes:
        return struct.pack("<H", len(text) + 1) + text.encode() + b"\0"

    parts = [struct.pack("<I", 6), name("WhisperSpec"), struct.pack("<II", 3, len(arrays))]
    for key, array in arrays.items():
        array = np.asarray(array)
        parts += [name(key), struct.pack("<B", array.ndim)]
        parts += [struct.pack("<I", size) for size in array.shape]
        parts.append(struct.pack("<BI", TYPES[str(array.dtype)], array.nbytes))
        parts.append(array.tobytes())
    parts.append(struct.pack("<I", len(aliases)))
    parts += [name(alias) + name(target) for alias, target in aliases.items()]
    path.write_bytes(b"".join(parts))


TIED = {"decoder/projection/weight": "decoder/embeddings/weight"}


class PlainDecoder:
    """The same decoder, straightforward: the whole text anew for every token, no cache."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = {key: np.asarray(a, np.float64) for key, a in arrays.items()}
        self.arrays["decoder/projection/weight"] = self.arrays["decoder/embeddings/weight"]

    def __call__(self, tokens: list[int], states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Logits after every token, and the mean attention of the alignment heads."""
        a = self.arrays
        x = a["decoder/embeddings/weight"][tokens]
        x = x + a["decoder/position_encodings/encodings"][: len(tokens)]
        causal = np.triu(np.full((len(tokens), len(tokens)), -np.inf), 1)
        looks = []
        for layer in range(LAYERS):
            base = f"decoder/layer_{layer}"
            y = self.norm(x, f"{base}/self_attention/layer_norm")
            q, k, v = np.split(self.linear(y, f"{base}/self_attention/linear_0"), 3, axis=1)
            seen, _ = self.attend(q, k, v, causal)
            x = x + self.linear(seen, f"{base}/self_attention/linear_1")
            y = self.norm(x, f"{base}/attention/layer_norm")
            q = self.linear(y, f"{base}/attention/linear_0")
            k, v = np.split(self.linear(states, f"{base}/attention/linear_1"), 2, axis=1)
            seen, spreads = self.attend(q, k, v, 0.0)
            x = x + self.linear(seen, f"{base}/attention/linear_2")
            looks += [spreads[head] for at, head in ALIGNMENT if at == layer]
            y = self.linear(self.norm(x, f"{base}/ffn/layer_norm"), f"{base}/ffn/linear_0")
            y = y * 0.5 * (1 + np.vectorize(erf)(y / np.sqrt(2)))
            x = x + self.linear(y, f"{base}/ffn/linear_1")
        logits = self.linear(self.norm(x, "decoder/layer_norm"), "decoder/projection")
        return logits, np.mean(looks, axis=0)

    def norm(self, x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
        return scaled * self.arrays[f"{name}/gamma"] + self.arrays[f"{name}/beta"]

    def linear(self, x: np.ndarray, name: str) -> np.ndarray:
        """With numbers brought to 255 steps, by row of x and by row of the matrix."""
        w = self.arrays[f"{name}/weight"]
        w_step = np.abs(w).max(axis=1, keepdims=True) / 127
        x_step = np.abs(x).max(axis=1, keepdims=True) / 127
        y = np.rint(x / x_step) @ np.rint(w / w_step).T * x_step * w_step.T
        return y + self.arrays.get(f"{name}/bias", 0.0)

    def attend(self, q, k, v, mask) -> tuple[np.ndarray, list[np.ndarray]]:
        size = WIDTH // HEADS
        seen, spreads = [], []
        for head in range(HEADS):
            part = slice(head * size, (head + 1) * size)
            scores = q[:, part] @ k[:, part].T / np.sqrt(size) + mask
            spread = np.exp(scores - scores.max(axis=1, keepdims=True))
            spread /= spread.sum(axis=1, keepdims=True)
            spreads.append(spread)
            seen.append(spread @ v[:, part])
        return np.concatenate(seen, axis=1), spreads


def erf(x: float) -> float:
    from math import erf as exact

    return exact(x)
