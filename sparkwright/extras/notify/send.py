"""Sending a notice, by Apprise. How it went, never a traceback, and never a word of the address."""

from __future__ import annotations

import logging
import re
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sparkwright.config.notices import Address, as_json
from sparkwright.findings.user_error import UserError, mistake

#: Seconds that one notice may take: a server that answers drop by drop ends no run.
TIMEOUT = 30.0
#: Bytes of memory that it may take beyond what there is: nor does one that answers without end.
_MEMORY = 512 << 20
_STATUS = re.compile("error=([0-9]{3})")


def send(address: Address, title: str, body: str) -> str | None:
    """Send it once. Returns why it could not be sent, or None.

    A redirect is not followed: it could lead the address's token to another host.

    Raises:
        UserError: without Apprise.
    """
    apprise = _apprise()
    said: list[str] = []

    def work() -> None:
        try:
            with _listening(said):
                target = _target(apprise, address)
                if target is None:
                    said.append("Apprise knows no such address")
                # Not by Apprise's own notify: it would read a configuration and tags from around.
                elif target.notify(title=title, body=body, body_format=apprise.NotifyFormat.TEXT):
                    said[:] = [""]
        except Exception as error:  # a plugin's fault must not end the watch over a fleet
            said.append(type(error).__name__)

    thread = threading.Thread(target=work, daemon=True)
    with _bounded():
        thread.start()
        thread.join(TIMEOUT)
    if thread.is_alive():
        return f"no answer within {TIMEOUT:.0f} s"
    return _why(said) if said != [""] else None


def _apprise() -> Any:
    try:
        import apprise  # 0.2 s, for those alone who need it
    except ImportError:
        remedy = "pip install 'sparkwright[notify]'"
        raise UserError([mistake("notify", "Apprise, which sends, is missing", remedy)]) from None
    return apprise


def _target(apprise: Any, address: Address) -> Any:
    asset = apprise.AppriseAsset(
        app_id="sparkwright", app_desc="sparkwright", app_url="", http_redirects=False,
        image_url_mask="", image_url_logo="",
    )  # fmt: skip
    url = address.url.value
    web = url.startswith(("http://", "https://"))
    # A webhook of a chat that Apprise knows gets what that chat reads; any other one JSON.
    target = apprise.Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
    if target is None and web:
        target = apprise.Apprise.instantiate(as_json(url), asset=asset, suppress_exceptions=True)
    return target


@contextmanager
def _bounded() -> Iterator[None]:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + _MEMORY
    if soft != resource.RLIM_INFINITY:
        most = min(most, soft)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def _listening(said: list[str]) -> Iterator[None]:
    """What Apprise says, instead of on standard error: there may be an address in it."""

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    logger, handler = logging.getLogger("apprise"), Heard(logging.WARNING)
    before = logger.propagate, logger.level
    logger.propagate = False
    logger.setLevel(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate, logger.level = before


def _why(said: list[str]) -> str:
    """In words of ours: what servers and Apprise say may have the address in it."""
    text = " ".join(said)
    status = _STATUS.search(text)
    if status and status[1].startswith("3"):
        return f"HTTP {status[1]}: it sends on to another address, which is not followed"
    if status:
        return f"HTTP {status[1]}"
    if "Apprise knows" in text or not text:
        return "this is no address that Apprise can send to"
    return "no connection, or the server refuses it"
