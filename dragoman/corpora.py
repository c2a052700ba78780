"""Corpora in the layouts people have, read as one list of clips.

A clip is a piece of a recording with its text in some languages. Layouts are told apart by what
lies at the path: a TSV or JSONL file, a CoVoST TSV, a MuST-C or Europarl-ST folder, or SimulEval's
two lists. Further references are in columns `de.2`, `de.3`, files `SPLIT.de.2`, or further lists.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dragoman.errors import DragomanError
from dragoman.yaml_text import parse_yaml

MOST_CHARACTERS = 1 << 30
"""Of a cell: the text of a whole talk may stand in one."""
_ESCAPED = re.compile(r"\\(.)")
_BREAKS = re.compile(r"[ \t]*[\r\n][\s]*")
_NUMBERED = re.compile(r"(.+)\.(\d+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Clip:
    """A piece of a recording, and what is said in it by language code."""

    index: int
    audio: Path
    texts: dict[str, str]
    start: float | None = None  # seconds
    end: float | None = None
    more_references: tuple[str, ...] = ()  # further texts in the target language
    called: str = ""  # where the name of its file alone is not enough

    @property
    def name(self) -> str:
        """What its recording is called among those of its corpus."""
        return self.called or self.audio.name


def read_corpus(
    path: Path,
    source: str,
    target: str,
    references: Sequence[Path] = (),
    limit: int | None = None,
) -> list[Clip]:
    """Every clip of a corpus that has a text in the target language, or the first of them.
    `references` are SimulEval's target lists, one or more; `path` is then its source list."""
    return with_audio(read_clips(path, source, target, references)[:limit], path)


def with_audio(clips: list[Clip], path: Path) -> list[Clip]:
    """The clips of a corpus, if their recordings are there."""
    missing = sorted({str(clip.audio) for clip in clips if not clip.audio.is_file()})
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise DragomanError(f"The corpus {path} names audio that is not there: {missing[0]}{more}.")
    return clips


def read_clips(path: Path, source: str, target: str, references: Sequence[Path] = ()) -> list[Clip]:
    """The same, whether or not the audio is there."""
    if not path.exists():
        raise DragomanError(f"There is no corpus at {path}.")
    clips = [_begun_by_text(clip, target) for clip in _layout(path, source, target, references)]
    if not clips:
        raise DragomanError(f"The corpus {path} is empty.")
    return clips


def _layout(path: Path, source: str, target: str, references: Sequence[Path]) -> Iterator[Clip]:
    if references:
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
        if twice := [name for name in names if names.count(name) > 1]:
            raise DragomanError(
                f"{path} has {names.count(twice[0])} columns '{twice[0]}'; each needs a name of "
                f"its own (further references: '{target}.2', '{target}.3')."
            )
        if "audio" in names:
            _require_text(str(path), names, target)
            for index, row in enumerate(rows):
                number = rows.reader.line_num  # empty lines are passed over
                yield _table_clip(path, index, row, number, target)
        elif "path" in names and ("translation" in names or "sentence" in names):
            for index, row in enumerate(rows):
                if not row["path"]:
                    raise DragomanError(_torn(path, rows.reader.line_num))
                yield _covost_clip(path, index, row, source, target)
        elif names:
            tabs = "" if len(names) > 1 else "; a tab stands between two columns"
            raise DragomanError(
                f"{path} has no header Dragoman knows: it needs a column 'audio' and one named "
                f"'{target}', or CoVoST's 'path' and 'translation'{tabs}."
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
            _require_text(f"Line {number} of {path}", row, target)
            yield _table_clip(path, number - 1, row, number, target)


def _table_clip(path: Path, index: int, row: dict[str, Any], number: int, target: str) -> Clip:
    if not row["audio"] or None in row:
        raise DragomanError(_torn(path, number))
    columns = _language_columns(row)
    if not isinstance(row[columns[target]], str | list | int | float):  # it breaks off, or is null
        raise DragomanError(f"Line {number} of {path} has no text in '{target}'.")
    texts = {key: _text(row[column]) for key, column in columns.items()}
    more = [_text(row[column]) for column in _more_columns(row, target)]
    start, end = (_seconds(path, row, name, number) for name in ("start", "end"))
    return Clip(index, path.parent / row["audio"], texts, start, end, _filled(more))


def _seconds(path: Path, row: dict[str, Any], name: str, number: int) -> float | None:
    value = row.get(name)
    try:
        return None if value in (None, "") else float(value)
    except (TypeError, ValueError):
        raise DragomanError(
            f"Line {number} of {path} has '{value}' as its {name}; seconds are needed."
        ) from None


def _torn(path: Path, number: int) -> str:
    return f"Line {number} of {path} does not have the columns of its header."


def _language_columns(names: Any) -> dict[str, str]:
    """Language code to column: 'de', 'ref_de' or 'de_verbatim', the plainest first."""
    found: dict[str, str] = {}
    for name in sorted(names, key=len):
        code = _code(name)
        if 2 <= len(code) <= 3 and code.isalpha() and code != "end":
            found.setdefault(code, name)
    return found


def _code(column: str) -> str:
    return column.removeprefix("ref_").removesuffix("_verbatim")


def _more_columns(names: Any, target: str) -> list[str]:
    """The columns with further references, 'de.2', 'de.3' …, by their numbers."""
    found = [match for name in names if (match := _NUMBERED.fullmatch(name))]
    own = [match for match in found if _code(match[1]) == target]
    return [match[0] for match in sorted(own, key=lambda match: int(match[2]))]


def _filled(texts: Sequence[str]) -> tuple[str, ...]:
    """The references that there are: not every sentence need have as many."""
    return tuple(text for text in texts if text.strip())


def _begun_by_text(clip: Clip, target: str) -> Clip:
    """The clip with the next of its references for the first where that one is empty: what takes
    but one would take no words, and what takes the nearest length might take 0."""
    if not clip.more_references or clip.texts.get(target, "").strip():
        return clip
    first, *more = clip.more_references
    return replace(clip, texts=clip.texts | {target: first}, more_references=tuple(more))


def _require_text(where: str, names: Any, target: str) -> None:
    known = _language_columns(names)
    if target not in known:
        has = ", ".join(sorted(known)) or "none"
        raise DragomanError(f"{where} has no text in '{target}'; its languages are: {has}.")


def _text(value: Any) -> str:
    """What a cell says, on one line: words that a line break alone sets apart would be one."""
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value or "")
    return _BREAKS.sub(" ", text)


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
    with _open(path) as file:
        rows = parse_yaml(file.read(), str(path))
    wavs = path.parent.parent / "wav"
    wavs = wavs if wavs.is_dir() else path.parent
    if not isinstance(rows, list):
        raise DragomanError(f"{path} is not a list of segments with offset, duration and wav.")
    sides = _side_texts(path.with_suffix(""), source, target, len(rows))
    for index, (row, (texts, more)) in enumerate(zip(rows, sides, strict=True)):
        try:
            start = float(row["offset"])
            end = start + float(row["duration"])
            audio = wavs / row["wav"]
        except (KeyError, TypeError, ValueError):
            raise DragomanError(
                f"Entry {index + 1} of {path} lacks offset, duration or wav."
            ) from None
        yield Clip(index, audio, texts, start, end, more)


