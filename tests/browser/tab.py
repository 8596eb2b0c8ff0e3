"""A tab of chromium in which a test evaluates expressions, clicks and measures."""

import base64
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.browser.chromium import browser


class Tab:
    """A page that a test controls over a pipe, by the protocol of the browser's developer tools."""

    def __init__(self, to: int, of: int) -> None:
        self._to, self._of = to, of
        self._rest, self._number, self._session = b"", 0, ""
        #: Errors of the page's console and of its policy.
        self.errors: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Performance", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol, and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._rest:
                self._rest += os.read(self._of, 1 << 20)
            line, _, self._rest = self._rest.partition(b"\0")
            answer = json.loads(line)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        if event.get("method") == "Log.entryAdded":
            self.errors.append(event["params"]["entry"]["text"])
        if event.get("method") == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(event["params"]["exceptionDetails"]))

    def open(
        self,
        url: str,
        *,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        scale: float = 1,
    ) -> None:
        """Open an address in a window of the given size."""
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=url)

    def value(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, expression: str, seconds: float = 20.0) -> Any:
        """Return the value of an expression, once the value is true."""
        end = time.monotonic() + seconds
        while not (value := self.value(expression)):
            body = self.value("document.body && document.body.innerText")
            assert time.monotonic() < end, f"{expression}\n{body}\n{self.errors}"
            time.sleep(0.05)
        return value

    def metric(self, name: str) -> float:
        """Return a performance metric of the browser."""
        metrics = self.call("Performance.getMetrics")["metrics"]
        return next(float(item["value"]) for item in metrics if item["name"] == name)

    def picture(self, file: Path) -> None:
        """Write a picture of the window."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        file.write_bytes(base64.b64decode(data))


@contextmanager
def opened() -> Iterator[Tab]:
    """A tab of a browser without a window; the browser ends with the block."""
    (theirs_in, to), (of, theirs_out) = os.pipe(), os.pipe()
    pipes = f"exec 3<&{theirs_in} 4>&{theirs_out}"
    with tempfile.TemporaryDirectory(prefix="sparkwright-tab-", ignore_cleanup_errors=True) as home:
        program = subprocess.Popen(
            ["bash", "-c", f'{pipes}; exec "$@"', "bash", browser(), "--headless=new",
             "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
             "--disable-background-networking", "--ignore-certificate-errors",
             f"--user-data-dir={home}", "--remote-debugging-pipe"],
            pass_fds=(theirs_in, theirs_out), stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            yield Tab(to, of)
        finally:
            program.kill()
            program.wait()
            os.close(to)
            os.close(of)
