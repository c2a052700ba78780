"""simulstream's logs: one JSON object per chunk of audio, in seconds; here a talk per recording.

A line says how much audio was processed in all, how long the chunk took, which tokens were added
to the output and, before that, which were taken back from its end.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from dragoman.errors import DragomanError
from dragoman.metrics.instance import Instance, Unit
from dragoman.metrics.lines import Log, decode_line, read_lines

WORD_MARK = "▁"  # SentencePiece's sign for the beginning of a word
PIECE = re.compile("▁[^▁]*|[^▁]+")


class Line(msgspec.Struct):
    """What a line may hold: the recording's name, or what happened after a chunk."""

    id: int | str | None = None
    metadata: dict[str, Any] | None = None
    total_audio_processed: float = 0.0
    computation_time: float = 0.0
    generated_tokens: list[str] = []
    deleted_tokens: list[str] = []


@dataclass(slots=True)
class Talk:
    """One recording while it is read. Times are milliseconds."""

    name: str
    unit: Unit
    marked: bool  # whether tokens say where words begin; otherwise they are characters
    audio: list[float] = field(default_factory=list)  # after each chunk, the audio heard in all
    works: list[float] = field(default_factory=list)  # the time each chunk took
    tokens: list[str] = field(default_factory=list)  # what the output is made of now
    changed: list[int] = field(default_factory=list)  # the chunk that last changed each token
    deleted: list[str] = field(default_factory=list)  # runs of tokens that were taken back

    def take(self, line: Line) -> None:
        """Follow what happened after one more chunk."""
        chunk = len(self.audio)
        if chunk and 1000 * line.total_audio_processed < self.audio[-1]:
            raise ValueError(
                f"after {self.audio[-1] / 1000:g} s of audio only "
                f"{line.total_audio_processed:g} s were processed"
            )
        if line.computation_time < 0:
            raise ValueError(f"the computation took {line.computation_time:g} s")
        self.audio.append(1000 * line.total_audio_processed)
        self.works.append(1000 * line.computation_time)
        if line.deleted_tokens:
            kept = len(self.tokens) - len(line.deleted_tokens)
            if kept < 0 or self.tokens[kept:] != line.deleted_tokens:
                raise ValueError("tokens are taken back that were not the last of the output")
            del self.tokens[kept:], self.changed[kept:]
            self.deleted.append(self._text(line.deleted_tokens))
            inside_word = not line.deleted_tokens[0].startswith(WORD_MARK)
            if kept and inside_word and self.unit == "word":
                self.changed[-1] = chunk  # a word lost its end just now
        self.tokens += line.generated_tokens
        self.changed += [chunk] * len(line.generated_tokens)

    def instance(self, index: int) -> Instance:
        """The final output, each unit with the times of the chunk that last changed it."""
        chunks = self._unit_chunks()
        ends, elapsed = _clocks(self.audio, self.works)
        return Instance(
            index=index,
            prediction=self._text(self.tokens),
            delays=array("d", [self.audio[chunk] for chunk in chunks]),
            source_length=self.audio[-1] if self.audio else 0.0,
            elapsed=array("d", [elapsed[chunk] for chunk in chunks]),
            works=array("d", [self.works[chunk] for chunk in chunks]),
            ends=array("d", [ends[chunk] for chunk in chunks]),
            compute=sum(self.works),
            erased=sum(map(self._size, self.deleted)),
            source=self.name,
        )

    def _size(self, text: str) -> int:
        return len(text.split()) if self.unit == "word" else len(text)

    def _text(self, tokens: list[str]) -> str:
        text = "".join(tokens).replace(WORD_MARK, " ")
        return text.strip() if self.marked else text

    def _unit_chunks(self) -> list[int]:
        """For every word or character of the output the chunk that last changed it."""
        letters = [
            (letter, chunk)
            for token, chunk in zip(self.tokens, self.changed, strict=True)
            for letter in token.replace(WORD_MARK, " ")
        ]
        if self.unit == "char":
            return self._letter_chunks(letters)
        words = groupby(letters, key=lambda pair: pair[0] == " ")
        return [max(chunk for _, chunk in word) for blank, word in words if not blank]

    def _letter_chunks(self, letters: list[tuple[str, int]]) -> list[int]:
        """The mark of a word is seen as a space when the word is: with the letter after it."""
        chunks = [chunk for _, chunk in letters]
        if not self.marked:
            return chunks
        text = "".join(letter for letter, _ in letters)
        for place in reversed(range(len(text) - 1)):
            if text[place] == " ":
                chunks[place] = max(chunks[place], chunks[place + 1])
        return chunks[len(text) - len(text.lstrip()) : len(text.rstrip())]


