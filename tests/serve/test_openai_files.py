"""OpenAI's own client sends files."""

import errno
import http.client
import io
import json
import select
import time
from contextlib import contextmanager, suppress

import numpy as np
import pytest
import soundfile

from dragoman.serve import openai_files, openai_stream, uploads
from dragoman.serve.protocol import Code, Fault, Start
from tests.serve.clients import make_service
from tests.serve.processes import in_time
from tests.serve.running import running
from tests.talkers import SPOKEN, TEXT

TOKEN = "a token that nobody guesses"


def wav(seconds=16.0, rate=22050):
    file = io.BytesIO()
    soundfile.write(file, np.zeros(round(seconds * rate)), rate, format="WAV")
    return file.getvalue()


@pytest.fixture
def server():
    """One that writes down what it hears, too, and its address."""
    with running(token=TOKEN, model="tests.talkers:bilingual") as (service, url):
        yield service, url.replace("ws", "http", 1) + "/v1"


@pytest.fixture
def served(server):
    return server[0]


@pytest.fixture
def client(server):
    """OpenAI's own."""
    openai = pytest.importorskip("openai")
    return openai.OpenAI(base_url=server[1], api_key=TOKEN, max_retries=0)


def translated(client, **options):
    return client.audio.translations.create(file=("talk.wav", wav()), model="any", **options)


def test_a_client_that_asks_which_models_there_are_is_told(client):
    openai = pytest.importorskip("openai")
    assert [one.id for one in client.models.list()] == ["dragoman"]
    with pytest.raises(openai.AuthenticationError, match="wants an access token"):
        client.with_options(api_key="another").models.list()


def test_a_client_that_asks_for_one_model_is_told_whether_it_is_there(client):
    openai = pytest.importorskip("openai")
    assert client.models.retrieve("dragoman") == next(iter(client.models.list()))
    with pytest.raises(openai.NotFoundError, match="no model 'org/other' here") as refused:
        client.models.retrieve("org/other")
    assert (refused.value.code, refused.value.param) == ("model_not_found", "model")
    assert refused.value.type == "invalid_request_error"
    for name in ("dragoman", "org/other"):
        with pytest.raises(openai.AuthenticationError, match="wants an access token"):
            client.with_options(api_key="another").models.retrieve(name)


def test_a_file_is_translated(client):
    assert translated(client).text == TEXT
    assert translated(client, response_format="text").strip() == TEXT


def test_a_file_says_nothing_of_how_far_behind_its_speakers_a_server_is(client, served):
    """It is heard to the end first, and would set off whoever watches the lag."""
    translated(client)
    assert "dragoman_lag_seconds_count 0.0" in served.metrics.text()


def test_a_file_is_written_down(client):
    file = ("talk.wav", wav())
    assert client.audio.transcriptions.create(file=file, model="any").text == SPOKEN


def test_what_a_client_may_wish_for_besides_is_no_fault_of_the_form(client):
    """A list comes with a field for each word of it."""
    wishes = {"keywords": [f"word{n}" for n in range(100)], "include": ["logprobs"]}
    wishes |= {"prompt": "A talk.", "temperature": 0.2, "chunking_strategy": "auto"}
    file = ("talk.wav", wav())
    told = client.audio.transcriptions.create(file=file, model="any", **wishes)
    assert told.text == SPOKEN


def test_a_model_that_speaks_other_languages_alone_writes_down_what_it_hears(client, served):
    """As a cascade does, which hears English and writes German."""
    served.system.model.speaks = ("de", "es")
    served.system = served.system.changed(source="en", target="de")
    file = ("talk.wav", wav())
    for more in ({}, {"language": "English"}):
        assert client.audio.transcriptions.create(file=file, model="any", **more).text == SPOKEN
    started, start = [], served.start

    async def note_start(request, **how):
        started.append(request)
        return await start(request, **how)

    served.start = note_start
    assert translated(client).text == TEXT
    assert translated(client, extra_body={"to": "es"}).text == TEXT
    assert [(one.source, one.target) for one in started] == [("en", "de"), ("en", "es")]


@pytest.fixture
def through_english(served):
    """It translates by way of English, which is what it writes down."""
    model = served.system.model
    open_stream = model.open

    def open_through(source, target, *, transcript=False):
        stream = open_stream(source, target, transcript=transcript)
        stream.language, stream.through = "fr", "en"
        stream.wanted = True  # as a cascade, which writes it down in any case
        return stream

    model.open, model.speaks = open_through, ("de",)


