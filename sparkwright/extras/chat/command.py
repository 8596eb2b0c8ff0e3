"""``sparkwright chat``: a conversation with a service of the fleet, streamed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import click
from typing_extensions import TypedDict

from sparkwright.cli.lib.completion import aliases, hosts, services
from sparkwright.cli.lib.findings import paint
from sparkwright.cli.lib.options import data_option, json_option, optional_inventory, print_json
from sparkwright.cli.lib.planned import load
from sparkwright.config.inventory import read_inventory
from sparkwright.extras.chat.answer import Answer, Failed
from sparkwright.extras.chat.server import Published, Unusable, opened
from sparkwright.extras.chat.targets import Target, targets
from sparkwright.findings.finding import Finding
from sparkwright.findings.render import text
from sparkwright.text.visible import paragraph, visible_prose


class Answered(TypedDict):
    """An answer to one prompt; ``tokens`` are those of reasoning and text together."""

    host: str
    service: str
    model: str
    text: str
    reasoning: str
    finish: str | None
    tokens: int | None
    first_seconds: float | None
    seconds: float | None
    tokens_per_second: float | None


DOCUMENT = Answered


@click.command("chat")
@optional_inventory
@data_option
@click.option(
    "--host", "--limit", "limit", multiple=True, metavar="HOST", shell_complete=hosts,
    help="Talk to the service of this host; else of the first that answers.",
)  # fmt: skip
@click.option(
    "--service", default=None, metavar="NAME", shell_complete=services, help="Talk to this service."
)
@click.option(
    "--model", "--alias", "model", default=None, metavar="NAME", shell_complete=aliases,
    help="Use this served name, with its sampling; else the service's first.",
)  # fmt: skip
@click.option("--prompt", default=None, metavar="TEXT", help="Have this answered, and end.")
@json_option
def command(
    inventory: Path,
    overrides: tuple[str, ...],
    limit: tuple[str, ...],
    service: str | None,
    model: str | None,
    prompt: str | None,
    as_json: bool,
) -> None:
    """Talk to a service, with the sampling that its card advises for the name.

    The prompt comes from --prompt, from standard input where that is no terminal, or line by line.
    Reasoning is dimmed, and goes where the answer is not piped to. Ctrl-C ends an answer, another
    one the chat; Ctrl-D ends it too. Nothing of it is kept. A port that this machine does not
    reach is reached through your ssh. With --json an answer is one document, once it has ended.
    Exit code 1: nobody answered.
    """
    planned = load(inventory, overrides, limit).or_raise()
    data = {host.name: host.data for host in read_inventory(inventory, overrides)}
    target, server = _first(targets(planned, data, service, model))
    if prompt is None and (as_json or not (sys.stdin.isatty() and sys.stdout.isatty())):
        prompt = sys.stdin.read()
    if prompt is not None:
        if not prompt.strip():
            raise click.UsageError("the prompt is empty")
        messages = [{"role": "user", "content": prompt}]
        if as_json:
            sys.exit(_as_document(target, server, messages))
        answer, stopped = _answered(target, server, messages)
        if stopped:
            raise KeyboardInterrupt
        sys.exit(int(answer is None))
    _conversation(target, server)


def _first(found: Sequence[Target]) -> tuple[Target, Published]:
    """The first that answers."""
    for target in found:
        try:
            server = opened(target)
        except Unusable as error:
            _say(error.findings)
            continue
        way = " through ssh" if server.through else ""
        name = f"{target.served.name} at {target.endpoint.host}{way}"
        click.echo(f"{name}\n{target.served.sampling}", err=True)
        return target, server
    sys.exit(1)


def _say(findings: Sequence[Finding]) -> None:
    click.echo(text(findings, paint=paint), err=True)


def _conversation(target: Target, server: Published) -> None:
    """Line by line, until Ctrl-D; Ctrl-C at the prompt ends it as it ends any command."""
    import readline  # noqa: F401  gives input() its editing; its history stays in memory

    messages: list[dict[str, str]] = []
    while True:
        try:
            said = input("> ")
        except EOFError:
            click.echo()
            return
        if not said.strip():
            continue
        asked = [*messages, {"role": "user", "content": said}]
        answer, _ = _answered(target, server, asked)
        if answer is not None and answer.text:
            messages = [*asked, {"role": "assistant", "content": answer.text}]


def _answered(
    target: Target, server: Published, messages: list[dict[str, str]]
) -> tuple[Answer | None, bool]:
    """Show an answer as it comes; None where there was none. And whether it was stopped."""
    answer, stopped = Answer(server, target.body(messages)), False
    reasoned = False
    try:
        with closing(answer.pieces()) as pieces:
            for piece in pieces:
                if piece.reasoning:
                    reasoned = True
                    _reason(visible_prose(piece.text))
                    continue
                if reasoned:
                    reasoned = False
                    _reason("\n\n")
                click.echo(visible_prose(piece.text), nl=False)
    except Failed as error:
        _end(answer)
        click.echo(f"{paint('error')}: {target.where}: {paragraph(str(error))}", err=True)
        return None, False
    except KeyboardInterrupt:
        stopped = True
    _end(answer)
    how = "stopped; " if stopped else ""
    click.echo(click.style(f"({how}{answer.figures})", dim=True), err=True)
    return answer, stopped


def _as_document(target: Target, server: Published, messages: list[dict[str, str]]) -> int:
    """Print an answer as one document. Returns the exit code."""
    answer, reasoning = Answer(server, target.body(messages)), ""
    try:
        with closing(answer.pieces()) as pieces:
            for piece in pieces:
                reasoning += piece.text if piece.reasoning else ""
    except Failed as error:
        click.echo(f"{paint('error')}: {target.where}: {paragraph(str(error))}", err=True)
        return 1
    document: Answered = {
        "host": target.endpoint.host, "service": target.endpoint.service,
        "model": target.served.name, "text": answer.text, "reasoning": reasoning,
        "finish": answer.finish, "tokens": answer.tokens, "first_seconds": answer.first,
        "seconds": answer.last, "tokens_per_second": answer.rate,
    }  # fmt: skip
    print_json(document)
    return 0


def _reason(said: str) -> None:
    """Beside the answer, where somebody reads it."""
    if sys.stderr.isatty():
        click.echo(click.style(said, dim=True, reset=True), nl=False, err=True)


def _end(answer: Answer) -> None:
    if answer.first is not None and not answer.text.endswith("\n"):
        click.echo()
