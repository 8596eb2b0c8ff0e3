"""One answer while it streams: its pieces, and its figures at the end."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sparkwright.extras.chat.server import Published
from sparkwright.host.lib.http import NoAnswer, Refused
from sparkwright.text.visible import cut

_CHAT = "/v1/chat/completions"
#: Seconds for an answer; a long one of a slow model takes some minutes.
_LONGEST = 3600.0
#: Newer versions of vLLM have the first name, older ones the second.
_REASONING = ("reasoning", "reasoning_content")


class Failed(Exception):
    """There is no answer; the text says why."""


@dataclass(frozen=True)
class Piece:
    """Some characters of an answer, or of the reasoning before it."""

    text: str
    reasoning: bool


class Answer:
    """An answer to a conversation.

    Attributes:
        text: what was said so far, without the reasoning.
        first, last: seconds from the request to the first and to the last piece; None before it.
        tokens: of reasoning and answer; None where the server did not say.
        finish: why it ended, such as ``stop`` or ``length``; None before the end.
    """

    def __init__(self, server: Published, body: Mapping[str, Any]) -> None:
        self._server, self._body = server, body
        self.text = ""
        self.first: float | None = None
        self.last: float | None = None
        self.tokens: int | None = None
        self.finish: str | None = None

    def pieces(self) -> Generator[Piece, None, None]:
        """The pieces as they come.

        Raises:
            Failed: when the server refuses, or breaks off.
        """
        try:
            for seconds, data in self._server.events(_CHAT, self._body, timeout=_LONGEST):
                if data == "[DONE]":
                    break
                for piece in self._read(data):
                    self.first = seconds if self.first is None else self.first
                    self.last = seconds
                    if not piece.reasoning:
                        self.text += piece.text
                    yield piece
        except Refused as refused:
            raise Failed(_refusal(refused.answer.status, refused.answer.text)) from None
        except NoAnswer as error:
            raise Failed(f"the connection broke: {error}") from None
        finally:
            self._server.hang_up()

    @property
    def rate(self) -> float | None:
        """Tokens a second after the first; None where it can't be told."""
        if self.tokens is None or self.first is None or self.last is None:
            return None
        seconds = self.last - self.first
        return (self.tokens - 1) / seconds if seconds > 0 and self.tokens > 1 else None

    @property
    def figures(self) -> str:
        """``first token after 120 ms, 45.6 tokens/s, 210 tokens``."""
        parts = [] if self.first is None else [f"first token after {self.first * 1000:.0f} ms"]
        if self.rate is not None:
            parts.append(f"{self.rate:.1f} tokens/s")
        if self.tokens is not None:
            parts.append(f"{self.tokens} tokens")
        if self.finish == "length":
            parts.append("cut: the context is full")
        return ", ".join(parts) or "no token came"

    def _read(self, data: str) -> Iterator[Piece]:
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            raise Failed(f"an event is not JSON: {cut(data, 100)}") from None
        event = _object(event)
        if "error" in event:
            raise Failed(_refusal(None, data))
        tokens = _object(event.get("usage")).get("completion_tokens")
        if isinstance(tokens, int):
            self.tokens = tokens
        choices = event.get("choices")
        choice = _object(choices[0]) if isinstance(choices, list) and choices else {}
        delta = _object(choice.get("delta"))
        found = (*((name, True) for name in _REASONING), ("content", False))
        for name, reasoning in found:
            if isinstance(text := delta.get(name), str) and text:
                yield Piece(text, reasoning)
        if isinstance(choice.get("finish_reason"), str):
            self.finish = choice["finish_reason"]


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _refusal(status: int | None, text: str) -> str:
    """What a server says against a request, in its own words where it has some."""
    said = text
    try:
        data = _object(json.loads(text))
        error = data.get("error", data)
        said = str(_object(error).get("message") or error)
    except (ValueError, RecursionError):
        pass
    how = "the request fails" if status is None else f"the request is refused with HTTP {status}"
    return f"{how}: {cut(' '.join(said.split()), 300) or 'without a word'}"