@pytest.mark.usefixtures("through_english")
def test_whoever_wants_what_is_spoken_and_gets_english_is_told_so(client):
    file, more = ("talk.wav", wav()), {"model": "any", "response_format": "verbose_json"}
    told = client.audio.transcriptions.create(file=file, **more)
    assert (told.text, told.task, told.language) == (SPOKEN, "translate", "fr")
    (warning,) = told.warnings
    assert warning == (
        "This server translates by way of English: the text is in that, not in the language that "
        "is spoken."
    )
    *_, done = client.audio.transcriptions.create(file=file, model="any", stream=True)
    assert done.warnings == [warning]
    assert not hasattr(translated(client), "warnings")  # of which it is no fault


def test_captions_and_times(client):
    srt = translated(client, response_format="srt")
    assert srt.startswith("1\n00:00:")
    assert " --> " in srt
    vtt = translated(client, response_format="vtt")
    assert vtt.startswith("WEBVTT\n\n1\n00:00:")
    whole = translated(client, response_format="verbose_json")
    assert whole.duration == pytest.approx(16, abs=0.01)
    assert " ".join("".join(one.text for one in whole.segments).split()) == TEXT
    assert all(one.start < one.end for one in whole.segments)
    file = ("talk.wav", wav())
    words = client.audio.transcriptions.create(
        file=file,
        model="any",
        language="de",
        response_format="verbose_json",
        timestamp_granularities=["word"],
    ).words
    assert len(words) == len(TEXT.split())  # this model says the same in every language
    assert all(one.start <= one.end for one in words)


def test_a_file_is_told_while_it_is_heard(client, served):
    file = ("talk.wav", wav())
    *deltas, done = client.audio.transcriptions.create(file=file, model="any", stream=True)
    assert {one.type for one in deltas} == {"transcript.text.delta"}
    assert "".join(one.delta for one in deltas) == SPOKEN
    assert (done.type, done.text) == ("transcript.text.done", SPOKEN)
    wait_until(lambda: not served._sessions)


def test_what_is_wrong_with_a_stream_is_told_before_it_begins(client, served):
    openai = pytest.importorskip("openai")
    for file, more in ((b"no sound at all", {}), (wav(), {"response_format": "srt"})):
        with pytest.raises(openai.BadRequestError):
            client.audio.transcriptions.create(
                file=("talk.wav", file), model="any", stream=True, **more
            )
    assert not served._sessions


def test_a_stream_that_breaks_off_says_so():
    """Its beginning would else pass for the whole."""
    with streaming(fastest=10) as (service, _, answer):
        (session,) = service._sessions.values()
        wait_until(lambda: session.sample > 60 * 16000)
        session.fail(Fault(Code.OVERLOADED, "Go on elsewhere."))
        told = [json.loads(line[6:]) for line in answer if line.startswith(b"data: ")]
        assert told[-1]["error"]["code"] == "overloaded"
        assert {one["type"] for one in told[:-1]} <= {"transcript.text.delta"}
        wait_until(lambda: not service._sessions)


def test_a_stream_that_nobody_reads_any_more_ends():
    with streaming(fastest=0.001) as (service, line, _):
        assert service.streams == 1
        line.close()
        wait_until(lambda: not service._sessions)


def test_a_proxy_is_asked_not_to_hold_back_what_is_told():
    with streaming(fastest=0.001) as (_, _, answer):
        assert answer.getheader("x-accel-buffering") == "no"


def test_a_line_on_which_nothing_is_told_for_long_is_kept_alive(monkeypatch):
    monkeypatch.setattr(openai_stream, "REMIND", 0.05)
    with streaming(fastest=0.001) as (_, _, answer):
        assert next(line for line in answer if not line.startswith(b"data")).startswith(b":")


@contextmanager
def streaming(**settings):
    """A file that is told while it is heard: the service, the line, and the answer."""
    part = '--x\r\nContent-Disposition: form-data; name="stream"\r\n\r\ntrue\r\n'
    with running(**settings) as (service, url):
        line = line_to(url)
        line.request("POST", "/v1/audio/translations", part.encode() + form(wav(90, 4000)), KIND)
        answer = line.getresponse()
        assert answer.getheader("content-type").startswith("text/event-stream")
        yield service, line, answer
        line.close()


