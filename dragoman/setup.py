"""A setup: which model, languages, policy and knobs. One YAML file holds it; `translate`, `live`,
`evaluate` and the SimulEval agent all take it, and `tune` writes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from difflib import get_close_matches
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, get_type_hints

from dragoman.audio.ear import Ear
from dragoman.audio.vad import Vad
from dragoman.clock import Clock
from dragoman.detectors import check_detector, make_detector
from dragoman.errors import DragomanError
from dragoman.files import whole_file
from dragoman.interpreter import Interpreter
from dragoman.models import Model
from dragoman.models.choose import AUTO, choose
from dragoman.models.load import is_cascade, is_function, load_model
from dragoman.models.options import Compute, Device, Options
from dragoman.policies import make_policy
from dragoman.text.languages import find_language
from dragoman.trace import Recorder
from dragoman.yaml_text import read_yaml

# The policy and the step for a latency budget, widest budget last; `results/` has the figures.
TUNED: tuple[tuple[float, str, float], ...] = (
    (1300.0, "agreeatt:old=600,alone=1350,sure=0.8", 500.0),
    (2000.0, "agreeatt:old=1500,alone=3000,sure=0.6", 500.0),
)

# The same for a cascade, for StreamLAAL over the sentences of speeches. What two drafts agree on is
# said at once; what they do not, when it is old enough.
TUNED_CASCADE: tuple[tuple[float, str, float], ...] = (
    (1300.0, "agreeatt:old=0,alone=500", 640.0),
    (1700.0, "agreeatt:old=0,alone=1000", 640.0),
    (2000.0, "agreeatt:old=0,alone=2000", 640.0),
)

# Below 40 ms a chunk holds less than one state of any encoder; above a minute nothing is live.
STEP_MS = (40.0, 60_000.0)
MOST_BEAMS = 64
LANGUAGES = ("source", "target")
MOST_THREADS = 256  # beyond, thread pools fail in ways nobody can read


def _told(kind: type[Setup]) -> type[Setup]:
    """A setting that there is not is answered with a sentence, which Python does not do."""
    begin = kind.__init__

    @wraps(begin)
    def begin_checked(self: Setup, *values: Any, **settings: Any) -> None:
        _check_keys(settings, "There is no setting")
        begin(self, *values, **settings)

    kind.__init__ = begin_checked  # type: ignore[method-assign]
    return kind


@_told
@dataclass(frozen=True)
class Setup:
    """Everything that decides what is said when; the audio and the clock come from outside."""

    model: str = AUTO  # a name, or what fits the languages
    source: str | None = None  # language code; None: detect
    target: str = "en"
    policy: str = "local-agreement"
    detector: str = "fixed"
    word_ms: float = 280.0  # the fixed detector's step
    step_ms: float = 1000.0  # audio per chunk
    utterance_pause_ms: float | None = None
    beams: int = 5  # texts that the search for a draft follows; 1 is the cheapest
    threads: int = 0
    device: Device = "auto"
    compute: Compute | None = None  # None: int8 on the CPU, float16 on a GPU

    def __post_init__(self) -> None:
        """A policy or a detector that does not exist is told before any model is loaded."""
        _check_kinds(vars(self))
        make_policy(self.policy)
        check_detector(self.detector, self.word_ms)
        if not STEP_MS[0] <= self.step_ms <= STEP_MS[1]:
            raise DragomanError(
                f"A step is {STEP_MS[0]:g} to {STEP_MS[1]:g} ms long, not {self.step_ms:g}."
            )
        if not 1 <= self.beams <= MOST_BEAMS:
            raise DragomanError(f"A search follows 1 to {MOST_BEAMS} beams, not {self.beams}.")
        if not 0 <= self.threads <= MOST_THREADS:
            raise DragomanError(
                f"A model has 0 (all) to {MOST_THREADS} threads, not {self.threads}."
            )
        if self.utterance_pause_ms is not None and not self.utterance_pause_ms > 0:
            raise DragomanError(f"A pause is longer than 0 ms, not {self.utterance_pause_ms:g}.")
        Options(self.threads, self.beams, self.device, self.compute)

    def with_changes(self, **changes: Any) -> Setup:
        """The same setup with every value that is not None exchanged; languages may be named."""
        _check_keys(changes, "There is no setting")
        given = {key: value for key, value in changes.items() if value is not None}
        _check_kinds(given)
        return replace(self, **_with_codes(given))

    def settled(self) -> Setup:
        """The same setup with its model named."""
        if self.model != AUTO:
            return self
        return replace(self, model=choose(self.source, self.target))

    @property
    def tuned_rows(self) -> tuple[tuple[float, str, float], ...]:
        """What was tuned for such a model: latency budget, policy, step (ms)."""
        if self.model == AUTO:
            cascade = self.target not in ("en", self.source)
        else:
            cascade = is_cascade(self.model)
        return TUNED_CASCADE if cascade else TUNED

    def tuned(self, budget_ms: float) -> Setup:
        """The same setup with the policy that was tuned for a latency of at most this."""
        fitting = [row for row in self.tuned_rows if row[0] <= budget_ms]
        if not fitting:
            wanted, least = budget_ms / 1000, self.tuned_rows[0][0] / 1000
            raise DragomanError(
                f"No policy is tuned for less than {least:g} s, and {wanted:g} s is less.",
                advice="find one for your corpus with 'dragoman tune', or name one (--policy).",
            )
        _, policy, step_ms = fitting[-1]
        return replace(self, policy=policy, step_ms=step_ms)

    @classmethod
    def read(cls, path: Path) -> Setup:
        """Read a setup from YAML; languages may be named. An unknown key or a wrong type is an
        error."""
        try:
            values = read_yaml(path)
        except OSError as error:
            raise DragomanError(f"Cannot read the setup {path}: {error.strerror}.") from error
        if not isinstance(values, dict):
            raise DragomanError(f"{path} should hold lines of 'key: value'.")
        return cls._checked(values, path)

    @classmethod
    def _checked(cls, values: dict[str, Any], path: Path) -> Setup:
        import msgspec

        _check_keys(values, f"{path} has an unknown key")
        try:
            setup = msgspec.convert(values, cls, strict=True)
        except msgspec.ValidationError as error:
            raise DragomanError(f"{path}: {error}.{_about_no(values)}") from error
        try:
            return replace(setup, **_with_codes({name: getattr(setup, name) for name in LANGUAGES}))
        except DragomanError as error:
            raise DragomanError(f"{path}: {error.what}", advice=error.advice) from error

    def write(self, path: Path) -> None:
        """Write the setup so that `read` returns it."""
        import yaml

        with whole_file(path) as file:
            yaml.safe_dump(asdict(self), file, sort_keys=False)


def _check_keys(values: dict[str, Any], problem: str) -> None:
    known = [field.name for field in fields(Setup)]
    for key in values:
        if key not in known:
            near = get_close_matches(str(key), known, n=1)
            hint = f"Did you mean '{near[0]}'?" if near else f"Keys are: {', '.join(known)}."
            raise DragomanError(f"{problem} '{key}'. {hint}")


def _with_codes(values: dict[str, Any]) -> dict[str, Any]:
    """The same settings, languages by their codes, whatever they were called."""
    named = {name: values[name] for name in LANGUAGES if values.get(name) is not None}
    return values | {name: find_language(language).code for name, language in named.items()}


def _about_no(values: dict[str, Any]) -> str:
    """To YAML the code of Norwegian is a truth value."""
    name = next((name for name in LANGUAGES if values.get(name) is False), None)
    return f' Norwegian is {name}: "no", in quotes.' if name else ""


def _check_kinds(values: dict[str, Any]) -> None:
    import msgspec

    kinds = get_type_hints(Setup)
    for key, value in values.items():
        try:
            msgspec.convert(value, kinds[key], strict=True)
        except msgspec.ValidationError as error:
            raise DragomanError(f"The setting {key}={value!r} is not possible: {error}.") from error


class System:
    """A setup with its model loaded, ready to open interpreters."""

    def __init__(self, setup: Setup, model: Model | None = None) -> None:
        self.setup = setup if model is not None else setup.settled()
        self._given = model

    @cached_property
    def model(self) -> Model:
        return self._given or load_model(
            self.setup.model,
            threads=self.setup.threads,
            beams=self.setup.beams,
            device=self.setup.device,
            compute=self.setup.compute,
        )

    @property
    def device(self) -> str:
        """Where the model is, which is loaded for that."""
        device: str = getattr(self.model, "device", "cpu")
        return device

    @cached_property
    def vad(self) -> Vad | None:
        """What tells speech from silence. A model of the user's own gets all sound as it is."""
        own = self._given is not None or is_function(self.setup.model)
        if own:
            return None
        if self.device == "cpu":
            return Vad.load()
        from dragoman.audio.vad_gpu import GpuVad

        return GpuVad.load()

    @property
    def transcript_language(self) -> str | None:
        """Which language a transcript is in, where that is known before anybody speaks."""
        stream = self.model.open(self.setup.source, self.setup.target)
        return getattr(stream, "through", None) or self.setup.source

    def changed(self, **changes: Any) -> System:
        """The same model, loaded as it is, under other settings of the loop."""
        other = System(self.setup.with_changes(**changes), self._given)
        other.__dict__.update(model=self.model, vad=self.vad)
        return other

    def _new_ear(self) -> Ear | None:
        """For one speaker; a model of the user's own may bring it, by a method `ear`."""
        bring: Callable[[], Ear] | None = getattr(self.model, "ear", None)
        if bring is not None:
            return bring()
        return Ear(self.vad.stream()) if self.vad else None

    def interpreter(
        self,
        record: Recorder | None = None,
        clock: Clock | None = None,
        *,
        transcript: bool = False,
        recording: str = "",
        start_ms: float = 0.0,
    ) -> Interpreter:
        """An interpreter for one speaker; `transcript`: what was spoken is wanted too.

        `recording` and `start_ms` say what is heard, to a detector that knows its word ends.
        """
        setup = self.setup
        return Interpreter(
            self.model,
            make_policy(setup.policy),
            source=setup.source,
            target=setup.target,
            detector=make_detector(
                setup.detector, setup.word_ms, recording=recording, start_ms=start_ms
            ),
            ear=self._new_ear(),
            transcript=transcript,
            clock=clock,
            record=record,
            utterance_pause_ms=setup.utterance_pause_ms,
        )
