"""The engine for GPUs, on the CPU: the same features, states and texts as the one for CPUs.

Where there is a GPU, the last tests run there.
"""

import gc
from pathlib import Path

import numpy as np
import pytest

import dragoman
from dragoman.audio.chunk import Chunk
from dragoman.audio.ear import Ear
from dragoman.audio.source import read_audio
from dragoman.errors import DragomanError
from dragoman.interpreter import Interpreter, step
from dragoman.models.options import Options
from dragoman.models.search import Prompt
from dragoman.models.whisper.engine import Config, View, WhisperEngine
from dragoman.models.whisper.mel import LogMel
from dragoman.models.whisper.model import WhisperModel
from dragoman.models.whisper.tokens import Vocabulary
from dragoman.models.whisper.weights import Weights
from dragoman.policies import Greedy
from dragoman.store import get

from . import made_whisper
from .toy_whisper import ToyVad

torch = pytest.importorskip("torch")

from dragoman.models.gpu import speaker  # noqa: E402
from dragoman.models.whisper.gpu import engine as gpu_engine  # noqa: E402
from dragoman.models.whisper.gpu.engine import TorchEngine  # noqa: E402

RATE = 16_000
TALK = Path(dragoman.__file__).parent / "talks" / "weather.de.ogg"
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return made_whisper.make(tmp_path_factory.mktemp("made") / "whisper")


@pytest.fixture(scope="module")
def engine(folder) -> TorchEngine:
    return engine_of(folder)


def engine_of(folder: Path, compute="float32", device="cpu", **more) -> TorchEngine:
    weights, config = Weights(folder / "model.bin"), Config.read(folder)
    return TorchEngine(weights, config, Vocabulary.load(folder), compute, device, **more)


def noise(seconds: float, seed: int = 0, loud: float = 0.1) -> np.ndarray:
    random = np.random.default_rng(seed)
    return (loud * random.standard_normal(int(seconds * RATE))).astype(np.float32)


def heard(engine, sounds, piece=RATE):
    mels = [engine.new_mel() for _ in sounds]
    for mel, sound in zip(mels, sounds, strict=True):
        for at in range(0, len(sound), piece):
            mel.hear(sound[at : at + piece])
    return mels


