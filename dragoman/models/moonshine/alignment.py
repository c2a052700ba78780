"""Where the decoder looks when it writes a word: some of its heads follow the sound."""

from __future__ import annotations

from dragoman.models.whisper.graph import Shape

# Heads that follow the sound, by layers of the decoder: found by comparing the moments they look at
# with those of Whisper base on read speech.
ALIGNMENT = {
    6: [(3, 0), (3, 5), (3, 6), (4, 3), (4, 6), (4, 7), (5, 6)],
    8: [(4, 2), (5, 3), (5, 5), (5, 6), (6, 0), (6, 4)],
}


def alignment(shape: Shape) -> list[tuple[int, int]]:
    """Heads that follow the sound; where nobody has looked for them, those of the later layers."""
    later = [(layer, head) for layer in range(shape.layers) for head in range(shape.heads)]
    return ALIGNMENT.get(shape.layers, later[len(later) // 2 :])
