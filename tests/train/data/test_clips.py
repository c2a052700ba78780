"""Corpora in their real layouts become packs; every kind of fault is named, counted, skipped."""

import dataclasses
import errno
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
import yaml

from dragoman.corpora import Clip, read_clips
from dragoman.errors import DragomanError
from dragoman.train.data.clips import pack_clips, read_clip, text_fault
from dragoman.train.data.corpus import open_set
from dragoman.train.data.faults import Faults
from dragoman.train.data.pack import Pack
from dragoman.train.data.sources import pack_of, parse_text
from dragoman.train.recipe import Data, Recipe

TEXTS = [("One word.", "Ein Wort."), ("Two words.", "Zwei Wörter."), ("And three.", "Und drei.")]


def beep(path: Path, seconds: float = 2.0, rate: int = 16_000, pitch: float = 440) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    time = np.arange(int(seconds * rate)) / rate
    soundfile.write(path, 0.3 * np.sin(2 * np.pi * pitch * time), rate)
    return path


def must_c(root: Path) -> Path:
    folder = root / "en-de" / "data" / "train"
    beep(folder / "wav" / "ted_1.wav", seconds=4.0)
    rows = [
        {
            "duration": 1.0,
            "offset": 0.5 + n,
            "rW": 1,
            "uW": 0,
            "speaker_id": "spk.1",
            "wav": "ted_1.wav",
        }
        for n in range(3)
    ]
    (folder / "txt").mkdir()
    (folder / "txt" / "train.yaml").write_text(yaml.safe_dump(rows))
    for side, language in enumerate(("en", "de")):
        (folder / "txt" / f"train.{language}").write_text("".join(t[side] + "\n" for t in TEXTS))
    return folder


def covost(root: Path) -> Path:
    for number in range(3):
        beep(root / "clips" / f"common_voice_en_{number}.mp3", seconds=1.0)
    lines = ["client_id\tpath\tsentence\ttranslation"]
    lines += [f"x\tcommon_voice_en_{n}.mp3\t{en}\t{de}" for n, (en, de) in enumerate(TEXTS)]
    path = root / "covost_v2.en_de.train.tsv"
    path.write_text("\n".join(lines) + "\n")
    return path


def europarl_st(root: Path) -> Path:
    beep(root / "en" / "audios" / "en.20081.wav", seconds=4.0)
    folder = root / "en" / "de" / "train"
    folder.mkdir(parents=True)
    rows = "".join(f"en.20081 {0.5 + n} {1.5 + n}\n" for n in range(3))
    (folder / "segments.lst").write_text(rows)
    for side, language in enumerate(("en", "de")):
        (folder / f"segments.{language}").write_text("".join(t[side] + "\n" for t in TEXTS))
    return folder


def table(root: Path) -> Path:
    beep(root / "talk.flac", seconds=4.0, rate=48_000)
    lines = ["audio\tstart\tend\ten\tde"]
    lines += [f"talk.flac\t{0.5 + n}\t{1.5 + n}\t{en}\t{de}" for n, (en, de) in enumerate(TEXTS)]
    (root / "talk.tsv").write_text("\n".join(lines) + "\n")
    return root / "talk.tsv"


@pytest.mark.parametrize("layout", [must_c, covost, europarl_st, table])
def test_layouts_become_packs(layout, tmp_path):
    corpus = layout(tmp_path / "corpus")
    recipe = Recipe("conformer", Data((str(corpus),), packs=str(tmp_path / "packs")))
    pack = Pack(pack_of(str(corpus), recipe, 1))
    assert [(item.text["en"], item.text["de"]) for item in pack.items] == TEXTS
    for number, item in enumerate(pack.items):
        assert abs(item.samples - 16_000) < 1200  # MP3 pads its ends
        sound = pack.sound(number)[4000:12_000].astype(float)
        loudest = np.abs(np.fft.rfft(sound)).argmax() * 16_000 / len(sound)
        assert abs(loudest - 440) < 3
    made = (pack.folder / "pack.json").stat().st_mtime_ns
    assert pack_of(str(corpus), recipe, 1) == pack.folder
    assert (pack.folder / "pack.json").stat().st_mtime_ns == made  # found, not made again


