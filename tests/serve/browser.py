"""Chromium, driven over its DevTools protocol: pages as people see them."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.request import urlopen

from websockets.sync.client import connect

PATIENCE = 60.0
"""Seconds that a page has for what it is waited for; a page that works needs a fraction of it."""


def chromium() -> str | None:
    """Where Chromium is, if it is here."""
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if name and (found := shutil.which(name))), None)


UNSEEN = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup", "AimEnabled")
"""Pages of its own that Chromium loads for every window, in which nobody types an address: they
take as long as ours."""


class Browser:
    """One Chromium without a window; its microphone is a sound file."""

    def __init__(self, folder: Path, microphone: Path | None, *more: str) -> None:
        fake = [
            "--use-fake-device-for-media-stream",
            "--use-fake-ui-for-media-stream",
            f"--use-file-for-fake-audio-capture={microphone}%noloop",
        ]
        self._process = subprocess.Popen(
            [
                chromium() or "chromium",
                *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"),
                *("--disable-dev-shm-usage", "--disable-background-networking", "--mute-audio"),
                *("--remote-debugging-port=0", f"--user-data-dir={folder / 'profile'}"),
                f"--disable-features={','.join(UNSEEN)}",
                *(fake if microphone else []),
                *more,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._downloads = folder / "downloads"
        self._number = 0
        try:
            port, path = self._told(folder / "profile" / "DevToolsActivePort")
            self._port = int(port)
            self._line = ExitStack()
            self._socket = self._line.enter_context(
                connect(f"ws://127.0.0.1:{port}{path}", max_size=None)
            )
        except BaseException:
            self._process.kill()
            raise

    def open(self, address: str, width: int = 1280, height: int = 800, dark: bool = False) -> Page:
        """A page in a profile of its own."""
        context = self._call("Target.createBrowserContext")["browserContextId"]
        folder = self._downloads / context
        folder.mkdir(parents=True)
        self._call(
            "Browser.setDownloadBehavior",
            behavior="allow",
            browserContextId=context,
            downloadPath=str(folder),
        )
        made = self._call("Target.createTarget", url="about:blank", browserContextId=context)
        page = Page(self._port, made["targetId"], context, folder)
        page.resize(width, height, dark)
        page.go(address)
        return page

    def close(self) -> None:
        self._line.close()
        self._process.terminate()
        self._process.wait(10)

    def _told(self, file: Path) -> list[str]:
        """The port and the path that Chromium writes down once it is ready."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self._process.poll() is None:
            if file.exists() and len(lines := file.read_text().split()) == 2:
                return lines
            time.sleep(0.02)
        raise RuntimeError("Chromium does not start.")

    def forbid(self, page: Page, what: str) -> None:
        """Something that the page may not use."""
        self._call(
            "Browser.setPermission",
            permission={"name": what},
            setting="denied",
            browserContextId=page.context,
        )

    def _call(self, method: str, **params: object) -> dict:
        self._number += 1
        return answer_to(self._socket, self._number, method, params)


def answer_to(socket, number: int, method: str, params: dict, heard=None) -> dict:
    """Send a command, and wait for its answer; what comes before it is handed to `heard`."""
    socket.send(json.dumps({"id": number, "method": method, "params": params}))
    while True:
        message = json.loads(socket.recv(PATIENCE))
        if message.get("id") == number:
            if "error" in message:
                raise RuntimeError(f"{method}: {message['error']['message']}")
            return message["result"]
        if heard is not None:
            heard(message)


class Page:
    """A page: look at it, click, type, take pictures; its errors are kept in `errors`."""

    def __init__(self, port: int, target: str, context: str, downloads: Path) -> None:
        self._target, self._downloads, self._port = target, downloads, port
        self.context = context  # the profile
        self._line = ExitStack()
        self._socket = self._line.enter_context(
            connect(f"ws://127.0.0.1:{port}/devtools/page/{target}", max_size=None)
        )
        self._number = 0
        self.errors: list[str] = []
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: object) -> dict:
        self._number += 1
        return answer_to(self._socket, self._number, method, params, self._heard)

    def go(self, address: str) -> None:
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script: str):
        """The value of an expression; a promise is waited for."""
        told = self.call(
            "Runtime.evaluate",
            expression=script,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        if "exceptionDetails" in told:
            raise RuntimeError(told["exceptionDetails"]["exception"].get("description", "?"))
        return told["result"].get("value")

    def wait(self, script: str, seconds: float = PATIENCE):
        """Wait until an expression is true, and return it."""
        until = time.monotonic() + seconds
        while not (value := self._asked(script)):
            if time.monotonic() > until:
                seen = self.run("document.body.innerText")
                raise AssertionError(f"Never: {script}\n{seen}\n{self.errors}")
            time.sleep(0.03)
        return value

    def _asked(self, script: str):
        """The value of an expression, or None of a page that is left for another meanwhile."""
        try:
            return self.run(script)
        except RuntimeError as error:
            if "navigated" not in str(error):
                raise
            return None

    def text(self, name: str) -> str:
        """The text of an element as it is shown."""
        return self.run(f"document.getElementById('{name}').innerText.trim()")

    def click(self, selector: str) -> None:
        """A real click in the middle of what is seen; it must be there to be hit."""
        box = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'nearest'}); const b = e.getBoundingClientRect();"
            " const [x, y] = [b.x + b.width / 2, b.y + b.height / 2];"
            " const hit = document.elementFromPoint(x, y);"
            " return {x, y, hit: e === hit || e.contains(hit)}; })()"
        )
        assert box["hit"], f"{selector} is covered or out of sight"
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=box["x"],
                y=box["y"],
                button="left",
                clickCount=1,
            )

    def press(self, key: str, shift: bool = False) -> None:
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "ArrowLeft": 37, "ArrowRight": 39}
        text = {"Enter": "\r", " ": " "}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code="Space" if key == " " else key,
                windowsVirtualKeyCode=codes[key],
                modifiers=8 if shift else 0,
                **({"text": text} if kind == "keyDown" and text else {}),
            )

    def choose(self, name: str, value: str) -> None:
        """Choose from a list, or set a slider."""
        kind = (
            "input" if self.run(f"document.getElementById('{name}').type") == "range" else "change"
        )
        self.run(
            f"(() => {{ const e = document.getElementById('{name}'); e.value = {json.dumps(value)};"
            f" e.dispatchEvent(new Event('{kind}', {{bubbles: true}})); }})()"
        )

    def put_file(self, selector: str, path: Path) -> None:
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def downloaded(self, name: str) -> bytes:
        """A file that the page has saved."""
        file, until = self._downloads / name, time.monotonic() + PATIENCE
        while not file.exists():
            assert time.monotonic() < until, f"{name} was never saved; {self.text('trouble')}"
            time.sleep(0.03)
        data = file.read_bytes()
        file.unlink()
        return data

    def resize(self, width: int, height: int, dark: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self) -> None:
        self._line.close()
        with urlopen(f"http://127.0.0.1:{self._port}/json/close/{self._target}"):
            pass

    def _heard(self, message: dict) -> None:
        """Errors of scripts and of the browser's own rules, such as those about what may load."""
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Page.javascriptDialogOpening":  # such as: leave this page?
            self._number += 1
            answer = {"method": "Page.handleJavaScriptDialog", "params": {"accept": True}}
            self._socket.send(json.dumps({"id": self._number, **answer}))
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.errors.append(params["entry"]["text"] + " " + params["entry"].get("url", ""))
