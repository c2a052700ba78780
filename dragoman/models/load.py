"""From a name to a model: one of the store's, a folder, or a function of the user's own.

A folder says what kind of model it holds. A new family is one line in `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from inspect import signature
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.errors import DragomanError
from dragoman.models.base import Model
from dragoman.models.choose import with_recogniser
from dragoman.models.kind import kind_of
from dragoman.models.memory import refuse_too_large
from dragoman.models.options import Compute, CpuOnlyError, Device, Options
from dragoman.own import find_own, own_told

if TYPE_CHECKING:
    from dragoman.models.cascade.translator import Translator
    from dragoman.models.exported.config import ExportedNet
    from dragoman.models.moonshine.trained import Settings

HUB = "hub:"  # what the name of a model of the hub begins with
INTERFACE = ("name", "features", "hears", "speaks", "open", "hear", "draft", "commit")  # of `Model`

# Kinds of models that hear, and of those that translate text: what loads a folder, called with the
# folder, the name and the options.
KINDS = {
    "whisper": "dragoman.models.whisper.model:WhisperModel.load",
    "whisper-onnx": "dragoman.models.whisper.from_onnx:load",
    "moonshine": "dragoman.models.moonshine.model:MoonshineModel.load",
    "moonshine-net": "dragoman.models.moonshine.trained:TrainedMoonshine.load",
    "grafted": "dragoman.models.grafted.model:GraftedModel.load",
    "exported": "dragoman.models.exported.model:ExportedModel.load",
    "run": "dragoman.train.running:load_run",
}
TRANSLATORS = {
    "text": "dragoman.models.cascade.text_model:TextModel.load",
    "exported-text": "dragoman.models.cascade.text_net:TextNet.load",
}


def load_model(
    name: str,
    *,
    threads: int = 0,
    beams: int = 5,
    device: Device = "auto",
    compute: Compute | None = None,
) -> Model:
    """Load a model.

    `name` is an entry of the store (`dragoman models list`), a folder with a model,
    `package.module:function` where the function returns a Model, or RECOGNISER+TRANSLATOR: a model
    that writes down what it hears, and one that translates text.
    `threads` 0 leaves the number to the library; `beams` is how wide the search for a draft is.
    """
    return _load(name, Options(threads, beams, device, compute))


def _load(name: str, options: Options) -> Model:
    recogniser, translator = _halves(name)
    if translator:
        return _cascade(name, recogniser, translator, options)
    if is_function(name):
        return _own(name)
    model: Model = _from_folder(name, options, KINDS)
    return model


def _cascade(name: str, recogniser: str, translator: str, options: Options) -> Model:
    """Both halves run where the options say. One that cannot run on a GPU does not keep the other
    from it."""
    from dragoman.models.cascade.model import CascadeModel

    halves: list[Callable[[Options], Any]]
    halves = [partial(load_translator, translator), partial(_load, recogniser)]
    loaded: list[Any] = []
    refused: list[CpuOnlyError] = []
    for load in halves:
        try:
            loaded.append(load(options))
        except CpuOnlyError as error:
            loaded.append(None)
            refused.append(error)
    if len(refused) == len(halves):
        raise refused[-1]
    on_cpu = replace(options, device="cpu", compute=None)
    second, first = (
        load(on_cpu) if made is None else made for made, load in zip(loaded, halves, strict=True)
    )
    return CascadeModel(name, first, second)


def load_translator(name: str, options: Options) -> Translator:
    """Load what translates text."""
    translator: Translator = _from_folder(name, options, TRANSLATORS)
    return translator


def _from_folder(name: str, options: Options, kinds: dict[str, str]) -> Any:
    folder = _folder(name)
    kind = kind_of(folder)
    if kind not in kinds and kind in TRANSLATORS:
        raise DragomanError(f"{folder} holds a net that reads text; it cannot hear.")
    if kind not in kinds and kind in KINDS:
        raise DragomanError(f"{folder} holds a net that hears speech; it cannot read text.")
    load = _loader(folder, kind, kinds)
    refuse_too_large(folder, name)
    return load(folder, name, options)


def exported_net(name: str) -> ExportedNet | Settings | None:
    """What a folder with a net of the workshop says about itself; None for every other model.

    Of a cascade, that is its text net.
    """
    recogniser, translator = _halves(name)
    folder = Path(translator or recogniser).expanduser()
    kind = kind_of(folder) if folder.is_dir() else None
    if kind == "moonshine-net":
        from dragoman.models.moonshine.trained import Settings

        return Settings.read(folder)
    if kind not in ("exported", "exported-text", "grafted"):
        return None
    from dragoman.models.exported.config import ExportedNet

    return ExportedNet.read(folder)


def is_function(name: str) -> bool:
    """Whether a model, or the recogniser of a cascade, is made by a function of the user's own."""
    recogniser, _ = _halves(name)
    if recogniser.startswith(HUB):
        return False
    return ":" in recogniser and not Path(recogniser).expanduser().exists()


def is_cascade(name: str) -> bool:
    """Whether a name is that of two models, one behind the other."""
    return bool(_halves(name)[1])


def _halves(name: str) -> tuple[str, str]:
    """The two names of a cascade, or the only one and nothing."""
    if name and Path(name).expanduser().exists():
        return name, ""
    recogniser, plus, translator = name.partition("+")
    if not recogniser or (plus and not translator):  # an empty path would be this very folder
        raise _half(name, recogniser, translator)
    return recogniser, translator


def _half(name: str, recogniser: str, translator: str) -> DragomanError:
    """What is missing of RECOGNISER+TRANSLATOR, and what would be whole."""
    if recogniser:
        return DragomanError(
            f"'{name}' is half a name: a translator is missing behind the +, such as "
            f"{recogniser}+mt-en.",
            advice="'dragoman models list' shows them as 'text'.",
        )
    if translator:
        return DragomanError(
            f"'{name}' is half a name: a recogniser is missing before the +.",
            advice=f"try {with_recogniser(translator)}.",
        )
    return DragomanError(
        f"'{name}' is not the name of a model.",
        advice="'dragoman models list' shows which there are.",
    )


def _folder(name: str) -> Path:
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    from dragoman.store import get

    return get(name)


def _loader(folder: Path, kind: str | None, known: dict[str, str]) -> Any:
    if kind not in known:
        what = "no model that Dragoman knows"
        if kind:
            what = f"a model of the kind '{kind}', which Dragoman does not know"
        kinds = ", ".join({**KINDS, **TRANSLATORS})
        raise DragomanError(f"{folder} holds {what}; kinds are: {kinds}.")
    module, _, name = known[kind].partition(":")
    return attrgetter(name)(import_module(module))


def _own(name: str) -> Model:
    module, _, function = name.partition(":")
    make = find_own(module, function, f"model function '{name}'")
    try:
        signature(make).bind()
    except (TypeError, ValueError) as error:
        raise DragomanError(
            f"'{name}' is not a function that makes a model without arguments ({error})."
        ) from error
    with own_told():
        model: Model = make()
    lacking = [member for member in INTERFACE if not hasattr(model, member)]
    if lacking == [*INTERFACE]:
        raise DragomanError(f"'{name}' makes no model but {type(model).__name__!r}.")
    if lacking:
        raise DragomanError(f"'{name}' makes no model: it lacks {', '.join(lacking)}.")
    return model
