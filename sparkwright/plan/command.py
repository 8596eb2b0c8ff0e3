"""What a service's container is started with: command line and environment.

An image is driven by ``vllm serve`` arguments, or by variables that its own entry point makes
arguments from. Settings and rules always speak of arguments; only here they become variables.
"""

from __future__ import annotations

import json
import shlex
from pathlib import PurePosixPath

from sparkwright.catalog import ArgumentValue, Variables
from sparkwright.plan.container import BOOT_CACHES
from sparkwright.plan.plan import ServicePlan

#: Where an image that is driven by variables listens, unless its extra arguments say otherwise.
_OWN_BIND, _OWN_PORT = "0.0.0.0", 8000


def serve_command(service: ServicePlan) -> list[str]:
    """``serve MODEL --served-model-name ... --host ... --port ...`` and the recipe's arguments.

    Empty for an image that is driven by variables.
    """
    if service.variables is not None:
        return []
    words = ["serve", service.body.mount, "--served-model-name", *service.served_names]
    words += ["--host", _listening(service), "--port", str(service.port)]
    for key, value in service.arguments:
        if service.rank is None or key != "distributed_executor_backend":
            words += argument_words(key, value)
    return words + service.rank.words if service.rank else words


def container_environment(service: ServicePlan) -> dict[str, str]:
    """The recipe's variables, and the arguments as variables where the image is driven by them.

    Where the engine keeps what it compiles comes first: a recipe's own variable goes before it.
    """
    found = dict(BOOT_CACHES) if service.container.boot_caches else {}
    if service.rank is not None and service.rank.shape is None:
        found |= service.rank.environment
    if service.variables is not None:
        found |= _variables(service, service.variables)
    found |= dict(service.environment)
    # One address for all ranks, as a recipe would say it, is none.
    return found | {"VLLM_HOST_IP": service.rank.address} if service.rank else found


def _variables(service: ServicePlan, names: Variables) -> dict[str, str]:
    found = {names.model: service.body.mount}
    if service.served_names[0] != PurePosixPath(service.body.mount).name:
        found[names.served_name] = service.served_names[0]
    extra: list[str] = []
    for key, value in service.arguments:
        if key in names.arguments:
            found[names.arguments[key]] = str(value)
        elif key == "speculative_config" and isinstance(value, dict) and _plain_dflash(value):
            found[names.drafter] = str(value["model"])
            found[names.num_speculative_tokens] = str(value["num_speculative_tokens"])
        else:
            extra += argument_words(key, value)
    given = dict(service.arguments)
    extra += [f"--no-{flag.replace('_', '-')}" for flag in names.sets if flag not in given]
    if len(service.served_names) > 1:
        extra += ["--served-model-name", *service.served_names]
    if _listening(service) != _OWN_BIND:
        extra += ["--host", _listening(service)]
    if service.port != _OWN_PORT:
        extra += ["--port", str(service.port)]
    if extra:
        found[names.extra_arguments] = shlex.join(extra)
    return found


def _listening(service: ServicePlan) -> str:
    """The address within the container: in a network of its own, Docker publishes it at bind."""
    return "0.0.0.0" if service.container.strict else service.bind


def _plain_dflash(config: dict[str, bool | int | float | str | None]) -> bool:
    """Whether the image's own variables can say all of it."""
    return set(config) == {"method", "model", "num_speculative_tokens"} and (
        config["method"] == "dflash"
    )


def argument_words(key: str, value: ArgumentValue) -> list[str]:
    """One argument: ``max_model_len: 8192`` -> ``--max-model-len 8192``, True -> a bare flag."""
    flag = f"--{key.replace('_', '-')}"
    if value is True:
        return [flag]
    if value is False:
        return [f"--no-{flag[2:]}"]
    if isinstance(value, dict):
        return [flag, json.dumps(value, separators=(",", ":"))]
    if isinstance(value, list):
        return [flag, *map(str, value)]
    return [flag, str(value)]
