"""``sparkwright chat``: a conversation with a service of the fleet, streamed."""

import json
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

import click
from pydantic import TypeAdapter, computed_field

from sparkwright.cli.lib.options import json_option, option, print_json
from sparkwright.cli.lib.planned import load
from sparkwright.cli.lib.selection import Selection, names_argument
from sparkwright.extras.chat.server import Published, Unusable, opened
from sparkwright.extras.chat.targets import Target, targets
from sparkwright.findings.render import paint, text
from sparkwright.host.lib import faults, http
from sparkwright.host.lib.kinds import KINDS, body, cheapest, judged
from sparkwright.site.fleet import PlannedHost
from sparkwright.text.visible import cut, paragraph, visible_prose

_CHAT = "/v1/chat/completions"
#: Seconds for an answer; a long answer of a slow model takes some minutes.
_LONGEST = 3600.0
#: Keys of a piece of an answer; True marks reasoning. Newer versions of vLLM use the first key, and
#: older versions use the second key.
_PIECES = (("reasoning", True), ("reasoning_content", True), ("content", False))


class Failed(Exception):
    """A failed answer; the text has the reason."""


@dataclass(frozen=True)
class Piece:
    """A piece of an answer, or of its reasoning."""

    text: str
    reasoning: bool


@dataclass
class Answer:
    """An answer to one prompt, or the part received so far.

    Attributes:
        finish: reason of the end, such as ``stop`` or ``length``; None before the end.
        tokens: tokens of reasoning and text together; None if the server did not report them.
        first_seconds, seconds: time from the request to the first and to the last piece; None
        before this piece.
    """

    host: str
    service: str
    model: str
    text: str = ""
    reasoning: str = ""
    finish: str | None = None
    tokens: int | None = None
    first_seconds: float | None = None
    seconds: float | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def tokens_per_second(self) -> float | None:
        """Tokens per second after the first token; None if unknown."""
        if self.tokens is None or self.first_seconds is None or self.seconds is None:
            return None
        seconds = self.seconds - self.first_seconds
        return (self.tokens - 1) / seconds if seconds > 0 and self.tokens > 1 else None

    @property
    def figures(self) -> str:
        """Figures of the answer: ``first token after 120 ms, 45.6 tokens/s, 210 tokens``."""
        first, rate = self.first_seconds, self.tokens_per_second
        parts = [] if first is None else [f"first token after {first * 1000:.0f} ms"]
        parts += [] if rate is None else [f"{rate:.1f} tokens/s"]
        parts += [] if self.tokens is None else [f"{self.tokens} tokens"]
        parts += ["the answer is cut: the context is full"] if self.finish == "length" else []
        return ", ".join(parts) or "no token arrived"

    def pieces(self, server: Published, body: Mapping[str, Any]) -> Generator[Piece, None, None]:
        """Send a request to a server, and yield the pieces of the answer as they arrive.

        Raises:
            Failed: the server refuses the request, or ends the answer early.
        """
        try:
            for seconds, data in server.events(_CHAT, body, timeout=_LONGEST):
                if data == "[DONE]":
                    break
                for piece in self._read(data):
                    self.seconds = seconds
                    if self.first_seconds is None:
                        self.first_seconds = seconds
                    self.reasoning += piece.text if piece.reasoning else ""
                    self.text += "" if piece.reasoning else piece.text
                    yield piece
        except http.ErrorAnswer as refused:
            how = f"is refused with HTTP {refused.answer.status}"
            raise Failed(_refusal(how, refused.answer.text)) from None
        except http.NoAnswer as error:
            raise Failed(f"the connection broke: {error}") from None
        finally:
            server.hang_up()

    def _read(self, data: str) -> Iterator[Piece]:
        try:
            event = _object(json.loads(data))
        except (ValueError, RecursionError):
            raise Failed(f"an event is not JSON: {cut(data, 100)}") from None
        if "error" in event:
            raise Failed(_refusal("fails", data))
        tokens = _object(event.get("usage")).get("completion_tokens")
        self.tokens = tokens if isinstance(tokens, int) else self.tokens
        choices = event.get("choices")
        choice = _object(choices[0]) if isinstance(choices, list) and choices else {}
        delta, finish = _object(choice.get("delta")), choice.get("finish_reason")
        for name, reasoning in _PIECES:
            if isinstance(text := delta.get(name), str) and text:
                yield Piece(text, reasoning)
        self.finish = finish if isinstance(finish, str) else self.finish


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _refusal(how: str, text: str) -> str:
    """Reason why a server refused a request: the server's message, if any."""
    reason = text
    with suppress(ValueError, RecursionError):
        data = _object(json.loads(text))
        error = data.get("error", data)
        reason = str(_object(error).get("message") or error)
    return f"the request {how}: {cut(' '.join(reason.split()), 300) or 'without a message'}"


DOCUMENT = Answer


