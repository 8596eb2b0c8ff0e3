"""The API keys that a host's proxies know: asked, or changed without touching anything else."""

from __future__ import annotations

from pyinfra.api.host import Host

from sparkwright.facts.asking import ask
from sparkwright.facts.memory import memory
from sparkwright.host.proxy import keys as program
from sparkwright.host.proxy.keys import KeysRequest
from sparkwright.operations import locks, proxies
from sparkwright.run.state import HostRun


def known(host: Host, one: HostRun) -> list[str]:
    """Hash and name of each key that opens the host's proxies. One remote execution."""
    return _ask(host, one, None)


def planned(host: Host, one: HostRun) -> list[str]:
    """The same, after the proxies were given the keys of the plan, under the host's lock."""
    if one.proxies is None:
        return []
    locks.take(host)
    text, _ = one.proxy_files[one.proxies.keys]
    answer = _ask(host, one, text)
    memory(host).forget()
    return answer


def _ask(host: Host, one: HostRun, text: str | None) -> list[str]:
    if one.proxies is None:
        return []
    request = KeysRequest(
        proxy=proxies.request({}, one.proxies, start=False),
        place=one.proxies.keys,
        text=text,
    )
    return list(ask(host, program, request, tuple[str, ...], timeout=60))
