"""Files for Prometheus and Grafana: targets, alert rules and a dashboard."""

from __future__ import annotations

import json
from collections.abc import Iterable

import yaml

from sparkwright.config.tls import clients_ca
from sparkwright.extras.monitoring.alerts import rules
from sparkwright.extras.monitoring.dashboard import dashboard
from sparkwright.extras.monitoring.targets import Scraped, node_targets, vllm_targets

#: Beside prometheus.yml, the fleet's API key: proxies ask for it. The user puts it there.
KEY = "api_key"
#: Beside it with TLS, the CA's certificate (`sparkwright ca`).
CA = "ca.crt"
_HEAD = "# Written by `sparkwright monitoring`. Changes made here are overwritten.\n"


def files(hosts: Iterable[Scraped], node_port: int) -> dict[str, str]:
    """Every file's text by its path below the output directory.

    Args:
        node_port: where node_exporter listens on every host.
    """
    known = list(hosts)
    local = {
        f"targets/local/{host.name}.json": _json(found)
        for host in known
        if (found := vllm_targets([host], local=True))
    }
    return {
        "prometheus.yml": _HEAD + _yaml(_prometheus(_ca(known))),
        "rules/sparkwright.yml": _HEAD + _yaml(rules()),
        "targets/vllm.json": _json(vllm_targets(known, local=False)),
        "targets/node.json": _json(node_targets(known, node_port)),
        "grafana/sparkwright.json": _json(dashboard()),
        **local,
    }


def _ca(hosts: Iterable[Scraped]) -> bool:
    return any(clients_ca(host.plan.settings) for host in hosts)


def _prometheus(ca: bool) -> dict[str, object]:
    """What a Prometheus that has nothing else is started with; elsewhere two jobs to copy."""
    return {
        "global": {"scrape_interval": "15s", "evaluation_interval": "15s"},
        "rule_files": ["rules/sparkwright.yml"],
        "scrape_configs": [
            {
                "job_name": name,
                "file_sd_configs": [{"files": [f"targets/{name}.json"]}],
                **({"authorization": {"credentials_file": KEY}} if name == "vllm" else {}),
                **({"tls_config": {"ca_file": CA}} if name == "vllm" and ca else {}),
            }
            for name in ("vllm", "node")
        ],
    }


def _json(data: object) -> str:
    return json.dumps(data, indent=1) + "\n"


def _yaml(data: object) -> str:
    return yaml.safe_dump(data, sort_keys=False, width=100, allow_unicode=True)
