"""Text in the width of the terminal, and messages of mistakes on a command line or in a site."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from sparkwright.findings.user_error import Messages
from sparkwright.text.screen import fitted

MESSAGES = Messages(__file__)


def echo(text: str = "", *, err: bool = False) -> None:
    """Print lines; lines that are wider than the terminal are wrapped. click prints data."""
    click.echo(fitted(text), err=err)


@contextmanager
def screen() -> Iterator[Callable[[str], None]]:
    """The terminal's alternate screen, as in `top`; the main screen comes back at the end.

    Yields:
        A function that replaces the text of the screen.
    """
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        yield lambda text: live.update(Text.from_ansi(text), refresh=True)
