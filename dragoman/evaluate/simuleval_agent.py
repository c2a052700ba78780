"""Any model and policy of Dragoman as a SimulEval agent.

    simuleval --agent-class dragoman.evaluate.simuleval_agent.DragomanAgent \\
        --setup setup.yaml --source wavs.txt --target refs.txt --source-segment-size 1000 ...

The segment size that SimulEval feeds is the step; the setup's own `step_ms` is not used.
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
        super().__init__(args)

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        parser.add_argument("--setup", help="a Dragoman setup file (YAML)")
        parser.add_argument("--dragoman-model", help="a model of the store, a folder or a function")
        parser.add_argument("--dragoman-policy", help="a policy, such as wait-k:k=3")
        parser.add_argument("--dragoman-from", help="the language that is spoken")
        parser.add_argument("--dragoman-to", help="the language to translate into")

    def reset(self) -> None:
        super().reset()
        self._interpreter = None
        self._taken = 0

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
        text = "".join(update.said).strip()
        if not text and not states.source_finished:
            return ReadAction()
        return WriteAction(text, finished=states.source_finished)
