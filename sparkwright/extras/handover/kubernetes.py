"""Kubernetes: a Deployment, a Service and a NetworkPolicy for each service of each host."""

from __future__ import annotations

import hashlib
import math
import re
from pathlib import PurePosixPath
from typing import Any

import yaml

from sparkwright.engines.vllm.arguments import amount
from sparkwright.engines.vllm.data import PARALLEL
from sparkwright.extras.handover.service import Handover
from sparkwright.findings.user_error import UserError, mistake
from sparkwright.plan.container import BOOT_CACHES_MOUNT, SECRETS_MOUNT

#: What the key's line is called in its Secret.
KEY = PurePosixPath(SECRETS_MOUNT).name
#: What a label's value and an object's name may be at most.
_LONGEST = 63
_NODE = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
#: What no reader of YAML, of whatever version, takes for anything but text.
_WORD = re.compile(r"[A-Za-z][A-Za-z/.-]{2,}")


def files(one: Handover) -> dict[str, str]:
    """One file of manifests.

    Raises:
        UserError: for a host whose name no node can have.
    """
    head = (
        "# Written by sparkwright. What the cluster needs: docs/scale.md.\n"
        f"# The API key is in the Secret {_name(one)}, which is yours to make.\n"
    )
    documents = yaml.dump_all(
        [_deployment(one), _service(one), _policy(one)],
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=math.inf,
        explicit_start=True,
    )
    return {f"{one.name}.yaml": head + documents}


def secret(one: Handover) -> str:
    """The command that makes the key's Secret of standard input."""
    return f"kubectl create secret generic {_name(one)} --from-file={KEY}=/dev/stdin"


class _Dumper(yaml.SafeDumper):
    """Text in quotes: readers of YAML 1.1 and 1.2 differ in what else it is (``1e3``, ``y``)."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = None if _WORD.fullmatch(value) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)
_Dumper.ignore_aliases = lambda self, data: True  # type: ignore[method-assign]


def _name(one: Handover) -> str:
    """A DNS label of service and host, no two the same."""
    whole = f"{one.name}-{one.host}"
    plain = re.sub(r"[^a-z0-9-]+", "-", whole.lower()).strip("-")
    if plain == whole and len(plain) <= _LONGEST:
        return plain
    return f"{plain[: _LONGEST - 9].strip('-')}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"


def _node(one: Handover) -> str:
    name = one.host.lower()
    if not _NODE.fullmatch(name) or len(name) > _LONGEST:
        raise UserError(
            [
                mistake(
                    f"inventory: {one.host}",
                    "no node of Kubernetes can have this name",
                    "call the host in the inventory what `kubectl get nodes` calls it",
                    one.host,
                )
            ]
        )
    return name


def _labels(one: Handover) -> dict[str, str]:
    return {"app.kubernetes.io/name": "vllm", "app.kubernetes.io/instance": _name(one)}


def _meta(one: Handover) -> dict[str, Any]:
    return {"name": _name(one), "labels": _labels(one)}


def _deployment(one: Handover) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _meta(one),
        "spec": {
            "replicas": 1,
            # The GPU has no room for the next one beside it.
            "strategy": {"type": "Recreate"},
            "progressDeadlineSeconds": one.service.boot_seconds + 600,
            "selector": {"matchLabels": _labels(one)},
            "template": {"metadata": {"labels": _labels(one)}, "spec": _pod(one)},
        },
    }


def _pod(one: Handover) -> dict[str, Any]:
    volumes, mounts = _volumes(one)
    inside, container = one.inside, one.service.container
    return {
        "nodeSelector": {"kubernetes.io/hostname": _node(one)},
        "automountServiceAccountToken": False,
        # Variables of other Services would be taken for the engine's own (VLLM_PORT).
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 60,
        "containers": [
            {
                "name": "vllm",
                "image": one.image,
                "command": [_literal(word) for word in inside.entrypoint],
                "args": [_literal(word) for word in inside.command],
                "env": [
                    {"name": name, "value": _literal(value)}
                    for name, value in inside.environment.items()
                ],
                "ports": [{"name": "http", "containerPort": one.service.port}],
                "startupProbe": _probe(period=10, failures=-(-one.service.boot_seconds // 10)),
                "readinessProbe": _probe(period=10, failures=3),
                "livenessProbe": _probe(period=30, failures=4),
                "resources": {"limits": {"nvidia.com/gpu": _gpus(one)}},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"], "add": list(container.cap_add)},
                    "readOnlyRootFilesystem": container.strict,
                    "seccompProfile": {"type": "RuntimeDefault"},
                },
                "volumeMounts": mounts,
            }
        ],
        "volumes": volumes,
    }


def _literal(text: str) -> str:
    """Text in which the kubelet finds no ``$(VARIABLE)`` to fill in."""
    return text.replace("$", "$$")


def _probe(period: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": "/health", "port": "http"},
        "periodSeconds": period,
        "timeoutSeconds": 10,
        "failureThreshold": failures,
    }


def _gpus(one: Handover) -> int:
    """GPUs are counted here: which of a node's they are is the device plugin's choice."""
    arguments = dict(one.service.arguments)
    ranks = math.prod(int(amount(arguments.get(name, 1)) or 1) for name in PARALLEL)
    return len(one.service.gpus) or ranks


def _volumes(one: Handover) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What the pod has, and where its container has it."""
    container = one.service.container
    found: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        (
            f"weights-{number}",
            {"hostPath": {"path": source, "type": "Directory"}},
            {"mountPath": target, "readOnly": True},
        )
        for number, (source, target) in enumerate(one.inside.weights)
    ]
    found.append(
        (
            "key",
            {"secret": {"secretName": _name(one), "defaultMode": 0o400}},
            {"mountPath": SECRETS_MOUNT, "subPath": KEY, "readOnly": True},
        )
    )
    shm = {"medium": "Memory", "sizeLimit": f"{one.shm_gib}Gi"}
    found.append(("shm", {"emptyDir": shm}, {"mountPath": "/dev/shm"}))
    if container.boot_caches:
        place = {"path": f"{one.home}/{one.caches}", "type": "DirectoryOrCreate"}
        found.append(("caches", {"hostPath": place}, {"mountPath": BOOT_CACHES_MOUNT}))
    if container.strict:
        found += (
            (f"writable-{number}", {"emptyDir": {}}, {"mountPath": place})
            for number, place in enumerate(container.writable)
        )
    return (
        [{"name": name, **volume} for name, volume, _ in found],
        [{"name": name, **mount} for name, _, mount in found],
    )


def _service(one: Handover) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _meta(one),
        "spec": {
            "type": "ClusterIP",
            "selector": _labels(one),
            "ports": [{"name": "http", "port": one.service.client_port, "targetPort": "http"}],
        },
    }


def _policy(one: Handover) -> dict[str, Any]:
    """Only its own namespace comes in: vLLM asks for the key on some of its routes only. A strict
    service goes nowhere."""
    ingress = [{"from": [{"podSelector": {}}], "ports": [{"port": "http"}]}]
    out: dict[str, Any] = {"egress": []} if one.service.container.strict else {}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _meta(one),
        "spec": {
            "podSelector": {"matchLabels": _labels(one)},
            "policyTypes": ["Ingress", *(["Egress"] if out else [])],
            "ingress": ingress,
            **out,
        },
    }
