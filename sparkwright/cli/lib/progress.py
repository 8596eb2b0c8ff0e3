"""What is shown on standard error while hosts are asked: which have answered, for how long now."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from sparkwright.text.visible import visible

_Command = TypeVar("_Command", bound=Callable[..., Any])
_META = "sparkwright.said"
#: Seconds: what is done sooner needs no word; and between two looks.
_PATIENCE, _EVERY = 1.0, 0.2
_SPINNER = "-\\|/"


def verbosity_options(command: _Command) -> _Command:
    """``-q`` and ``-v``; the command has no arguments for them."""
    for names, told in (
        (("-v", "--verbose"), "Show what pyinfra says of every host, on standard error."),
        (("-q", "--quiet"), "Show no progress."),
    ):
        option = click.option(*names, is_flag=True, expose_value=False, callback=_kept, help=told)
        command = option(command)
    return command


def said(name: str) -> bool:
    """Whether the command that runs was given ``quiet`` or ``verbose``."""
    context = click.get_current_context(silent=True)
    return context is not None and name in context.meta.get(_META, ())


@contextmanager
def shown(progress: Path) -> Iterator[None]:
    """Show who has answered while the hosts are asked: on a terminal, after a second.

    Args:
        progress: file to which the run adds a line per event.
    """
    if said("quiet") or said("verbose") or not sys.stderr.isatty():
        yield
        return
    ended = threading.Event()
    thread = threading.Thread(target=_show, args=(progress, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def events(progress: Path) -> list[dict[str, Any]]:
    """What the run has told so far; a line that is not whole yet is not among it."""
    try:
        lines = progress.read_text(encoding="utf-8").split("\n")[:-1]
    except OSError:
        return []
    return [json.loads(line) for line in lines]


def line(happened: list[dict[str, Any]], seconds: float) -> str:
    """Who has answered, and who is waited for."""
    latest = {one["host"]: one["event"] for one in happened if "host" in one}
    waiting = [visible(host, 40) for host, event in latest.items() if event == "asked"]
    ended = len(latest) - len(waiting)
    what = f"waiting for {', '.join(waiting)}" if waiting else "planning and connecting"
    answered = f"{ended} of {len(latest)} hosts done, " if latest and waiting else ""
    return f"{answered}{what} ({seconds:.0f} s)"


def _show(progress: Path, ended: threading.Event) -> None:
    began, turn = time.monotonic(), 0
    if ended.wait(_PATIENCE):
        return
    while not ended.wait(_EVERY):
        turn += 1
        text = line(events(progress), time.monotonic() - began)
        sys.stderr.write(f"\r\x1b[K{_SPINNER[turn % 4]} {text[:76]}")
        sys.stderr.flush()
    sys.stderr.write("\r\x1b[K")
    sys.stderr.flush()


def _kept(context: click.Context, option: click.Parameter, value: Any) -> None:
    if value:
        context.meta.setdefault(_META, set()).add(option.name)
