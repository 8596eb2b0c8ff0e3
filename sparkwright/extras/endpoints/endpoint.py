"""What a client has to know of a service: where it is, how its key is called, what it takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sparkwright.catalog import Alias
from sparkwright.config.secrets import Source, shown


@dataclass(frozen=True)
class Key:
    """An API key by reference.

    Attributes:
        variable: the environment variable that a client reads it from.
        source: the file on the controller that a run makes or takes it from, or the command.
    """

    variable: str
    source: Source


@dataclass(frozen=True)
class ServedName:
    """A name that the service answers to, and what a client should send with it."""

    name: str
    advice: Alias | None

    @property
    def figures(self) -> dict[str, float | int]:
        """The advised sampling, by the names that OpenAI-style requests have for it."""
        if self.advice is None:
            return {}
        named = {
            "temperature": self.advice.temperature,
            "top_p": self.advice.top_p,
            "top_k": self.advice.top_k,
            "presence_penalty": self.advice.presence_penalty,
        }
        return {key: value for key, value in named.items() if value is not None}

    @property
    def thinking(self) -> bool | None:
        """Whether the model thinks first; None leaves it to the client."""
        return self.advice.thinking if self.advice else None

    @property
    def words(self) -> str:
        """The advice as a line for people."""
        return f"{self.sampling} ({self.advice.source})" if self.advice else self.sampling

    @property
    def sampling(self) -> str:
        """The same without who says so."""
        if self.advice is None:
            return "no advice in the catalog"
        parts = [f"{key} {value:g}" for key, value in self.figures.items()]
        if self.thinking is not None:
            parts.append(f"thinking {'on' if self.thinking else 'off'}")
        return f"{self.advice.title}: {', '.join(parts) or 'no figures'}"


@dataclass(frozen=True)
class Endpoint:
    """One service of one host.

    Attributes:
        model: repository of the model that answers to every name.
        context: tokens of prompt and answer together; None where unknown.
        images, tools, reasoning: what requests may hold or ask for.
        ca: absolute path on the controller of the CA by which https is verified; None for the
            public ones that every client knows, and for http.
    """

    host: str
    service: str
    base_url: str
    key: Key
    model: str
    names: tuple[ServedName, ...]
    context: int | None
    images: bool
    tools: bool
    reasoning: bool
    ca: str | None = None

    @property
    def id(self) -> str:
        """One word of host and service. A service's name has no dot, so no two are the same."""
        return f"{self.host}.{self.service}"

    @property
    def max_output(self) -> int | None:
        """Tokens that an answer may take.

        vLLM refuses a request whose prompt and ``max_tokens`` are longer than the context, so a
        client that always asks for the most must leave room. An eighth: the share that the 35B
        card's repository gives OpenClaw (32768 of 262144, AEON-7/Qwen3.6-NVFP4-DFlash,
        docs/openclaw.md). But no less than 2048: with fewer, reasoning uses up the answer
        (that model's card, 'Recommended sampling parameters').
        """
        if self.context is None:
            return None
        return max(self.context // 8, min(2048, self.context // 2))

    @property
    def max_input(self) -> int | None:
        """Tokens that a prompt may take beside the longest answer."""
        return self.context - self.max_output if self.context and self.max_output else None


def keys(endpoints: Iterable[Endpoint]) -> tuple[Key, ...]:
    """Every key that is needed, once."""
    return tuple(dict.fromkeys(endpoint.key for endpoint in endpoints))


def cas(endpoints: Iterable[Endpoint]) -> tuple[str, ...]:
    """Every CA that clients have to know beside the public ones, once."""
    return tuple(dict.fromkeys(endpoint.ca for endpoint in endpoints if endpoint.ca))


def key_command(key: Key) -> str:
    """What sets the variable on the controller."""
    return f'export {key.variable}="{shown(key.source)}"'
