"""Progress of a query on standard error: answered hosts and elapsed time."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import click

from sparkwright.cli.lib.output import echo
from sparkwright.text.visible import visible

#: Key in click's context for a command's options of connection, sudo and output.
CONNECTION = "sparkwright.connection"
#: Event of a host without an answer, and events of a finished host; any other event is the host's
#: current step.
_ASKED, _ENDED = "asked", ("answered", "failed", "not reached")


def given() -> dict[str, Any]:
    """Return the running command's connection, sudo and output options, by pyinfra's names."""
    context = click.get_current_context(silent=True)
    return {} if context is None else dict(context.meta.get(CONNECTION, {}))


@contextmanager
def shown() -> Iterator[Callable[[str, str], None]]:
    """Show the number of finished hosts and the steps of others; without a terminal, only the
    steps.

    Yields:
        A function that takes a host and its latest event.
    """
    # This import patches the standard library, and must precede the first thread.
    import sparkwright.run  # noqa: F401

    if {"quiet", "verbose"} & given().keys():
        yield lambda *_: None
        return
    if not sys.stderr.isatty():
        yield _print
        return
    events: dict[str, str] = {}
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


def _print(host: str, event: str) -> None:
    if event not in (_ASKED, *_ENDED):
        echo(f"{visible(host, 40)}: {visible(event)}", err=True)


def line(events: Mapping[str, str]) -> str:
    """Return the progress line: the number of answers, and the hosts without an answer.

    Args:
        events: latest event of each host.
    """
    waiting = [
        visible(host, 40) + (f" ({visible(event)})" if event != _ASKED else "")
        for host, event in events.items()
        if event not in _ENDED
    ]
    ended = len(events) - len(waiting)
    state = f"waiting for {', '.join(waiting)}" if waiting else "planning and connecting"
    return f"{ended} of {len(events)} hosts done, {state}" if events and waiting else state
