"""docs/commands.md: every command, from click."""

import inspect
from collections.abc import Iterator

import click

from docs.generate.markdown import GENERATED, table
from sparkwright.cli import main
from sparkwright.cli.lib.connecting import OPTIONS

_INTRODUCTION = """\
Run `sparkwright` (or `python -m sparkwright`) in the site's folder, beside `group_data/`.
`sparkwright deploy` changes hosts, as `pyinfra INVENTORY deploy.py` does; the others plan, look,
and maintain. Names are those of hosts and services
([Naming hosts and services](day-two.md#naming-hosts-and-services)); `--limit` and `--data` mean
what they mean for pyinfra.

Shell completion: `eval "$(_SPARKWRIGHT_COMPLETE=bash_source sparkwright)"`; `zsh_source` and
`fish_source` work too.

## Exit codes

| code | meaning |
| --- | --- |
| 0 | all well |
| 1 | something was found, or a host did not answer; see the command |
| 2 | the input cannot be used, or what is planned would not be deployed. Nothing was touched |
| 130 | it was stopped with Ctrl-C |
| 141 | standard output was closed before the end, as by `head` |

The same mistake has the same code, whichever command meets it:

| mistake | code |
| --- | --- |
| a word, an option or a password on the command line that is none or not allowed there | 2 |
| an inventory that is not there, or not clear which | 2 |
| a mistake in an inventory, in `group_data/`, a catalog or a lock | 2 |
| `--limit` or `--service` that means nothing | 2 |
| a known mistake in the plan: `check`, `plan` and `deploy` | 2 |
| a host that does not answer, or is not as planned | 1 |

`lock`, `render`, `bundle`, `endpoints` and `monitoring` write what is planned, and do not judge it.

`pyinfra INVENTORY deploy.py` and `sparkwright deploy` end with 0 when every host is as planned,
with 1 when a host was refused, failed or went back, and with 2 before any host is connected to when
the plan has a mistake. pyinfra also ends with 0 when its question is answered with anything but
Enter.

## Connection

Commands that go to hosts take pyinfra's own options of connection and sudo, and hand them on;
`--verbose` and `--quiet` are sparkwright's. A password is never one: `--ssh-password` and
`--ssh-key-password` are refused, since every user of this machine can read a command line."""

_OF_THE_CONNECTION = {tuple(names) for names, _, _ in OPTIONS}
#: Under the table of those above, for each command that takes them.
_CONNECTION = "It takes the [options of the connection](#connection), too."

#: When a command ends with 1. Those that are not here end with 0 or 2 alone.
_ENDS_WITH_1 = {
    "bench": "a figure is out of range, a request failed, or a service could not be measured",
    "bundle": "the directory is not complete; run it again to go on",
    "diff": "anything differs, or no host answered",
    "doctor": "anything was found, or no host answered",
    "history": "no host answered",
    "import": "a recipe could not be imported, or lost something that it needs",
    "lock": "with --check: the lock is missing or incomplete",
    "logs": "a host did not answer",
    "maintenance": "the host did not answer, or with off: a service of it does not",
    "models list": "a model or image has a fault, or no host answered",
    "models prune": "a model or image has a fault, or no host answered",
    "models verify": "a file is wrong, or a host did not answer",
    "remove": "no host answered",
    "report": "a service is not as planned, or slower than its card or its own past",
    "restart": "a service gives no real answers, or a host did not answer",
    "rollback": "a host did not get through, or did not answer",
    "shell": "the host has no such service; else the exit code is the command's",
    "smoke": "a check failed, or a host did not answer",
    "start": "a service gives no real answers, or a host did not answer",
    "status": "a planned service does not run, is not healthy or not as planned, or the watch "
    "reports an error, or no host answered",
    "stop": "a service does not stop, or a host did not answer",
    "up": "a box is not fit, a deploy failed, or a service gave no answer",
    "verify": "a file is wrong, or a host did not answer",
}


def page() -> str:
    """The whole page."""
    parts = ["# Commands", GENERATED.format(what="sparkwright/cli"), _INTRODUCTION]
    rows = [(f"`{', '.join(names)}{f' {reason}' if reason else ''}`", message)
            for names, reason, message in OPTIONS]  # fmt: skip
    parts.append(table(("option", "meaning"), rows))
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
    options = [
        param for param in command.params if isinstance(param, click.Option) and not param.hidden
    ]
    own = [option for option in options if tuple(option.opts) not in _OF_THE_CONNECTION]
    if own:
        yield table(("option", "default", "meaning"), map(_option, own))
    if len(own) < len(options):
        yield _CONNECTION
    if path in _ENDS_WITH_1:
        yield f"Exit code 1: {_ENDS_WITH_1[path]}."


def _option(option: click.Option) -> tuple[str, str, str]:
    text = ", ".join(option.opts)
    if not option.is_flag:
        text += f" {_metavar(option)}"
    return f"`{text}`", _default(option), option.help or ""


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
