"""Files for Prometheus and Grafana: targets, alert rules and a dashboard."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import yaml

from sparkwright.config.settings import is_loopback
from sparkwright.config.templates import template
from sparkwright.config.tls import clients_ca, scheme
from sparkwright.extras.monitoring.alerts import rules
from sparkwright.extras.monitoring.dashboard import dashboard
from sparkwright.plan.plan import HostPlan, ServicePlan
from sparkwright.plan.service import own_address

#: Beside prometheus.yml, the fleet's API key: proxies ask for it. The user puts it there.
KEY = "api_key"
#: Beside it with TLS, the CA's certificate (`sparkwright ca`).
CA = "ca.crt"
_HEAD = "# Written by `sparkwright monitoring`. Changes made here are overwritten.\n"


def files(plans: Sequence[tuple[str, HostPlan]], node_port: int) -> dict[str, str]:
    """Text of every file by its path below the output directory.

    Args:
        plans: address and plan of each host.
        node_port: where node_exporter listens on every host.
    """
    ca = CA if any(clients_ca(plan.settings) for _, plan in plans) else None
    rule_file = yaml.safe_dump(rules(), sort_keys=False, width=100, allow_unicode=True)
    nodes = [_target(address, node_port, host=plan.host) for address, plan in plans]
    local = {plan.host: _of_host(plan) for _, plan in plans}
    published = [target for address, plan in plans for target in _of_others(address, plan)]
    data = {
        "targets/vllm.json": published,
        "targets/node.json": nodes,
        "grafana/sparkwright.json": dashboard(),
        **{f"targets/local/{host}.json": targets for host, targets in local.items() if targets},
    }
    return {
        "prometheus.yml": template("monitoring/prometheus.yml.j2").render(key=KEY, ca=ca),
        "rules/sparkwright.yml": f"{_HEAD}{rule_file}",
        **{path: json.dumps(document, indent=1) + "\n" for path, document in data.items()},
    }


def _of_others(address: str, plan: HostPlan) -> list[dict[str, Any]]:
    """Targets that other machines reach: behind a proxy with the key."""
    return [
        _target(address, service.client_port, **_labels(plan, service), **_https(plan, service))
        for service in plan.services
        if not service.follower and not is_loopback(service.client_bind)
    ]


def _of_host(plan: HostPlan) -> list[dict[str, Any]]:
    """Targets that only their own host reaches, as an agent on it scrapes them."""
    return [
        _target(own_address(service), service.port, **_labels(plan, service))
        for service in plan.services
        if not service.follower and is_loopback(service.client_bind)
    ]


def _target(address: str, port: int, **labels: str) -> dict[str, Any]:
    at = f"[{address}]" if ":" in address else address
    return {"targets": [f"{at}:{port}"], "labels": labels}


def _https(plan: HostPlan, service: ServicePlan) -> dict[str, str]:
    secured = scheme(plan.settings, proxied=service.proxy is not None) == "https"
    return {"__scheme__": "https"} if secured else {}


def _labels(plan: HostPlan, service: ServicePlan) -> dict[str, str]:
    group = {"exclusive": service.exclusive} if service.exclusive else {}
    return {
        **group, "host": plan.host, "service": service.name, "recipe": service.recipe,
        "tag": service.image.tag,
    }  # fmt: skip
