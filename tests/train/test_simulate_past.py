"""Nets that go on from their own past say side by side what each clip says in the loop."""

import csv

import pytest
import torch

from dragoman.errors import DragomanError
from dragoman.evaluate.run import run_corpus
from dragoman.models.exported.decoder import Texts
from dragoman.models.exported.pieces import Pieces
from dragoman.models.options import Options
from dragoman.policies import make_policy
from dragoman.setup import Setup, System
from dragoman.train.recipe import Recipe
from dragoman.train.running import RunModel
from dragoman.train.settings import convert
from dragoman.train.simulate import Clips
from dragoman.train.simulate_past import PastSimulation
from dragoman.train.simulate_transducer import TransducerSimulation
from dragoman.train.train import train
from dragoman.train.trained import open_run
from tests.train.test_drivers import script
from tests.train.test_simulate import clips, heard  # noqa: F401  the same sound

NETS = {
    "mma": {
        "net": "mma",
        "task": "mma",
        "net_settings": {
            "encoder": "transformer",
            "encoder_settings": {"size": 16, "conv_channels": 16, "encoder_layers": 1}
            | {"encoder_heads": 2, "encoder_ffn": 32, "ctc_layer": 0},
            **{"decoder_layers": 1, "decoder_heads": 2, "decoder_ffn": 32, "ratio": 2},
        },
    },
    "vgg": {
        "net": "vgg-blstm",
        "net_settings": {"channels": 2, "size": 24, "encoder_layers": 1, "attention": 16},
    },
    "caat": {
        "net": "caat",
        "task": "caat",
        "task_settings": {"latency": 0.0},
        "net_settings": {"size": 24, "conv_channels": 4, "encoder_layers": 1, "heads": 2}
        | {"predictor_layers": 1, "joiner_layers": 1, "encoder_ffn": 32, "decoder_ffn": 32}
        | {"chunk": 2, "right": 1, "left": 8, "decision": 4, "dropout": 0.0},
    },
}


@pytest.fixture(scope="module")
def runs(tiny, tmp_path_factory):
    """Trained just long enough to say different things of different clips."""
    made = {}

    def run(name):
        if name not in made:
            folder = tmp_path_factory.mktemp("past") / name
            end = 90 if name == "caat" else 60  # less sure, it searches three times as long
            settings = tiny | {
                "steps": {"total": end, "validate": end, "save": end, "log": end, "average": 1},
                "optimiser": {"rate": 0.02, "warmup": 5},
                "augment": {"spec": "none"},
            }
            train(convert(Recipe, settings | NETS[name]), folder)
            made[name] = folder
        return made[name]

    return run


@pytest.mark.parametrize(
    ("net", "policy", "step_ms"),
    [
        ("mma", "follow", 80),
        ("mma", "follow", 120),
        ("vgg", "ksn:k=20,s=10,n=2", 100),
        ("vgg", "ksn:k=20,s=5,n=1", 50),
        ("vgg", "offline", 100),
        ("caat", "follow", 80),
        ("caat", "follow", 200),
    ],
)
def test_it_says_what_the_loop_says(runs, heard, clips, net, policy, step_ms, tmp_path):  # noqa: F811
    run = runs(net)
    setup = Setup(str(run), "en", "de", policy, beams=1, step_ms=step_ms)
    system = System(setup, RunModel.load(run, options=Options(threads=1, beams=1)))
    wanted = run_corpus(clips, setup, tmp_path / "loop", together=4, system=system).traces
    trained = open_run(run)
    task = trained.task.eval()
    units = Pieces.load(run / "target.model", len(trained.target), suffix=True, language="de")
    ready = Clips.of(task, heard, torch.device("cpu"))
    if net == "caat":
        found = TransducerSimulation(task.net, units, ready, step_ms).run()
    else:
        found = PastSimulation(task.net, units, ready, make_policy(policy), step_ms).run()
    assert [t.prediction for t in found] == [t.prediction for t in wanted]
    assert [t.instance().delays for t in found] == [t.instance().delays for t in wanted]
    assert len({trace.prediction for trace in found}) > 1


def test_clips_whose_decoders_have_different_pasts_are_read_together(
    runs,
    clips,  # noqa: F811
    tmp_path,
    monkeypatch,
):
    """As one batch they once failed, and each was read alone."""
    begun = []

    def note(self, net, memories, states, prompts, caches=None):
        begin(self, net, memories, states, prompts, caches)
        begun.append([cache[0].shape for cache in caches])

    begin = Texts.__init__
    monkeypatch.setattr(Texts, "__init__", note)
    run = runs("mma")
    setup = Setup(str(run), "en", "de", "follow", beams=1, step_ms=80)
    model = RunModel.load(run, options=Options(threads=1, beams=1))
    run_corpus(clips, setup, tmp_path / "loop", together=10, system=System(setup, model))
    together = [group for group in begun if len(group) > 1]
    assert len({shape for group in together for shape in group}) > 2  # of each, those that share it
    assert sum(map(len, together)) > len(begun) - len(together)


def test_a_policy_with_its_step_is_a_way_to_ask(runs, sung, tmp_path):
    ask = script("ask").ask
    ask(runs("mma"), sung, tmp_path, ["follow@80"], 5, report=False)
    assert (tmp_path / "scores.tsv").read_text().splitlines()[1].startswith("follow, 0.08 s steps")
    assert len((tmp_path / "follow-80" / "instances.log").read_text().splitlines()) == 5


def test_a_transducer_is_asked_with_other_groups_than_it_learned(runs, sung, tmp_path):
    ask = script("ask").ask
    ways = ["follow@80,decision=2", "follow@80,decision=8"]
    ask(runs("caat"), sung, tmp_path, ways, 10, report=False)
    with (tmp_path / "scores.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert [row["system"] for row in rows] == [
        "follow, 0.08 s steps, decision=2",
        "follow, 0.08 s steps, decision=8",
    ]
    assert float(rows[0]["LAAL"]) < float(rows[1]["LAAL"])
    with pytest.raises(DragomanError, match="follow, not offline"):
        ask(runs("caat"), sung, tmp_path, ["offline@80"], 10, report=False)
