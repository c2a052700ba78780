"""What lies in a model's folder: which files a model needs, and what it can do with them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.store.catalogue import Task
from dragoman.text.model_languages import M2M, NLLB, PAIR, our_code

# Data only: no code, no pickles, no weights of another format.
NEEDED = re.compile(
    r"model\.bin|config\.json|(?:generation|preprocessor|tokenizer)_config\.json"
    r"|tokenizer\.json|special_tokens_map\.json|added_tokens\.json|vocab\.(?:json|txt)|merges\.txt"
    r"|(?:shared_|source_|target_)?vocabulary\.(?:json|txt)"
    r"|[\w.-]+\.spm|sentencepiece[\w.-]*\.model|spm\.model|spiece\.model|bpe\.codes",
    re.ASCII,
)
ENGLISH_ONLY_END = 50256  # Whisper's last token of text, where it knows one language


@dataclass(frozen=True, slots=True)
class Kind:
    """What a model can do: hear or read `languages`, write `targets` (none: what it hears)."""

    task: Task
    languages: tuple[str, ...] = ("mul",)
    targets: tuple[str, ...] = ()


def is_needed(name: str) -> bool:
    """Whether a file of a repository belongs to a model in CTranslate2's format."""
    return NEEDED.fullmatch(name) is not None


def kind_of(folder: Path, title: str = "") -> Kind | None:
    """What a folder's model can do; None if it holds none that is known.

    `title` may tell what the files do not: the pair of an OPUS model; that a Whisper was distilled
    to recognise, which it then does better than to translate.
    """
    if (folder / "model.bin").is_file():
        return _converted(folder, title or folder.name)
    if (folder / "encoder.onnx").is_file():
        return _exported(folder)
    return None


def _converted(folder: Path, title: str) -> Kind | None:
    words = _vocabulary(folder, "vocabulary")
    if {"<|startoftranscript|>", "<|translate|>", "<|endoftext|>"} <= set(words):
        return _whisper(words, title)
    words = _vocabulary(folder, "shared_vocabulary") or _vocabulary(folder, "source_vocabulary")
    if not words:
        return None
    if pair := PAIR.search(title):
        return Kind("text translation", (our_code(pair[1]),), (our_code(pair[2]),))
    matches = (form.fullmatch(word) for form in (NLLB, M2M) for word in words)
    codes = [match[1] for match in matches if match]
    languages = tuple(dict.fromkeys(map(our_code, codes))) or ("mul",)
    return Kind("text translation", languages, languages)


def _whisper(words: list[str], title: str) -> Kind:
    first, last = words.index("<|startoftranscript|>"), words.index("<|translate|>")
    languages = tuple(word.strip("<|>") for word in words[first + 1 : last])
    if "distil" in title or words.index("<|endoftext|>") == ENGLISH_ONLY_END:
        return Kind("recognition", ("en",))
    if "turbo" in title:
        return Kind("recognition", languages)
    return Kind("translation", languages, ("en",))


def _exported(folder: Path) -> Kind | None:
    config = _json(folder / "config.json")
    if not isinstance(config, dict):
        return None
    told = config.get("languages") or {}
    source, target = told.get("source") or "mul", told.get("target") or "mul"
    task: Task = "text translation" if config.get("input") == "text" else "translation"
    if source == target:
        return Kind("recognition", (source,))
    return Kind(task, (source,), tuple(target.split(",")))


def _vocabulary(folder: Path, name: str) -> list[str]:
    listed = _json(folder / f"{name}.json")
    if isinstance(listed, list):
        return [str(word) for word in listed]
    try:
        return (folder / f"{name}.txt").read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError):
        return []


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