def test_common_voice_is_a_corpus_for_recognition(tmp_path):
    beep(tmp_path / "clips" / "a.wav")
    (tmp_path / "train.tsv").write_text("client_id\tpath\tsentence\nx\ta.wav\tHello there.\n")
    clips = read_clips(tmp_path / "train.tsv", "en", "en")
    header = pack_clips(clips, tmp_path / "pack", "en", "en")
    assert (header.items, header.languages) == (1, ["en"])


def test_every_fault_is_named_counted_and_skipped(tmp_path):
    good = beep(tmp_path / "good.wav")
    corrupt = tmp_path / "corrupt.flac"
    beep(corrupt)
    corrupt.write_bytes(corrupt.read_bytes()[:60] + b"\0" * 300)
    (tmp_path / "text.wav").write_text("this is no sound")
    soundfile.write(tmp_path / "silent.wav", np.zeros(16_000), 16_000)
    texts = {"en": "Hello.", "de": "Hallo."}
    clips = [
        Clip(0, good, texts),
        Clip(1, corrupt, texts),
        Clip(2, tmp_path / "text.wav", texts),
        Clip(3, tmp_path / "gone.wav", texts),
        Clip(4, tmp_path / "silent.wav", texts),
        Clip(5, good, texts, 1.0, 9.0),
        Clip(6, good, {"en": "Hello.", "de": " "}),
        Clip(7, good, {"en": "Hello.", "de": "lang " * 1000}),
        *(Clip(8 + n, good, texts) for n in range(12)),
    ]
    whole = good.read_bytes()
    (tmp_path / "half.wav").write_bytes(whole[: len(whole) // 2])
    clips += [
        Clip(20, tmp_path / "half.wav", texts),
        Clip(21, tmp_path / "half.wav", texts, 0.0, 0.5),  # which is there
    ]
    header = pack_clips(clips, tmp_path / "pack", "en", "de", fault_limit=0.5)
    assert header.items == 14
    lines = (tmp_path / "pack" / "faults.jsonl").read_text().splitlines()
    kinds = [json.loads(line)["kind"] for line in lines]
    assert kinds == [
        *("corrupt recording", "corrupt recording", "missing recording", "silent recording"),
        *("recording cut short", "empty text", "text too long", "corrupt recording"),
    ]
    assert "1000 'de' words" in lines[-2]
    assert "is cut short: its header speaks of 2 s" in lines[-1]
    assert "clip 4 (gone.wav)" in lines[2]


def test_a_mostly_missing_corpus_stops(tmp_path):
    clips = [Clip(n, tmp_path / f"{n}.wav", {"en": "a", "de": "b"}) for n in range(3)]
    with pytest.raises(DragomanError, match="3 of 3 items are faulty"):
        pack_clips(clips, tmp_path / "pack", "en", "de")


def test_cuts_go_to_lhotse_and_come_back(tmp_path):
    lhotse = pytest.importorskip("lhotse")
    from dragoman.train.data.cuts import read_cuts, write_cuts

    clips = read_clips(must_c(tmp_path / "corpus"), "en", "de")
    path = tmp_path / "cuts.jsonl.gz"
    assert write_cuts(clips, path, "en") == 3
    cuts = list(lhotse.CutSet.from_jsonl_lazy(path))
    assert {type(cut) for cut in cuts} == {lhotse.MonoCut}
    np.testing.assert_allclose(
        cuts[1].load_audio()[0] * 32767, read_clip(clips[1]).astype(float), atol=1.0
    )
    back = list(read_cuts(path, "en"))
    assert [clip.texts for clip in back] == [clip.texts for clip in clips]
    assert [(clip.start, clip.end) for clip in back] == [(c.start, c.end) for c in clips]
    recipe = Recipe("conformer", Data((str(path),), packs=str(tmp_path / "packs")))
    assert len(Pack(pack_of(str(path), recipe, 1))) == 3


def test_a_full_disk_is_no_fault_of_the_recording(tmp_path, monkeypatch):
    lhotse = pytest.importorskip("lhotse")
    from dragoman.train.data.cuts import write_cuts

    def full(self, cut):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(lhotse.serialization.SequentialJsonlWriter, "write", full)
    clips = [Clip(0, beep(tmp_path / "a.wav"), {"en": "a"})]
    with pytest.raises(DragomanError, match=r"Cannot write .*cuts\.jsonl\.gz: the disk is full"):
        write_cuts(clips, tmp_path / "cuts.jsonl.gz", "en")


def talk_as_a_cut(folder):
    """One cut of a whole talk, as lhotse makes it of a recording and what is said in it."""
    lhotse = pytest.importorskip("lhotse")
    recording = lhotse.Recording.from_file(must_c(folder) / "wav" / "ted_1.wav", recording_id="ted")
    said = [
        lhotse.SupervisionSegment(
            *(f"{n}", "ted", start, 0.5), text=f"word {n}", custom={"de": f"Wort {n}"}
        )
        for n, start in enumerate((-0.2, 0.5, 1.0))
    ]
    return lhotse.MonoCut("ted", 0.25, 1.5, 0, supervisions=said, recording=recording)


def test_a_cut_of_a_whole_talk_is_a_clip_for_each_thing_said(tmp_path):
    """Else all of the sound would be learned with the first sentence."""
    from dragoman.train.data.cuts import read_cuts

    cut, path = talk_as_a_cut(tmp_path / "corpus"), tmp_path / "cuts.jsonl"
    pytest.importorskip("lhotse").CutSet.from_cuts([cut, cut.with_id("again")]).to_file(path)
    clips = list(read_cuts(path, "en"))
    assert [clip.index for clip in clips] == list(range(6))
    assert [clip.texts for clip in clips[:2]] == [
        {"en": "word 0", "de": "Wort 0"},
        {"en": "word 1", "de": "Wort 1"},
    ]
    assert [(c.start, c.end) for c in clips[3:]] == [(0.25, 0.55), (0.75, 1.25), (1.25, 1.75)]


def test_cuts_that_lhotse_would_play_faster_are_refused(tmp_path):
    """Their times are those of the changed sound, and recordings are read as they are."""
    from dragoman.train.data.cuts import read_cuts

    cut, path = talk_as_a_cut(tmp_path / "corpus"), tmp_path / "cuts.jsonl"
    cuts = pytest.importorskip("lhotse").CutSet.from_cuts
    cuts([cut.resample(8000)]).to_file(path)
    assert len(list(read_cuts(path, "en"))) == 3
    cuts([cut, cut.perturb_speed(1.1)]).to_file(path)
    with pytest.raises(DragomanError, match=r"Line 2 of .*would change \(Speed\)"):
        list(read_cuts(path, "en"))


def two_channels(folder):
    """A recording in which each of two people has a channel, as lhotse sees it."""
    sound = np.stack([np.full(16000, 0.5), np.full(16000, -0.5)], axis=1)
    soundfile.write(folder / "both.wav", sound, 16000)
    return pytest.importorskip("lhotse").Recording.from_file(folder / "both.wav")


def test_a_channel_of_a_recording_is_no_clip_of_the_whole(tmp_path):
    """Both who speak in it would be learned with the words of one."""
    lhotse, path = pytest.importorskip("lhotse"), tmp_path / "cuts.jsonl"
    from dragoman.train.data.cuts import read_cuts

    recording = two_channels(tmp_path)
    cut = lhotse.MonoCut("one", 0.0, 1.0, 1, recording=recording)
    lhotse.CutSet.from_cuts([recording.to_cut(), cut]).to_file(path)
    with pytest.raises(DragomanError, match=r"Line 2 of .*it is of channel 1, and no file"):
        list(read_cuts(path, "en"))
    soundfile.write(tmp_path / "other.wav", np.zeros(16000), 16000)
    sources = [
        lhotse.AudioSource("file", [channel], str(tmp_path / f"{name}.wav"))
        for channel, name in enumerate(("both", "other"))
    ]
    split = dataclasses.replace(recording, sources=sources)
    cut = lhotse.MonoCut("one", 0.0, 1.0, 1, recording=split)
    lhotse.CutSet.from_cuts([cut]).to_file(path)
    (clip,) = read_cuts(path, "en")
    assert clip.audio.name == "other.wav"


def test_a_clip_with_several_channels_goes_to_lhotse_with_all_of_them(tmp_path):
    lhotse, path = pytest.importorskip("lhotse"), tmp_path / "cuts.jsonl"
    from dragoman.train.data.cuts import read_cuts, write_cuts

    two_channels(tmp_path)
    clip = Clip(0, tmp_path / "both.wav", {"en": "a", "de": "b"}, 0.0, 1.0)
    write_cuts([clip], path, "en")
    (cut,) = lhotse.CutSet.from_jsonl_lazy(path)
    assert isinstance(cut, lhotse.MultiCut)
    assert cut.load_audio().shape == (2, 16000)
    assert list(read_cuts(path, "en")) == [clip]


def test_one_table_serves_several_languages(tmp_path):
    """Each pair of languages gets a pack of its own; what has no transcript is a sentence."""
    path = table(tmp_path / "corpus")
    for source, target in (("en", "de"), ("en", "en"), ("de", "en")):
        data = Data((str(path),), source=source, target=target, packs=str(tmp_path / "packs"))
        pack = Pack(pack_of(str(path), Recipe("conformer", data), 1))
        assert set(pack.header.languages) == {source, target}
    data = Data((str(path),), source="fr", target="en", packs=str(tmp_path / "packs"))
    with pytest.raises(DragomanError, match="no text in 'fr', which training needs"):
        pack_of(str(path), Recipe("conformer", data), 1)


def test_corpora_of_several_targets_each_have_one_of_them(tmp_path):
    """As MuST-C has a folder for each: a net that learns both is given both, and one of neither
    is a sentence."""
    german, other = table(tmp_path / "german"), table(tmp_path / "other")
    other.write_text(other.read_text().replace("\tde\n", "\tes\n", 1))
    data = Data((str(german), str(other)), target="de, es", packs=str(tmp_path / "packs"))
    packs = [Pack(pack_of(name, Recipe("moonshine", data), 1)) for name in data.train]
    assert [pack.header.languages for pack in packs] == [["en", "de"], ["en", "es"]]
    assert open_set([pack.folder for pack in packs], data, Faults()).targets() == [
        *["de"] * 3,
        *["es"] * 3,
    ]
    wrong = dataclasses.replace(data, target="fr,it")
    with pytest.raises(DragomanError, match="has no text in 'fr'"):
        pack_of(str(german), Recipe("moonshine", wrong), 1)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("limit", "setting 'text.tsv.limit' is '': Expected a whole number or nothing, got text"),
        ("columns=en,de&skip=", "setting 'text.tsv.skip' is ''"),
        ("limits=3", "did you mean 'limit'"),
        ("limit=0", "Expected a whole number >= 1"),
    ],
)
def test_what_stands_behind_a_text_is_understood_or_refused(query, sentence):
    with pytest.raises(DragomanError, match=sentence):
        parse_text(f"text.tsv?{query}")


def test_progress_is_told_in_words(tmp_path):
    path, told = table(tmp_path / "corpus"), []
    recipe = Recipe("conformer", Data((str(path),), packs=str(tmp_path / "packs")))
    pack_of(str(path), recipe, 1, told.append)
    assert told[-1] == f"packing {path}: 3 items, 0.0 h"


@pytest.mark.parametrize("line", ["no json", '{"a": 1}', '{"id": "x", "type": "MonoCut"}'])
def test_a_manifest_that_is_none_is_a_sentence(tmp_path, line):
    pytest.importorskip("lhotse")
    path = tmp_path / "cuts.jsonl"
    path.write_text(line + "\n")
    recipe = Recipe("conformer", Data((str(path),), packs=str(tmp_path / "packs")))
    with pytest.raises(DragomanError, match="is not a lhotse cut"):
        pack_of(str(path), recipe, 1)


def test_texts_are_checked_in_both_languages(tmp_path):
    clip = Clip(0, tmp_path / "a.wav", {"de": "Hallo."})
    assert text_fault(clip, ("en", "de")).why == "no 'en' text"
