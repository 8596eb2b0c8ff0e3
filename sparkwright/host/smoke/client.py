"""Requests of a check to its service, all within one deadline, and their answers."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from sparkwright.host.lib import faults, metrics, model_list, records
from sparkwright.host.lib.annotations import Any
from sparkwright.host.lib.http import Answer, ErrorAnswer, Late, NoAnswer, Server, api_key
from sparkwright.host.service import SmokeRequest


@records.dataclass(frozen=True)
class DeepRequest(SmokeRequest):
    """Request for a deep test: additions to the short test's request.

    Attributes:
        tool_parser: name of the tool parser in the recipe.
        thinking_tokens: token budget of an answer with thinking.
        max_num_seqs: number of requests that the engine serves at once; None if the plan has no
            number.
        context: context length in tokens; None if the server decides and reports the length.
        prefix_caching: whether the engine caches prefixes; None for the engine's default.
        skip: check -> the reason for skipping it.
        guarded: prefixes of paths for which the engine itself checks the key.
        tokenizer: route that tokenizes a text; empty without such a route.
        tokenized: key of the text in the request to ``tokenizer``.
        context_errors: texts; every error about a prompt that is too long contains one of these
            texts.
    """

    tool_parser: str | None = None
    thinking_tokens: int = 0
    max_num_seqs: int | None = None
    context: int | None = None
    prefix_caching: bool | None = None
    skip: dict[str, str] = records.field(default_factory=dict)
    guarded: tuple[str, ...] = ()
    tokenizer: str = ""
    tokenized: str = ""
    context_errors: tuple[str, ...] = ()


class Skip(Exception):
    """A check that does not apply to this service; the text has the reason."""


@records.dataclass(frozen=True)
class Completion:
    """An answer of the chat route.

    Attributes:
        text: the content; None if reasoning took the whole budget or a tool is called.
        note: remark about the origin of the answer, for the report.
    """

    text: str | None
    reasoning: str | None
    finish: str | None
    calls: list[dict[str, Any]]
    prompt_tokens: int
    tokens: int
    total: int
    note: str = ""

    @property
    def only_reasoning(self) -> bool:
        """Return whether reasoning took the whole budget: ``content: null`` with ``finish_reason:
        length``.
        """
        return self.text is None and bool(self.reasoning) and self.finish == "length"

    def check_budget(self, budget: int) -> None:
        """Fail the check if reasoning took the whole budget."""
        small = f"content: null with finish_reason: length: {budget} tokens are too small a budget"
        text = f"{small}; reasoning took all tokens: {faults.clip(self.reasoning)}"
        faults.fail_if(self.only_reasoning, "budget", text)


@records.dataclass(frozen=True)
class Metrics:
    """The engine's counters and gauges at one time, and the settings of its KV cache."""

    values: dict[str, float]
    texts: dict[str, str]

    def since(self, before: "Metrics", name: str) -> float:
        """Return the increase of a counter; a missing counter counts as 0."""
        return self.values.get(name, 0.0) - before.values.get(name, 0.0)

    @property
    def block(self) -> int:
        """Return the tokens of a block of the KV cache; 16, the smallest size, if unknown."""
        text = self.texts.get(metrics.BLOCK, "")
        return int(text) if text.isdigit() else 16