def test_a_mark_is_no_word(opened):
    """And words are written as in the text, as OpenAI's are: in German the small letters are other
    words."""
    _, web = opened(model="tests.evaluate.late_stops:model")
    fields = {"response_format": "verbose_json", "timestamp_granularities[]": "word"}
    files = {"file": ("talk.wav", wav())}
    found = web.post("/v1/audio/translations", data=fields, files=files).json()
    assert found["text"] == "It rains. We stay at home, dry and warm."
    assert [one["word"] for one in found["words"]] == [
        "It", "rains", "We", "stay", "at", "home", "dry", "and", "warm",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"file": b"no sound at all"}, 400, "sound"),
        ({"file": None}, 400, "malformed"),
        ({"response_format": "pdf"}, 400, "malformed"),
        ({"language": "klingon"}, 400, "language"),
        ({"token": "wrong"}, 401, "token"),
        ({"origin": "https://evil.example"}, 401, "token"),
    ],
)
def test_what_is_wrong_is_told(opened, changes, status, code):
    service, web = opened(token=TOKEN)
    fields = {"model": "any", "response_format": "json"} | {
        key: value for key, value in changes.items() if key in ("response_format", "language")
    }
    content = changes.get("file", wav(1))
    headers = {"authorization": f"Bearer {changes.get('token', TOKEN)}"}
    if "origin" in changes:
        headers["origin"] = changes["origin"]
    files = {"file": ("talk.wav", content)} if content is not None else {"other": b"x"}
    answer = web.post("/v1/audio/translations", data=fields, files=files, headers=headers)
    assert answer.status_code == status
    told = answer.json()["error"]
    assert told["code"] == code
    assert "/" not in told["message"].replace("/v1/languages", "")
    assert service.streams == 0


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            [("file", (None, "talk.wav"))],
            "'file' is a text in this form; curl sends file=@talk.wav.",
        ),
        ([("file", ("a", b"x")), ("file", ("b", b"x"))], "Too many files"),
        (
            [("file", ("a", b"x")), ("timestamp_granularities[]", (None, "line"))],
            "'timestamp_granularities[]' is segment or word.",
        ),
    ],
)
def test_what_is_wrong_with_a_form_is_told_by_name(opened, fields, told):
    _, web = opened()
    answer = web.post("/v1/audio/translations", files=fields)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "malformed")
    assert told in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("head", "told"),
    [
        (b"OggS" + bytes(200), "damaged or cut short"),
        (b"fLaC\0\0", "damaged or cut short"),
        (b"\0\0\0\x20ftypM4A " + bytes(200), "send wav, flac, ogg or mp3"),
    ],
)
def test_who_sends_a_file_is_not_told_to_install_anything(opened, monkeypatch, head, told):
    monkeypatch.setattr("shutil.which", lambda name: None)  # no ffmpeg
    _, web = opened()
    answer = web.post("/v1/audio/translations", files={"file": ("talk", head)})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "sound")
    assert told in error["message"]
    assert "ffmpeg" not in error["message"]


CUT = "The file is cut short: its header speaks of 16 s, but it holds 8 s."