def knows(first: dict[str, Any]) -> bool:
    """Whether this is the first line of such a log."""
    return bool({"model_loading_time", "metadata", "total_audio_processed"} & first.keys())


def read(path: Path, unit: Unit, *, strict: bool = True, skip: bool = False) -> Log:
    """Read the log; every recording becomes one talk, without a reference. See `read_log`.

    To leave a broken sentence out is to leave out the talk that it is of.
    """
    talks: dict[int | str, Talk] = {}
    broken: dict[int | str | None, str] = {}
    decoder = msgspec.json.Decoder(Line)
    marked = _has_word_marks(path)
    whole_words = unit == "word" and not marked
    recent: int | str | None = None  # a line that cannot be read goes on with the talk before it
    for number, raw in read_lines(path):
        try:
            line = decode_line(raw, number, path, decoder)
            recent = recent if line.id is None else line.id
            if line.metadata is not None and line.id is not None:
                if strict and line.id in talks:
                    raise ValueError(f"recording {line.id} comes twice")
                talks[line.id] = Talk(str(line.metadata["wav_name"]), unit, marked or whole_words)
            elif line.id is not None:
                line.generated_tokens = _pieces(line.generated_tokens, whole_words)
                line.deleted_tokens = _pieces(line.deleted_tokens, whole_words)
                talks[line.id].take(line)
        except (DragomanError, KeyError, ValueError) as error:
            if not skip:
                raise _fault(error, f"{path}, line {number}") from error
            broken.setdefault(recent, str(_fault(error, f"{path}, line {number}")))
    instances = []
    for index, (name, talk) in enumerate(talks.items()):
        if name in broken:
            continue
        instance = talk.instance(index)
        try:
            instance.check(f"{path}, {instance.source}")
        except DragomanError as error:
            if not skip:
                raise
            broken[name] = str(error)
        else:
            instances.append(instance)
    return Log(path, "simulstream", instances, left_out=list(broken.values()))


def _fault(error: Exception, where: str) -> DragomanError:
    """What is wrong with a line, in a sentence."""
    if isinstance(error, KeyError):
        return DragomanError(
            f"{where}: {error} is not known; a recording begins with a line that has its id and, "
            "as metadata, its wav_name."
        )
    return error if isinstance(error, DragomanError) else DragomanError(f"{where}: {error}.")


def _has_word_marks(path: Path) -> bool:
    """Whether tokens are pieces of words; otherwise every token is a word or a character."""
    return any(WORD_MARK.encode() in line or b"\\u2581" in line for _, line in read_lines(path))


def _pieces(tokens: list[str], whole_words: bool) -> list[str]:
    """Tokens that hold at most one mark, in front; each gets one if it is a word."""
    if whole_words:
        return [WORD_MARK + token for token in tokens]
    return [piece for token in tokens for piece in PIECE.findall(token)]


def _clocks(audio: list[float], works: list[float]) -> tuple[list[float], list[float]]:
    """When each chunk's work really ended, and SimulEval's elapsed: audio + all work so far."""
    ends: list[float] = []
    elapsed: list[float] = []
    end = total = 0.0
    for arrival, work in zip(audio, works, strict=True):
        end = max(arrival, end) + work
        total += work
        ends.append(end)
        elapsed.append(arrival + total)
    return ends, elapsed
