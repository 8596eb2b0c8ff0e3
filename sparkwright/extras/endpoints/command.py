"""``sparkwright endpoints``: the fleet's addresses and names as configuration of its clients."""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from sparkwright.cli.lib import completion, options
from sparkwright.cli.lib.output import echo
from sparkwright.cli.lib.planned import load
from sparkwright.cli.lib.selection import Selection, names_argument
from sparkwright.config.keys import DEFAULT, source_of
from sparkwright.config.secrets import VARIABLE, Source
from sparkwright.config.settings import EVERY_ADDRESS, is_loopback
from sparkwright.extras.endpoints.clients import FORMATS, Endpoints, render, usable
from sparkwright.findings.user_error import Messages, Problems, suggest
from sparkwright.host.lib.exclusive import NOBODY
from sparkwright.plan.plan import HostPlan
from sparkwright.proxy.pools import behind_address
from sparkwright.site import endpoints as site
from sparkwright.site.fleet import PlannedHost

_MESSAGES = Messages(__file__)


@dataclass(frozen=True)
class Exported:
    """Endpoints that clients can reach, and notes for the user.

    Attributes:
        notes: omitted services, members of exclusive groups, and names of different models.
    """

    endpoints: tuple[site.Endpoint, ...]
    notes: tuple[str, ...]


def export(
    hosts: Mapping[str, PlannedHost], name: str = DEFAULT, *, direct: bool = False
) -> Exported:
    """The fleet's endpoints, in the order of hosts and services; a host's address for all models
    replaces every service behind it.

    Args:
        name: name of the client's key; services that do not accept the key are left out.
        direct: whether to list services' own addresses, even behind the address for all models.

    Raises:
        UserError: no host has the key, no host has an address for other machines, or no service can
            be reached.
    """
    named = sorted({key for planned in hosts.values() for key in planned.plan.settings.keys})
    if name not in (DEFAULT, *named):
        raise _MESSAGES.refusal("no-key", f"--key {name}", near=suggest(name, named))
    variables: dict[Source, str] = {}
    problems = Problems()
    endpoints: list[site.Endpoint] = []
    notes: list[str] = []
    shared = not direct and any(each.plan.settings.address for each in hosts.values())
    for host, planned in hosts.items():
        plan = planned.plan
        key = _key(plan, name, variables)
        address = planned.address
        if address.startswith("@"):  # a connector of pyinfra's, such as @local
            problems.append(_MESSAGES.mistake("no-address", "lan_address", host, address=address))
            continue
        if shared and key and plan.settings.address and not is_loopback(site.reached(planned)):
            own = plan.settings.keys.get(name)
            allowed = own.models if own else None
            endpoints += site.address_endpoints(planned, hosts.values(), key, allowed)
        for service in plan.services:
            bind = service.bind
            if service.follower or (shared and behind_address(service)):
                continue  # the cluster's head, or the address, answers
            if is_loopback(bind):
                notes.append(f"{host}: {service.name} listens on {bind} only, and is left out")
            elif key is None or (name != DEFAULT and not service.proxy):
                notes.append(f"{host}: {service.name} does not accept the key {name!r}")
            else:
                at = address if not bind or bind in EVERY_ADDRESS else bind
                endpoints.append(site.endpoint_of(plan, service, planned.catalog, at, key))
        notes.extend(_taking_turns(plan))
    if not endpoints and not problems:
        problems.append(_MESSAGES.mistake("nothing-reached", "services"))
    problems.stop()
    return Exported(tuple(endpoints), (*notes, *_ambiguous(endpoints)))


def _key(plan: HostPlan, name: str, variables: dict[Source, str]) -> site.Key | None:
    """Return a host's key, with one variable for each source; variables of further sources are
    named after the source's first host.
    """
    if name not in (DEFAULT, *plan.settings.keys):
        return None
    source = source_of(plan.settings, name)
    if source not in variables:
        longer = f"{VARIABLE}_{re.sub('[^A-Z0-9]+', '_', plan.host.upper()).strip('_')}"
        variable = longer if variables else VARIABLE
        while variable in variables.values():  # another host's name has the same letters and digits
            variable += "_"
        variables[source] = variable
    return site.Key(variables[source], source)


def _taking_turns(plan: HostPlan) -> Iterator[str]:
    """Services of exclusive groups: the awake service of a group depends on the host."""
    for group, names in plan.groups.items():
        if names[1:] == (NOBODY,):
            yield f"{plan.host}: {names[0]} is stopped when it is idle: a request starts it"
            continue
        asked = any(service.settings.activate for service in plan.services if service.name in names)
        sleeping = "a request activates a sleeping service" if asked else "the others answer 503"
        yield f"{plan.host}: only one of {', '.join(names)} runs ({group}): {sleeping}"


def _ambiguous(endpoints: Iterable[site.Endpoint]) -> Iterator[str]:
    """Names that a client would balance over different models."""
    models: dict[str, set[str]] = {}
    for endpoint in endpoints:
        for served in endpoint.names:
            models.setdefault(served.name, set()).add(endpoint.model)
    for name, repositories in models.items():
        if len(repositories) > 1:
            yield f"{name} stands for different models: {', '.join(sorted(repositories))}"


DOCUMENT = Endpoints


@click.command("endpoints")
@names_argument(services=True)
@options.option("endpoints --format", type=click.Choice(FORMATS))
@options.option("endpoints --output", type=click.Path(path_type=Path, dir_okay=False))
@options.option("endpoints --key", shell_complete=completion.keys)
@options.json_option
def command(hosts: Selection, form: str, key: str, output: Path | None, as_json: bool) -> None:
    """Write clients' configuration for the planned fleet.

    If the fleet has an address for all models, clients get this address; HOST or HOST/SERVICE
    selects a service's own address. The configuration has served names, and the cards' advice on
    sampling, context and longest answer. The configuration never contains an API key, but names a
    variable that the client reads. No host is contacted.
    """
    direct = bool(hosts.limit or hosts.named_services)
    exported = export(load(hosts).or_raise(), key, direct=direct)
    form = "json" if as_json else form
    named = [each for each in exported.endpoints if hosts.means(each.host, each.service)]
    endpoints, notes = usable(form, named)
    text = render(form, endpoints)
    if output is None:
        click.echo(text, nl=False)
    else:
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(output)) from None
    for note in (*exported.notes, *notes):
        echo(f"{click.style('note', fg='yellow')}: {note}", err=True)
    for ca in site.cas(endpoints):
        echo(f"the client must trust the CA {ca}; for a client in Node: "
                   f"export NODE_EXTRA_CA_CERTS={shlex.quote(ca)}", err=True)  # fmt: skip
    for needed in site.keys(endpoints):
        echo(f"the client needs: {site.key_command(needed)}", err=True)
