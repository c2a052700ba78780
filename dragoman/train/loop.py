"""The training loop, in one sitting.

Lightning's Fabric places it on one device or many machines; nothing else hides. Chance is a
function of the seed and the micro-batch's number, data order a function of the seed and the epoch:
a run that was killed goes on exactly as if it had not been.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from lightning.fabric import Fabric

from dragoman.errors import DragomanError
from dragoman.train import checkpoints
from dragoman.train.board import Board
from dragoman.train.capture import make_step
from dragoman.train.carbon import Meter
from dragoman.train.data.loader import Batch, Loader, Recut
from dragoman.train.data.mixed import Mixed
from dragoman.train.data.plan import Place, Plan, Planned
from dragoman.train.keep import kept_states
from dragoman.train.prepare import Prepared
from dragoman.train.recipe import Recipe
from dragoman.train.run import RunFolder
from dragoman.train.schedule import rate_at
from dragoman.train.state import State
from dragoman.train.tally import Tally
from dragoman.train.tasks.base import Task
from dragoman.train.trained import translation_quality

Watch = Callable[[dict[str, Any]], None]


def unwatched(line: dict[str, Any]) -> None:
    """For callers who do not watch the progress."""


class Training:
    """One run: updates, validations, checkpoints, until it is done."""

    def __init__(
        self,
        fabric: Fabric,
        recipe: Recipe,
        run: RunFolder,
        task: Task,
        data: Prepared,
        watch: Watch = unwatched,
        meter: Meter | None = None,
    ):
        self.meter, self.target = meter, data.target
        self.fabric, self.recipe, self.run, self.watch = fabric, recipe, run, watch
        self.plain_task = task
        self.step = make_step(fabric, recipe, task, self.note)
        self.task, self.optimiser = self.step.task, self.step.optimiser
        self.state = State()
        self.best_before = 0  # the best step at the last point to resume from
        self.train_set, self.dev_set, self.text_set = data.train, data.dev, data.text
        self.recut = Recut.of(data.source, data.target, recipe.seed)
        threads, resident = recipe.machine.threads, recipe.data.resident
        states = kept_states(fabric, recipe, task, data.train, self.note)
        self.loader = Loader(
            data.train, threads, resident, fabric.device, self.recut, data.text, states
        )
        self.dev_loader = Loader(data.dev, threads, "disk", fabric.device)
        self.tally = Tally()
        self.board = Board(run.folder)

    def fit(self) -> None:
        """Train to the end; resumes from the last checkpoint in the run folder, if any."""
        self.resume()
        steps, state = self.recipe.steps, self.state
        self.task.train()
        batches = self.batches()
        self.clock = time.perf_counter() - state.spent
        while state.step < self.total and not self.stopped_early():
            state.step += 1
            begun = time.perf_counter()
            rate, norm = self.update(batches)
            self.tally.elapsed += time.perf_counter() - begun
            if state.step % steps.log == 0:
                self.log(rate, norm)
                self.mind_the_time()
            if state.step % steps.validate == 0 or state.step == self.total:
                self.validate()
            if state.step % steps.save == 0 or state.step == self.total or self.stopped_early():
                self.save()
        batches.close()
        if not state.best_step:  # it was ended before its first validation
            self.validate()
            self.save()

    @property
    def total(self) -> int:
        """The number of updates, as far as it is known."""
        return self.state.end(self.recipe.steps)

    def mind_the_time(self) -> None:
        """With `steps.minutes` the end becomes known; one process decides for all."""
        self.state.spent = self.fabric.broadcast(time.perf_counter() - self.clock)
        if self.state.decide(self.recipe.steps) and self.fabric.is_global_zero:
            self.watch({"kind": "total", "total": self.total})

    def update(self, batches: Iterator[tuple[Batch, int]]) -> tuple[float, torch.Tensor]:
        """One step of the optimiser, over the micro-batches of all processes.

        Returns the learning rate and the gradient's norm.
        """
        recipe, fabric, state = self.recipe, self.fabric, self.state
        rate = rate_at(state.step, self.total, recipe.optimiser)
        self.plain_task.at_step(state.step)
        for turn in range(recipe.batch.accumulate):
            asked = time.perf_counter()
            batch, units = next(batches)
            self.tally.waited += time.perf_counter() - asked
            last = turn == recipe.batch.accumulate - 1
            # Processes average their gradients: times their number gives the sum.
            terms = self.step.learn(batch, fabric.world_size / units, last)
            self.tally.add(terms, batch)
        norm = self.step.update(rate)
        self.tally.updates += 1
        return rate, norm

    def batches(self) -> Generator[tuple[Batch, int], None, None]:
        """This process's micro-batches from where training stands, each with its update's units.

        An update takes `world_size * accumulate` batches of the plan in turn, so the number of
        processes changes who computes what, not what is computed.
        """
        state, recipe, fabric = self.state, self.recipe, self.fabric
        plan = self.plan()
        group = fabric.world_size * recipe.batch.accumulate
        units: dict[int, tuple[int, Place]] = {}

        def mine(stream: Iterator[Planned], number: int) -> Iterator[tuple[int, Planned]]:
            while planned := list(islice(stream, group)):
                total = sum(self.units_of(one) for one in planned)
                for place in range(fabric.global_rank, group, fabric.world_size):
                    units[number + place] = (total, planned[-1].place)
                    yield number + place, planned[place]
                number += group

        stream = plan.stream(Place(state.epoch, state.index))
        for batch in self.loader.batches(mine(stream, state.micro_batch)):
            total, last = units.pop(batch.number)
            state.micro_batch = (batch.number // group + 1) * group
            state.epoch, state.index = last.epoch, last.index + 1
            yield batch, total

    def plan(self) -> Plan:
        """Which items are learned from when."""
        recipe, room = self.recipe, self.recut.room
        speech = Plan(self.train_set, recipe.batch, recipe.seed, recipe.augment.speeds, room)
        if self.text_set is None:
            return speech
        text = Plan(self.text_set, recipe.batch, recipe.seed, room=room)
        return Mixed(speech, text, recipe.data.text_share)

    def units_of(self, planned: Planned) -> int:
        """Target units of a batch that maybe another process makes, as they are without dropout."""
        data = self.text_set if planned.text else self.train_set
        assert data is not None  # who plans texts has some
        return int((data.target.lengths[planned.items] + 1).sum())

    def log(self, rate: float, norm: torch.Tensor) -> None:
        """One line of means since the last one."""
        tally, world = self.tally, self.fabric.world_size
        begun = time.perf_counter()
        line = {"step": self.state.step, "kind": "train", "epoch": self.state.epoch}
        line |= tally.means(self.fabric)
        line |= {"norm": float(norm), "rate": rate}
        # The means have waited for the device: its last work counts, too.
        elapsed = tally.elapsed + time.perf_counter() - begun
        line["updates_per_second"] = tally.updates / elapsed
        line["hours_per_second"] = tally.seconds * world / 3600 / elapsed
        line["waited"] = tally.waited / elapsed  # share of the time: is data the limit?
        self.tally = Tally()
        self.write(line)

    def validate(self) -> None:
        """Loss on the dev set, and how it translates; remember the best, keep the weights."""
        self.task.eval()
        tally = Tally()
        with torch.no_grad():
            for batch in self.dev_loader.batches(self.dev_plan()):
                terms = self.task(batch.to(self.fabric.device))
                tally.add(terms, batch, counted=batch.number >= 0)
        self.task.train()
        line = {"step": self.state.step, "kind": "dev", "epoch": self.state.epoch}
        line |= tally.means(self.fabric)
        if self.recipe.steps.translate:  # one process does it; all must agree on what is best
            line |= self.fabric.broadcast(self.translate() if self.fabric.is_global_zero else {})
        self.keep_best(line)
        self.write(line)

    def translate(self) -> dict[str, float]:
        """BLEU and chrF of greedy translations of some dev items."""
        self.plain_task.eval()
        some = self.dev_set.subset(range(min(self.recipe.steps.translate, len(self.dev_set))))
        with self.fabric.autocast():
            scores = translation_quality(
                self.plain_task, some, self.target, self.fabric.device, self.recipe.batch
            )
        self.plain_task.train()
        return scores

    def dev_plan(self) -> Iterator[tuple[int, Planned]]:
        """This process's dev batches. All processes must make as many calls of a distributed
        net, so one that has run out repeats a batch, which its number -1 marks as uncounted."""
        fabric = self.fabric
        planned = list(Plan(self.dev_set, self.recipe.batch, self.recipe.seed).once())
        for first in range(0, len(planned), fabric.world_size):
            number = first + fabric.global_rank
            counted = number < len(planned)
            yield (number if counted else -1), planned[number % len(planned)]

    def keep_best(self, line: dict[str, Any]) -> None:
        state = self.state
        self.judge(line)
        line["best"], line["best_step"] = state.best, state.best_step
        path = checkpoints.path_for(self.run.folder, "weights", state.step)
        checkpoints.save(self.fabric, path, {"task": self.task})

    def judge(self, line: dict[str, Any]) -> None:
        """Whether a validation is the best so far, by the measure of the recipe."""
        state, by = self.state, self.recipe.steps.best
        known = state.best_step and self.comparable(state.best_step)
        ahead = state.best - line[by] if by == "loss" else line[by] - state.best
        if known and not ahead > 0:
            state.stale += 1
        else:
            state.best, state.best_step, state.stale = line[by], line["step"], 0

    def judge_anew(self) -> None:
        """The best so far by another measure than it was chosen by, of those that can be had."""
        state, by = self.state, self.recipe.steps.best
        state.best_by, state.best_step, state.stale = by, 0, 0
        kept = dict(checkpoints.numbered(self.run.folder, "weights"))
        for line in self.run.metrics():
            past = line["step"] <= state.step and line["step"] in kept
            if line["kind"] == "dev" and past and by in line and self.comparable(line["step"]):
                self.judge(line)

    def comparable(self, step: int) -> bool:
        """Whether the losses of another step were the sum of the same terms as today's."""
        return self.plain_task.stage(step) == self.plain_task.stage(self.state.step)

    def final_weights(self) -> list[Path]:
        """The checkpoints whose average a run ends with: around the best, of its own stage."""
        folder, best = self.run.folder, self.state.best_step
        found = dict(checkpoints.numbered(folder, "weights"))
        if best not in found:
            raise DragomanError(
                f"{folder} has lost the weights of step {best}, its best; bring "
                f"weights-{best:08d}.pt back."
            )
        steps = sorted(step for step in found if self.comparable(step))
        return [found[n] for n in checkpoints.around(steps, best, self.recipe.steps.average)]

    def stopped_early(self) -> bool:
        """Whether nothing has become better for long; not before all losses count that will."""
        tired = 0 < self.recipe.steps.patience <= self.state.stale
        return tired and self.comparable(self.total)

    def save(self) -> None:
        """A point to resume from."""
        path = checkpoints.path_for(self.run.folder, "resume", self.state.step)
        content = {"task": self.task, "optimiser": self.optimiser, "state": asdict(self.state)}
        # With 16-mixed, by how much losses are scaled, which training finds out as it goes.
        content["precision"] = self.fabric.strategy.precision.state_dict()
        checkpoints.save(self.fabric, path, content)
        if self.fabric.is_global_zero:
            checkpoints.prune_resumes(self.run.folder)
            self.prune_weights()
        if self.meter is not None:
            self.meter.write()

    def prune_weights(self) -> None:
        """Drop weights that no average needs, whichever of the points to resume from is gone on
        with: each of them has a best of its own."""
        bests = {self.state.best_step, self.best_before}
        checkpoints.prune_weights(self.run.folder, bests, self.recipe.steps.average)
        self.best_before = self.state.best_step

    def resume(self) -> None:
        """Go back to the last checkpoint; a damaged one gives way to the one before."""
        faults = []
        for _, path in reversed(checkpoints.numbered(self.run.folder, "resume")):
            content = {"task": self.task, "optimiser": self.optimiser, "state": {}}
            try:
                more = self.fabric.load(path, content)
            except Exception as error:  # torch and pickle have many for a damaged file
                why = (str(error).splitlines() or [type(error).__name__])[0]
                faults.append(f"{path.name} is damaged ({why})")
                self.note(faults[-1])
                continue
            self.state = State(**content["state"])
            if scale := more.get("precision"):
                self.fabric.strategy.precision.load_state_dict(scale)
            self.step.resumed()
            break
        else:
            if faults:  # to begin anew would throw away all that the run has made
                raise DragomanError(
                    f"{self.run.folder} cannot be gone on with: {'; '.join(faults)}. See whether "
                    "the disk is well and try again; without its resume-*.pt it begins anew."
                )
        self.best_before = self.state.best_step
        if self.state.best_by != self.recipe.steps.best:
            self.judge_anew()
        if self.fabric.is_global_zero:
            self.run.forget_after(self.state.step)
            checkpoints.drop_weights_after(self.run.folder, self.state.step)

    def note(self, text: str) -> None:
        if self.fabric.is_global_zero:
            self.watch({"kind": "note", "text": text})

    def write(self, line: dict[str, Any]) -> None:
        if self.fabric.is_global_zero:
            self.run.log(line)
            self.board.show(line)
            self.watch(line)
        if not math.isfinite(line["loss"]):
            raise DragomanError(
                f"The loss is {line['loss']} at step {line['step']}: training has diverged. "
                "Lower optimiser.rate, or lengthen optimiser.warmup."
            )