def views(engine, sounds):
    mels = heard(engine, sounds)
    # The mels go with the views: the place of a mel that is gone may be given to another.
    return mels, [
        View(mel.window(20 + mel.frames % 2), mel.frames // 2, plain=True) for mel in mels
    ]


def frames_of(engine, window) -> np.ndarray:
    return engine._bank.windows(engine._bank.placed([window]), window.length)[0].T.numpy()


def test_frames_are_those_of_the_cpu(engine):
    random = np.random.default_rng(3)
    plain, placed = LogMel(80), engine.new_mel()
    other = engine.new_mel()  # whose sound comes in between
    for number in range(14):
        samples = noise(random.uniform(0.005, 2.0), number, loud=[0.3, 0.001][number > 7])
        for mel in (plain, placed):
            mel.hear(samples)
        other.hear(noise(0.3, 99))
        for padding in (0, 7, 40):
            expected = plain.window(padding)
            found = placed.window(padding)
            assert found.length == expected.shape[1]
            np.testing.assert_allclose(frames_of(engine, found), expected, atol=2e-4)
        cut = plain.start + (plain.frames - plain.start) // 2
        np.testing.assert_allclose(
            frames_of(engine, placed.window(9, cut)), plain.window(9, cut), atol=2e-4
        )
        begin = plain.frames - 30
        np.testing.assert_allclose(
            placed.level(begin, plain.frames), plain.level(begin, plain.frames), atol=2e-4
        )
        if number % 4 == 3:
            for mel in (plain, placed):
                mel.forget(mel.frames - 50)
        assert (placed.start, placed.heard) == (plain.start, plain.heard)


def test_a_long_talk_needs_no_more_room(engine):
    mel, plain = engine.new_mel(), LogMel(80)
    for number in range(60):
        for one in (mel, plain):
            one.hear(noise(1.0, number))
            one.forget(one.frames - 300)
    assert mel.frames > gpu_engine.LENGTHS[-1] * 1.5
    np.testing.assert_allclose(frames_of(engine, mel.window(5)), plain.window(5), atol=2e-4)


def test_places_of_streams_that_are_gone_are_given_to_others(folder):
    engine = engine_of(folder)
    rooms = {len(engine._bank._frames)}
    for _ in range(100):
        mel = engine.new_mel()
        mel.hear(noise(0.2))
        rooms.add(len(engine._bank._frames))
        assert float(engine._bank._loudest[mel._slot]) == -10.0  # nothing of who was there before
        engine._bank.flush()
        del mel
    assert len(rooms) == 1
    kept = [engine.new_mel() for _ in range(20)]
    assert len({mel._slot for mel in kept}) == 20


def test_a_stream_does_not_learn_how_loud_another_was_in_its_place(folder):
    """Of a talk that ends in silence nobody looks at the last sound."""
    engine, soft = engine_of(folder), noise(1.0, loud=0.0005)
    alone = frames_of(engine, heard(engine, [soft])[0].window(0))
    loud = heard(engine, [noise(1.0, loud=0.3)])[0]
    place = loud._slot
    del loud
    gc.collect()
    mel = heard(engine, [soft])[0]
    assert mel._slot == place
    assert np.array_equal(frames_of(engine, mel.window(0)), alone)


def test_places_are_given_to_others_however_many_there_once_were(folder):
    engine = engine_of(folder)
    many = [engine.new_mel() for _ in range(100)]
    room = len(engine._bank._frames)
    del many
    gc.collect()
    again = [engine.new_mel() for _ in range(100)]
    assert len(engine._bank._frames) == room
    assert len({mel._slot for mel in again}) == 100


def test_windows_of_all_lengths_together_are_as_alone_and_as_on_the_cpu(folder, engine):
    sounds = [noise(seconds, 1) for seconds in (0.5, 3.2, 7.0, 0.51, 3.3)]
    mels, seen = views(engine, sounds)
    together = engine.encode(seen)
    plain = WhisperEngine(folder, Vocabulary.load(folder), Options(compute="float32"))
    for view, states, sound in zip(seen, together, sounds, strict=True):
        np.testing.assert_allclose(states, engine.encode([view])[0], atol=1e-4)
        _, [on_cpu] = views(plain, [sound])
        np.testing.assert_allclose(states, plain.encoder.encode(on_cpu.mel).states, atol=2e-3)
    assert len(mels) == 5


def test_masks_are_laid_out_as_the_fast_kernels_of_a_gpu_want_them(engine, monkeypatch):
    """A mask with gaps between its numbers was taken by the slowest one, in float32."""
    functional = torch.nn.functional
    attend, masks = functional.scaled_dot_product_attention, []

    def noted(q, k, v, mask, scale):
        masks.append(mask)
        return attend(q, k, v, mask, scale=scale)

    monkeypatch.setattr(functional, "scaled_dot_product_attention", noted)
    _, seen = views(engine, [noise(0.5), noise(3.0)])
    engine.encode(seen)
    assert masks
    assert all(mask.stride(-1) == 1 for mask in masks)


@pytest.mark.parametrize("beams", [1, 5])
def test_texts_and_languages_are_those_of_the_cpu(folder, engine, beams):
    v = Vocabulary.load(folder)
    plain = WhisperEngine(folder, v, Options(compute="float32"))
    sounds = [noise(seconds, 7) for seconds in (0.5, 2.2, 3.0)]
    start = (v.start, v.languages["de"], v.translate, v.no_times)
    prompts = [
        Prompt(start, 9, (1, 2), (v.previous, 8, 9)),
        Prompt(start, 12),
        Prompt(start, 5, (6,), avoid_end=True),
    ]
    states = {one: one.encode(views(one, sounds)[1]) for one in (plain, engine)}
    expected, found = (one.speak(made, prompts, beams) for one, made in states.items())
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.tokens == theirs.tokens
        assert ours.ended == theirs.ended
        assert ours.silence == pytest.approx(theirs.silence, abs=1e-4)
        np.testing.assert_allclose(ours.log_probs, theirs.log_probs, atol=1e-3)
        for look, other in zip(ours.looks, theirs.looks, strict=True):
            np.testing.assert_allclose(look, other[: len(look)], atol=1e-3)
    for ours, theirs in zip(*(one.languages(made) for one, made in states.items()), strict=True):
        assert ours == pytest.approx(theirs, abs=1e-3)


@pytest.mark.parametrize("beams", [1, 5])
def test_a_text_that_is_longer_than_the_net_goes_on_as_on_the_cpu(folder, engine, beams):
    """Some scripts take several tokens a letter: what was said first is left out first."""
    v = Vocabulary.load(folder)
    plain = WhisperEngine(folder, v, Options(compute="float32"))
    positions = engine._decoder.most_tokens
    start = (v.start, v.languages["de"], v.translate, v.no_times)
    said = tuple(number % 7 + 1 for number in range(positions + 20))
    prompts = [
        Prompt(start, 9, said, (v.previous, 8, 9)),
        Prompt(start, 9, said[: positions - 8]),
        Prompt(start, 9),
    ]
    sounds = [noise(1.0, seed) for seed in range(3)]
    states = {one: one.encode(views(one, sounds)[1]) for one in (plain, engine)}
    expected, found = (one.speak(made, prompts, beams) for one, made in states.items())
    assert all(one.tokens for one in expected)
    assert [one.tokens for one in found] == [one.tokens for one in expected]


def test_little_memory_means_several_batches_and_the_same_texts(folder, engine, monkeypatch):
    v = Vocabulary.load(folder)
    _, seen = views(engine, [noise(seconds, 5) for seconds in (0.5, 2.2, 3.0, 0.6)])
    start = (v.start, v.languages["de"], v.translate, v.no_times)
    prompts = [Prompt(start, most) for most in (4, 12, 3, 8)]
    expected = engine.speak(engine.encode(seen), prompts, 2)
    batches = []
    speaking = speaker.Speaking
    monkeypatch.setattr(
        speaker,
        "Speaking",
        lambda *all: batches.append(len(all[3])) or speaking(*all),
    )
    monkeypatch.setattr(engine._speaker, "memory", 2.5 * engine._decoder.bytes_of(192, 2))
    found = engine.speak(engine.encode(seen), prompts, 2)
    assert batches == [2, 2]
    assert [one.tokens for one in found] == [one.tokens for one in expected]


def test_streams_of_a_step_say_what_each_says_alone(folder):
    model = WhisperModel("made", engine_of(folder), Vocabulary.load(folder))
    sounds = [noise(5.0, seed) for seed in range(3)]

    def interpreters(count):
        return [
            Interpreter(model, Greedy(), source="de", ear=Ear(ToyVad().stream()))
            for _ in range(count)
        ]

    def chunks(sound):
        return [
            Chunk(sound[at : at + RATE], at + RATE == len(sound)) for at in range(0, 80_000, RATE)
        ]

    alone = [
        ["".join(update.said) for update in interpreters(1)[0].run(chunks(sound))]
        for sound in sounds
    ]
    together = interpreters(3)
    for number, parts in enumerate(zip(*map(chunks, sounds), strict=True)):
        updates = step(together, parts)
        assert [update.error for update in updates] == [None] * 3
        assert ["".join(update.said) for update in updates] == [one[number] for one in alone]
    assert any(text for texts in alone for text in texts)


def test_what_a_gpu_has_no_room_for_is_refused_before_it_is_loaded(folder, monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (2 * 10**9, 4 * 10**9))
    monkeypatch.setattr(Weights, "numbers", 10**9)
    options = Options(device="cuda", compute="float32")
    with pytest.raises(
        DragomanError, match=r"takes about 5\.5 GB of the GPU's .* 2\.0 GB are free"
    ):
        TorchEngine.load(folder, Vocabulary.load(folder), options)


@pytest.mark.weights
@pytest.mark.parametrize("beams", [1, 5])
def test_real_weights_say_what_they_say_on_the_cpu(beams):
    try:
        folder = get("whisper-base")
    except DragomanError as error:
        pytest.skip(str(error))
    v = Vocabulary.load(folder)
    plain = WhisperEngine(folder, v, Options(threads=1, compute="float32"))
    placed = engine_of(folder)
    start = (v.start, v.languages["de"], v.translate, v.no_times)
    sound = read_audio(TALK)[: 3 * RATE]
    texts = []
    for engine in (plain, placed):
        mel = engine.new_mel()
        mel.hear(sound)
        states = engine.encode([View(mel.window(200), mel.frames // 2, plain=True)])
        texts.append(engine.speak(states, [Prompt(start, 24)], beams)[0])
    assert len(texts[0].tokens) > 3
    assert texts[0].tokens == texts[1].tokens
    np.testing.assert_allclose(texts[0].log_probs, texts[1].log_probs, atol=0.01)


@on_gpu
@pytest.mark.parametrize("captured", [(), (2, 4)])
def test_texts_on_a_gpu_are_those_of_the_cpu(folder, engine, captured):
    placed = engine_of(folder, device="cuda", captured=captured)
    v = Vocabulary.load(folder)
    start = (v.start, v.languages["de"], v.translate, v.no_times)
    sounds = [noise(seconds, 7) for seconds in (0.5, 2.2, 3.0, 1.0, 0.7)]
    prompts = [Prompt(start, most) for most in (4, 30, 3, 8, 20)]
    texts = []
    for one in (engine, placed):
        _, seen = views(one, sounds)
        texts.append([found.tokens for found in one.speak(one.encode(seen), prompts, 5)])
    assert texts[0] == texts[1]


@pytest.mark.parametrize(("free", "ours", "expected"), [(60e9, 1.0, 36e9), (60e9, 0.25, 12e9)])
def test_processes_that_share_a_gpu_plan_with_their_part_of_it(monkeypatch, free, ours, expected):
    def fraction(device):
        assert device is None or isinstance(device, int)  # torch refuses "cuda" without a number
        return ours

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free, 80e9))
    monkeypatch.setattr(torch.cuda, "get_per_process_memory_fraction", fraction)
    assert speaker.free_bytes(torch.device("cuda")) == pytest.approx(expected)
    assert speaker.free_bytes(torch.device("cuda:1")) == pytest.approx(expected)
