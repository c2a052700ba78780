"""One net for several targets: a unit before the source says which, or the first it writes."""

from pathlib import Path

import numpy as np
import pytest

from dragoman.errors import DragomanError
from dragoman.models.exported.net import BOS, EOS, UNK
from dragoman.models.exported.pieces import tag_of
from dragoman.train.data.corpus import open_set
from dragoman.train.data.faults import Faults
from dragoman.train.data.loader import Loader
from dragoman.train.data.pack import Header, Item, ShardWriter, write_header
from dragoman.train.data.plan import Plan
from dragoman.train.data.texts import pack_text
from dragoman.train.data.vocabulary import Pieces, train_pieces
from dragoman.train.recipe import Batch, Data, Units

ROWS = {
    "de": [("one house", "ein Haus"), ("two houses", "zwei Häuser")],
    "es": [("one house", "una casa")],
}


@pytest.fixture
def packs(tmp_path: Path) -> list[Path]:
    made = []
    for code, rows in ROWS.items():
        text = tmp_path / f"{code}.tsv"
        text.write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
        pack_text(text, tmp_path / f"pack-{code}", columns=f"en,{code}")
        made.append(tmp_path / f"pack-{code}")
    return made


def data_of(target: str) -> Data:
    return Data(train=("unused",), source="en", target=target)


def pieces(tmp_path: Path, texts: list[str], tagged: tuple[str, ...]) -> Pieces:
    units = Units("char", 60)
    train_pieces(texts, units, tmp_path / "units.model", tagged)
    return Pieces(tmp_path / "units.model", units)


def test_each_item_is_translated_into_the_language_that_it_has(packs, tmp_path):
    several = open_set(packs, data_of("de,es"), Faults())
    assert several.targets() == ["de", "de", "es"]
    assert several.target_texts() == ["ein Haus", "zwei Häuser", "una casa"]
    vocabulary = pieces(tmp_path, [*several.texts("en"), *several.target_texts()], ("de", "es"))
    units = several.with_units(vocabulary, vocabulary, Faults())
    plain = vocabulary.encode(["one house"])[0]
    assert list(units.source[0]) == [vocabulary.tag("de"), *plain]
    assert list(units.source[2]) == [vocabulary.tag("es"), *plain]
    assert vocabulary.decode(list(units.target[2])) == "una casa"
    assert len({vocabulary.tag("de"), vocabulary.tag("es"), UNK}) == 3
    assert units.samples[0] == (1 + len(plain)) * 1600  # the tag counts


def test_the_tag_of_a_text_is_of_its_source(packs, tmp_path):
    """Vocabularies of two sides, of which that of the targets knows no tags."""
    several = open_set(packs, data_of("de,es"), Faults())
    (tmp_path / "read").mkdir()
    source = pieces(tmp_path / "read", several.texts("en"), ("de", "es"))
    target = pieces(tmp_path, several.target_texts(), ())
    units = several.with_units(source, target, Faults())
    tags = [int(units.source[number][0]) for number in range(3)]
    assert tags == [source.tag(code) for code in ("de", "de", "es")]
    assert (units.first == BOS).all()


def test_one_target_has_no_tag(packs, tmp_path):
    one = open_set(packs[:1], data_of("de"), Faults())
    vocabulary = pieces(tmp_path, [*one.texts("en"), *one.target_texts()], ())
    units = one.with_units(vocabulary, vocabulary, Faults())
    assert list(units.source[0]) == vocabulary.encode(["one house"])[0]
    with pytest.raises(DragomanError, match="<2de>"):
        vocabulary.tag("de")


def test_a_tag_is_one_unit_and_never_part_of_a_text(tmp_path):
    vocabulary = pieces(tmp_path, ["ein Haus", "una casa", "<2de>"], ("de", "es"))
    assert vocabulary.model.id_to_piece(vocabulary.tag("es")) == tag_of("es")
    assert vocabulary.tag("es") not in vocabulary.encode(["una casa"])[0]


def test_a_pack_without_any_wanted_language_is_refused(packs):
    with pytest.raises(DragomanError, match="no 'fr' or 'pt' text; it has en, de"):
        open_set(packs, data_of("fr,pt"), Faults())


def test_a_net_that_hears_is_told_the_language_in_its_first_unit(tmp_path):
    """With sound the source stays as it is, and each translation begins with its language's tag."""
    folders = []
    for code, rows in ROWS.items():
        items = (
            (Item(str(n), 0, 0, 0, {"en": said, code: wanted}), np.full(8000, n + 1, np.int16))
            for n, (said, wanted) in enumerate(rows)
        )
        folder = tmp_path / f"spoken-{code}"
        ShardWriter(folder, 0, "pcm").write(items)
        write_header(folder, Header("pcm", ["en", code], "en", 1, len(rows), 0.0, code, {}))
        folders.append(folder)
    several = open_set(folders, data_of("de,es"), Faults())
    texts = [*several.texts("en"), *several.target_texts()]
    vocabulary = pieces(tmp_path, texts, ("de", "es"))
    units = several.with_units(vocabulary, vocabulary, Faults())
    assert list(units.source[0]) == vocabulary.encode(["one house"])[0]
    tags = [vocabulary.tag(code) for code in ("de", "de", "es")]
    assert units.first.tolist() == tags
    assert units.subset([2, 0]).first.tolist() == [tags[2], tags[0]]
    (planned,) = Plan(units, Batch(seconds=60, buckets=1), 0).once()
    batch = Loader(units).make(0, planned)
    for row, number in enumerate(batch.items.tolist()):
        length = int(batch.target_lengths[row])
        assert batch.tokens[row, :length].tolist() == [tags[number], *units.target[number]]
        assert batch.labels[row, :length].tolist() == [*units.target[number], EOS]


def test_what_several_packs_say_is_learned_from_once(tmp_path):
    texts = ["one house", "two houses", "three houses and a mouse"]
    units = Units("unigram", 30)
    for name, said in (("once", texts), ("twice", [*texts, *texts])):
        train_pieces(said, units, tmp_path / name)
    assert (tmp_path / "once").read_bytes() == (tmp_path / "twice").read_bytes()
