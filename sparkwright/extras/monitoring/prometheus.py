"""Files for Prometheus and Grafana: targets, alert rules and a dashboard."""

import json
from collections.abc import Sequence
from typing import Any

import yaml

from sparkwright.checks.service.diagnose import CHECKS
from sparkwright.config.settings import is_loopback
from sparkwright.config.templates import template
from sparkwright.config.tls import clients_ca, scheme
from sparkwright.engines import DEFAULT, ENGINES, engine
from sparkwright.engines.engine import Engine
from sparkwright.findings import thresholds
from sparkwright.findings.check import shown
from sparkwright.host.lib.exclusive import NOBODY
from sparkwright.plan.plan import HostPlan

#: File beside prometheus.yml with the fleet's API key, which proxies require. The user writes this
#: file.
KEY = "api_key"
#: File beside prometheus.yml with the CA's certificate (`sparkwright ca`), required with TLS.
CA = "ca.crt"
_HEAD = "# Written by `sparkwright monitoring`. Changes made here are overwritten.\n"


def files(plans: Sequence[tuple[str, HostPlan]], node_port: int) -> dict[str, str]:
    """Text of every file by its path below the output directory.

    Args:
        plans: address and plan of each host.
        node_port: port of node_exporter on every host.
    """
    ca = CA if any(clients_ca(plan.settings) for _, plan in plans) else None
    rule_file = yaml.safe_dump(rules(), sort_keys=False, width=100, allow_unicode=True)
    nodes = [_target(address, node_port, host=plan.host) for address, plan in plans]
    local = {plan.host: _services(plan) for _, plan in plans}
    published = [target for address, plan in plans for target in _services(plan, address)]
    data = {
        "targets/services.json": published,
        "targets/node.json": nodes,
        "grafana/sparkwright.json": dashboard(),
        **{f"targets/local/{host}.json": targets for host, targets in local.items() if targets},
    }
    return {
        "prometheus.yml": template("monitoring/prometheus.yml.j2").render(
            key=KEY, ca=ca, renamed=renamed()
        ),
        "rules/sparkwright.yml": f"{_HEAD}{rule_file}",
        **{path: json.dumps(document, indent=1) + "\n" for path, document in data.items()},
    }


def _services(plan: HostPlan, address: str | None = None) -> list[dict[str, Any]]:
    """Targets that other machines reach at an address, behind a proxy with the key; or, without a
    proxy, targets for an agent on their own host.
    """
    targets = []
    for service in plan.services:
        if service.follower or is_loopback(service.bind) is not (address is None):
            continue
        group = service.settings.exclusive
        labels = {"exclusive": group} if group else {}
        labels |= {"idle": "stops"} if group and NOBODY in plan.groups[group] else {}
        labels |= {"host": plan.host, "service": service.name, "recipe": service.recipe.name}
        labels["tag"] = service.image.tag
        if scheme(plan.settings, proxied=service.proxy) == "https":
            labels["__scheme__"] = "https"
        targets.append(_target(address or service.bind, service.port, **labels))
    if (own := plan.settings.address) and is_loopback(own.bind) is (address is None):
        labels = {"host": plan.host, "service": "address"}
        labels |= {"__scheme__": "https"} if plan.settings.tls else {}
        targets.append(_target(address or own.bind, own.port, **labels))
    return targets


def _target(address: str, port: int, **labels: str) -> dict[str, Any]:
    at = f"[{address}]" if ":" in address else address
    return {"targets": [f"{at}:{port}"], "labels": labels}


def renamed() -> dict[str, str]:
    """Metrics of other engines -> the default engine's names for these metrics."""
    names = _metrics(engine(DEFAULT))
    return dict(
        _histogram(metric, names[neutral])
        for name in ENGINES
        if name != DEFAULT
        for neutral, metric in _metrics(engine(name)).items()
        if neutral in names
    )


def _histogram(metric: str, name: str) -> tuple[str, str]:
    """Rename the common part of both names, so that a histogram's buckets are also renamed."""
    end = next((end for end in ("_sum", "_count") if metric.endswith(end)), "")
    both = end and name.endswith(end)
    return (metric.removesuffix(end), name.removesuffix(end)) if both else (metric, name)


def _metrics(program: Engine) -> dict[str, str]:
    """An engine's metrics by neutral names, without texts of labels."""
    every = {**program.metrics, **program.graphs}
    return {neutral: metric for neutral, metric in every.items() if "{" not in metric}


def rules() -> dict[str, Any]:
    """The rule file, as data: each alert with the reason, remedy and source of its diagnosis."""
    alerts = _read("alerts", limits=thresholds.limits(), m=engine(DEFAULT).metrics)
    return dict(_read("rules", alerts=alerts, checks=CHECKS.texts, shown=shown))


def dashboard() -> dict[str, Any]:
    """The dashboard, as Grafana imports it."""
    served = engine(DEFAULT)
    data = _read("dashboard", m=served.metrics, graphs=served.graphs)
    return {**data["dashboard"], "panels": _read("panels", **data)}


def _read(name: str, **variables: Any) -> Any:
    """Data of a rendered template."""
    return yaml.safe_load(template(f"monitoring/{name}.yaml.j2").render(variables))
