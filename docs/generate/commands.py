"""Page docs/commands.md: every command, as click describes it."""

import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator

import click

from docs.generate.markdown import GENERATED
from sparkwright.cli import main
from sparkwright.cli.lib.hosts import OPTIONS

_INTRODUCTION = """\
Run `sparkwright` in the site's folder, beside `group_data/`. NAME is a host, a group, a service or
HOST/SERVICE ([Naming hosts and services](fleet.md#naming-hosts-and-services)). This page shows the
beginning of each command's help; `--help` prints the rest.

Shell completion: `eval "$(_SPARKWRIGHT_COMPLETE=bash_source sparkwright)"`; `zsh_source` and
`fish_source` work too.

## Exit codes

| code | meaning |
| --- | --- |
| 0 | The command succeeded without findings. |
| 1 | The command reports findings, or a host is not as planned or did not answer. |
| 2 | The input is not valid, or the plan can't be deployed. Nothing was changed. |
| 130 | Ctrl-C stopped the command. |
| 141 | A reader such as `head` closed standard output early. |

The same mistake has the same code in every command. Code 2 means an unknown argument or option, or
a password on the command line; a missing inventory, or several without a choice; a mistake in an
inventory, `group_data/`, a catalog or a lock; `--limit` or `--service` that matches nothing; a
known mistake in the plan (`check`, `plan` and `deploy`). `lock`, `render`, `bundle`, `endpoints`
and `monitoring` do not check the plan.

A deploy ends with 0 when every host is as planned, and with 1 when a host was refused, failed or
rolled back. pyinfra also ends with 0 if you answer its question with anything but Enter.

## Options of many commands

Every command takes `--json`. Commands with `[NAME]` take `--data` and `--limit`; commands for
services also take `--service`. A command's usage line names its other options.

"""

_CONNECTION = """\
### Connection

Commands with `[CONNECTION]` connect to hosts and take pyinfra's options for connection and sudo.
`--verbose` and `--quiet` are sparkwright's own options. sparkwright refuses `--ssh-password` and
`--ssh-key-password`, since every user of this machine can read a command line."""

_OF_THE_CONNECTION = {tuple(names) for names, _, _ in OPTIONS}
#: Option with its value, and its meaning.
Row = tuple[str, str]
#: Number of commands from which on an option is listed as shared.
_MANY = 3
#: Options that the usage lines leave out.
_EVERYWHERE = ("--data", "--limit", "--service", "--json")
#: Causes of exit code 1, by command, besides a host that does not answer.
_ENDS_WITH_1 = {
    "bench": "a figure is out of range, or a request or service failed",
    "bundle": "the directory is not complete; run it again to continue",
    "diff": "a file differs",
    "doctor": "a host has a finding",
    "import": "a recipe could not be imported, or lost a part that it needs",
    "lock": "with --check, the lock is missing or incomplete",
    "maintenance": "with off, a service of the host does not answer",
    "models list": "a model or image has a fault",
    "models prune": "a model or image has a fault",
    "report": "a service is not as planned, or slower than its card",
    "restart": "a service gives no real answers",
    "rollback": "a host failed",
    "shell": "the host has no such service; otherwise the exit code is the command's",
    "smoke": "a check failed",
    "start": "a service gives no real answers",
    "status": "a planned service does not run, is not healthy or not as planned, or the watch "
    "reports an error",
    "stop": "a service does not stop",
    "up": "a box is not suitable, a deploy failed, or a service gave no answer",
    "verify": "a file is wrong",
}


def page() -> str:
    """Text of the page."""
    every = list(commands())
    uses = Counter(_row(option) for _, command, _ in every for option in _own(command))
    shared = {row for row, count in uses.items() if count >= _MANY}
    parts = ["# Commands", GENERATED.format(source="sparkwright/cli")]
    parts += [_INTRODUCTION + _list(sorted(shared)), _CONNECTION]
    names = ", ".join(f"`{name}`" for names, _, _ in OPTIONS for name in names)
    parts.append(f"`--help` explains these options: {names}.")
    for path, command, context in every:
        parts += _command(path, command, context, shared)
    return "\n\n".join(parts) + "\n"


def commands() -> Iterator[tuple[str, click.Command, click.Context]]:
    """Every command that is not a group: path after ``sparkwright``, command and context."""
    yield from _below(main, click.Context(main, info_name="sparkwright"))


def _below(
    group: click.Group, context: click.Context
) -> Iterator[tuple[str, click.Command, click.Context]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, "list_commands names only existing commands"
        own = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group):
            yield from _below(command, own)
        else:
            yield own.command_path.removeprefix("sparkwright "), command, own


def _command(
    path: str, command: click.Command, context: click.Context, shared: set[Row]
) -> Iterator[str]:
    arguments = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
    own = [_row(option) for option in _own(command)]
    common = [row[0].partition(" ")[0] for row in own if row in shared]
    yield f"### {path}"
    connects = len(own) < len([item for item in command.params if _visible(item)])
    usage = re.sub(r"\[HOST\|[A-Z|/]+\]", "[NAME]", " ".join(["sparkwright", path, *arguments]))
    common = [f"[{name}]" for name in common if name not in _EVERYWHERE]
    common += ["[CONNECTION]"] if connects else []
    yield "\n".join(["```text", " ".join([usage, *common]), "```"])
    yield " ".join(inspect.cleandoc(command.help or "").split("\n\n")[0].split())
    if rest := [row for row in own if row not in shared]:
        yield _list(rest)
    if path in _ENDS_WITH_1:
        yield f"Exit code 1: {_ENDS_WITH_1[path]}."


def _visible(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Option) and not parameter.hidden


def _own(command: click.Command) -> list[click.Option]:
    """Visible options of a command, except connection options."""
    return [option for option in command.params
            if isinstance(option, click.Option) and not option.hidden
            and tuple(option.opts) not in _OF_THE_CONNECTION]  # fmt: skip


def _list(rows: Iterable[Row]) -> str:
    return "\n".join(f"- `{option}`: {text}" for option, text in rows)


def _row(option: click.Option) -> Row:
    text = ", ".join(option.opts)
    if not option.is_flag:
        text += f" {_metavar(option)}"
    default = _default(option)
    return text, f"{option.help or ''}{f' Default: {default}.' if default else ''}"


def _metavar(option: click.Option) -> str:
    if option.metavar:
        return option.metavar
    if isinstance(option.type, click.Choice):
        return "|".join(map(str, option.type.choices))
    return option.type.name.upper()


def _default(option: click.Option) -> str:
    if option.required:
        return "none; the option is required"
    default = option.to_info_dict()["default"]
    if isinstance(option.show_default, str):
        default = option.show_default
    if option.is_flag or not default:
        return ""
    return f"`{', '.join(default) if isinstance(default, list | tuple) else default}`"
