"""Answers of invented hosts to the live page, and a server of the page."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sparkwright.extras.dashboard.contents import Page
from sparkwright.extras.dashboard.glance import Glance
from sparkwright.extras.dashboard.render import html, part
from sparkwright.extras.dashboard.server import Server, Site
from sparkwright.extras.dashboard.view import Expected, Fleet
from sparkwright.host.lib.docker import Container
from sparkwright.host.lib.gpu import Gpu
from sparkwright.host.lib.http import Health
from sparkwright.host.load import HostLoad
from sparkwright.host.status import HostStatus, ServiceStatus
from sparkwright.results.status import Planned
from tests.unit.builders import catalog
from tests.unit.extras.bench.bench_results import NOON
from tests.unit.extras.dashboard.pages import page_of

NOW = 1_790_000_000.0
RELEASE = "1b45a560efec"
ACTED: list[tuple[str, str, str]] = []
MODEL = "AEON-7/Qwen3.6-35B-A3B-heretic-NVFP4"


def service(health: int | None = 200, release: str = RELEASE) -> ServiceStatus:
    """A service that runs a release."""
    container = Container(True, release, "vllm", started="2026-09-20T09:00:00Z")
    unit = {"ActiveState": "active", "NRestarts": "0"}
    return ServiceStatus(release, release, {}, container, unit, Health(health, 0.01))


def glance(at: float = 100.0, *, names: tuple[str, ...] = ("qwen36",), **more: Any) -> Glance:
    """A host that answers ten requests a second with 40 tokens each, since second 0."""
    metrics = {
        "generated": at * 40, "running": 2.0, "waiting": 1.0, "cache_used": 0.34,
        "first_token_sum": at * 0.12, "first_token_count": at,
    }  # fmt: skip
    gpu = Gpu("NVIDIA GB10", "12.1", "580.95.05", None, 66.0, 54.0, 97.0, 2405.0, 2520.0)
    load = HostLoad(at, dict.fromkeys(names, metrics), (gpu,), 120 << 30, 23 << 30)
    status = {"now": NOW + at, "lock": None, "switch": None, "history": ()}
    services = dict.fromkeys(names, service())
    made = HostStatus(**{**status, "services": services, **more.pop("status", {})})
    return Glance(load, made, **{"disks": {"/": (1_200 * 10**9, 3_700 * 10**9)}, **more})


def expected(*names: str, memory: Any = None) -> Expected:
    """A host on which these services are planned."""
    services = {
        name: Planned(RELEASE, "v1", {}, (), f"https://10.0.0.1:{8000 + n}/v1", (name,))
        for n, name in enumerate(names or ("qwen36",))
    }
    return Expected(services, dict.fromkeys(services, MODEL), memory)


def act(action: str, host: str, name: str) -> tuple[bool, str]:
    """Record an action, and report its success."""
    ACTED.append((action, host, name))
    return True, "<b>done</b>"


def empty() -> Page:
    """The page of a site without a run."""
    return page_of(made=NOON, catalog=catalog())


@contextmanager
def serving(
    fleet: Fleet,
    page: Callable[[], Page],
    control: Callable[[str, str, str], tuple[bool, str]] | None = None,
    title: str = "Fleet",
    **more: Any,
) -> Iterator[Site]:
    """A server of a fleet's page, on a free port."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    actions = ("start", "stop", "restart", "activate", "maintenance on") if control else ()
    site = Site(
        **{
            "fleet": fleet,
            "host": "127.0.0.1" if "tls" in more else "page.localhost",
            "port": port,
            "files": {
                "/": ("text/html", lambda: html(page(), live=True, actions=actions, title=title)),
                "/style.css": ("text/css", lambda: part("style.css")),
                "/script.js": ("text/javascript", lambda: part("script.js")),
            },
            "record": lambda: 0.0,
            "log": lambda host, service: f"{host} {service}: <b>a line</b>",
            "control": control,
            **more,
        }
    )
    server = Server(listening, site)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        listening.close()
