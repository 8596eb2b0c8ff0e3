"""Services from their clients' view: address, name of the key, served names, limits."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PlainSerializer, computed_field

from sparkwright.catalog import Alias, Catalog
from sparkwright.config import settings, tls
from sparkwright.config.secrets import Source, shown
from sparkwright.engines import engine
from sparkwright.plan.plan import HostPlan, ServicePlan
from sparkwright.proxy.pools import planned_pools
from sparkwright.site.fleet import PlannedHost


@dataclass(frozen=True)
class Key:
    """An API key by reference.

    Attributes:
        variable: the client's environment variable with the key.
        source: the file on the controller that holds the key, or the command that prints it.
    """

    variable: str
    source: Annotated[Source, Field(exclude=True)]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def file(self) -> str | None:
        """The file with the key; None if a command prints the key."""
        return self.source if isinstance(self.source, str) else None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def command(self) -> tuple[str, ...] | None:
        """The command that prints the key; None if a file has the key."""
        return None if isinstance(self.source, str) else self.source


@dataclass(frozen=True)
class ServedName:
    """A served name, and the parameters that a client should send with it."""

    name: str
    advice: Alias | None

    @property
    def figures(self) -> dict[str, float | int]:
        """The advised sampling parameters, by their names in OpenAI-style requests."""
        named = {"temperature", "top_p", "top_k", "presence_penalty"}
        return self.advice.model_dump(include=named, exclude_none=True) if self.advice else {}

    @property
    def thinking(self) -> bool | None:
        """Return whether the model thinks first; None leaves the choice to the client."""
        return self.advice.thinking if self.advice else None

    @property
    def summary(self) -> str:
        """The advice and its source, in one line."""
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


def _advised(names: Iterable[ServedName]) -> dict[str, dict[str, Any]]:
    named = {served.name: served.advice for served in names}
    return {
        name: given.model_dump(exclude_none=True) if given else {} for name, given in named.items()
    }


@dataclass(frozen=True)
class Endpoint:
    """Endpoint of a service on a host.

    Attributes:
        names: served names; in JSON with the sampling that the card advises.
        model: repository of the model that answers to every name.
        context: tokens of prompt and answer together; None if unknown.
        images, tools, reasoning: supported features of requests.
        kinds: kinds of requests that the service answers, each with its route.
        chats: whether the service answers chats.
        ca: absolute path on the controller of the CA that verifies https; None for public CAs,
            which every client trusts, and for http.
        shared: whether the endpoint's address serves all models.
    """

    host: str
    service: str
    base_url: str
    key: Annotated[Key, Field(serialization_alias="api_key")]
    model: str
    names: Annotated[tuple[ServedName, ...], PlainSerializer(_advised)]
    context: int | None
    images: bool
    tools: bool
    reasoning: bool
    kinds: Mapping[str, str] = field(default_factory=dict)
    chats: bool = True
    ca: str | None = None
    shared: bool = False

    @computed_field  # type: ignore[prop-decorator]
    @property
    def id(self) -> str:
        """Host and service, joined by a dot; unique, since no service's name has a dot."""
        return f"{self.host}.{self.service}"

    @property
    def provider(self) -> str:
        """Name of the endpoint's address: the service's name, or a common name for all models."""
        return f"{self.host}.models" if self.shared else self.id

    @computed_field  # type: ignore[prop-decorator]
    @property
    def max_output(self) -> int | None:
        """Longest answer in tokens; an engine refuses a prompt without room for it."""
        # Engines refuse a request whose prompt and max_tokens are longer than the context, so a
        # client that always requests the maximum must leave room. An eighth of the context is the
        # share in the 35B card's repository for OpenClaw (32768 of 262144,
        # AEON-7/Qwen3.6-NVFP4-DFlash, docs/openclaw.md). The minimum is 2048 tokens: with fewer
        # tokens, reasoning uses up the answer (the card of this model, 'Recommended sampling
        # parameters').
        if self.context is None:
            return None
        return max(self.context // 8, min(2048, self.context // 2))

    @property
    def max_input(self) -> int | None:
        """Longest prompt in tokens, if the answer has its greatest length."""
        return self.context - self.max_output if self.context and self.max_output else None


def endpoint_of(
    plan: HostPlan, service: ServicePlan, catalog: Catalog, address: str, key: Key
) -> Endpoint:
    """A service at an address, from its clients' view."""
    body = catalog.models[service.body.name]
    advice = service.recipe.aliases
    program, arguments = engine(service.engine), dict(service.arguments)
    limits, kinds = program.limits(arguments), program.kinds(arguments, service.task)
    at = f"[{address}]" if ":" in address else address
    how = tls.scheme(plan.settings, proxied=service.proxy)
    ca = tls.clients_ca(plan.settings) if how == "https" else None
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
        # Without a parser, reasoning comes as text: a client that expects reasoning in a separate
        # field gets an empty field.
        reasoning="thinking" in body.capabilities and limits.reasoning,
        kinds=kinds,
        chats="chat" in kinds,
        ca=str(Path(ca).expanduser().absolute()) if ca else None,
    )


def address_endpoints(
    host: PlannedHost, every: Iterable[PlannedHost], key: Key, allowed: Container[str] | None
) -> Iterator[Endpoint]:
    """Endpoints of the pools behind a host's address for all models, each with its own limits.

    Args:
        every: all hosts of the inventory.
        allowed: models that the key may use; None for all models.
    """
    plan, by_name = host.plan, {each.plan.host: each for each in every}
    for pool in planned_pools(each.plan for each in by_name.values()):
        name, service = next(iter(pool.services.items()))
        own = endpoint_of(
            replace(plan, host=name), service, by_name[name].catalog, reached(host), key
        )
        names = tuple(
            each for each in own.names
            if each.name in pool.names and (allowed is None or each.name in allowed)
        )  # fmt: skip
        at = own.base_url.rpartition(":")[0]
        if names and plan.settings.address:
            yield replace(
                own, host=plan.host, service=pool.name.removeprefix("pool."), names=names,
                base_url=f"{at}:{plan.settings.address.port}/v1", shared=True,
            )  # fmt: skip


def reached(host: PlannedHost) -> str:
    """URL at which clients reach a host's address for all models."""
    bind = host.plan.settings.address and host.plan.settings.address.bind
    return host.address if bind in (None, *settings.EVERY_ADDRESS) else str(bind)


def keys(endpoints: Iterable[Endpoint]) -> tuple[Key, ...]:
    """Every required key, once."""
    return tuple(dict.fromkeys(endpoint.key for endpoint in endpoints))


def cas(endpoints: Iterable[Endpoint]) -> tuple[str, ...]:
    """Every CA that clients need besides the public CAs, once."""
    return tuple(dict.fromkeys(endpoint.ca for endpoint in endpoints if endpoint.ca))


def key_command(key: Key) -> str:
    """Shell command that sets the variable on the controller."""
    return f'export {key.variable}="{shown(key.source)}"'
