"""Asking one service within a deadline, and reading what it answers."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sparkwright.host.smoke import check, counters


class Fault(check.Failure):
    """A check did not hold.

    Attributes:
        cause: which of the causes in sparkwright/smoke/checks.yaml this is.
    """

    def __init__(self, cause: str, seen: str) -> None:
        super().__init__(seen)
        self.cause = cause


class Skip(Exception):
    """A check that this service gives no reason for; the text says why."""


@dataclass(frozen=True)
class Said:
    """An answer of the chat.

    Attributes:
        text: None where the budget ended within the thoughts, or where a tool is called.
        note: what a reader should know of how the answer came about.
    """

    text: str | None
    thoughts: str | None
    finish: str | None
    calls: list[dict[str, Any]]
    prompt_tokens: int
    tokens: int
    total: int
    note: str = ""

    @property
    def lost_in_thought(self) -> bool:
        """``content: null`` with ``finish_reason: length``: the thoughts took the whole budget."""
        return self.text is None and not self.calls and self.finish == "length"


class Talk:
    """One check's conversation with a service, which ends at the check's deadline."""

    def __init__(self, request: dict[str, Any], seconds: float) -> None:
        self.service = check.Service(request)
        self.request = request
        self.seconds = seconds
        self._deadline = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds until the deadline.

        Raises:
            Fault: when it has passed.
        """
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise self._late()
        return left

    def call(
        self, method: str, path: str, body: Any = None, *, key: bool = True
    ) -> tuple[int, bytes]:
        """One request; status and body."""
        try:
            return self.service.call(method, path, body, key=key, timeout=self.left())
        except TimeoutError:
            raise self._late() from None
        except (OSError, http.client.HTTPException) as error:
            raise Fault("cut", f"{method} {path}: {_words(error)}") from None

    def json(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of an answer that has to be a success."""
        return json.loads(succeeded(path, *self.call(method, path, body)))

    def body(
        self, asked: str | list[Any], tokens: int, think: bool | None = None
    ) -> dict[str, Any]:
        """A chat's body, of one question or of messages. Greedy, so that answers are repeatable."""
        messages = [{"role": "user", "content": asked}] if isinstance(asked, str) else asked
        thinks = self.request["thinking"] if think is None else think
        # Where the user lets the model think in smoke tests, every budget must hold its thoughts.
        room = self.request["thinking_tokens"] if thinks and think is None else 0
        return {
            "model": self.request["served_names"][0],
            "messages": messages,
            "max_tokens": tokens + room,
            "temperature": 0,
            "chat_template_kwargs": {"enable_thinking": thinks},
        }

    def chat(self, body: dict[str, Any]) -> Said:
        """One answer, as it comes."""
        return said(self.json("POST", "/v1/chat/completions", body))

    def ask(self, asked: str | list[Any], tokens: int, **more: Any) -> Said:
        """An answer with content or a call of a tool.

        A budget that went into thoughts is too small, which is nobody's fault: the question is
        asked once more with room for them.
        """
        body = {**self.body(asked, tokens), **more}
        answer = self.chat(body)
        if answer.lost_in_thought:
            body["max_tokens"] = tokens + self.request["thinking_tokens"]
            note = f" (content: null at {tokens} tokens, a budget too small for its thoughts)"
            answer = replace(self.chat(body), note=note)
        if answer.lost_in_thought:
            raise Fault(
                "budget",
                f"content: null with finish_reason: length: {body['max_tokens']} tokens are too "
                f"small a budget, thoughts took them all: {clip(answer.thoughts)}",
            )
        if answer.text is not None and nothing_but_marks(answer.text):
            raise Fault("marks", f"the answer is nothing but '!': {clip(answer.text)}")
        return answer

    def events(self, path: str, body: dict[str, Any]) -> Iterator[tuple[float, str]]:
        """The data of a stream's events, each with the seconds since the request was sent."""
        connection = http.client.HTTPConnection(
            self.request["address"], self.request["port"], timeout=self.left()
        )
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {self.service.key}",
        }
        try:
            begun = time.monotonic()
            connection.request("POST", path, body=json.dumps(body), headers=headers)
            answer = connection.getresponse()
            if answer.status != 200:
                succeeded(path, answer.status, answer.read())
            for line in answer:
                self.left()  # bounded by time, however slowly the events drip
                if line.startswith(b"data: "):
                    yield time.monotonic() - begun, line[6:].decode().strip()
        except TimeoutError:
            raise self._late() from None
        except (OSError, http.client.HTTPException) as error:
            raise Fault("cut", f"POST {path}: {_words(error)} within the stream") from None
        finally:
            connection.close()

    def counters(self) -> counters.Counters:
        """What vLLM has counted so far."""
        status, body = self.call("GET", "/metrics")
        return counters.parse(succeeded("/metrics", status, body).decode(errors="replace"))

    def context(self) -> int:
        """Tokens of the context: as planned, or as the server says where that leaves it open."""
        if self.request["context"]:
            return int(self.request["context"])
        return int(self.json("GET", "/v1/models")["data"][0]["max_model_len"])

    def count(self, text: str) -> int:
        """Tokens of a text by the model's own tokenizer, or its words, which are never more."""
        body = {"model": self.request["served_names"][0], "prompt": text}
        status, raw = self.call("POST", "/tokenize", body)
        return int(json.loads(raw)["count"]) if status == 200 else len(text.split())

    def _late(self) -> Fault:
        return Fault("late", f"no answer within {self.seconds:.0f} s")


def succeeded(path: str, status: int, body: bytes) -> bytes:
    """The body of an answer, when it is a success.

    Raises:
        Fault: with what the server says.
    """
    if status == 200:
        return body
    text = f"{path} answers HTTP {status}: {clip(error_of(body), 200)}"
    raise Fault("broken" if status >= 500 else "refused", text)


def error_of(body: bytes) -> str:
    """An error's message, or the body where it is in no form that vLLM uses."""
    text = body.decode(errors="replace")
    try:
        return str(json.loads(text)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return text


def said(answer: dict[str, Any]) -> Said:
    """The first choice of a chat completion. Older builds call thoughts ``reasoning_content``."""
    choice, usage = answer["choices"][0], answer["usage"]
    message = choice["message"]
    return Said(
        text=message.get("content") or None,
        thoughts=message.get("reasoning") or message.get("reasoning_content") or None,
        finish=choice["finish_reason"],
        calls=message.get("tool_calls") or [],
        prompt_tokens=usage["prompt_tokens"],
        tokens=usage["completion_tokens"],
        total=usage["total_tokens"],
    )


def nothing_but_marks(text: str) -> bool:
    """What vLLM answers when weights are missing: the token 0 again and again, which is `!`."""
    return len(text.strip()) >= 4 and not text.strip("! \n")


def clip(text: str | None, length: int = 80) -> str:
    """A text in one line, cut."""
    line = " ".join((text or "nothing").split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def _words(error: Exception) -> str:
    return f"the connection was cut ({error or type(error).__name__})"