@pytest.mark.parametrize("wanted", ["json", "text", "srt", "vtt", "verbose_json"])
def test_who_sends_a_file_that_is_cut_short_is_told_so(opened, wanted):
    """There is a text of it, which would pass for the whole."""
    _, web = opened(model="tests.talkers:bilingual")
    whole = wav()
    for file, told in [(whole[: 44 + len(whole) // 2 - 22], CUT), (whole, None)]:
        form = {"response_format": wanted}
        answer = web.post("/v1/audio/translations", files={"file": ("talk.wav", file)}, data=form)
        assert answer.status_code == 200
        assert answer.headers.get("dragoman-warning") == told
        if "json" in wanted:
            assert answer.json().get("warnings") == (told and [told])


def test_the_log_tells_of_a_file_that_is_cut_short_without_its_path(opened, caplog):
    _, web = opened(model="tests.talkers:bilingual")
    web.post("/v1/audio/translations", files={"file": ("talk.wav", wav()[:90000])})
    (told,) = [one.getMessage() for one in caplog.records if one.name.startswith("dragoman.audio")]
    assert told.startswith("The file is cut short: ")


def test_the_last_event_tells_that_a_file_is_cut_short(opened):
    _, web = opened(model="tests.talkers:bilingual")
    whole, lasts = wav(), []
    for file in (whole[: 44 + len(whole) // 2 - 22], whole):
        files, form = {"file": ("talk.wav", file)}, {"stream": "true"}
        answer = web.post("/v1/audio/translations", files=files, data=form)
        lasts.append(json.loads(answer.text.strip().split("data: ")[-1]))
    assert [one["type"] for one in lasts] == ["transcript.text.done"] * 2
    assert [one.get("warnings") for one in lasts] == [[CUT], None]


def test_a_disk_that_is_full_is_told_as_such(opened, monkeypatch, caplog):
    caplog.set_level("INFO")

    def save(file, path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(uploads, "_save", save)
    service, web = opened()
    answer = web.post("/v1/audio/translations", files={"file": ("talk.wav", wav(1))})
    assert (answer.status_code, answer.json()["error"]["type"]) == (500, "server_error")
    assert "try again later" in answer.json()["error"]["message"]
    (kept,) = [one.values for one in caplog.records if one.getMessage() == "file not kept"]
    assert kept == {"error": "OSError", "why": "No space left on device"}
    assert service.streams == 0


def test_a_form_in_letters_that_nobody_can_read_is_refused(opened):
    _, web = opened()
    kind = "multipart/form-data; boundary=x; charset=undefined"  # which Python knows, and refuses
    body = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\na\r\n--x--\r\n'
    answer = web.post("/v1/audio/translations", content=body, headers={"content-type": kind})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "malformed")


def test_a_full_server_says_so(opened):
    _, web = opened(streams=1)
    with web.websocket_connect("/v1/interpret") as socket:
        socket.send_text(json.dumps({"type": "start"}))
        socket.receive_text()
        answer = web.post("/v1/audio/translations", files={"file": ("talk.wav", wav(1))})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "full")


def test_files_take_no_place_from_a_live_talk():
    async def opened():
        service = make_service(streams=2)
        files = [await service.start(Start(), live=False) for _ in range(2)]
        with pytest.raises(Fault, match="All 2 streams"):
            await service.start(Start(), live=False)
        with pytest.raises(Fault, match="All 2 streams"), service.receiving():
            pass
        assert (service.status, service.streams) == ("ready", 2)
        talks = [await service.start(Start()) for _ in range(2)]
        assert (service.status, service.streams) == ("full", 4)
        with pytest.raises(Fault, match="All 2 streams"):
            await service.start(Start())
        assert [one.live for one in (*files, *talks)] == [False, False, True, True]
        service.drop(talks[0])
        with pytest.raises(Fault, match="All 2 streams"):  # the live one and the files
            await service.start(Start(), live=False)

    in_time(opened())


HEAD = 'Content-Disposition: form-data; name="file"; filename="talk.wav"'
KIND = {"Content-Type": "multipart/form-data; boundary=x"}


def line_to(url):
    host, port = url.removeprefix("ws://").split(":")
    return http.client.HTTPConnection(host, int(port))


def form(sound):
    return f"--x\r\n{HEAD}\r\n\r\n".encode() + sound + b"\r\n--x--\r\n"


@contextmanager
def sent(**settings):
    """A file that is being heard, so slowly that it would take hours; the service, and the line."""
    with running(**settings) as (service, url):
        line = line_to(url)
        line.request("POST", "/v1/audio/translations", form(wav(90, 4000)), KIND)
        wait_until(lambda: service._sessions)
        yield service, line
        line.close()


@contextmanager
def on_its_way(**settings):
    """Half of a file; the service, its address, the line, and the other half."""
    body = form(wav(1))
    half = len(body) // 2
    with running(**settings) as (service, url):
        line = line_to(url)
        line.putrequest("POST", "/v1/audio/translations")
        for name, value in {**KIND, "Content-Length": str(len(body))}.items():
            line.putheader(name, value)
        line.endheaders(body[:half])
        wait_until(lambda: service._receiving)
        yield service, url, line, body[half:]
        line.close()


def answered(line):
    answer = line.getresponse()
    return answer.status, json.loads(answer.read())


def in_chunks(body):
    return (body[at : at + 10_000] for at in range(0, len(body), 10_000))


def test_a_file_may_come_in_chunks_without_its_size_being_told(monkeypatch):
    """As some libraries send what they read from elsewhere."""
    body = form(wav(1))
    with running() as (service, url):
        for most, status in ((len(body), 200), (len(body) - 1, 413)):
            monkeypatch.setattr(openai_files, "MOST_BYTES", most)
            line = line_to(url)
            line.request("POST", "/v1/audio/translations", in_chunks(body), KIND)
            assert answered(line)[0] == status
            line.close()
        assert service.quiet


def test_a_process_does_not_end_while_a_file_is_on_its_way():
    with on_its_way() as (service, _, line, rest):
        service.draining = True
        assert not service.quiet
        line.send(rest)
        status, told = answered(line)
        assert (status, told["error"]["code"]) == (503, "draining")
        assert service.quiet


def test_no_file_is_sent_for_nothing():
    """Who could not be heard is told before the sound, which may be large, has come."""
    with on_its_way(streams=1) as (_, url, line, rest):
        other = line_to(url)
        other.putrequest("POST", "/v1/audio/translations")
        for name, value in {**KIND, "Content-Length": "100000000"}.items():
            other.putheader(name, value)
        other.endheaders(b"--x\r\n")
        status, told = answered(other)
        assert (status, told["error"]["code"]) == (503, "full")
        other.close()
        line.send(rest)
        assert answered(line)[0] == 200


def test_a_file_that_does_not_come_is_given_up():
    with on_its_way(idle=0.2) as (service, _, line, _):
        status, told = answered(line)
        assert (status, told["error"]["code"]) == (408, "idle")
        assert service.quiet


def test_a_file_that_comes_a_byte_at_a_time_is_given_up():
    with on_its_way(idle=0.5) as (service, _, line, rest):
        for byte in rest:
            with suppress(OSError):  # it hangs up
                line.send(bytes([byte]))
            if select.select([line.sock], [], [], 0.02)[0]:
                break
        status, told = answered(line)
        assert (status, told["error"]["code"]) == (408, "idle")
        assert service.quiet


def test_a_file_that_comes_fast_and_then_hardly_is_given_up(monkeypatch):
    monkeypatch.setattr(openai_files, "SLOWEST", 100)  # half a file would do for minutes
    with on_its_way(idle=0.5) as (_, _, line, rest):
        begun = time.monotonic()
        while not select.select([line.sock], [], [], 0.3)[0]:
            line.send(rest[:1])
            assert time.monotonic() - begun < 30
        assert answered(line)[0] == 408


def test_a_file_takes_no_longer_than_a_talk_may():
    with on_its_way(longest=0.5, idle=1000) as (_, _, line, _):
        assert answered(line)[0] == 408


def test_a_file_may_come_slowly_and_with_pauses(monkeypatch):
    monkeypatch.setattr(openai_files, "SLOWEST", 4000)
    with on_its_way(idle=2) as (_, _, line, rest):
        begun = time.monotonic()
        for number, at in enumerate(range(0, len(rest), 1000)):
            line.send(rest[at : at + 1000])
            time.sleep(0.5 if number == 8 else 0.1)
        assert time.monotonic() - begun > 2
        assert answered(line)[0] == 200


def test_who_hangs_up_before_the_file_is_there_is_no_fault_of_the_server(caplog):
    with on_its_way() as (service, _, line, _):
        line.close()
        wait_until(lambda: not service._receiving)
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


def test_a_file_whose_sender_is_gone_is_heard_no_longer():
    with sent(fastest=0.001) as (service, line):
        line.close()
        wait_until(lambda: service.streams == 0)


def test_half_a_file_is_not_told_as_if_it_were_the_whole():
    with sent(fastest=10) as (service, line):
        (session,) = service._sessions.values()
        wait_until(lambda: session.sample > 60 * 16000)
        service.stop_all()  # what waits is heard, and so the sleeper wakes
        answer = line.getresponse()
        assert (answer.status, json.loads(answer.read())["error"]["code"]) == (503, "draining")


def test_a_file_that_is_given_up_is_read_no_further(monkeypatch):
    """The machine is behind: it does not work on for nobody."""
    read, take = [], uploads._next
    monkeypatch.setattr(uploads, "_next", lambda chunks: read.append(1) or take(chunks))
    with sent(fastest=10) as (service, line):
        (session,) = service._sessions.values()
        wait_until(lambda: session.sample > 60 * 16000)
        session.fail(Fault(Code.OVERLOADED, "Go on elsewhere."))
        before = len(read)
        answer = line.getresponse()
        assert (answer.status, json.loads(answer.read())["error"]["code"]) == (503, "overloaded")
    assert len(read) <= before + 1


def wait_until(what, seconds=30.0):
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, "It never came to be."
        time.sleep(0.01)
