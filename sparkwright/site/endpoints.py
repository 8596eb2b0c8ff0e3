"""Services as their clients see them: address, name of the key, served names, limits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sparkwright.catalog import Alias, Catalog
from sparkwright.config.secrets import Source, shown
from sparkwright.config.tls import clients_ca, scheme
from sparkwright.engines import engine
from sparkwright.plan.plan import HostPlan, ServicePlan


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
        named = {"temperature", "top_p", "top_k", "presence_penalty"}
        return self.advice.model_dump(include=named, exclude_none=True) if self.advice else {}

    @property
    def thinking(self) -> bool | None:
        """Whether the model thinks first; None leaves it to the client."""
        return self.advice.thinking if self.advice else None

    @property
    def summary(self) -> str:
        """The advice and its source, on a line for people."""
        return f"{self.sampling} ({self.advice.source})" if self.advice else self.sampling

    @property
    def sampling(self) -> str:
        """The advice without its source."""
        if self.advice is None:
            return "no advice in the catalog"
        parts = [f"{key} {value:g}" for key, value in self.figures.items()]
        if self.thinking is not None:
            parts.append(f"thinking {'on' if self.thinking else 'off'}")
        return f"{self.advice.title}: {', '.join(parts) or 'no figures'}"


@dataclass(frozen=True)
class Endpoint:
    """Endpoint of a service on a host.

    Attributes:
        model: repository of the model that answers to every name.
        context: tokens of prompt and answer together; None where unknown.
        images, tools, reasoning: what requests may hold or ask for.
        kinds: of requests that it answers, each with its route.
        chats: whether a chat is one of them.
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
    kinds: Mapping[str, str] = field(default_factory=dict)
    chats: bool = True
    ca: str | None = None

    @property
    def id(self) -> str:
        """Host and service, joined by a dot; unique, since no service's name has a dot."""
        return f"{self.host}.{self.service}"

    @property
    def max_output(self) -> int | None:
        """Tokens that an answer may take.

        Engines refuse a request whose prompt and ``max_tokens`` are longer than the context, so a
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


def endpoint_of(
    plan: HostPlan, service: ServicePlan, catalog: Catalog, address: str, key: Key
) -> Endpoint:
    """A service as its clients see it at an address."""
    body = catalog.models[service.body.name]
    advice = service.recipe.aliases
    program, arguments = engine(service.engine), dict(service.arguments)
    limits, kinds = program.limits(arguments), program.kinds(arguments, service.task)
    at = f"[{address}]" if ":" in address else address
    how = scheme(plan.settings, proxied=service.proxy)
    ca = clients_ca(plan.settings) if how == "https" else None
    return Endpoint(
        host=plan.host,
        service=service.name,
        base_url=f"{how}://{at}:{service.port}/v1",
        key=key,
        model=service.body.repository,
        names=tuple(ServedName(name, advice.get(name)) for name in service.served_names),
        context=limits.context or body.context,
        images="image" in body.capabilities,
        tools=limits.tools is not None,
        # Without a parser thoughts come as text: a client that expects them apart finds none.
        reasoning="thinking" in body.capabilities and limits.reasoning,
        kinds=kinds,
        chats="chat" in kinds,
        ca=str(Path(ca).expanduser().absolute()) if ca else None,
    )


def keys(endpoints: Iterable[Endpoint]) -> tuple[Key, ...]:
    """Every key that is needed, once."""
    return tuple(dict.fromkeys(endpoint.key for endpoint in endpoints))


def cas(endpoints: Iterable[Endpoint]) -> tuple[str, ...]:
    """Every CA that clients have to know beside the public ones, once."""
    return tuple(dict.fromkeys(endpoint.ca for endpoint in endpoints if endpoint.ca))


def key_command(key: Key) -> str:
    """Shell command that sets the variable on the controller."""
    return f'export {key.variable}="{shown(key.source)}"'
