"""``--json`` of every command prints one document in the form of docs/json.md."""

import json
from pathlib import Path
from typing import Any

import click
import pytest

from docs.generate.commands import commands
from docs.generate.documents import PYINFRAS, documents
from docs.generate.json_documents import schema
from tests.unit.cli.fleet_of_five import COMMANDS, fleet, run

__all__ = ["fleet", "judge"]

jsonschema: Any = pytest.importorskip("jsonschema", reason="make setup installs jsonschema")

#: `pyinfra` passes its arguments on unchanged, including `--json`.
_AS_IT_IS = {"deploy"}

#: Commands that show their progress, as their help explains.
_STREAMS = {"dashboard", "logs", "shell", "top", "up"}


def _closed(findings: Any) -> Any:
    """A schema that allows only its own keys."""
    if isinstance(findings, dict):
        inner = {key: _closed(item) for key, item in findings.items()}
        return {**inner, "additionalProperties": False} if "properties" in findings else inner
    return [_closed(item) for item in findings] if isinstance(findings, list) else findings


def judge(message: str, document: Any) -> None:
    jsonschema.validate(document, _closed(schema(message)))


def test_every_command_has_json_and_a_type() -> None:
    for parts, command, _ in commands():
        names = {name for option in command.params for name in option.opts
                 if isinstance(option, click.Option)}  # fmt: skip
        assert "--json" in names or parts in _AS_IT_IS | _STREAMS, parts
    there = {arguments for arguments, _, _ in commands()}
    assert there - _STREAMS == {*documents(), *PYINFRAS}


@pytest.mark.parametrize("command", COMMANDS)
def test_printed_json_fits_the_pages_schema(command: str, fleet: Path) -> None:
    plain = run(COMMANDS[command])
    for made in ("new", "out"):
        if (fleet / made).exists():
            (fleet / made).rename(fleet / f"{made}-before")
    for left in fleet.glob(".sparkwright/*.old"):
        left.unlink()
    done = run(COMMANDS[command], "--json")
    assert done.exit_code == plain.exit_code, done.output
    document = json.loads(done.stdout)
    assert document
    judge(command, document)
