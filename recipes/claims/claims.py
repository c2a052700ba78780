"""python recipes/claims/claims.py 001 000

Trains the runs that a paper's claims are about and asks each of them about the test set, searched
greedily like the papers'. What tells most about a claim for its time comes first (`RANKS`); runs
that start from others wait for them; some are trained and some asked at the same time. Everything
goes on where it was stopped: run the same command again. Logs are in out/claims/logs;
out/claims/PAPER/RUN-NAME holds what was said and its scores; tables.py prints them as tables.

With --to pt all of it is Portuguese: packs/claims.en-pt and its units (`TO=pt sh corpus.sh TEXT`),
runs/claims.pt, out/claims.pt.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

RECIPES = Path(__file__).parent
RUNS, OUT = Path("runs/claims"), Path("out/claims")
TEST = Path("packs/claims-test.en-de")
GERMAN = "de"  # what recipes are written for
TEACHER = "weights/mt-en"  # the text model that ships
STEPS = ("ears", "trunk", "branch", "vgg", "joint")  # kinds of runs, by how long they take
EVERY_K, FEW_K = (1, 3, 5, 7, 9, 11), (1, 3, 5, 7)


@dataclass(frozen=True)
class Ask:
    """What is asked of a trained net over the test set."""

    paper: str
    name: str
    ways: tuple[str, ...]  # to wait, for ask.py


@dataclass(frozen=True)
class Run:
    """A recipe with settings of its own, and what is asked of it."""

    recipe: str
    settings: tuple[str, ...] = ()
    after: str = ""  # the run that it starts from
    asks: tuple[Ask, ...] = ()
    steps: str = "trunk"  # the option that says how long it is trained
    first: tuple[str, ...] = ()  # the command of dragoman that makes what it learns from


def waits(paper: str, name: str, every: tuple[int, ...], words: str, ms: str = "280,280") -> Ask:
    return Ask(paper, name, tuple(f"{k},{words},{ms}" for k in every))


def plan_001() -> dict[str, Run]:
    """One offline net against nets trained with k, at every k, words by time and by CTC; Conformer
    against Transformer; distillation; CAAT, with groups of .32 to 2.56 s."""
    fixed, ctc = waits("001", "fixed", EVERY_K, "fixed"), waits("001", "ctc", EVERY_K, "ctc")
    whole = Ask("001", "offline", ("offline",))
    runs = {
        "spelling.en": Run("spelling.en", steps="ears"),
        "conformer.en-de": Run("conformer.en-de", after="spelling.en", steps="trunk"),
        "offline": Run("more.en-de", (), "conformer.en-de", (fixed, ctc, whole), "branch"),
    }
    for k in (3, 7, 11, 5, 9):
        for words, ask in (("fixed", fixed), ("ctc", ctc)):
            settings = (f"task_settings.k={k}", f"task_settings.words={words}")
            runs[f"waitk-{words}-{k}"] = Run(
                "waitk.en-de", settings, "conformer.en-de", (ask,), "branch"
            )
    asks = (fixed, ctc, whole)
    runs["spelling-transformer.en"] = Run("spelling-transformer.en", steps="ears")
    before = "spelling-transformer.en"
    runs["transformer.en-de"] = Run("transformer.en-de", (), before, asks, "trunk")
    packs = ("packs/claims.en-de", "packs/claims-kd.en-de")
    distil = ("distill", TEACHER, *packs, "--to", "de")
    runs["kd"] = Run("kd.en-de", (), "spelling.en", asks, "trunk", distil)
    # After the other one, which has made what both learn from.
    runs["kd-transformer"] = Run("kd-transformer.en-de", (), "kd", asks, "trunk")
    return runs | caat()


def caat() -> dict[str, Run]:
    """Trained with groups of .64 s and asked with others; and trained on with the others."""
    runs = {
        "spelling-caat.en": Run("spelling-caat.en", steps="ears"),
        "caat.en-de": Run("caat.en-de", after="spelling-caat.en", steps="trunk"),
    }
    for decision in (16, 8, 32):
        asked = (8, 16, 32, 64) if decision == 16 else (decision,)
        ask = Ask("001", "follow", tuple(f"follow@80,decision={one}" for one in asked))
        settings = (f"net_settings.decision={decision}",)
        run = Run("caat-more.en-de", settings, "caat.en-de", (ask,), "branch")
        runs[f"caat-{40 * decision}ms"] = run
    return runs


def plan_000() -> dict[str, Run]:
    """Wait-k with words of 120 to 520 ms, trained so or offline; true ends of words and phones;
    ends that a head has learned; MMA in the same steps and at true ends, noticed as in equation
    3."""
    runs = plan_001()
    asks: list[Ask] = []
    oracles = [
        waits("000", kind, every, kind, "280,80")
        for kind, every in (("words", FEW_K), ("phones", (1, 3, 5, 9, 15, 21)))
    ]
    kept = {name: runs[name] for name in ("spelling.en", "conformer.en-de")}
    for ratio in (3, 13, 7, 9, 5, 11):
        ms = 40 * ratio
        ask = waits("000", f"{ms}ms", FEW_K, "fixed", f"{ms},{ms}")
        asks.append(ask)
        settings = ("task_settings.k=5", "task_settings.words=fixed")
        if ratio != 7:
            settings += (f"task_settings.ratio={ratio}",)
        name = "waitk-fixed-5" if ratio == 7 else f"waitk-{ms}ms"
        kept[name] = Run("waitk.en-de", settings, "conformer.en-de", (ask,), "branch")
    kept["offline"] = Run("more.en-de", (), "conformer.en-de", (*asks, *oracles), "branch")
    # The same net with fixed steps and true ends, so that nothing else differs.
    step = next(one for one in asks if one.name == "280ms")
    ends = (waits("000", "learned", FEW_K, "learned", "280,80"), oracles[0], step)
    kept["learned"] = Run("learned.en-de", (), "conformer.en-de", ends, "branch")
    ears = "spelling-transformer.en"
    kept[ears] = runs[ears]
    for ratio in (3, 13, 7, 9, 5, 11):
        ms = 40 * ratio
        follow = Ask("000", "follow", (f"follow@{ms}",))
        settings = (f"net_settings.ratio={ratio}",)
        kept[f"mma-{ms}ms"] = Run("mma.en-de", settings, ears, (follow,), "trunk")
    learned = ("net_settings.decisions=learned", "net_settings.encoder_settings.boundaries=true")
    oracle = ("task_settings.decisions=oracle", "task_settings.trigger=next", *learned)
    follow = Ask("000", "follow", ("follow@80",))
    for ends in ("words", "phones"):
        settings = (f"data.ends={ends}", *oracle)
        kept[f"mma-{ends}"] = Run("mma.en-de", settings, ears, (follow,), "trunk")
    return kept


def plan_003() -> dict[str, Run]:
    """Characters against BPE, offline and over twelve (k, s, N)."""
    asks = [Ask("003", "offline", ("offline@100",))]
    for k in (100, 200):  # side by side: they take long
        ways = (f"ksn:k={k},s={s},n={n}@{10 * s}" for s in (10, 20) for n in (1, 2, 3))
        asks.append(Ask("003", f"ksn{k}", tuple(ways)))
    ears = "spelling-vgg.en"
    runs = {ears: Run(ears, steps="ears")}
    runs["vgg-char"] = Run("vgg.en-de", (), ears, tuple(asks), "vgg")
    for size in (400, 2000):
        model = f"packs/claims-units/bpe{size}.model"
        settings = ("kind=bpe", f"size={size}", f"model={model}")
        settings = tuple(f"vocabulary.target.{one}" for one in settings)
        runs[f"vgg-bpe{size}"] = Run("vgg.en-de", settings, ears, tuple(asks), "vgg")
    return runs


def plan_004() -> dict[str, Run]:
    """The ladder of Table 3, each rung with three seeds; Table 4: its ends, trained on to be
    earlier by DAL as a loss."""
    ask = Ask("004", "follow", ("follow@280",))
    ears = "spelling-transformer.en"
    runs = {ears: plan_001()[ears]}
    weights = ("mt=0.5", "kd=0.2", "car=0.02", "dar=0.01")
    rungs = {"plain": ("augment.speeds=[1.0]",), "augmented": ()}
    for count, name in enumerate(("multitask", "kd", "car", "dar"), start=1):
        rungs[name] = tuple(f"task_settings.weights.{one}" for one in weights[:count])
    for seed in (1, 2, 3):
        for name, settings in rungs.items():
            settings = (*settings, f"seed={seed}")
            run = Run("joint.en-de", settings, ears, (ask,), "joint")
            runs[f"joint-{name}-{seed}"] = run
    for weight in (0.0, 0.02, 0.05, 0.01, 0.03):
        for name in ("plain", "dar"):
            before = f"joint-{name}-1"
            settings = (*rungs[name], f"init={RUNS / before}", "task_settings.latency.metric=dal")
            settings += (f"task_settings.latency.average={weight}",)
            if name == "plain":  # it has never read text
                settings += ("task_settings.text_latency=false",)
            run = Run("joint-more.en-de", settings, before, (ask,), "branch")
            runs[f"{before}-dal{weight}"] = run
    return runs


PLANS = {"000": plan_000, "001": plan_001, "003": plan_003, "004": plan_004}
# Which runs come first: those that a verdict hangs on, then further points of a curve, then seeds.
RANKS = (
    r"offline|waitk-(fixed|ctc)-.*|joint-(plain|dar)-1(-.*)?|vgg-(char|bpe2000)",
    r"kd|kd-transformer|transformer\.en-de|waitk-(120|520)ms|mma-(280ms|120ms|520ms|words)|"
    r"caat-640ms|learned|joint-.*-1",
    r"joint-.*|vgg-.*",
    r"waitk-.*|mma-.*|caat-.*",
)


def plan(papers: list[str]) -> dict[str, Run]:
    """The runs of several papers, in the order of their ranks; one that several need is asked for
    all of them."""
    runs: dict[str, Run] = {}
    for paper in papers:
        for name, run in PLANS[paper]().items():
            before = runs.get(name, run)
            asks = tuple(dict.fromkeys((*before.asks, *run.asks)))
            runs[name] = replace(run, asks=asks)
    return dict(sorted(runs.items(), key=lambda item: rank(item[0], runs)))


def rank(name: str, runs: dict[str, Run]) -> int:
    """A run is as urgent as whatever starts from it."""
    own = next((n for n, form in enumerate(RANKS) if re.fullmatch(form, name)), len(RANKS))
    return min([own, *(rank(later, runs) for later, run in runs.items() if run.after == name)])


def needs(run: Run) -> set[str]:
    """The runs whose weights or units a run starts from."""
    from dragoman.train.recipe import with_base

    named = re.findall(rf"{RUNS}/([\w.-]+)", str(with_base(RECIPES / f"{run.recipe}.yaml")))
    return {run.after, *named} - {""}


def in_language(text: str, to: str) -> str:
    """The name of a pack, of units or of a run for another target than German."""
    text = re.sub(r"^(packs/claims[\w-]*)\.en-de$", rf"\1.en-{to}", text)
    return re.sub(r"^(packs/claims-units|runs/claims|out/claims)(?=/|$)", rf"\1.{to}", text)


def for_target(recipe: Path, settings: list[str], to: str) -> list[str]:
    """The settings of a run whose target is another one: what has a name of German is renamed."""
    from dragoman.train.recipe import merge, parse_change, with_base

    if to == GERMAN:
        return settings
    data = with_base(recipe)
    for one in settings:
        data = merge(data, parse_change(one))
    found = list(settings)

    def visit(value: Any, key: str) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                visit(inner, f"{key}.{name}" if key else name)
        elif isinstance(value, list) and key in ("data.train", "data.dev"):
            found.append(f"{key}=[{', '.join(in_language(one, to) for one in value)}]")
        elif isinstance(value, str) and in_language(value, to) != value:
            found.append(f"{key}={in_language(value, to)}")

    visit(data, "")
    if data["data"]["target"] == GERMAN:
        found.append(f"data.target={to}")
    return found


class Queue:
    """Hands out runs in order, each as soon as those are there that it starts from."""

    def __init__(self, runs: dict[str, Run]) -> None:
        """Of what runs need, those that are not among them are taken to be there."""
        self.waiting = {name: (run, needs(run) & set(runs)) for name, run in runs.items()}
        self.ended: dict[str, bool] = {}  # whether it went well
        self.changed = threading.Condition()

    def take(self) -> tuple[str, Run] | None:
        """The next run that can be begun, once there is one; None: there will be none."""
        with self.changed:
            while self.waiting:
                for name, (run, needed) in self.waiting.items():
                    if all(self.ended.get(one) for one in needed):
                        del self.waiting[name]
                        return name, run
                lost = [n for n, (_, needed) in self.waiting.items() if self._lost(needed)]
                for name in lost:
                    del self.waiting[name]
                    self.ended[name] = False
                if not lost:
                    self.changed.wait()
        return None

    def _lost(self, needed: set[str]) -> bool:
        return any(self.ended.get(one) is False for one in needed)

    def end(self, name: str, well: bool) -> None:
        with self.changed:
            self.ended[name] = well
            self.changed.notify_all()


# ---------------------------------------------------------------- processes that stay warm


def train_here(recipe: str, settings: list[str], run: str) -> None:
    from dragoman.train.recipe import read_recipe
    from dragoman.train.train import train

    train(read_recipe(Path(recipe), tuple(settings)), Path(run))


def ask_here(run: str, test: str, out: str, ways: list[str], limit: int) -> None:
    from ask import ask

    ask(Path(run), Path(test), Path(out), ways, limit, report=False)


def dragoman_here(*arguments: str) -> None:
    from dragoman.cli import main

    sys.argv = ["dragoman", *arguments]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise


def serve(orders: Connection) -> None:
    """A process' life: libraries and the device are made ready once for many runs."""
    while True:
        function, arguments, log = orders.recv()
        with open(log, "ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        try:
            function(*arguments)
            done = True
        except BaseException:
            traceback.print_exc()
            done = False
        make_room()
        orders.send(done)


def make_room() -> None:
    """What a run leaves on a device would be missing to those beside it."""
    import torch

    gc.collect()
    torch.cuda.empty_cache()


class Worker:
    """A process that does one thing after another; one that failed is replaced."""

    def __init__(self) -> None:
        self.process: Any = None

    def call(self, function: Callable[..., None], arguments: tuple, log: Path, most: float) -> bool:
        if self.process is None:
            context = get_context("spawn")
            self.orders, theirs = context.Pipe()
            self.process = context.Process(target=serve, args=(theirs,), daemon=True)
            self.process.start()
            theirs.close()
        self.orders.send((function, arguments, str(log)))
        try:
            done = bool(self.orders.poll(most) and self.orders.recv())
        except (EOFError, ConnectionError):  # it has died
            done = False
        if not done:
            self.end()
        return done

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


@dataclass
class Work:
    """What is under way, and until when it may be."""

    options: argparse.Namespace
    begun: float = field(default_factory=time.monotonic)
    longest: dict[str, float] = field(default_factory=dict)  # that runs of a kind have taken
    workers: list[Worker] = field(default_factory=list)
    here: threading.local = field(default_factory=threading.local)

    def folder(self, path: Path) -> Path:
        """A folder of German, or that of the language that is asked for."""
        to = self.options.to
        return path if to == GERMAN else Path(in_language(str(path), to))

    @property
    def left(self) -> float:
        return self.options.seconds - (time.monotonic() - self.begun)

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.begun:6.1f} s  {text}", flush=True)

    def worker(self) -> Worker:
        """The process of this thread."""
        if not hasattr(self.here, "worker"):
            self.here.worker = Worker()
            self.workers.append(self.here.worker)
        worker: Worker = self.here.worker
        return worker

    def call(self, name: str, function: Callable[..., None], *arguments: Any) -> bool:
        """Do something with its output in a log, no longer than there is time."""
        if self.left < 2:
            self.say(f"{name}: no time left")
            return False
        path = self.folder(OUT) / "logs" / f"{name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        begun = time.monotonic()
        done = self.worker().call(function, arguments, path, self.left)
        told = "done" if done else f"FAILED, see {path}"
        self.say(f"{name}: {told} after {time.monotonic() - begun:.1f} s")
        return done

    def train(self, name: str, run: Run) -> bool:
        if (self.folder(RUNS) / name / "final.pt").exists():
            return True
        if self.left < 1.2 * self.longest.get(run.steps, 0.0):
            self.say(f"{name}: not begun, {self.left:.0f} s are left")
            return False
        begun, steps = time.monotonic(), getattr(self.options, run.steps)
        settings = [*run.settings, *self.options.set]
        if steps:
            validate = -(-steps // (1 if run.steps == "branch" else 3))
            settings += [f"steps.total={steps}", f"steps.validate={validate}"]
            settings += [f"steps.save={validate}"]
        if run.first and not self.call(f"{name}-{run.first[0]}", dragoman_here, *run.first):
            return False
        recipe, folder = RECIPES / f"{run.recipe}.yaml", self.folder(RUNS) / name
        settings = for_target(recipe, settings, self.options.to)
        done = self.call(name, train_here, str(recipe), settings, str(folder))
        taken = time.monotonic() - begun
        self.longest[run.steps] = max(taken, self.longest.get(run.steps, 0.0))
        return done

    def ask(self, name: str, ask: Ask) -> bool:
        run, out = self.folder(RUNS) / name, self.folder(OUT) / ask.paper / f"{name}-{ask.name}"
        test = self.folder(TEST)
        told = f"{name}-{ask.paper}-{ask.name}"
        limit = self.options.clips
        answered = out / f"answered-{limit}"
        if answered.exists():
            return True
        done = self.call(told, ask_here, str(run), str(test), str(out), list(ask.ways), limit)
        if done:
            answered.touch()
        return done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("papers", nargs="+", choices=PLANS)
    parser.add_argument("--to", default=GERMAN, help="the target of a corpus of its own")
    parser.add_argument("--only", nargs="*", help="of the runs, these alone")
    parser.add_argument("--train", type=int, default=1, help="runs trained at a time")
    parser.add_argument("--ask", type=int, default=1, help="runs asked at a time")
    parser.add_argument("--clips", type=int, default=1000, help="of the test set")
    parser.add_argument("--seconds", type=float, default=1e6, help="for all of it")
    for steps in STEPS:
        parser.add_argument(f"--{steps}", type=int, help="updates of such runs")
    parser.add_argument("--set", nargs="*", default=[], help="settings of every run")
    work = Work(parser.parse_args())
    # Torch takes every core in every process: six side by side were slower than three.
    cores = (os.cpu_count() or 1) // (work.options.train + work.options.ask)
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores)))
    runs = plan(work.options.papers)
    if unknown := [name for name in work.options.only or () if name not in runs]:
        parser.error(f"there is no run {unknown[0]}; there are {', '.join(runs)}.")
    chosen = {n: r for n, r in runs.items() if not work.options.only or n in work.options.only}
    queue, asked = Queue(chosen), list[Future[bool]]()

    def train_all() -> None:
        while taken := queue.take():
            name, run = taken
            well = work.train(name, run)
            queue.end(name, well)
            if well:
                asked.extend(askers.submit(work.ask, name, one) for one in run.asks)

    with ThreadPoolExecutor(work.options.ask) as askers:
        with ThreadPoolExecutor(work.options.train) as trainers:  # ends first: it submits asks
            trained = [trainers.submit(train_all) for _ in range(work.options.train)]
        for one in trained:
            one.result()
    for worker in work.workers:
        worker.end()
    lost = [name for name in chosen if not queue.ended.get(name)]
    if lost:
        work.say(f"not there: {', '.join(lost)}")
    return 0 if not lost and all(one.result() for one in asked) else 1


if __name__ == "__main__":
    sys.exit(main())
