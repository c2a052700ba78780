"""Any model and policy of Dragoman as a SimulEval agent.

    simuleval --agent-class dragoman.evaluate.simuleval_agent.DragomanAgent \\
        --setup setup.yaml --source wavs.txt --target refs.txt --source-segment-size 1000 ...

The segment size that SimulEval feeds is the step; the setup's own `step_ms` is not used.

SimulEval counts whatever is written at once as words of their own, so a full stop that becomes
certain after its word would be a late word. `--dragoman-late-marks` says what happens to it:
`leave` it out, so that every latency is the one that `dragoman evaluate` measures, or `hold` each
word until the next begins, so that the text is the same. See docs/metrics.md.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import numpy as np
from simuleval.agents import SpeechToTextAgent
from simuleval.agents.actions import Action, ReadAction, WriteAction

from dragoman.audio.chunk import RATE, Chunk
from dragoman.errors import DragomanError
from dragoman.interpreter import Interpreter
from dragoman.setup import Setup, System


class DragomanAgent(SpeechToTextAgent):  # type: ignore[misc]
    """Hears what SimulEval sends, says what the interpreter says."""

    def __init__(self, args: Namespace) -> None:
        setup = Setup.read(Path(args.setup)) if args.setup else Setup()
        self._system = System(
            setup.with_changes(
                model=args.dragoman_model,
                policy=args.dragoman_policy,
                source=args.dragoman_from,
                target=args.dragoman_to,
            )
        )
        self._interpreter: Interpreter | None = None
        self._taken = 0  # samples of the source that the interpreter has heard
        self._writer = _Writer(args.eval_latency_unit, args.dragoman_late_marks)
        super().__init__(args)

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        parser.add_argument("--setup", help="a Dragoman setup file (YAML)")
        parser.add_argument("--dragoman-model", help="a model of the store, a folder or a function")
        parser.add_argument("--dragoman-policy", help="a policy, such as wait-k:k=3")
        parser.add_argument("--dragoman-from", help="the language that is spoken")
        parser.add_argument("--dragoman-to", help="the language to translate into")
        parser.add_argument(
            "--dragoman-late-marks",
            choices=("leave", "hold"),
            default="leave",
            help="marks that come after their word: leave them out, or hold words for them",
        )

    def reset(self) -> None:
        super().reset()
        self._interpreter = None
        self._taken = 0
        self._writer.reset()

    def policy(self, states: Any = None) -> Action:
        states = states or self.states
        if not states.source and not states.source_finished:
            return ReadAction()
        if states.source and states.source_sample_rate != RATE:
            raise DragomanError(
                f"SimulEval sends audio at {states.source_sample_rate} Hz; "
                f"give it a source list of {RATE} Hz files."
            )
        if self._interpreter is None:
            self._interpreter = self._system.interpreter()
        samples = np.asarray(states.source[self._taken :], np.float32)
        self._taken = len(states.source)
        update = self._interpreter.hear(Chunk(samples, last=states.source_finished))
        text = self._writer.write("".join(update.said), states.source_finished)
        if not text and not states.source_finished:
            return ReadAction()
        return WriteAction(text, finished=states.source_finished)


class _Writer:
    """What SimulEval is told of what was said: words, of which none can grow afterwards."""

    def __init__(self, unit: str, late_marks: str) -> None:
        self._unit, self._late_marks = unit, late_marks
        self.reset()

    def reset(self) -> None:
        self._held = ""
        self._begun = False  # a word was written, which marks could still follow

    def write(self, said: str, last: bool) -> str:
        """The words to write now, of the text that was said now."""
        if self._unit == "char":  # characters may follow each other as they like
            return said.strip()
        text = self._held_back(said, last) if self._late_marks == "hold" else self._left_out(said)
        self._begun = self._begun or bool(text)
        return text

    def _left_out(self, said: str) -> str:
        """Without the marks that belong to a word that was written before."""
        mark = len(said) if said.isspace() else len(said.split(" ", 1)[0])
        late = self._begun and not any(letter.isalnum() for letter in said[:mark])
        return said[mark if late else 0 :].strip()

    def _held_back(self, said: str, last: bool) -> str:
        """Up to the last word, which is held until another begins."""
        said = self._held + said
        end = len(said) if last else said.rstrip().rfind(" ")
        self._held = said[max(end, 0) :]
        return said[: max(end, 0)].strip()
