"""What a recogniser makes of voiced sentences, as text that a translator behind it learns from.

    dragoman voice europarl.en-de.tsv.xz packs/voiced --columns en,de,_,_ --noise 0.7 --cut 0.3
    dragoman distill weights/mt-en packs/voiced packs/voiced-de --to de
    python recipes/misheard.py packs/voiced packs/voiced-de heard.en-de.tsv [RECOGNISER]
    dragoman train recipes/mt-misheard.en-x.yaml

Every row is what the recogniser (whisper-base, if none is named) hears in an item, and the item's
translation: mishearings of real nets are other ones than slips that are made up. What has hardly
anything in common with what was spoken is left out, since of that one can only learn to invent. A
GPU is used if there is one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from rapidfuzz.distance import Levenshtein

from dragoman.files import whole_file
from dragoman.models.base import Ask, Model, Sound
from dragoman.models.load import load_model
from dragoman.text.plain import plain
from dragoman.train.data.pack import Pack

RECOGNISER = "whisper-base"
TOGETHER = 256  # items whose sound is heard at the same time
LEAST_ALIKE = 0.5  # in letters, of what was spoken and what was heard


def main(sounds: Path, translated: Path, out: Path, recogniser: str = RECOGNISER) -> None:
    """Write a row for each item of `translated` whose sound, which `sounds` has, is understood."""
    spoken, pack = Pack(sounds), Pack(translated)
    source, target = pack.header.languages
    wanted = {item.id: item.text[target] for item in pack.items}
    numbers = [number for number, item in enumerate(spoken.items) if item.id in wanted]
    model = load_model(recogniser)
    rows = different = 0
    with whole_file(out, "w") as table:
        for number, heard in heard_in(spoken, numbers, model, source):
            item = spoken.items[number]
            said = plain(item.text[source])
            if Levenshtein.normalized_similarity(plain(heard), said) < LEAST_ALIKE:
                continue
            table.write(f"{heard}\t{wanted[item.id]}\n")
            rows, different = rows + 1, different + (plain(heard) != said)
    print(f"{rows} of {len(numbers)} sentences, {different} of them with other words: {out}")


def heard_in(
    pack: Pack, numbers: Sequence[int], model: Model, language: str
) -> Iterator[tuple[int, str]]:
    """What the recogniser writes down of items; those of one length are heard together."""
    by_length = sorted(numbers, key=lambda number: pack.items[number].samples)
    for begin in range(0, len(by_length), TOGETHER):
        some = by_length[begin : begin + TOGETHER]
        sounds = [pack.sound(number).astype(np.float32) / 32768 for number in some]
        streams = [model.open(language, language) for _ in some]
        model.hear(streams, [Sound(sound, last=True, closing=True) for sound in sounds])
        drafts = model.draft(streams, [Ask(final=True)] * len(some))
        for number, draft in zip(some, drafts, strict=True):
            if text := " ".join(draft.text.split()):
                yield number, text


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    main(*map(Path, sys.argv[1:4]), *sys.argv[4:])
