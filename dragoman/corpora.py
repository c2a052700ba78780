"""Corpora in the layouts people have, read as one list of clips.

A clip is a piece of a recording with its text in some languages. Layouts are told apart by what
lies at the path: a TSV or JSONL file, a CoVoST TSV, a MuST-C or Europarl-ST folder, or SimulEval's
two lists.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError, yaml_fault

MOST_CHARACTERS = 1 << 30
"""Of a cell: the text of a whole talk may stand in one."""
_ESCAPED = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class Clip:
    """A piece of a recording, and what is said in it by language code."""

    index: int
    audio: Path
    texts: dict[str, str]
    start: float | None = None  # seconds
    end: float | None = None


def read_corpus(path: Path, source: str, target: str, references: Path | None = None) -> list[Clip]:
    """Every clip of a corpus that has a text in the target language.

    `references` is SimulEval's target list; `path` is then its source list.
    """
    clips = read_clips(path, source, target, references)
    missing = sorted({str(clip.audio) for clip in clips if not clip.audio.is_file()})
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise DragomanError(f"The corpus {path} names audio that is not there: {missing[0]}{more}.")
    return clips


def read_clips(path: Path, source: str, target: str, references: Path | None = None) -> list[Clip]:
    """The same, whether or not the audio is there."""
    if not path.exists():
        raise DragomanError(f"There is no corpus at {path}.")
    clips = list(_layout(path, source, target, references))
    if not clips:
        raise DragomanError(f"The corpus {path} is empty.")
    return clips


def _layout(path: Path, source: str, target: str, references: Path | None) -> Iterator[Clip]:
    if references is not None:
        return _simuleval(path, references, target)
    if path.is_dir():
        return _folder(path, source, target)
    if path.suffix in {".jsonl", ".json"}:
        return _jsonl(path, target)
    if path.suffix in {".yaml", ".yml"}:
        return _must_c(path, source, target)
    return _tsv(path, source, target)


def _folder(path: Path, source: str, target: str) -> Iterator[Clip]:
    """A MuST-C split (`txt/SPLIT.yaml`) or a Europarl-ST split (`segments.lst`)."""
    yamls = sorted([*path.glob("txt/*.yaml"), *path.glob("*.yaml")])
    if len(yamls) == 1:
        return _must_c(yamls[0], source, target)
    if (path / "segments.lst").is_file():
        return _europarl_st(path, source, target)
    raise DragomanError(
        f"{path} is a folder in no layout known here: MuST-C splits hold txt/SPLIT.yaml, "
        f"Europarl-ST splits hold segments.lst."
    )


def _tsv(path: Path, source: str, target: str) -> Iterator[Clip]:
    """A header with `audio`, optional `start` and `end`, and a column per language; or CoVoST."""
    csv.field_size_limit(MOST_CHARACTERS)
    with _open(path, newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        names = rows.fieldnames or []
        if "audio" in names:
            _require_text(path, names, target)
            wanted = _language_columns(names)[target]
            for index, row in enumerate(rows):
                number = rows.reader.line_num  # empty lines are passed over
                _require_value(path, row[wanted], target, number)
                yield _table_clip(path, index, row, number)
        elif "path" in names and ("translation" in names or "sentence" in names):
            for index, row in enumerate(rows):
                if not row["path"]:
                    raise DragomanError(_torn(path, rows.reader.line_num))
                yield _covost_clip(path, index, row, source, target)
        else:
            raise DragomanError(
                f"{path} has no header Dragoman knows: it needs a column 'audio' and one named "
                f"'{target}', or CoVoST's 'path' and 'translation'."
            )


def _jsonl(path: Path, target: str) -> Iterator[Clip]:
    import msgspec

    with _open(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = msgspec.json.decode(line, type=dict[str, Any])
            except msgspec.DecodeError as error:
                raise DragomanError(f"Line {number} of {path} is not JSON ({error}).") from error
            if not isinstance(row.get("audio"), str) or not row["audio"]:
                raise DragomanError(f"Line {number} of {path} names no 'audio'.")
            _require_text(path, row, target)
            _require_value(path, row[_language_columns(row)[target]], target, number)
            yield _table_clip(path, number - 1, row, number)


def _table_clip(path: Path, index: int, row: dict[str, Any], number: int) -> Clip:
    if not row["audio"] or None in row:
        raise DragomanError(_torn(path, number))
    times = {}
    for name in ("start", "end"):
        if row.get(name) not in (None, ""):
            try:
                times[name] = float(row[name])
            except (TypeError, ValueError):
                raise DragomanError(
                    f"Line {number} of {path} has '{row[name]}' as its {name}; seconds are needed."
                ) from None
    texts = {key: _text(row[column]) for key, column in _language_columns(row).items()}
    return Clip(index, path.parent / row["audio"], texts, **times)


def _torn(path: Path, number: int) -> str:
    return f"Line {number} of {path} does not have the columns of its header."


def _language_columns(names: Any) -> dict[str, str]:
    """Language code to column: 'de', 'ref_de' or 'de_verbatim', the plainest first."""
    found: dict[str, str] = {}
    for name in sorted(names, key=len):
        code = name.removeprefix("ref_").removesuffix("_verbatim")
        if 2 <= len(code) <= 3 and code.isalpha() and code != "end":
            found.setdefault(code, name)
    return found


def _require_text(path: Path, names: Any, target: str) -> None:
    known = _language_columns(names)
    if target not in known:
        has = ", ".join(sorted(known)) or "none"
        raise DragomanError(f"{path} has no text in '{target}'; its languages are: {has}.")


def _require_value(path: Path, value: Any, target: str, number: int) -> None:
    """Refuse a line that breaks off before its text, and one whose text is null."""
    if value is None:
        raise DragomanError(f"Line {number} of {path} has no text in '{target}'.")


def _text(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value or "")


def _covost_clip(path: Path, index: int, row: dict[str, str], source: str, target: str) -> Clip:
    folder = path.parent / "clips"
    audio = (folder if folder.is_dir() else path.parent) / row["path"]
    texts = {target: row.get("translation"), source: row.get("sentence")}
    return Clip(index, audio, {code: _unquoted(text) for code, text in texts.items() if text})


def _unquoted(text: str) -> str:
    """A cell without what writers of tables add: CoVoST writes a quote as \\", early releases of
    Common Voice put a sentence with quotes into quotes and double those inside."""
    inside = text[1:-1]
    if text[:1] == text[-1:] == '"' and '""' in inside and '"' not in inside.replace('""', ""):
        return inside.replace('""', '"')
    return _ESCAPED.sub(r"\1", text)


def _must_c(path: Path, source: str, target: str) -> Iterator[Clip]:
    """SPLIT.yaml with offset, duration, wav; SPLIT.LANG beside it; wav/ beside txt/."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        with _open(path) as file:
            rows = yaml.load(file, Loader=loader)
    except yaml.YAMLError as error:
        raise DragomanError(f"{path} is not YAML: {yaml_fault(error)}.") from error
    wavs = path.parent.parent / "wav"
    wavs = wavs if wavs.is_dir() else path.parent
    if not isinstance(rows, list):
        raise DragomanError(f"{path} is not a list of segments with offset, duration and wav.")
    lines = _side_files(path.with_suffix(""), source, target, len(rows))
    for index, row in enumerate(rows):
        try:
            start = float(row["offset"])
            end = start + float(row["duration"])
            audio = wavs / row["wav"]
        except (KeyError, TypeError, ValueError):
            raise DragomanError(
                f"Entry {index + 1} of {path} lacks offset, duration or wav."
            ) from None
        texts = {code: texts[index] for code, texts in lines.items()}
        yield Clip(index, audio, texts, start, end)


