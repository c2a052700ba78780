"""A recipe: everything that a training run is a function of, as typed settings.

    net: conformer
    task: offline
    data: {train: [packs/train], dev: [packs/dev], source: en, target: de}
    ...

Read from YAML (`base:` names a recipe to start from), changed by `key=value` on the command line.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from dragoman.errors import DragomanError
from dragoman.train.settings import BelowOne, Count, Level, Share, Size, Whole, convert, merge
from dragoman.yaml_text import parse_yaml, read_yaml

Speed = Annotated[float, Meta(ge=0.5, le=2)]


@dataclass(frozen=True)
class Data:
    """Where the speech and text come from. Each path is a pack, or a corpus to be packed."""

    train: Annotated[tuple[str, ...], Meta(min_length=1)]
    dev: tuple[str, ...] = ()
    source: str = "en"
    target: str = "de"  # or several, `de,es`: one net, with a tag that says which
    dev_items: Whole = 500  # held out of the training data where there is no dev set
    min_seconds: Level = 0.3
    max_seconds: Size = 30.0
    max_units: Whole = 400  # longer texts are skipped and counted
    fault_limit: Share = 0.02  # a larger share of faulty items stops the run
    packs: str = "packs"  # where corpora are packed
    resident: Literal["disk", "host", "device"] = "disk"  # where the sound waits
    keep_states: bool = False  # what a frozen encoder makes of it waits there instead
    ends: Literal["words", "phones"] = "words"  # whose true ends oracles and heads are given
    text: tuple[str, ...] = ()  # parallel text alone, from which the task `joint` learns, too
    text_share: BelowOne = 0.25  # of all batches

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(code.strip() for code in self.target.split(","))


@dataclass(frozen=True)
class Units:
    """A vocabulary. With `suffix` a word's last unit carries its end: no look at the next word."""

    kind: Literal["unigram", "bpe", "char"] = "unigram"
    size: Annotated[int, Meta(ge=8)] = 8000
    suffix: bool = True
    plain: bool = False  # lower case without punctuation, as speech is
    model: str = ""  # a trained SentencePiece model to use as it is
    dropout: BelowOne = 0.0  # share of merges that training leaves out at random (BPE-dropout)

    def __post_init__(self) -> None:
        if self.dropout and self.kind != "bpe":
            raise ValueError(f"dropout leaves out merges, which only bpe has, not {self.kind}")


@dataclass(frozen=True)
class Vocabulary:
    source: Units = Units("bpe", 5000)
    target: Units = Units("unigram", 8000)
    joint: bool = False  # one vocabulary for both languages, as `target` says

    def __post_init__(self) -> None:
        if self.joint:
            object.__setattr__(self, "source", replace(self.target, dropout=0.0))


@dataclass(frozen=True)
class Augment:
    """What is done to the sound while training; shares are of utterances."""

    spec: Literal["none", "LB", "LD"] = "LD"
    speeds: Annotated[tuple[Speed, ...], Meta(min_length=1)] = (1.0,)
    effects: Share = 0.0  # echo, tilt, pitch, tempo (where speeds differ) as SoX would
    rooms: Share = 0.0
    noise: Share = 0.0


@dataclass(frozen=True)
class Batch:
    seconds: Size = 400.0  # of speech, padding included, per process and micro-batch
    accumulate: Whole = 1  # micro-batches per update and process
    buckets: Whole = 12  # shapes that batches are padded to


@dataclass(frozen=True)
class Optimiser:
    kind: Literal["adam", "adamw"] = "adam"
    rate: Level = 2e-3  # the peak
    schedule: Literal["inverse_sqrt", "cosine", "trapezoid", "constant"] = "inverse_sqrt"
    warmup: Count = 25_000
    betas: tuple[BelowOne, BelowOne] = (0.9, 0.98)
    eps: Level = 1e-8
    weight_decay: Level = 0.0
    clip: Level = 10.0  # the longest gradient; 0: of any length


