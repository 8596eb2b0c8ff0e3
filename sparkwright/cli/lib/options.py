"""Options of the commands, output of findings, and the confirmation of a change."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from sparkwright.cli.lib.extras import tables
from sparkwright.cli.lib.output import echo
from sparkwright.findings import finding, render
from sparkwright.findings.user_error import refusal
from sparkwright.text.visible import visible_json

_Command = TypeVar("_Command", bound=Callable[..., Any])
#: Shared options by name, and other options by command and name; the options of an extra are in its
#: ``extra.json``.
_OPTIONS: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("options.json").read_text(encoding="utf-8")
)
for _table in tables().values():
    _OPTIONS |= _table.get("options", {})


def option(name: str, **more: Any) -> Callable[[_Command], _Command]:
    """Return an option of the tables; ``more`` has its type and completion."""
    settings = {**_OPTIONS[name], **more}
    return click.option(*settings.pop("names"), **settings)


json_option, pyinfra_json_option = option("json"), option("pyinfra-json")
yes_option, dry_option = option("yes"), option("dry")
catalog_directories = option("directories", type=click.Path(path_type=Path, file_okay=False))


def confirm(question: str, *, yes: bool, dry: bool = True) -> None:
    """Continue only if the user confirms.

    Args:
        dry: whether the command has ``--dry``, so that the message may name it.

    Raises:
        click.Abort: the user declines.
        UserError: there is no terminal for the answer.
    """
    if yes:
        return
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        remedy = "add --yes, or --dry to change nothing" if dry else "add --yes"
        raise refusal("command line", f"no terminal for the question: {question}", remedy) from None
    if not agreed:
        raise click.Abort


def print_json(document: Any) -> None:
    """Print indented JSON in a stable order, with dates as text and without control sequences."""
    click.echo(visible_json(json.dumps(document, indent=2, ensure_ascii=False, default=str)))


def print_findings(findings: Sequence[finding.Finding], text: str, *, as_json: bool) -> None:
    """Print findings as JSON, or as the given text."""
    if as_json:
        print_json(render.data(findings))
    elif text:
        echo(text)
