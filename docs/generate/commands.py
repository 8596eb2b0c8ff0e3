"""docs/commands.md: every command, from click."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from docs.generate.markdown import GENERATED, table
from sparkwright.cli import main

_INTRODUCTION = """\
Run `sparkwright` (or `python -m sparkwright`) in the site's folder, beside `group_data/`. `pyinfra
INVENTORY deploy.py` is what changes hosts; the commands here plan, look, and maintain. INVENTORY is
a file such as `inventory/lab.py`; `--limit` and `--data` mean what they mean for pyinfra.

Shell completion: `eval "$(_SPARKWRIGHT_COMPLETE=bash_source sparkwright)"`; `zsh_source` and
`fish_source` work too.

## Exit codes

| code | meaning |
| --- | --- |
| 0 | all well |
| 1 | something was found, or a host did not answer; see the command |
| 2 | the input cannot be used: a wrong option, or a mistake in a file. All of them are named |
| 141 | standard output was closed before the end, as by `head` |

`pyinfra INVENTORY deploy.py` ends with 0 when every host is as planned, with 1 when a host was
refused, failed or went back, and with 2 before any host is connected to when the plan has a
mistake. pyinfra also ends with 0 when its question is answered with anything but Enter."""

#: When a command ends with 1. Those that are not here end with 0 or 2 alone.
_ENDS_WITH_1 = {
    "bench": "a figure is out of range, a request failed, or a service could not be measured",
    "bundle": "the directory is not complete; run it again to go on",
    "check": "anything would stop a run",
    "diff": "anything differs, or no host answered",
    "doctor": "anything was found, or no host answered",
    "history": "no host answered",
    "lock": "with --check: the lock is missing or incomplete",
    "models list": "a model or image has a fault, or no host answered",
    "models prune": "a model or image has a fault, or no host answered",
    "models verify": "a file is wrong, or a host did not answer",
    "remove": "no host answered",
    "report": "a service is not as planned, or slower than its card or its own past",
    "rollback": "a host did not get through, or did not answer",
    "smoke": "a check failed, or a host did not answer",
    "status": "a planned service does not run, is not healthy or not as planned, or the watch "
    "reports an error, or no host answered",
    "verify": "a file is wrong, or a host did not answer",
}


def page() -> str:
    """The whole page."""
    parts = ["# Commands", GENERATED.format(what="sparkwright/cli"), _INTRODUCTION]
    for path, command, context in commands():
        parts += _command(path, command, context)
    return "\n\n".join(parts) + "\n"


def commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Every command that is no group: its words after ``sparkwright``, and itself."""
    yield from _below(main, click.Context(main, info_name="sparkwright"))


def _below(
    group: click.Group, context: click.Context
) -> Iterator[tuple[str, click.Command, click.Context]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, "list_commands names only what there is"
        own = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group):
            yield from _below(command, own)
        else:
            yield own.command_path.removeprefix("sparkwright "), command, own


def _command(path: str, command: click.Command, context: click.Context) -> Iterator[str]:
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"## {path}"
    yield f"```text\nsparkwright {path} {usage}\n```"
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        yield " ".join(paragraph.split())
    rows = [_option(one) for one in command.params if isinstance(one, click.Option)]
    if rows:
        yield table(("option", "default", "meaning"), rows)
    if path in _ENDS_WITH_1:
        yield f"Exit code 1: {_ENDS_WITH_1[path]}."


def _option(option: click.Option) -> tuple[str, str, str]:
    words = ", ".join(option.opts)
    if not option.is_flag:
        words += f" {_metavar(option)}"
    return f"`{words}`", _default(option), option.help or ""


def _metavar(option: click.Option) -> str:
    if option.metavar:
        return option.metavar
    if isinstance(option.type, click.Choice):
        return "|".join(map(str, option.type.choices))
    return option.type.name.upper()


def _default(option: click.Option) -> str:
    if option.required:
        return "required"
    default = option.to_info_dict()["default"]
    if isinstance(option.show_default, str):
        default = option.show_default
    if option.is_flag or not default:
        return ""
    return f"`{', '.join(default) if isinstance(default, list | tuple) else default}`"