class Client:
    """Client for a check's requests, which end at the check's deadline."""

    def __init__(self, request: SmokeRequest, seconds: float, server: Server | None = None) -> None:
        if server is None:
            # A follower has no key; its cluster's head answers for it.
            key = None if request.follower else api_key(request.secrets)
            server = Server(request.address, request.port, key)
        self.request, self.server, self.seconds = request, server, seconds
        self.late = f"no answer within {seconds:.0f} s while /health answers: the engine hangs"
        self._deadline = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds until the deadline.

        Raises:
            Fault: the deadline has passed.
        """
        left = self._deadline - time.monotonic()
        faults.fail_if(left <= 0, "late", self.late)
        return left

    @contextmanager
    def _asking(self, asked: str) -> Iterator[None]:
        """Turn a missing answer into a fault of the check."""
        try:
            yield
        except Late:
            raise faults.Fault("late", self.late) from None
        except NoAnswer as error:
            raise faults.Fault("cut", f"{asked}: the connection was cut ({error})") from None

    def call(self, method: str, path: str, body: object = None, *, key: bool = True) -> Answer:
        """Send a request and return its answer, for any status."""
        with self._asking(f"{method} {path}"):
            return self.server.ask(method, path, body, key=key, timeout=self.left())

    def json(self, method: str, path: str, body: object = None) -> Any:
        """Return the JSON of a successful answer. Raises Fault otherwise."""
        return succeeded(path, self.call(method, path, body)).json()

    def body(
        self, asked: str | list[Any], tokens: int, think: bool | None = None
    ) -> dict[str, Any]:
        """Return a chat's body for a question or for messages. Sampling is greedy, so answers are
        repeatable.
        """
        return {
            "model": self.request.served_names[0],
            "messages": [{"role": "user", "content": asked}] if isinstance(asked, str) else asked,
            "max_tokens": tokens,
            "temperature": 0,
            "chat_template_kwargs": {
                "enable_thinking": self.request.thinking if think is None else think
            },
        }

    def chat(self, body: dict[str, Any]) -> Completion:
        """Return the first choice of an answer, unchanged. Older engines have
        ``reasoning_content``.
        """
        answer = self.json("POST", "/v1/chat/completions", body)
        choice, usage = answer["choices"][0], answer["usage"]
        message = choice["message"]
        return Completion(
            text=message.get("content") or None,
            reasoning=message.get("reasoning") or message.get("reasoning_content") or None,
            finish=choice["finish_reason"],
            calls=message.get("tool_calls") or [],
            prompt_tokens=usage["prompt_tokens"],
            tokens=usage["completion_tokens"],
            total=usage["total_tokens"],
        )

    def metrics(self) -> Metrics:
        """Read the engine's counters."""
        text = succeeded("/metrics", self.call("GET", "/metrics")).text
        names = self.request.metric_names
        return Metrics(metrics.totals(text, names), metrics.texts(text, names))


class DeepClient(Client):
    """Client for a deep check's requests."""

    request: DeepRequest

    def body(
        self, asked: str | list[Any], tokens: int, think: bool | None = None
    ) -> dict[str, Any]:
        """Return a chat's body like the short test's; if the user lets the model think in smoke
        tests, every budget has room for the reasoning.
        """
        room = self.request.thinking_tokens if self.request.thinking and think is None else 0
        return super().body(asked, tokens + room, think)

    def ask(self, asked: str | list[Any], tokens: int, **more: Any) -> Completion:
        """Return an answer with content or a tool call.

        If reasoning takes the whole budget, the client sends the question once more with room for
        the reasoning.
        """
        body = {**self.body(asked, tokens), **more}
        answer = self.chat(body)
        if answer.only_reasoning:
            body["max_tokens"] = tokens + self.request.thinking_tokens
            note = f" (content: null at {tokens} tokens, a budget too small for the reasoning)"
            answer = records.replace(self.chat(body), note=note)
        answer.check_budget(body["max_tokens"])
        # The answer had tokens but no text: engines leave special tokens out.
        silent = not (answer.text or answer.reasoning or answer.calls) and answer.tokens > 0
        text = f"{answer.tokens} tokens without any text (finish_reason {answer.finish})"
        faults.fail_if(silent, "silent", f"{text}: only special tokens")
        faults.fail_if_only_marks(answer.text or "")
        faults.fail_if_noise(answer.text or "")
        return answer

    def events(self, path: str, body: dict[str, Any]) -> Iterator[tuple[float, str]]:
        """Yield the data of a stream's events, each with the seconds since the request was sent."""
        try:
            with self._asking(f"the stream of POST {path}"):
                for event in self.server.events(path, body, timeout=self.left()):
                    self.left()  # the deadline also ends a slow stream
                    yield event
        except ErrorAnswer as refused:
            succeeded(path, refused.answer)

    def context(self) -> int:
        """Return the context length in tokens: as planned, otherwise as the server reports it."""
        if self.request.context:
            return self.request.context
        if (tokens := model_list.context(self.json("GET", "/v1/models")["data"][0])) is None:
            raise KeyError("max_model_len")
        return tokens

    def count(self, text: str) -> int:
        """Count a text's tokens with the model's own tokenizer; without a tokenizer, count the
        words, which are never more than the tokens.
        """
        if self.request.tokenizer:
            body = {"model": self.request.served_names[0], self.request.tokenized: text}
            answer = self.call("POST", self.request.tokenizer, body)
            if answer.status == 200:
                return len(answer.json()["tokens"])
        return len(text.split())


def succeeded(path: str, answer: Answer) -> Answer:
    """Return a successful answer.

    Raises:
        Fault: the answer is an error; the text has the server's message.
    """
    text = f"{path} answers HTTP {answer.status}: {faults.clip(error_of(answer), 200)}"
    faults.fail_if(answer.status != 200, "broken" if answer.status >= 500 else "refused", text)
    return answer


def error_of(answer: Answer) -> str:
    """Return an error's message, or the body if the error is not in OpenAI's form."""
    try:
        return str(answer.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return answer.text
