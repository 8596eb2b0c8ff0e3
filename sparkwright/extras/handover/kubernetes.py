"""Kubernetes: a Deployment, a Service and a NetworkPolicy for each service of each host."""

from __future__ import annotations

import hashlib
import math
import re
from typing import Any

from sparkwright.config.templates import template
from sparkwright.engines.vllm.arguments import amount
from sparkwright.engines.vllm.data import PARALLEL
from sparkwright.findings.user_error import UserError
from sparkwright.plan.plan import ServicePlan

#: Longest value of a label, and longest name of an object.
_LONGEST = 63
_NODE = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


def kubernetes(host: str, context: dict[str, Any]) -> tuple[dict[str, str], str]:
    """The file of manifests, and the command that makes the key's Secret of standard input.

    Raises:
        UserError: for a host whose name no node can have.
    """
    node, service = host.lower(), context["service"]
    if not _NODE.fullmatch(node) or len(node) > _LONGEST:
        what = "no node of Kubernetes can have this name"
        remedy = "call the host in the inventory what `kubectl get nodes` calls it"
        raise UserError.of(f"inventory: {host}", what, remedy, host)
    name = _name(f"{context['name']}-{host}")
    labels = {"app.kubernetes.io/name": "vllm", "app.kubernetes.io/instance": name}
    text = template("handover/kubernetes.yaml.j2").render(
        context, name=name, labels=labels, node=node, gpus=len(service.gpus) or _ranks(service)
    )
    key = context["key_name"]
    command = f"kubectl create secret generic {name} --from-file={key}=/dev/stdin"
    return {f"{context['name']}.yaml": text}, command


def _name(whole: str) -> str:
    """A DNS label of service and host, no two the same."""
    plain = re.sub(r"[^a-z0-9-]+", "-", whole.lower()).strip("-")
    if plain == whole and len(plain) <= _LONGEST:
        return plain
    return f"{plain[: _LONGEST - 9].strip('-')}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"


def _ranks(service: ServicePlan) -> int:
    arguments = dict(service.arguments)
    return math.prod(int(amount(arguments.get(name, 1)) or 1) for name in PARALLEL)
