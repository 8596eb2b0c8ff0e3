"""Bounded, steady load on an OpenAI-like server, with and without streams; answers are checked."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Used(NamedTuple):
    """Usage that an answer reports, with the day (UTC) of its end."""

    day: str
    tokens_in: int
    tokens_out: int


def used(answer: dict[str, Any]) -> Used:
    """The usage of an answer that has just ended."""
    day, usage = time.strftime("%Y-%m-%d", time.gmtime()), answer["usage"]
    tokens_in = usage["prompt_tokens"]
    return Used(day, tokens_in, usage["total_tokens"] - tokens_in)


@dataclass
class Load:
    """Workers that send one request after another until stopped.

    Attributes:
        served: number of complete answers.
        wrong: failures: status, broken line, or a missing end.
        context: verification of https; None for http.
        model: model name in requests.
        answers: usage of each complete answer, if streams report it.
        streams: whether half of the workers currently request streams.
    """

    address: str
    port: int
    key: str
    workers: int = 6
    served: int = 0
    faults: list[str] = field(default_factory=list)
    longest: float = 0.0
    context: ssl.SSLContext | None = None
    model: str = "qwen36-fast"
    counting: bool = False
    answers: list[Used] = field(default_factory=list)
    streams: bool = True
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Load:
        """Start the workers."""
        for number in range(self.workers):
            thread = threading.Thread(target=self._work, args=(number % 2 == 0,), daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the end of every request."""
        self._stop.set()
        for thread in self._threads:
            thread.join(60)

    def _work(self, streaming: bool) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                fault = self._ask(streaming and self.streams)
            except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
                fault = f"{type(error).__name__}: {error}"
            self.longest = max(self.longest, time.monotonic() - began)
            if fault:
                kind = "stream" if streaming else "answer"
                self.faults.append(f"{kind} after {time.monotonic() - began:.1f} s: {fault}")
            else:
                self.served += 1

    def _ask(self, streaming: bool) -> str | None:
        connection = (
            http.client.HTTPSConnection(self.address, self.port, timeout=60, context=self.context)
            if self.context
            else http.client.HTTPConnection(self.address, self.port, timeout=60)
        )
        body = {
            "model": self.model, "stream": streaming, "max_tokens": 48, "temperature": 0,
            "messages": [{"role": "user", "content": "Write the numbers from 1 to 30."}],
            "chat_template_kwargs": {"enable_thinking": False},
            **({"stream_options": {"include_usage": True}} if self.counting and streaming else {}),
        }  # fmt: skip
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status != 200:
            return f"HTTP {answer.status}: {text[:200]}"
        if streaming and not text.rstrip().endswith("data: [DONE]"):
            return f"cut off: {text[-80:]!r}"
        if self.counting:
            last = text.rpartition("data: {")[2].partition("\n")[0] if streaming else text[1:]
            self.answers.append(used(json.loads(f"{{{last}")))
        if streaming:
            return None
        return None if json.loads(text)["usage"]["completion_tokens"] else "an empty answer"
