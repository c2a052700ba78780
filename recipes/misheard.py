"""What a recogniser makes of voiced sentences, as text that a translator behind it learns from.

    dragoman voice europarl.en-de.tsv.xz packs/voiced --columns en,de,_,_ --noise 0.7 --cut 0.3
    dragoman distill weights/mt-en packs/voiced packs/voiced-de --to de
    python recipes/misheard.py packs/voiced packs/voiced-de heard.en-de.tsv
    dragoman train recipes/mt-misheard.en-x.yaml

Every row is what Moonshine hears in an item, and the item's translation: mishearings of real nets
are other ones than slips that are made up. What has hardly anything in common with what was spoken
is left out, since of that one can only learn to invent. A GPU is used if there is one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from rapidfuzz.distance import Levenshtein

from dragoman.audio.chunk import RATE
from dragoman.files import whole_file
from dragoman.models.moonshine.engine import load_engine
from dragoman.models.moonshine.model import SPARE, MoonshineModel
from dragoman.models.moonshine.units import START, MoonshineUnits
from dragoman.models.options import Options
from dragoman.models.search import Prompt
from dragoman.store import get
from dragoman.text.plain import plain
from dragoman.train.data.pack import Pack

RECOGNISER = "moonshine-base"
TOGETHER = 256  # items whose sound is heard at the same time
LEAST_ALIKE = 0.5  # in letters, of what was spoken and what was heard


def main(sounds: Path, translated: Path, out: Path) -> None:
    """Write a row for each item of `translated` whose sound, which `sounds` has, is understood."""
    spoken, pack = Pack(sounds), Pack(translated)
    source, target = pack.header.languages
    wanted = {item.id: item.text[target] for item in pack.items}
    numbers = [number for number, item in enumerate(spoken.items) if item.id in wanted]
    rows = different = 0
    with whole_file(out, "w") as table:
        for number, heard in heard_in(spoken, numbers):
            item = spoken.items[number]
            said = plain(item.text[source])
            if Levenshtein.normalized_similarity(plain(heard), said) < LEAST_ALIKE:
                continue
            table.write(f"{heard}\t{wanted[item.id]}\n")
            rows, different = rows + 1, different + (plain(heard) != said)
    print(f"{rows} of {len(numbers)} sentences, {different} of them with other words: {out}")


def heard_in(pack: Pack, numbers: Sequence[int]) -> Iterator[tuple[int, str]]:
    """What the recogniser writes down of items; those of one length are heard together."""
    folder = get(RECOGNISER)
    units = MoonshineUnits.load(folder / "tokenizer.json")
    engine = load_engine(folder, units, Options())
    by_length = sorted(numbers, key=lambda number: pack.items[number].samples)
    for begin in range(0, len(by_length), TOGETHER):
        some = by_length[begin : begin + TOGETHER]
        sounds = [pack.sound(number).astype(np.float32) / 32768 for number in some]
        windows = engine.encode([engine.new() for _ in some], sounds)
        most = [SPARE + int(MoonshineModel.per_second * len(one) / RATE) for one in sounds]
        prompts = [Prompt((START,), tokens) for tokens in most]
        for number, found in zip(some, engine.speak(windows, prompts, 1), strict=True):
            if text := " ".join(units.text(found.tokens).split()):
                yield number, text


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*map(Path, sys.argv[1:]))
