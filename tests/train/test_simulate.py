"""Many clips side by side say what each of them says in the loop of live use."""

import time
from copy import copy
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import sacrebleu
import soundfile
import torch

from dragoman.corpora import Clip
from dragoman.errors import DragomanError
from dragoman.evaluate.result import Scorer
from dragoman.evaluate.run import run_corpus
from dragoman.models.exported.pieces import Pieces
from dragoman.models.load import load_model
from dragoman.models.options import Options
from dragoman.setup import Setup, System
from dragoman.train.data.corpus import open_set
from dragoman.train.data.faults import Faults
from dragoman.train.data.pack import RATE
from dragoman.train.export import check as compare_with_net
from dragoman.train.recipe import Batch, Data, Recipe
from dragoman.train.running import RunModel
from dragoman.train.settings import convert
from dragoman.train.simulate import Clips, Simulation, Waiting
from dragoman.train.train import train
from dragoman.train.trained import open_run, translation_quality
from tests.train.test_drivers import script

CPU = torch.device("cpu")
BLEU = SimpleNamespace(score=1.0)


@pytest.fixture(scope="module")
def run(tiny, tmp_path_factory):
    """Trained until it says some of the words."""
    folder = tmp_path_factory.mktemp("runs") / "colours"
    steps = {"total": 200, "validate": 200, "save": 200, "log": 100, "average": 1}
    rate = {"rate": 0.01, "warmup": 20}
    settings = tiny | {"steps": steps, "augment": {"spec": "none"}, "optimiser": rate}
    settings["net_settings"] = settings["net_settings"] | {"boundaries": True}
    train(convert(Recipe, settings), folder)
    return folder


@pytest.fixture(scope="module")
def heard(sung):
    return open_set([sung], Data((str(sung),)), Faults()).subset(range(10))


@pytest.fixture(scope="module")
def clips(heard, tmp_path_factory):
    """The same sound as files, and where their words end."""
    folder, clips, ends = tmp_path_factory.mktemp("clips"), [], []
    for number in range(len(heard)):
        item, path = heard.item(number), folder / f"{number}.wav"
        soundfile.write(path, np.array(heard.sound(number)), RATE, subtype="PCM_16")
        clips.append(Clip(number, path, {"de": item.text["de"]}))
        ends.append(f"{path.name}\t{' '.join(map(str, item.word_ends))}")
    (folder / "words.ends").write_text("\n".join(ends))
    return clips


@pytest.fixture(scope="module")
def simulate(run, heard):
    trained = open_run(run)
    task = trained.task.eval()
    target = Pieces.load(run / "target.model", len(trained.target), suffix=True, language="de")
    ends = torch.tensor(trained.source.word_ends(extra=1))
    ready = Clips.of(task, heard, CPU)
    return lambda way: Simulation(task.net, ends, target, ready, way).run()


@pytest.mark.parametrize(
    ("way", "policy", "detector"),
    [
        (Waiting(1, "fixed", 120, 120), "wait-k:k=1", "fixed:120"),
        (Waiting(2, "fixed", 250, 200), "wait-k:k=2", "fixed:250"),
        (Waiting(1, "ctc", step_ms=120), "wait-k:k=1", "ctc"),
        (Waiting(1, "learned", step_ms=80), "wait-k:k=1", "learned"),
        (Waiting(1, "ends", step_ms=80), "wait-k:k=1", "boundaries:FILE"),
        (Waiting(0), "offline", "fixed"),
    ],
)
def test_it_says_what_the_loop_says(run, clips, simulate, way, policy, detector, tmp_path):
    detector = detector.replace("FILE", str(clips[0].audio.parent / "words.ends"))
    setup = Setup(str(run), "en", "de", policy, detector, beams=1, step_ms=way.step_ms)
    system = System(setup, RunModel.load(run, options=Options(threads=1, beams=1)))
    wanted = run_corpus(clips, setup, tmp_path / "loop", together=4, system=system).traces
    found = simulate(way)
    assert [t.prediction for t in found] == [t.prediction for t in wanted]
    assert [t.instance().delays for t in found] == [t.instance().delays for t in wanted]
    assert any(trace.prediction for trace in found)


def slowed(load, *asked, **options):
    """A model that takes 30 ms more for every piece of sound."""
    model = load(*asked, **options)
    hear = model.hear

    def hear_slowly(streams, sounds):
        time.sleep(0.03)
        hear(streams, sounds)

    model.hear = hear_slowly
    return model


def test_how_much_of_the_lag_is_work(run, clips, simulate, tmp_path, monkeypatch, capsys):
    for name in ("ask", "claims"):
        script(name)
    work = script("work")
    monkeypatch.setattr(work, "OUT", tmp_path)
    monkeypatch.setattr(work, "load_model", partial(slowed, work.load_model))
    rows = [f"{clip.audio}\t-\t{clip.texts['de']}" for clip in clips]
    (tmp_path / "corpus.tsv").write_text("\n".join(["audio\ten\tde", *rows]))
    work.work(run, ["2,fixed,250,200"], tmp_path, len(clips), 1)
    name, way, *cells = [cell.strip() for cell in capsys.readouterr().out.split("|")[-9:-1]][1:]
    assert (name, way) == (run.name, "2,fixed,250,200")
    lag, loop, more, simuleval, still_more = map(float, cells)
    alone = Scorer.of("de").values(simulate(Waiting(2, "fixed", 250, 200)))["LAAL"]
    assert lag == pytest.approx(alone / 1000, abs=0.006)
    assert loop == pytest.approx(lag + more, abs=0.011)
    assert simuleval == pytest.approx(lag + still_more, abs=0.011)
    assert 0.02 < more <= still_more + 0.01
    with pytest.raises(DragomanError, match="leave 1,words,280,80 out"):
        work.work(run, ["1,words,280,80"], tmp_path, 3, 1)


def test_a_run_at_work_is_its_net(run):
    model = RunModel.load(run, options=Options(threads=1, device="cpu"))
    compare_with_net(open_run(run).task.net.eval(), model._net)
    assert (model.hears, model.speaks) == (("en",), ("de",))
    assert load_model(str(run), threads=1, device="cpu").features == model.features


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_run_on_a_gpu_that_is_not_there_is_refused(run):
    with pytest.raises(DragomanError, match="no GPU"):
        RunModel.load(run, options=Options(device="cuda"))


@pytest.mark.parametrize(("targets", "tokenizer"), [("de", "13a"), ("zh", "zh"), ("de,zh", "char")])
def test_the_target_chooses_how_bleu_counts_words(run, heard, monkeypatch, targets, tokenizer):
    asked = []
    monkeypatch.setattr(
        sacrebleu, "corpus_bleu", lambda *_, tokenize: asked.append(tokenize) or BLEU
    )
    data = copy(heard)
    data.data = replace(heard.data, target=targets)
    trained = open_run(run)
    translation_quality(trained.task, data, trained.target, CPU, Batch(seconds=20))
    assert asked == [tokenizer]


def test_more_waiting_is_later(simulate):
    def lag(k):
        said = [t.instance().delays for t in simulate(Waiting(k, "fixed", 120, 120))]
        return np.mean([np.mean(delays) for delays in said if len(delays)])

    assert lag(1) < lag(4) < lag(0)


def test_a_net_without_a_head_for_words_is_refused(simulate, run, heard):
    task = open_run(run).task.eval()
    target = Pieces.load(run / "target.model", len(open_run(run).target), suffix=True)
    with pytest.raises(DragomanError, match="CTC head"):
        Simulation(task.net, None, target, Clips.of(task, heard, CPU), Waiting(1, "ctc"))
