"""What Prometheus scrapes: vLLM's /metrics of every service, node_exporter of every host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sparkwright.config.settings import is_loopback
from sparkwright.config.tls import scheme
from sparkwright.plan.plan import HostPlan, ServicePlan
from sparkwright.plan.service import own_address


@dataclass(frozen=True)
class Scraped:
    """A host as Prometheus sees it: its plan, and the address that it is reached at."""

    plan: HostPlan
    address: str

    @property
    def name(self) -> str:
        """The host's name in the inventory."""
        return self.plan.host


def vllm_targets(hosts: Iterable[Scraped], *, local: bool) -> list[dict[str, Any]]:
    """Targets with their labels, for file_sd.

    Args:
        local: those that only their own host reaches, as an agent on it scrapes them. Otherwise
            those that others reach: behind a proxy with the key.
    """
    return [
        {
            "targets": [f"{own_address(service)}:{service.port}" if local
                        else f"{_bracketed(host.address)}:{service.client_port}"],
            "labels": _labels(host, service)
            | ({} if local or _scheme(host, service) == "http" else {"__scheme__": "https"}),
        }
        for host in hosts
        for service in host.plan.services
        if not service.follower and is_loopback(service.client_bind) is local
    ]  # fmt: skip


def node_targets(hosts: Iterable[Scraped], port: int) -> list[dict[str, Any]]:
    """node_exporter of every host."""
    return [
        {"targets": [f"{_bracketed(host.address)}:{port}"], "labels": {"host": host.name}}
        for host in hosts
    ]


def _scheme(host: Scraped, service: ServicePlan) -> str:
    return scheme(host.plan.settings, proxied=service.proxy is not None)


def _labels(host: Scraped, service: ServicePlan) -> dict[str, str]:
    return ({"exclusive": service.exclusive} if service.exclusive else {}) | {
        "host": host.name,
        "service": service.name,
        "recipe": service.recipe,
        "tag": service.image.tag,
    }


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address
