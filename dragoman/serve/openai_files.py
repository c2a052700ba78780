"""OpenAI's endpoints for whole files: `/v1/audio/transcriptions` and `/v1/audio/translations`.

A file is a talk like any other, heard as fast as the machine has time for it: whoever speaks live
goes before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from functools import partial
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Message

from dragoman.errors import DragomanError
from dragoman.serve.advice import LISTED, for_client
from dragoman.serve.downloads import timed
from dragoman.serve.forward import forwarded
from dragoman.serve.logs import note
from dragoman.serve.openai_stream import Streamed, described, left
from dragoman.serve.patience import SLOWEST
from dragoman.serve.peers import Peers
from dragoman.serve.protocol import Close, Code, Fault, Said, Start, Transcript
from dragoman.serve.service import Service
from dragoman.serve.session import Session
from dragoman.serve.settings import may_enter, offered_token, origin_allowed
from dragoman.serve.tasks import ended
from dragoman.serve.uploads import Upload
from dragoman.setup import System
from dragoman.text.caption_files import captions_of
from dragoman.text.captions import TimedWord, make_cues
from dragoman.text.languages import find_language
from dragoman.text.plain import unmarked
from dragoman.text.words import whole_words

MOST_BYTES = 200 << 20
MOST_FIELDS, LARGEST_FIELD = 1000, 1 << 14
"""Beside the file, and of bytes: lists of words come with a field for each, and are not heeded."""
WARNING = "Dragoman-Warning"
"""The header that says what is wrong with a file of which there is a text all the same."""
FORMATS = ("json", "text", "srt", "vtt", "verbose_json")
STREAMED = ("json", "text")  # of a text that grows
_GRANULAR = "timestamp_granularities[]"
_GONE = 499  # nobody reads it
_MODEL = {"id": "dragoman", "object": "model", "created": 0, "owned_by": "dragoman"}
_STATUS = {
    Close.TOKEN: 401,
    Close.ORIGIN: 403,
    Close.IDLE: 408,
    Close.TOO_BIG: 413,
    Close.TRY_LATER: 503,
}


async def answer_file(
    service: Service, peers: Peers, request: Request, *, translate: bool
) -> Response:
    """The text of the file in a request, or what is wrong, in OpenAI's words."""
    sent = peers.sent(request)
    try:
        _check_visitor(service, request)
        if not service.takes_files and not sent:
            answer = await forwarded(service, request, await peers.ready())
            if answer is not None:
                return answer
        with service.receiving():
            form = await _received(service, request)
        try:
            return await _answer(service, request, form, translate)
        finally:
            await form.close()
    except ClientDisconnect:
        return Response(status_code=_GONE)
    except HTTPException as error:
        fault = Fault(Code.MALFORMED, f"The form is not as it should be: {error.detail}")
    except OSError as error:  # as where the disk is full
        note("file not kept", error=type(error).__name__, why=error.strerror)
        fault = Fault(Code.FAILED, "This server could not keep the file; try again later.")
    except Fault as error:
        fault = error
    return _refused(service, fault)


def answer_models(service: Service, request: Request) -> Response:
    """What a client may name as its `model`: whatever it names, this server has one."""
    return _to_visitor(service, request, {"object": "list", "data": [_MODEL]})


def answer_model(service: Service, request: Request, name: str) -> Response:
    """That one by its name, as clients ask that look before they send anything."""
    if name == _MODEL["id"]:
        return _to_visitor(service, request, _MODEL)
    told = {
        "message": f"There is no model '{name}' here; there is '{_MODEL['id']}'.",
        "type": "invalid_request_error",
        "param": "model",
        "code": "model_not_found",
    }
    return _to_visitor(service, request, {"error": told}, 404)


def _to_visitor(
    service: Service, request: Request, body: dict[str, Any], status: int = 200
) -> Response:
    try:
        _check_visitor(service, request)
    except Fault as fault:
        return _refused(service, fault)
    return JSONResponse(body, status)


def _refused(service: Service, fault: Fault) -> Response:
    service.metrics.refused.labels(fault.code).inc()
    status = 500 if fault.code is Code.FAILED else _STATUS.get(fault.close, 400)
    return JSONResponse({"error": described(fault)}, status)


def _check_visitor(service: Service, request: Request) -> None:
    settings, headers = service.settings, request.headers
    if not origin_allowed(settings, headers):
        raise Fault(Code.TOKEN, "Pages of other sites may not ask this.")
    if not may_enter(settings, offered_token(headers)):
        raise Fault(Code.TOKEN, "This server wants an access token, and not this one.")
    size = headers.get("content-length", "")
    _check_size(int(size) if size.isdigit() else 0)


def _check_size(count: int) -> None:
    if count > MOST_BYTES:
        raise Fault(Code.TOO_BIG, f"A file has at most {MOST_BYTES >> 20} MiB.")


async def _received(service: Service, request: Request) -> FormData:
    """The form, which may take its time: nothing comes for a while, but then more than enough does.
    It takes no longer than a talk may, since it has the place of one."""
    idle, clock = service.settings.idle, asyncio.get_running_loop().time
    until, at_last, count = clock() + idle, clock() + service.settings.longest, 0

    async def receive() -> Message:
        nonlocal until, count
        try:
            async with asyncio.timeout_at(min(until, clock() + idle, at_last)):
                message = await request.receive()
        except TimeoutError:
            raise Fault(Code.IDLE, "This file comes too slowly; try a better connection.") from None
        size = len(message.get("body", b""))
        count += size
        _check_size(count)  # who sends it in chunks does not tell before
        until = min(until + size / SLOWEST, clock() + 2 * idle)
        return message

    try:
        return await Request(request.scope, receive).form(
            max_files=1, max_fields=MOST_FIELDS, max_part_size=LARGEST_FIELD
        )
    except UnicodeError:  # it names letters that Python knows, and refuses to read
        raise Fault(Code.MALFORMED, "The form names letters that nobody can read.") from None


