"""Sending a notice, by Apprise. How it went, never a traceback, and never a word of the address."""

import logging
import re
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sparkwright.config.notices import Address, as_json
from sparkwright.findings.user_error import refusal

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
    try:
        import apprise  # 0.2 s, for those alone who need it
    except ImportError:
        remedy = "pip install 'sparkwright[notify]'"
        raise refusal("notify", "Apprise, which sends, is missing", remedy) from None
    heard: list[str] = []
    taken = threading.Event()

    def work() -> None:
        try:
            with _listening(heard):
                target = _target(apprise, address)
                if target is None:
                    heard.append("Apprise knows no such address")
                # Not by Apprise's own notify: it would read a configuration and tags from around.
                elif target.notify(title=title, body=body, body_format=apprise.NotifyFormat.TEXT):
                    taken.set()
        except Exception as error:  # a plugin's fault must not end the watch over a fleet
            heard.append(type(error).__name__)

    thread = threading.Thread(target=work, daemon=True)
    with _bounded():
        thread.start()
        thread.join(TIMEOUT)
    if thread.is_alive():
        return f"no answer within {TIMEOUT:.0f} s"
    return None if taken.is_set() else _why(" ".join(heard))


def _target(apprise: Any, address: Address) -> Any:
    asset = apprise.AppriseAsset(
        app_id="sparkwright", app_desc="sparkwright", app_url="", http_redirects=False,
        image_url_mask="", image_url_logo="",
    )  # fmt: skip
    url = address.url.value
    target = apprise.Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
    # A webhook of a chat that Apprise knows gets what that chat reads; any other one JSON.
    if target is None and url.startswith(("http://", "https://")):
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
def _listening(heard: list[str]) -> Iterator[None]:
    """Keep Apprise's log instead of printing it: there may be an address in it."""
    logger, handler = logging.getLogger("apprise"), logging.Handler(logging.WARNING)
    handler.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    before = logger.propagate, logger.level
    logger.propagate = False
    logger.setLevel(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate, logger.level = before


def _why(heard: str) -> str:
    """In words of ours: what servers and Apprise say may have the address in it."""
    if status := _STATUS.search(heard):
        to = ": it sends on to another address, which is not followed"
        return f"HTTP {status[1]}{to if status[1].startswith('3') else ''}"
    if "Apprise knows" in heard or not heard:
        return "this is no address that Apprise can send to"
    return "no connection, or the server refuses it"
