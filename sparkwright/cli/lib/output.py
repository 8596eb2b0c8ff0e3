"""Text for people, as wide as their terminal."""

import click

from sparkwright.text.screen import fitted


def echo(text: str = "", *, err: bool = False) -> None:
    """Print lines; those that are wider than the terminal go on below. Data is printed by click."""
    click.echo(fitted(text), err=err)