@click.command("chat")
@names_argument(services=True)
@option("chat --model")
@option("chat --prompt")
@json_option
def command(hosts: Selection, model: str | None, prompt: str | None, as_json: bool) -> None:
    """Talk to a service, with the sampling of its card.

    Without a name, the first service that answers is used. A model of another kind gets one request
    of its kind: speech to transcribe, a word to speak, a picture to draw, documents to rank.

    The prompt comes from --prompt, from standard input if it is not a terminal, or line by line.
    Reasoning is dimmed, and never part of a piped answer. Ctrl-C ends an answer, and a second
    Ctrl-C or Ctrl-D ends the chat. No text is stored. `chat` reaches a closed port through your
    ssh. With --json, a complete answer is one document. Exit with 1 when no service answered.
    """
    target, server = _first(targets(load(hosts).or_raise(), hosts.means, model))
    if not target.endpoint.chats:
        sys.exit(int(not _asked(target, server)))
    if prompt is None and (as_json or not (sys.stdin.isatty() and sys.stdout.isatty())):
        prompt = sys.stdin.read()
    if prompt is None:
        _conversation(target, server)
        return
    if not prompt.strip():
        raise click.UsageError("the prompt is empty")
    answer, stopped = _answered(target, server, [_message("user", prompt)], shown=not as_json)
    if stopped:
        raise KeyboardInterrupt
    if answer is None:
        sys.exit(1)
    if as_json:
        print_json(TypeAdapter(Answer).dump_python(answer))


def question(planned: Mapping[str, PlannedHost], prompt: str) -> bool:
    """Send a prompt to the first reachable service of these hosts; return whether the service
    answered.
    """
    try:
        target, server = _first(targets(planned))
    except SystemExit:  # no service answers; the reason was printed
        return False
    if not target.endpoint.chats:
        return _asked(target, server)
    return _answered(target, server, [_message("user", prompt)])[0] is not None


def _asked(target: Target, server: Published) -> bool:
    """Send the request of the model's kind, and print the checked answer; return whether the answer
    is right.
    """
    kinds = target.endpoint.kinds
    kind = cheapest(kinds)
    try:
        form = body(KINDS[kind].request, target.served.name)
        answer = server.ask("POST", kinds[kind], form, timeout=_LONGEST)
        if answer.status != 200:
            raise Failed(_refusal(f"is refused with HTTP {answer.status}", answer.text))
        click.echo(f"{kind}: {visible_prose(judged(kind, answer))}")
    except (Failed, faults.Fault, http.NoAnswer) as error:
        click.echo(f"{paint('error')}: {target.where}: {paragraph(str(error))}", err=True)
        return False
    finally:
        server.hang_up()
    return True


def _first(candidates: Sequence[Target]) -> tuple[Target, Published]:
    """Return the first candidate that answers, and its connection."""
    for target in candidates:
        try:
            server = opened(target)
        except Unusable as error:
            click.echo(text([error.finding], paint=paint), err=True)
            continue
        way = " through ssh" if server.through else ""
        name = f"{target.served.name} at {target.endpoint.host}{way}"
        click.echo(f"{name}\n{target.served.sampling}", err=True)
        return target, server
    sys.exit(1)


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _conversation(target: Target, server: Published) -> None:
    """Read prompts until Ctrl-D; Ctrl-C at the prompt ends the chat like any command."""
    import readline  # noqa: F401  adds line editing to input(), with a history in memory

    messages: list[dict[str, str]] = []
    while True:
        try:
            prompt = input("> ")
        except EOFError:
            click.echo()
            return
        if prompt.strip():
            asked = [*messages, _message("user", prompt)]
            answer, _ = _answered(target, server, asked)
            if answer is not None and answer.text:
                messages = [*asked, _message("assistant", answer.text)]


def _answered(
    target: Target, server: Published, messages: list[dict[str, str]], *, shown: bool = True
) -> tuple[Answer | None, bool]:
    """Print an answer as it arrives; return None without an answer.

    The second value is whether the user stopped the answer.
    """
    endpoint, failure, stopped = target.endpoint, "", False
    answer = Answer(endpoint.host, endpoint.service, target.served.name)
    last = Piece("", reasoning=False)
    try:
        with closing(answer.pieces(server, target.body(messages))) as pieces:
            for piece in pieces:
                if shown:
                    _show(piece, after=last)
                last = piece
    except Failed as error:
        failure = f"{paint('error')}: {target.where}: {paragraph(str(error))}"
    except KeyboardInterrupt:
        if not shown:
            raise
        stopped = True
    if shown and answer.first_seconds is not None and not answer.text.endswith("\n"):
        click.echo()
    if failure:
        click.echo(failure, err=True)
        return None, False
    if shown:
        how = "stopped; " if stopped else ""
        click.echo(click.style(f"({how}{answer.figures})", dim=True), err=True)
    return answer, stopped


def _show(piece: Piece, after: Piece) -> None:
    """Print a piece; reasoning goes only to a terminal, dimmed."""
    if not piece.reasoning:
        if after.reasoning:
            _dimmed("\n\n")
        click.echo(visible_prose(piece.text), nl=False)
    else:
        _dimmed(visible_prose(piece.text))


def _dimmed(reasoning: str) -> None:
    if sys.stderr.isatty():
        click.echo(click.style(reasoning, dim=True, reset=True), nl=False, err=True)
