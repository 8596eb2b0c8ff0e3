"""Podman: a quadlet for each service, of which its generator makes a systemd unit.

A quadlet is read twice: by Podman's generator, which takes words apart, and by systemd, which the
generator hands them to as a command line, where ``%`` begins a specifier and ``$`` a variable.
"""

from __future__ import annotations

import re
import shlex
from pathlib import PurePosixPath

from sparkwright.config.templates import template
from sparkwright.extras.handover.service import Handover
from sparkwright.findings.user_error import UserError, mistake
from sparkwright.plan.container import BOOT_CACHES_MOUNT, SECRETS_MOUNT

#: Where the generator looks for them.
_FOLDER = "etc/containers/systemd"
_CONTROL = re.compile(r"[\x01-\x1f\x7f]")
_ASK = "import sys, urllib.request as u; u.urlopen(sys.argv[1], timeout=8)"


def files(one: Handover) -> dict[str, str]:
    """The container, and for a strict one its network.

    Raises:
        UserError: for a value that a quadlet can't hold.
    """
    container, service = one.service.container, one.service
    mounts = [f"{source}:{target}:ro" for source, target in one.inside.weights]
    if container.boot_caches:
        mounts.append(f"{one.caches}:{BOOT_CACHES_MOUNT}")
    if container.strict:
        # Thrown away with the container. A tmpfs would be memory, and run nothing (noexec).
        mounts += container.writable
    ask = ["python3", "-c", _ASK, f"http://{one.local_address}:{service.port}/health"]
    shell, *rest = one.inside.entrypoint
    context = {
        "one": one,
        "service": service,
        "container": container,
        "tag": _line(one, "image_tag", service.image.tag),
        "image": _line(one, "image", one.image),
        "entrypoint": _line(one, "entrypoint", shell),
        "exec": [_word(one, "arguments", word) for word in (*rest, *one.inside.command)],
        "environment": [
            _word(one, f"environment.{name}", f"{name}={value}")
            for name, value in one.inside.environment.items()
        ],
        "volumes": [_line(one, "recipe", mount) for mount in mounts],
        "devices": [_line(one, "gpus", f"nvidia.com/gpu={gpu}") for gpu in service.gpus or ["all"]],
        "publish": _line(one, "bind", f"{_bracketed(service.bind)}:{service.port}:{service.port}"),
        "health": _line(one, "bind", shlex.join(ask)),
        "key": f"{one.name},type=mount,target={PurePosixPath(SECRETS_MOUNT).name},mode=0400",
        "drop_caches": one.inside.drop_caches,
    }
    found = {
        f"{_FOLDER}/{one.name}.container": template("handover/llm.container.j2").render(context)
    }
    if container.strict:
        found[f"{_FOLDER}/{one.name}.network"] = template("handover/llm.network.j2").render(context)
    return found


def secret(one: Handover) -> str:
    """The command that makes the key's secret of standard input."""
    return f"sudo podman secret create {one.name} -"


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _literal(text: str) -> str:
    """Text in which systemd finds no specifier and no variable."""
    return text.replace("%", "%%").replace("$", "$$")


def _word(one: Handover, key: str, text: str) -> str:
    """One word of a line of words."""
    # The generator drops an empty word with all that follow it, and gives systemd a semicolon bare,
    # which ends the command: what follows would run on the host.
    if text in ("", ";") or "\0" in text:
        raise _refused(one, key, f"Podman's generator can't hand on the word {text!r}")
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    plain = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", plain)
    return f'"{_literal(plain)}"'


def _line(one: Handover, key: str, text: str) -> str:
    """The whole of a line, which has no quotes of its own."""
    if _CONTROL.search(text) or text.strip() != text or text.endswith("\\"):
        raise _refused(one, key, f"{text!r} does not fit on a line")
    return _literal(text)


def _refused(one: Handover, key: str, what: str) -> UserError:
    where = f"services.{one.service.name}.{key}"
    return UserError([mistake(where, what, "another value, or --format kubernetes", one.host)])
