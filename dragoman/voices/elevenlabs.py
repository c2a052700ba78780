"""ElevenLabs: voices of a cloud service. The text is sent to it; the key is in the environment."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from dragoman.audio.chunk import Samples
from dragoman.audio.pcm import from_pcm16
from dragoman.errors import DragomanError
from dragoman.voices.base import Synthesiser
from dragoman.voices.polish import polish

KEY, ENDPOINT = "ELEVENLABS_API_KEY", "ELEVENLABS_BASE_URL"
SERVICE = "https://api.elevenlabs.io"
SPEAKER = "JBFqnCBsd6RMkjVDRZzb"  # George
MODEL = "eleven_flash_v2_5"  # the quickest
SLOWEST, FASTEST = 0.7, 1.2  # what the service accepts
TIMEOUT = 15.0
TRIES = 3

_LANGUAGES = """
    ar bg cs da de el en es fi fr hi hr hu id it ja ko ms nl no pl pt ro ru sk sv ta tl tr uk vi zh
"""
LANGUAGES = tuple(_LANGUAGES.split())


class ElevenLabsVoice(Synthesiser):
    """A speaker of the service, by its voice id."""

    rate = 24000

    def __init__(
        self,
        language: str,
        speaker: str | None = None,
        *,
        timeout: float = TIMEOUT,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.languages = (language,)
        self.name = "elevenlabs" if speaker is None else f"elevenlabs:{speaker}"
        self._speaker = speaker or SPEAKER
        self._timeout, self._sleep = timeout, sleep
        self._key = os.environ.get(KEY, "")
        self._service = os.environ.get(ENDPOINT, SERVICE).rstrip("/")
        if not self._key:
            raise DragomanError(f"The voice 'elevenlabs' needs a key: set {KEY}.")

    def load(self) -> None:
        """Nothing is asked of the service before there is text: it charges for it."""

    def _pronounce(self, text: str, speed: float) -> Samples:
        sound = self._fetch(self._request(text, min(FASTEST, max(SLOWEST, speed))))
        return polish(from_pcm16(sound[: len(sound) // 2 * 2]), self.rate)

    def _request(self, text: str, speed: float) -> Request:
        body = {
            "text": text,
            "model_id": MODEL,
            "language_code": {"tl": "fil"}.get(self.languages[0], self.languages[0]),
            "voice_settings": {"speed": round(speed, 2)},
        }
        request = Request(
            f"{self._service}/v1/text-to-speech/{quote(self._speaker, safe='')}"
            f"?output_format=pcm_{self.rate}",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        # Who leads elsewhere does not lead the key there.
        request.add_unredirected_header("xi-api-key", self._key)
        return request

    def _fetch(self, request: Request) -> bytes:
        """The sound; a service that is busy is asked again, a little later each time."""
        for tries_left in reversed(range(TRIES)):
            try:
                with urlopen(request, timeout=self._timeout) as answer:
                    return bytes(answer.read())
            except HTTPError as error:
                if not tries_left or error.code not in (429, 500, 502, 503, 504):
                    raise DragomanError(_told(error)) from None
                self._sleep(_wait(error, TRIES - tries_left))
            except TimeoutError:
                raise DragomanError(
                    f"ElevenLabs did not answer within {self._timeout:g} seconds."
                ) from None
            except (URLError, OSError, HTTPException) as error:
                reason = getattr(error, "reason", error)
                if isinstance(reason, TimeoutError):
                    reason = f"no answer within {self._timeout:g} seconds"
                raise DragomanError(
                    f"ElevenLabs cannot be reached at {self._service}: {reason}."
                ) from None
        raise AssertionError("the last try returns or raises")


def missing(language: str) -> str | None:
    """What has to be done before the service can be asked."""
    return None if os.environ.get(KEY) else f"set {KEY}"


def _wait(error: HTTPError, tries: int) -> float:
    """Seconds until the next try: what the service asks for, else 1, 2, 4, but not long."""
    asked = error.headers.get("Retry-After", "")
    return min(10.0, float(asked) if asked.isdecimal() else 2.0 ** (tries - 1))


def _told(error: HTTPError) -> str:
    """What the service said, in a sentence."""
    try:
        detail = json.loads(error.read())["detail"]
        told = str(detail["message"] if isinstance(detail, dict) else detail)
    except Exception:  # whatever stands there instead, the status says enough
        told = error.reason
    told = told.rstrip(".")
    if error.code == 401:
        return f"ElevenLabs refuses the key in {KEY}: {told}."
    if error.code == 429:
        return f"ElevenLabs is asked too often for this key: {told}."
    return f"ElevenLabs refused to speak (status {error.code}): {told}."
