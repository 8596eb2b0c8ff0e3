"""An answer while it streams: its pieces, and its figures at the end."""

import json
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import computed_field

from sparkwright.extras.chat.server import Published
from sparkwright.host.lib.http import NoAnswer, Refused
from sparkwright.text.visible import cut

_CHAT = "/v1/chat/completions"
#: Seconds for an answer; a long one of a slow model takes some minutes.
_LONGEST = 3600.0
#: Keys of a piece, and whether it is reasoning. Newer versions of vLLM have the first name of it,
#: older ones the second.
_PIECES = (("reasoning", True), ("reasoning_content", True), ("content", False))


class Failed(Exception):
    """There is no answer; the text says why."""


@dataclass(frozen=True)
class Piece:
    """Some characters of an answer, or of the reasoning before it."""

    text: str
    reasoning: bool


@dataclass
class Answer:
    """An answer to one prompt, or as much of it as has come.

    Attributes:
        finish: why it ended, such as ``stop`` or ``length``; None before the end.
        tokens: of reasoning and text together; None where the server did not say.
        first_seconds, seconds: from the request to the first and to the last piece; None before it.
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
        """Tokens a second after the first; None where it can't be told."""
        if self.tokens is None or self.first_seconds is None or self.seconds is None:
            return None
        seconds = self.seconds - self.first_seconds
        return (self.tokens - 1) / seconds if seconds > 0 and self.tokens > 1 else None

    @property
    def figures(self) -> str:
        """``first token after 120 ms, 45.6 tokens/s, 210 tokens``."""
        first, rate = self.first_seconds, self.tokens_per_second
        parts = [] if first is None else [f"first token after {first * 1000:.0f} ms"]
        parts += [] if rate is None else [f"{rate:.1f} tokens/s"]
        parts += [] if self.tokens is None else [f"{self.tokens} tokens"]
        parts += ["cut: the context is full"] if self.finish == "length" else []
        return ", ".join(parts) or "no token came"

    def pieces(self, server: Published, body: Mapping[str, Any]) -> Generator[Piece, None, None]:
        """Ask a server, and give the pieces as they come.

        Raises:
            Failed: when the server refuses, or breaks off.
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
        except Refused as refused:
            how = f"is refused with HTTP {refused.answer.status}"
            raise Failed(_refusal(how, refused.answer.text)) from None
        except NoAnswer as error:
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
    """Reason why a server refused a request, in its own words where it gives any."""
    reason = text
    try:
        data = _object(json.loads(text))
        error = data.get("error", data)
        reason = str(_object(error).get("message") or error)
    except (ValueError, RecursionError):
        pass
    return f"the request {how}: {cut(' '.join(reason.split()), 300) or 'without a word'}"
