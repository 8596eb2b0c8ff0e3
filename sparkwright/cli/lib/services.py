"""Services that a command line names, and the hosts that have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import click

from sparkwright.cli.lib import completion
from sparkwright.cli.lib.output import echo
from sparkwright.findings.user_error import suggest
from sparkwright.text.visible import visible


def service_option(command: Any) -> Any:
    """``--service NAME``, repeatable."""
    return click.option(
        "--service",
        "services",
        multiple=True,
        metavar="NAME",
        shell_complete=completion.services,
        help="Only this service (repeatable).",
    )(command)


class _Known(Protocol):
    @property
    def known(self) -> tuple[str, ...]: ...


def misspelt(services: Sequence[str], answers: Mapping[str, _Known]) -> bool:
    """Name the services that no host has, each with the nearest one. Whether there is any.

    Args:
        answers: by host, with its services as ``known``.
    """
    known = sorted({name for answer in answers.values() for name in answer.known})
    unknown = [name for name in services if name not in known] if answers else []
    for name in unknown:
        line = f"no host has a service {visible(name, 80)!r}: {visible(suggest(name, known), 400)}"
        echo(click.style(line, fg="red"), err=True)
    return bool(unknown)