def _europarl_st(path: Path, source: str, target: str) -> Iterator[Clip]:
    """segments.lst with `recording start end`; segments.LANG beside it; audios two levels up."""
    rows = [row.split() for row in _lines(path / "segments.lst")]
    sides = _side_texts(path / "segments", source, target, len(rows))
    folder = next((p for p in path.parents if (p / "audios").is_dir()), path) / "audios"
    audios = {audio.stem: audio for audio in sorted(folder.glob("*"), reverse=True)}
    for index, (row, (texts, more)) in enumerate(zip(rows, sides, strict=True)):
        try:
            name, start, end = row[0], float(row[1]), float(row[2])
        except (IndexError, ValueError):
            raise DragomanError(
                f"Line {index + 1} of {path / 'segments.lst'} is not 'recording start end'."
            ) from None
        audio = audios.get(name, folder / name)
        yield Clip(index, audio, texts, start, end, more)


def _side_texts(
    stem: Path, source: str, target: str, count: int
) -> Iterator[tuple[dict[str, str], tuple[str, ...]]]:
    """Of every clip the texts in STEM.LANG, a line each, of which the target's must be there, and
    the further references in STEM.LANG.2, STEM.LANG.3 …, as far as these go."""
    found = {}
    for code in (source, target):
        side = stem.with_name(f"{stem.name}.{code}")
        if side.is_file():
            found[code] = _side_lines(side, count)
        elif code == target:
            raise DragomanError(f"There are no references in '{target}': {side} is missing.")
    more: list[list[str]] = []
    while (side := stem.with_name(f"{stem.name}.{target}.{len(more) + 2}")).is_file():
        more.append(_side_lines(side, count))
    for row in range(count):
        texts = {code: lines[row] for code, lines in found.items()}
        yield texts, _filled([lines[row] for lines in more])


def _side_lines(path: Path, count: int) -> list[str]:
    lines = _lines(path)
    if len(lines) != count:
        raise DragomanError(f"{path} has {len(lines)} lines for {count} clips.")
    return lines


def _simuleval(path: Path, references: Sequence[Path], target: str) -> Iterator[Clip]:
    audio = _lines(path)
    columns = [_side_lines(file, len(audio)) for file in references]
    for index, (name, text, *more) in enumerate(zip(audio, *columns, strict=True)):
        yield Clip(index, path.parent / name, {target: text}, more_references=_filled(more))


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
