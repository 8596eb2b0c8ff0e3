"""Findings on the command line: ``--format text|json|sarif`` of every command that has some."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import click

from sparkwright.cli.lib.options import print_json
from sparkwright.cli.lib.output import echo
from sparkwright.findings.finding import Finding
from sparkwright.findings.render import data
from sparkwright.findings.render import paint as paint
from sparkwright.findings.sarif import sarif

_Command = TypeVar("_Command", bound=Callable[..., Any])


def format_option(command: _Command) -> _Command:
    """``--format`` and ``--json`` in short, as ``form``."""

    @click.option(
        "--format",
        "form",
        type=click.Choice(["text", "json", "sarif"]),
        default="text",
        help="Print text, JSON (docs/json.md), or SARIF for editors and code scanners.",
    )
    @click.option("--json", "as_json", is_flag=True, help="Print JSON: short for --format json.")
    @wraps(command)
    def formatted(*arguments: Any, form: str, as_json: bool, **named: Any) -> Any:
        return command(*arguments, form="json" if as_json else form, **named)

    return cast("_Command", formatted)


def print_findings(findings: Sequence[Finding], form: str, text: str) -> None:
    """Print them as JSON or SARIF, or the text that was made of them."""
    if form != "text":
        print_json(data(findings) if form == "json" else sarif(findings))
    elif text:
        echo(text)
