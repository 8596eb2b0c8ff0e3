"""Output in the width of the terminal, and messages for mistakes on a command line or in a site."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from sparkwright.findings.user_error import Messages
from sparkwright.text.screen import fitted

MESSAGES = Messages(__file__)


def echo(text: str = "", *, err: bool = False) -> None:
    """Print text for a reader, wrapped at the terminal's width; ``click.echo`` prints data."""
    click.echo(fitted(text), err=err)


@contextmanager
def screen() -> Iterator[Callable[[str], None]]:
    """Switch to the terminal's alternate screen, as `top` does; restore the main screen at the end.

    Yields:
        A function that replaces the text of the screen.
    """
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        yield lambda text: live.update(Text.from_ansi(text), refresh=True)