def _europarl_st(path: Path, source: str, target: str) -> Iterator[Clip]:
    """segments.lst with `recording start end`; segments.LANG beside it; audios two levels up."""
    rows = [row.split() for row in _lines(path / "segments.lst")]
    lines = _side_files(path / "segments", source, target, len(rows))
    folder = next((p for p in path.parents if (p / "audios").is_dir()), path) / "audios"
    audios = {audio.stem: audio for audio in sorted(folder.glob("*"), reverse=True)}
    for index, row in enumerate(rows):
        try:
            name, start, end = row[0], float(row[1]), float(row[2])
        except (IndexError, ValueError):
            raise DragomanError(
                f"Line {index + 1} of {path / 'segments.lst'} is not 'recording start end'."
            ) from None
        audio = audios.get(name, folder / name)
        texts = {code: texts[index] for code, texts in lines.items()}
        yield Clip(index, audio, texts, start, end)


def _side_files(stem: Path, source: str, target: str, count: int) -> dict[str, list[str]]:
    """STEM.LANG, one line per clip; the target's must be there."""
    found = {}
    for code in (source, target):
        side = stem.with_name(f"{stem.name}.{code}")
        if side.is_file():
            found[code] = _lines(side)
            if len(found[code]) != count:
                raise DragomanError(f"{side} has {len(found[code])} lines for {count} clips.")
        elif code == target:
            raise DragomanError(f"There are no references in '{target}': {side} is missing.")
    return found


def _simuleval(path: Path, references: Path, target: str) -> Iterator[Clip]:
    audio, texts = _lines(path), _lines(references)
    if len(audio) != len(texts):
        raise DragomanError(
            f"{path} lists {len(audio)} recordings but {references} has {len(texts)} lines."
        )
    for index, (name, text) in enumerate(zip(audio, texts, strict=True)):
        yield Clip(index, path.parent / name, {target: text})


def _lines(path: Path) -> list[str]:
    with _open(path) as file:
        return [line.rstrip("\n") for line in file]


def _open(path: Path, newline: str | None = None) -> Any:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DragomanError(f"Cannot read {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise DragomanError(f"{path} is not UTF-8 text; is it the corpus file?") from error
    return io.StringIO(text, newline=newline)
