"""Podman: a quadlet for each service, of which its generator makes a systemd unit.

A quadlet is read twice: by Podman's generator, which takes words apart, and by systemd, which the
generator hands them to as a command line, where ``%`` begins a specifier and ``$`` a variable.
"""

from __future__ import annotations

import re
import shlex
from typing import Any

from sparkwright.config.settings import EVERY_ADDRESS
from sparkwright.config.templates import template
from sparkwright.findings.user_error import UserError

#: Where the generator looks for them.
_FOLDER = "etc/containers/systemd"
_CONTROL = re.compile(r"[\x01-\x1f\x7f]")
_ASK = "import sys, urllib.request as u; u.urlopen(sys.argv[1], timeout=8)"


def quadlet(host: str, context: dict[str, Any]) -> tuple[dict[str, str], str]:
    """The container and, for a strict service, its network; and the command that makes the key's
    secret of standard input.

    Raises:
        UserError: for a value that a quadlet can't hold.
    """
    name, service = context["name"], context["service"]

    def refused(key: str, what: str) -> UserError:
        remedy = "another value, or --format kubernetes"
        return UserError.of(f"services.{service.name}.{key}", what, remedy, host)

    def word(key: str, text: str) -> str:
        """One word of a line of words."""
        # The generator drops an empty word with all that follow it, and gives systemd a semicolon
        # bare, which ends the command: what follows would run on the host.
        if text in ("", ";") or "\0" in text:
            raise refused(key, f"Podman's generator can't hand on the word {text!r}")
        plain = text.replace("\\", "\\\\").replace('"', '\\"')
        plain = _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", plain)
        return f'"{_literal(plain)}"'

    def line(key: str, text: str) -> str:
        """The whole of a line, which has no quotes of its own."""
        if _CONTROL.search(text) or text.strip() != text or text.endswith("\\"):
            raise refused(key, f"{text!r} does not fit on a line")
        return _literal(text)

    bind = "" if service.container.strict else service.bind
    address = "127.0.0.1" if not bind or bind in EVERY_ADDRESS else bind
    url = f"http://{f'[{address}]' if ':' in address else address}:{service.port}/health"
    health = shlex.join(["python3", "-c", _ASK, url])
    kinds = ("container", "network") if service.container.strict else ("container",)
    files = {
        f"{_FOLDER}/{name}.{kind}": template(f"handover/llm.{kind}.j2").render(
            context, word=word, line=line, health=health
        )
        for kind in kinds
    }
    return files, f"sudo podman secret create {name} -"


def _literal(text: str) -> str:
    """Text in which systemd finds no specifier and no variable."""
    return text.replace("%", "%%").replace("$", "$$")
