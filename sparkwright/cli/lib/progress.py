"""Progress on standard error while hosts are asked: which have answered, for how long now."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from sparkwright.text.visible import visible

_Command = TypeVar("_Command", bound=Callable[..., Any])
_META = "sparkwright.verbosity"


def verbosity_options(command: _Command) -> _Command:
    """``-q`` and ``-v``; the command has no arguments for them."""
    for names, text in (
        (("-v", "--verbose"), "Show what pyinfra says of every host, on standard error."),
        (("-q", "--quiet"), "Show no progress."),
    ):
        option = click.option(*names, is_flag=True, expose_value=False, callback=_kept, help=text)
        command = option(command)
    return command


def chosen(name: str) -> bool:
    """Whether the command that runs was given ``quiet`` or ``verbose``."""
    context = click.get_current_context(silent=True)
    return context is not None and name in context.meta.get(_META, ())


@contextmanager
def shown() -> Iterator[Callable[[str, str], None]]:
    """Show on a terminal who has answered while the hosts are asked.

    Yields:
        A function that takes a host and its latest event.
    """
    # Patches the standard library: a thread from before would run beside it.
    import sparkwright.run  # noqa: F401

    events: dict[str, str] = {}
    if chosen("quiet") or chosen("verbose") or not sys.stderr.isatty():
        yield events.__setitem__
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn("line"), TextColumn("{task.description}", markup=False))
    console = Console(stderr=True)
    with Progress(
        *columns, TimeElapsedColumn(), console=console, transient=True, redirect_stdout=False
    ) as progress:
        task = progress.add_task(line(events), total=None)

        def noticed(host: str, event: str) -> None:
            events[host] = event
            progress.update(task, description=line(events))

        yield noticed


def line(events: Mapping[str, str]) -> str:
    """Who has answered, and who is waited for.

    Args:
        events: the latest of each host.
    """
    waiting = [visible(host, 40) for host, event in events.items() if event == "asked"]
    ended = len(events) - len(waiting)
    state = f"waiting for {', '.join(waiting)}" if waiting else "planning and connecting"
    return f"{ended} of {len(events)} hosts done, {state}" if events and waiting else state


def _kept(context: click.Context, option: click.Parameter, value: Any) -> None:
    if value:
        context.meta.setdefault(_META, set()).add(option.name)