async def _answer(service: Service, request: Request, form: FormData, translate: bool) -> Response:
    file, wanted = form.get("file"), str(form.get("response_format", "json"))
    if isinstance(file, str):
        raise Fault(Code.MALFORMED, "'file' is a text in this form; curl sends file=@talk.wav.")
    if not isinstance(file, UploadFile):
        raise Fault(Code.MALFORMED, "There is no 'file' in the form.")
    if wanted not in FORMATS:
        raise Fault(Code.MALFORMED, f"'response_format' is one of {', '.join(FORMATS)}.")
    granular = {str(one) for one in form.getlist(_GRANULAR)} or {"segment"}
    if granular - {"segment", "word"}:
        raise Fault(Code.MALFORMED, f"'{_GRANULAR}' is segment or word.")
    streamed = str(form.get("stream", "")).lower() in ("true", "1")
    if streamed and wanted not in STREAMED:
        raise Fault(Code.MALFORMED, f"With 'stream' there is no {wanted}, only the text.")
    start = _start(service.system, form, translate)
    session = await service.start(start, live=False)
    words = session.transcripts if start.transcript else session.words
    upload = Upload(service, session, file, transcript=start.transcript)
    if streamed:
        close = partial(service.drop, session)
        return await Streamed(session, words, upload, close).begin()
    try:
        there = await _while_there(request, upload.hear())
    finally:
        service.drop(session)
    if not there:
        return Response(status_code=_GONE)
    if session.fault is not None:
        raise session.fault
    target = session.setup.target
    if start.transcript:
        target, translate = session.through or _spoken(session), session.through is not None
    # Half of a text shall not pass for the whole.
    told = {"warnings": upload.warnings} if upload.warnings else {}
    response = await asyncio.to_thread(  # captions take their time
        _response, wanted, words, session, target, granular, translate, told
    )
    if told:  # not every format has a place for it; a header is always there
        line = " ".join(" ".join(told["warnings"]).split())
        response.headers[WARNING] = line.encode("ascii", "replace").decode()
    return response


def _start(system: System, form: FormData, translate: bool) -> Start:
    """A file is heard to the end before it counts how soon something was said."""
    language, speaks = _language(form) or system.setup.source, system.model.speaks
    if translate:  # into English, as OpenAI's does; else into what the server was started for
        usual = "en" if not speaks or "en" in speaks else system.setup.target
        return Start(source=language, target=str(form.get("to") or usual), policy="offline")
    if language and (not speaks or language in speaks):
        return Start(source=language, target=language, policy="offline")
    return Start(source=language, policy="offline", transcript=True)


def _language(form: FormData) -> str | None:
    try:
        return find_language(str(form["language"])).code if form.get("language") else None
    except DragomanError as error:
        raise Fault(Code.LANGUAGE, for_client(error, LISTED)) from error


async def _while_there(request: Request, work: Coroutine[Any, Any, None]) -> bool:
    """Do something for somebody; whether it was done before they hung up. A file of hours would
    else take the place of a talk, for nobody."""
    working, leaving = asyncio.create_task(work), asyncio.create_task(left(request.receive))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
        return working.done()
    finally:
        await ended(working, leaving)


def _spoken(session: Session) -> str:
    return (session.summary.language if session.summary else None) or "en"


def _response(
    wanted: str,
    words: Sequence[Said | Transcript],
    session: Session,
    language: str,
    granular: set[str],
    translate: bool,
    told: dict[str, Any],
) -> Response:
    """`told`: what there is to say of the file besides."""
    text = "".join(word.text for word in words).strip()
    if wanted == "json":
        return JSONResponse({"text": text} | told)
    if wanted == "text":
        return PlainTextResponse(text + "\n")
    spoken = timed(words)
    if wanted in ("srt", "vtt"):
        return PlainTextResponse(captions_of(f".{wanted}", make_cues(spoken, language)))
    assert session.summary is not None
    body: dict[str, Any] = {
        "task": "translate" if translate else "transcribe",
        "language": _spoken(session),
        "duration": session.summary.audio_ms / 1000,
        "text": text,
        **told,
    }
    if "segment" in granular:
        body["segments"] = list(_segments(spoken, language))
    if "word" in granular:
        body["words"] = [
            {
                "word": unmarked("".join(one.text for one in parts)),
                "start": round(parts[0].start, 3),
                "end": round(parts[-1].end, 3),
            }
            for parts in whole_words(spoken)
        ]
    return JSONResponse(body)


def _segments(words: Sequence[TimedWord], language: str) -> Iterator[dict[str, Any]]:
    """Captions as segments; what the decoder thought of them is not told."""
    for number, cue in enumerate(make_cues(words, language)):
        yield {
            "id": number,
            "seek": 0,
            "start": round(cue.start, 3),
            "end": round(cue.end, 3),
            "text": " " + " ".join(cue.lines),
            "tokens": [],
            "temperature": 0.0,
            "avg_logprob": 0.0,
            "compression_ratio": 0.0,
            "no_speech_prob": 0.0,
        }
