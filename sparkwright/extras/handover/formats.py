"""A planned service in the format of another tool: what its release holds, the image by digest."""

import hashlib
import math
import re
import shlex
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from sparkwright.config.templates import template
from sparkwright.engines import engine
from sparkwright.findings.user_error import Messages, UserError
from sparkwright.plan.container import SECRETS_MOUNT, SHM_GIB
from sparkwright.plan.plan import HostPlan, ServicePlan
from sparkwright.plan.service import rendered_from
from sparkwright.resolve.lock import Resolution

_MESSAGES = Messages(__file__)
#: Longest value of a label, and longest name of an object.
_LONGEST = 63
_NODE = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
#: Where Podman's generator looks for quadlets.
_FOLDER = "etc/containers/systemd"
_CONTROL = re.compile(r"[\x01-\x1f\x7f]")
_ASK = "import sys, urllib.request as u; u.urlopen(sys.argv[1], timeout=8)"


@dataclass(frozen=True)
class Handover:
    """A service of a host for another tool.

    Attributes:
        files: contents by their path below the host's directory.
        secrets: secret's name -> the command that makes it of standard input; the key's is empty.
        directories: commands that make the host's directories.
    """

    files: dict[str, str | bytes]
    secrets: dict[str, str]
    directories: tuple[str, ...]


def handover(form: str, plan: HostPlan, service: ServicePlan, resolution: Resolution) -> Handover:
    """Render a service of a host for another tool. Mirrors of registries are settings of that tool.

    Raises:
        UserError: for an image that no registry has, for a cluster's service, and for a value that
            the format can't hold.
    """
    where, image = f"services.{service.name}", service.image.name.rpartition(":")[0]
    if service.image.build:
        raise _MESSAGES.refusal("built-image", where, plan.host, image=image)
    if service.image.steps:
        raise _MESSAGES.refusal("derived-image", where, plan.host, image=image)
    if service.rank is not None:
        raise _MESSAGES.refusal("cluster", where, plan.host, cluster=service.rank.cluster)
    if service.proxy:  # which stays behind: the other tool publishes a port
        alone = service.settings.model_copy(update={"proxy": False, "bind": None})
        service = replace(service, settings=alone)
    context = rendered_from(plan, service, resolution)
    digest = resolution.image(service.image).digest
    # Not the name of the unit that it takes over from.
    name = f"llm-{service.name}"
    context |= {
        "name": name,
        "image": f"{image}@{digest}",
        # What is compiled is the image's own.
        "caches": f"{name}-caches-{digest.rpartition(':')[2][:12]}",
        "shm_gib": math.ceil(context["shm_gib"] or SHM_GIB),
        "secrets_mount": SECRETS_MOUNT,
        "key_name": PurePosixPath(SECRETS_MOUNT).name,
        "secrets_made": [
            {"name": secret.name, "object": _object_name(f"{name}-{plan.host}-{secret.name}")}
            for secret in service.settings.secrets
        ],
    }
    # Of root alone, since it holds conversations: Kubernetes would make it for every user to read.
    cache = service.offload_directory
    made = (f"sudo install -d -m 0700 {cache}",) if cache else ()
    return Handover(*FORMATS[form](plan.host, context), made)


def kubernetes(host: str, context: dict[str, Any]) -> tuple[dict[str, str | bytes], dict[str, str]]:
    """The file of manifests, and the commands that make Secrets of standard input.

    Raises:
        UserError: for a host whose name no node can have.
    """
    node, service = host.lower(), context["service"]
    if not _NODE.fullmatch(node) or len(node) > _LONGEST:
        raise _MESSAGES.refusal("no-node", f"inventory: {host}", host)
    limits = engine(service.engine).limits(dict(service.arguments))
    name = _object_name(f"{context['name']}-{host}")
    labels = {"app.kubernetes.io/name": service.engine, "app.kubernetes.io/instance": name}
    text = template("handover/kubernetes.yaml.j2").render(
        context,
        name=name,
        files_name=f"{name[: _LONGEST - 10]}-files",
        labels=labels,
        node=node,
        gpus=len(service.gpus) or limits.gpus,
    )
    made = {"": (name, context["key_name"])}
    made |= {each["name"]: (each["object"], each["name"]) for each in context["secrets_made"]}
    return {f"{context['name']}.yaml": text}, {
        secret: f"kubectl create secret generic {named} --from-file={key}=/dev/stdin"
        for secret, (named, key) in made.items()
    }


def _object_name(whole: str) -> str:
    """A DNS label of service and host, no two the same."""
    plain = re.sub(r"[^a-z0-9-]+", "-", whole.lower()).strip("-")
    if plain == whole and len(plain) <= _LONGEST:
        return plain
    return f"{plain[: _LONGEST - 9].strip('-')}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"


def quadlet(host: str, context: dict[str, Any]) -> tuple[dict[str, str | bytes], dict[str, str]]:
    """The container, its network and its files; and the commands that make secrets of standard
    input.

    A quadlet is read twice: by Podman's generator, which takes words apart, and by systemd, which
    the generator hands them to as a command line, where ``%`` begins a specifier and ``$`` a
    variable.

    Raises:
        UserError: for a value that a quadlet can't hold.
    """
    name, service = context["name"], context["service"]

    def refused(key: str, message: str, text: str) -> UserError:
        return _MESSAGES.refusal(message, f"services.{service.name}.{key}", host, text=text)

    def word(key: str, text: str) -> str:
        """Quote a word of a line of words."""
        # The generator drops an empty word with all that follow it, and gives systemd a semicolon
        # bare, which ends the command: what follows would run on the host.
        if text in ("", ";") or "\0" in text:
            raise refused(key, "no-word", text)
        plain = text.replace("\\", "\\\\").replace('"', '\\"')
        plain = _CONTROL.sub(lambda result: f"\\x{ord(result[0]):02x}", plain)
        return f'"{_literal(plain)}"'

    def line(key: str, text: str) -> str:
        """The whole of a line, which has no quotes of its own."""
        if _CONTROL.search(text) or text.strip() != text or text.endswith("\\"):
            raise refused(key, "no-line", text)
        return _literal(text)

    health = shlex.join(["python3", "-c", _ASK, f"http://127.0.0.1:{service.port}/health"])
    files: dict[str, str | bytes] = {
        f"{_FOLDER}/{name}.{kind}": template(f"handover/llm.{kind}.j2").render(
            context, word=word, line=line, health=health
        )
        for kind in ("container", "network")
    }
    files |= {f"etc/{name}/{each.name}": each.content for each in service.files}
    made = {"": name} | {each["name"]: each["object"] for each in context["secrets_made"]}
    return files, {key: f"sudo podman secret create {named} -" for key, named in made.items()}


def _literal(text: str) -> str:
    """Text in which systemd finds no specifier and no variable."""
    return text.replace("%", "%%").replace("$", "$$")


#: The command's choices, beside ``compose``.
FORMATS = {"kubernetes": kubernetes, "quadlet": quadlet}
