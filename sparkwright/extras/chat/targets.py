"""Targets of a chat: services of the planned fleet that answer to a name."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sparkwright.config import secrets, settings
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import Messages, suggest
from sparkwright.site.endpoints import Endpoint, Key, ServedName, endpoint_of
from sparkwright.site.fleet import PlannedHost

MESSAGES = Messages(__file__)


@dataclass(frozen=True)
class Target:
    """A service of a host, by a served name.

    Attributes:
        endpoint: the service, at the address that clients connect to.
        served: the served name, with the card's advice.
        published: whether other machines can connect to the service.
        inner: address and port at which the host itself reaches the service.
        data: the host's data of inventory and group_data.
    """

    endpoint: Endpoint
    served: ServedName
    published: bool
    inner: tuple[str, int]
    data: Mapping[str, Any]

    @property
    def where(self) -> str:
        """``spark-1: qwen36``."""
        return f"{self.endpoint.host}: {self.endpoint.service}"

    @property
    def key(self) -> secrets.Secret:
        """The fleet's own key, from the site's source. No key is created.

        Raises:
            UserError: the key is missing, or other users may read it.
        """
        return secrets.existing_key(self.endpoint.key.source, os.environ)

    def problem(self, message: str, **facts: Any) -> Finding:
        """Return a finding about the service."""
        endpoint = self.endpoint
        facts |= {"url": endpoint.base_url, "host": endpoint.host, "name": self.served.name}
        return MESSAGES.mistake(message, endpoint.service, endpoint.host, **facts)

    def body(self, messages: list[dict[str, str]]) -> dict[str, Any]:
        """Body of a request, with the sampling for the served name."""
        body: dict[str, Any] = {"model": self.served.name, "messages": messages, "stream": True}
        body |= {"stream_options": {"include_usage": True}, **self.served.figures}
        if self.endpoint.reasoning and self.served.thinking is not None:
            body["chat_template_kwargs"] = {"enable_thinking": self.served.thinking}
        return body


def targets(
    hosts: Mapping[str, PlannedHost],
    meant: Callable[[str, str], bool] = lambda *_: True,
    model: str | None = None,
) -> list[Target]:
    """Services that can answer: replicas of one service, in the inventory's order.

    Args:
        meant: whether the chat may use a service of a host.
        model: a served name; default: the service's first name.

    Raises:
        UserError: no service has the name.
    """
    every = [each for each in _all(hosts) if meant(each.endpoint.host, each.endpoint.service)]
    if model is None:  # a service that chats comes before other services
        every.sort(key=lambda target: not target.endpoint.chats)
    names = sorted({target.served.name for target in every})
    if model is not None and model not in names:
        raise MESSAGES.refusal("no-such-model", f"--model {model}", near=suggest(model, names))
    if not every:
        raise MESSAGES.refusal("no-service", "services")
    first = next(target for target in every if model in (None, target.served.name))
    wanted = first.endpoint.service, first.served.name
    return [target for target in every if (target.endpoint.service, target.served.name) == wanted]


def _all(hosts: Mapping[str, PlannedHost]) -> Iterator[Target]:
    for planned in hosts.values():
        # This connector of pyinfra does not connect to another machine.
        address = settings.LOOPBACK if planned.address.startswith("@local") else planned.address
        for service in planned.plan.services:
            if service.follower:
                continue  # the cluster's head answers
            bind = service.bind
            everywhere = bind in settings.EVERY_ADDRESS
            at, own = (address, settings.LOOPBACK) if everywhere else (bind, bind)
            key = Key(secrets.VARIABLE, planned.plan.settings.api_key_source)
            endpoint = endpoint_of(planned.plan, service, planned.catalog, at, key)
            published = not settings.is_loopback(bind) or address == settings.LOOPBACK
            for served in endpoint.names:
                yield Target(endpoint, served, published, (own, service.port), planned.data)