@dataclass(frozen=True)
class Steps:
    """When things happen, counted in updates."""

    total: Whole = 100_000
    minutes: Level = 0.0  # of training after which it ends, if that comes first; 0: no limit
    validate: Whole = 1000
    save: Whole = 1000  # resume points
    patience: Count = 10  # validations without a better one before stopping; 0: never
    average: Whole = 7  # checkpoints around the best that make the final weights
    log: Whole = 50
    translate: Count = 0  # dev items to translate at every validation, for BLEU and chrF
    best: Literal["loss", "bleu", "chrf"] = "loss"  # by what one validation is better than another

    def __post_init__(self) -> None:
        if self.best != "loss" and not self.translate:
            raise ValueError(
                f"the best by {self.best} is found by translating: set translate to a number of "
                "dev items, such as 400, or best to loss"
            )


@dataclass(frozen=True)
class Machine:
    precision: Literal["32-true", "bf16-mixed", "bf16-true", "16-mixed"] = "32-true"
    accelerator: str = "auto"
    devices: int | str = 1
    nodes: Whole = 1
    strategy: str = "auto"  # any of Lightning's: ddp, ddp_find_unused_parameters_true, fsdp
    capture: bool | Literal["auto"] = "auto"  # updates as CUDA graphs; auto: where there is a GPU
    compile: str = ""  # a mode of torch.compile (default, max-autotune, ...) or a backend; or off
    threads: Whole = 4  # that prepare batches
    carbon: bool = True  # account energy with codecarbon where it is installed


@dataclass(frozen=True)
class Start:
    """Weights to begin with: parts of another run, `there:here` where they have another name."""

    run: str
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Recipe:
    net: str
    data: Data
    task: str = "offline"
    net_settings: dict[str, Any] = field(default_factory=dict)
    task_settings: dict[str, Any] = field(default_factory=dict)
    vocabulary: Vocabulary = Vocabulary()
    augment: Augment = Augment()
    batch: Batch = Batch()
    optimiser: Optimiser = Optimiser()
    steps: Steps = Steps()
    machine: Machine = Machine()
    init: str = ""  # a run or checkpoint whose matching weights to start from
    init_parts: tuple[str, ...] = ()  # only these parts of it, e.g. the encoder; () is all
    init_more: tuple[Start, ...] = ()  # further runs to take parts of
    freeze: tuple[str, ...] = ()  # parts of the net that stay as they are
    seed: Annotated[int, Meta(ge=0, lt=2**40)] = 1

    def __post_init__(self) -> None:
        if self.steps.minutes and self.optimiser.schedule == "cosine":
            raise ValueError("a cosine must know its end in updates: it cannot go by steps.minutes")


def read_recipe(path: Path, changes: tuple[str, ...] = ()) -> Recipe:
    """A recipe file with `key.key=value` changes, checked down to every key and value."""
    data = with_base(path)
    for change in changes:
        data = merge(data, parse_change(change))
    return convert(Recipe, data)


def with_base(path: Path, above: tuple[Path, ...] = ()) -> dict[str, Any]:
    """A recipe file as plain data, with its `base` merged underneath."""
    if not path.is_file():
        raise DragomanError(f"There is no recipe {path}.")
    if path.resolve() in above:
        raise DragomanError(f"The recipe {path} is its own base; begin from another one.")
    try:
        data = read_yaml(path)
    except OSError as error:
        raise DragomanError(f"Cannot read the recipe {path}: {error.strerror}.") from error
    if not isinstance(data, dict):
        raise DragomanError(f"{path} is not a recipe: it must hold settings (key: value).")
    base = data.pop("base", None) or ""
    if not isinstance(base, str):
        raise DragomanError(f"The base of {path} is {base!r}; name one recipe.")
    return merge(with_base(path.parent / base, (*above, path.resolve())), data) if base else data


def parse_change(text: str) -> dict[str, Any]:
    """`steps.total=500` as {"steps": {"total": 500}}; `init=` is an empty word."""
    keys, equals, value = text.partition("=")
    if not equals or not keys:
        raise DragomanError(f"'{text}' is not a change; write key=value, e.g. steps.total=500.")
    hint = """; a name with ? or : needs quotes: 'data.train=["voice:text.tsv?limit=9"]'"""
    hint = hint if "?" in value else ""
    tree: Any = parse_yaml(value, f"The value in '{text}'", hint) if value else ""
    for key in reversed(keys.split(".")):
        tree = {key: tree}
    return tree
