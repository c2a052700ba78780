"""The scripts that run many commands: in which order, and what they do when they are stopped."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dragoman.train.recipe import read_recipe

RECIPES = Path(__file__).parents[2] / "recipes"
# Stands in for `dragoman`: notes what it is asked for, and makes what the real one would.
STAND_IN = """#!/bin/sh
echo "$*" >> "$CALLS"
case $1 in
    voice) mkdir -p "$3" ;;
    distill) mkdir -p "$4"; touch "$4/pack.json" ;;
    train) mkdir -p "$4"; touch "$4/final.pt" ;;
    export) mkdir -p "$3" ;;
esac
"""
# And for `timeout -k 10 SECONDS COMMAND...`: time is up when $SLOW is what is asked for.
TIMEOUT = """#!/bin/sh
shift 3
"$@" || exit $?
[ "$2" != "$SLOW" ] || { rm -rf runs/end-to-end/final.pt; exit 124; }
"""


@pytest.fixture
def end_to_end(tmp_path):
    """A function that runs the script among stand-ins: its status, its output, what it called."""
    (tmp_path / "bin").mkdir()
    for name, text in (("dragoman", STAND_IN), ("timeout", TIMEOUT)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)

    def run(*settings: str, slow: str = "", **variables: str):
        calls = tmp_path / "calls"
        calls.write_text("")
        path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
        known = {
            "PATH": path,
            "CALLS": str(calls),
            "SLOW": slow,
            "TEXT": "text.tsv",
            "COLUMNS": "80",
        }
        done = subprocess.run(
            ["sh", str(RECIPES / "end-to-end.sh"), *settings],
            cwd=tmp_path,
            env=known | variables,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr, calls.read_text().splitlines()

    return run


def test_from_text_to_a_model_in_one_go(end_to_end):
    status, said, calls = end_to_end("seed=3", UPDATES="500", ROWS="70", DEV_ROWS="30")
    assert status == 0, said
    assert [call.split()[0] for call in calls] == [
        *("voice", "voice", "distill", "distill", "distill", "distill"),
        *("train", "export", "evaluate"),
    ]
    for call, rows in zip(calls, ("--limit 30", "--skip 30 --limit 70"), strict=False):
        assert "--columns en,de,_,_ --max-words 40 --fault-limit 0.5" in call  # long ones are many
        assert f"--voices espeak*0.5,hibari*0.5 --device cpu {rows} " in call
    assert "--skip" not in calls[0]  # what it is tried on comes first in the text
    assert "--limit 30" in calls[0]
    train = next(call for call in calls if call.startswith("train"))
    assert "data.train=[packs/e2e-de,packs/e2e-es]" in train
    assert "data.dev=[packs/e2e-dev-de,packs/e2e-dev-es]" in train
    assert train.endswith("data.target=de,es steps.total=500 steps.minutes=0 seed=3")


@pytest.mark.parametrize(
    ("languages", "columns", "tried"),
    [
        ("de es", "en,de,_,_", "de"),
        ("es de", "en,de", "de"),
        ("es", "en,de", ""),
        ("es", "es,en", "es"),
    ],
)
def test_it_is_tried_in_a_language_that_the_text_has(end_to_end, languages, columns, tried):
    status, said, calls = end_to_end(LANGUAGES=languages, TEXT_COLUMNS=columns)
    assert status == 0
    assert [re.findall(r"--to (\w+)", call) for call in calls if call.startswith("evaluate")] == (
        [[tried]] if tried else []
    )
    assert ("not tried: text.tsv has no translation into es" in said) == (not tried)


def test_what_is_done_is_not_done_again(end_to_end):
    end_to_end()
    status, _, calls = end_to_end()
    assert status == 0
    assert [call.split()[0] for call in calls] == ["voice", "voice", "evaluate"]


def test_it_stops_in_time_and_goes_on(end_to_end):
    status, said, calls = end_to_end(slow="train")
    assert status == 75
    assert "out of time: training" in said
    status, _, calls = end_to_end()
    assert status == 0
    assert calls[-3].startswith("train")


def test_nothing_is_trained_before_all_is_translated(end_to_end):
    """Two languages are translated into at a time; the script waits for both."""
    status, said, calls = end_to_end(slow="distill")
    assert status == 75
    assert said.count("out of time: translating") == 2
    assert {call.split()[0] for call in calls} == {"voice", "distill"}


def test_without_time_nothing_is_begun(end_to_end):
    status, said, calls = end_to_end(LIMIT="0")
    assert status == 75
    assert "out of time: speaking" in said
    assert not calls


def test_training_ends_when_it_shall(end_to_end):
    _, _, calls = end_to_end(MINUTES="15")
    train = next(call for call in calls if call.startswith("train"))
    assert "steps.total=16000 steps.minutes=15" in train


def test_a_failure_ends_it(end_to_end, tmp_path):
    (tmp_path / "packs").write_text("in the way")
    status, _, calls = end_to_end()
    assert status not in (0, 75)
    assert len(calls) == 1


def test_it_wants_a_text(end_to_end):
    status, said, calls = end_to_end(TEXT="")
    assert status != 0
    assert "TEXT" in said
    assert not calls


def script(name: str):
    spec = importlib.util.spec_from_file_location(name, RECIPES / "claims" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def claims():
    return script("claims")


def test_runs_wait_for_all_that_they_start_from(claims):
    runs = claims.plan(["001", "000", "003", "004"])
    assert claims.needs(runs["mma-280ms"]) == {"spelling-transformer.en"}
    # Weights, and what another run has had translated.
    assert claims.needs(runs["kd-transformer"]) == {"spelling-transformer.en", "kd"}
    names = list(runs)
    for name, run in runs.items():
        assert all(names.index(one) < names.index(name) for one in claims.needs(run))
    assert names.index("waitk-fixed-9") < names.index("kd") < names.index("waitk-440ms")
    assert names.index("joint-dar-1") < names.index("joint-plain-2")


def test_the_ends_of_the_ladder_are_trained_on_alike(claims):
    """Table 4 of paper 004: from both, with the same weights of latency, and nothing else new; the
    net that never read text is not told to read it early."""
    runs = claims.plan(["004"])
    weights = {}
    for name in ("plain", "dar"):
        before = f"joint-{name}-1"
        more = {n: run for n, run in runs.items() if n.startswith(f"{before}-dal")}
        assert all(claims.needs(run) == {before} for run in more.values())
        recipes = {
            n: read_recipe(RECIPES / "claims" / f"{run.recipe}.yaml", run.settings)
            for n, run in more.items()
        }
        first = read_recipe(RECIPES / "claims" / "joint.en-de.yaml", runs[before].settings)
        for recipe in recipes.values():
            assert recipe.init == f"runs/claims/{before}"
            assert not recipe.init_parts  # all of it
            assert recipe.task_settings["weights"] == first.task_settings["weights"]
            assert recipe.augment == first.augment
            assert recipe.task_settings.get("text_latency", True) == (name == "dar")
        weights[name] = [one.task_settings["latency"]["average"] for one in recipes.values()]
    assert weights["plain"] == weights["dar"]
    assert len(set(weights["dar"])) == len(weights["dar"]) > 3


def test_a_run_that_there_is_not_is_told(claims, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["claims.py", "004", "--only", "joint-dar-1", "joint-dar1"])
    with pytest.raises(SystemExit, match="2"):
        claims.main()
    assert "there is no run joint-dar1; there are " in capsys.readouterr().err


def test_the_queue_hands_out_what_is_ready(claims):
    runs = {
        name: claims.plan(["001"])[name]
        for name in ("spelling.en", "conformer.en-de", "spelling-transformer.en", "offline")
    }
    queue = claims.Queue(runs)
    assert queue.take()[0] == "spelling.en"
    assert queue.take()[0] == "spelling-transformer.en"  # meanwhile
    took = []
    other = threading.Thread(target=lambda: took.append(queue.take()[0]))
    other.start()  # waits: nothing can be begun
    queue.end("spelling.en", True)
    other.join(timeout=30)
    assert took == ["conformer.en-de"]
    queue.end("conformer.en-de", False)
    assert queue.take() is None
    assert queue.ended["offline"] is False


def test_the_queue_takes_for_there_what_it_is_not_given(claims):
    queue = claims.Queue({"offline": claims.plan(["001"])["offline"]})
    assert queue.take()[0] == "offline"


@pytest.fixture
def scores(tmp_path):
    """A folder of answers: two runs with words by CTC, one of them with fixed words, too."""
    script("answers")
    every = {"offline-ctc": 31.26, "waitk-ctc-3-ctc": 28.0, "offline-fixed": 29.5}
    for name, bleu in every.items():
        folder = tmp_path / "001" / name
        folder.mkdir(parents=True)
        rows = [f"wait-k:k=7\t{bleu}\t2104.0\n", "wait-k:k=9\t30\t2590\n"]
        rows = rows[: 1 + name.startswith("offline")]
        (folder / "scores.tsv").write_text("system\tBLEU\tLAAL\n" + "".join(rows))
    return tmp_path


def test_scores_become_tables(scores, capsys):
    for name in ("claims", "energy"):
        script(name)
    script("tables").main(scores, scores / "runs")
    assert capsys.readouterr().out.splitlines()[1:] == [
        "### Paper 001, ctc",
        "",
        "| | offline | waitk-ctc-3 |",
        "|---|---|---|",
        "| wait-k:k=7 | 31.3 at 2.10 | 28.0 at 2.10 |",
        "| wait-k:k=9 | 30.0 at 2.59 |  |",
        "",
        "### Paper 001, fixed",
        "",
        "| | offline |",
        "|---|---|",
        "| wait-k:k=7 | 29.5 at 2.10 |",
        "| wait-k:k=9 | 30.0 at 2.59 |",
    ]


HOUR = 3600.0


@pytest.fixture
def trained(tmp_path):
    """Ears, trunk and three branches of an hour each, two of them side by side."""

    def run(name, begun, **more):
        folder = tmp_path / name
        folder.mkdir()
        session = {"begun": begun * HOUR, "hours": 1.0, "meters": ["GPU"], **more}
        (folder / "carbon.json").write_text(json.dumps([session]))

    run("spelling.en", 0, kwh=2.0)
    run("conformer.en-de", 1, kwh=3.0)
    run("offline", 2, kwh=1.0)
    run("waitk-fixed-3", 3, kwh=1.0)
    run("waitk-ctc-3", 3.5, kwh=1.0)  # half of each hour is shared
    return tmp_path


def test_energy_of_one_net_against_ten(trained):
    script("claims")
    lines = list(script("energy").energy(trained))
    assert [line.split(" | ")[1:] for line in lines[2:5]] == [
        ["10800", "6e+03", "2.28e+03 |"],
        ["34200", "1.25e+04", "4.76e+03 |"],  # 5 kWh, and ten times 0.75
        ["99000", "5.75e+04", "2.19e+04 |"],
    ]
    assert "2 trained, as many times as much" in lines[3]
    assert lines[-1].startswith("Energy is measured;")


def test_energy_that_nobody_read_is_not_told(trained):
    script("claims")
    path = trained / "offline" / "carbon.json"
    path.write_text(json.dumps([{"begun": 2 * HOUR, "hours": 1.0}]))
    lines = list(script("energy").energy(trained))
    assert lines[2].endswith("| 10800 | not read | not read |")
    assert lines[-1].startswith("No energy was read")
    path.unlink()
    assert not list(script("energy").energy(trained))


def test_scores_become_figures_where_there_is_something_to_compare(scores):
    page = scores / "page.html"
    script("figures").main(page, scores)
    html = page.read_text()
    captions = re.findall("<figcaption>(.*?)</figcaption>", html)
    assert captions == ["ctc: every run that was asked", "the run offline: every way to wait"]
    points = re.findall("<title>([^<]*)</title></circle>", html)
    assert len(points) == 3 + 4
    assert points.count("offline, wait-k:k=7: 31.3 at 2.10 s") == 2
    assert points.count("waitk-ctc-3, wait-k:k=7: 28.0 at 2.10 s") == 1


def test_nets_that_decide_are_drawn_beside_those_that_wait(scores):
    """Though nobody else was asked what they were."""
    folder = scores / "001" / "caat-640ms-follow"
    folder.mkdir()
    (folder / "scores.tsv").write_text("system\tBLEU\tLAAL\nfollow, 0.08 s steps\t26.0\t900\n")
    script("figures").main(scores / "page.html", scores)
    html = (scores / "page.html").read_text()
    last = re.findall("<figcaption>(.*?)</figcaption>", html)[-1]
    assert last == "paper 001: nets that decide beside others"
    points = re.findall("<title>([^<]*)</title></circle>", html.rpartition("<figcaption>")[2])
    assert [point for point in points if point.startswith("caat")] == [
        "caat-640ms, follow, 0.08 s steps: 26.0 at 0.90 s"
    ]
    assert any(point.startswith("offline") for point in points)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("tables.py", "nowhere"), "nowhere holds no answers yet"),
        (("figures.py", "page.html", "nowhere"), "nowhere holds no answers yet"),
        (("figures.py",), "Name the page to write"),
    ],
)
def test_without_answers_there_is_a_sentence(tmp_path, arguments, said):
    name, *rest = arguments
    done = subprocess.run(
        [sys.executable, str(RECIPES / "claims" / name), *rest],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(said)
    assert not list(tmp_path.iterdir())
