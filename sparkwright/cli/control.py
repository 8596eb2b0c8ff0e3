"""``sparkwright start``, ``stop``, ``restart``, ``activate``, ``maintenance``, ``rollback`` and
``remove``: change the state of services and hosts.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn, TypeVar

import click

from sparkwright.cli.lib import options, selection
from sparkwright.cli.lib.hosts import (
    Hosts,
    complain,
    finish,
    hosts_argument,
    misspelt,
    services_argument,
)
from sparkwright.cli.lib.output import echo
from sparkwright.host.control import ControlAnswer
from sparkwright.host.exclusive.activate import ActivateAnswer
from sparkwright.host.lib.records import encode
from sparkwright.host.maintenance import MaintenanceAnswer
from sparkwright.results.answers import Answers
from sparkwright.text.visible import visible

_Command = TypeVar("_Command", bound=Callable[..., Any])
_wait = options.option("control --wait")
_now = options.option("control --now")
_why = options.option("control --why")


def _services(command: _Command) -> _Command:
    """Add the arguments of `_control`: hosts, services and output."""
    return services_argument(options.yes_option(options.json_option(command)))


@click.command("start")
@_services
@_wait
def start(**more: Any) -> None:
    """Start services as they were last deployed, now and at every boot.

    Exit with 0 only when every host answered and every started service gives real answers.
    """
    _control("start", **more)


@click.command("stop")
@_services
@_now
@options.option("stop --keep")
@_why
def stop(**more: Any) -> None:
    """Take services out of the pool, drain and stop them.

    As with `systemctl stop`, services stay stopped until the next start, a boot or a restart of
    Docker. A deploy also starts the services again, and names the user who stopped them. The
    command does not wait for the host's lock, which a killed deploy may still hold. Exit with 0
    only when every host answered and every service stopped.
    """
    _control("stop", **more)


@click.command("restart")
@_services
@_now
@_wait
def restart(**more: Any) -> None:
    """Drain services, restart them, and put them back into the pool once they answer.

    Services restart host by host, so that other replicas serve meanwhile; if a host fails to come
    back, the command stops before the next host. With --now, all services restart at once, and
    running requests are cut off. Exit with 0 only when every host answered and every service gives
    real answers.
    """
    _control("restart", **more)


def _control(action: str, *, hosts: Hosts, yes: bool, as_json: bool, **more: Any) -> None:
    from sparkwright.run import changes

    options.confirm(f"{action.capitalize()} {hosts.subject()}?", yes=yes, dry=False)
    change = partial(changes.controlled, action=action, services=hosts.services_of, **more)
    answers: Answers[ControlAnswer] = hosts.change(change, planless=True)
    _end(answers, hosts.named_services, _controlled, _document(answers) if as_json else None)


def _controlled(host: str, answer: ControlAnswer) -> None:
    for service, done in answer.done.items():
        echo(f"{host}: {visible(service)}: {visible(done)}")
    if not answer.service_names:
        echo(f"{host}: no service was ever started here")


@click.command("activate")
@services_argument
@_why
@options.dry_option
@options.yes_option
@options.json_option
def activate(hosts: Hosts, why: str, dry: bool, yes: bool, as_json: bool) -> None:
    """Run SERVICE in place of the running service of its `exclusive` group.

    Running requests have drain_seconds to finish. Then SERVICE starts and must give real answers;
    otherwise the previous service starts again, and no further host is switched. Boots and deploys
    keep the last activation. Exit with 0 only when SERVICE runs on every host that has it.
    """
    # A whole host named beside HOST/SERVICE would also switch to the service.
    whole = any(hosts.services_of(host) is None for host in hosts.limit)
    if whole or len(hosts.named_services) != 1:
        raise click.UsageError("name one SERVICE or HOST/SERVICE")
    service = hosts.named_services[0]
    from sparkwright.run import changes

    if not (yes or dry):
        look = partial(changes.activated, service=service, why="", dry=True)
        seen: Answers[ActivateAnswer] = hosts.change(look, planless=True)
        if misspelt((service,), (each.service_names for each in seen.answers.values())):
            finish(seen, unknown=True)
    options.confirm(f"Activate {service} on {hosts}?", yes=yes or dry)
    change = partial(changes.activated, service=service, why=why, dry=dry)
    answers: Answers[ActivateAnswer] = hosts.change(change, planless=True)
    show = partial(_activated, service, dry=dry)
    _end(answers, (service,), show, _document(answers) if as_json else None)


def _activated(service: str, host: str, answer: ActivateAnswer, *, dry: bool) -> None:
    if answer.faults or answer.group is None:
        return
    was = visible(answer.was or "none", 80)
    if answer.was == service:
        echo(f"{host}: {service} already runs")
    elif dry:
        echo(f"{host}: would stop {was} and start {service}")
    else:
        echo(f"{host}: {service} runs, and {was} sleeps; down for {answer.down_seconds:.1f} s")


@click.command("maintenance")
@hosts_argument
@click.argument("switch", type=click.Choice(["on", "off"]))
@_why
@options.json_option
def maintenance(hosts: Hosts, switch: str, why: str, as_json: bool) -> None:
    """Take a HOST out of every pool, drain it, and exclude it from deploys; or put it back.

    The services keep running but can only be reached from the host. The host stores the mode, its
    author, time and reason, also across boots. `off` puts the host back once every service answers;
    if a service does not answer, the exit code is 1.
    """
    host = selection.only_host(hosts)
    from sparkwright.run import changes

    change = partial(changes.in_maintenance, on=switch == "on", why=why)
    answers: Answers[MaintenanceAnswer] = hosts.change(change, planless=True)
    documents = {name: {"host": name, **encode(each)} for name, each in answers.answers.items()}
    _end(answers, (), _maintained, documents.get(host, {}) if as_json else None)


def _maintained(host: str, answer: MaintenanceAnswer) -> None:
    for line in answer.done:
        echo(f"{host}: {visible(line)}")
    for line in answer.left:
        echo(f"{host}: {click.style('note', fg='yellow')}: {visible(line)}")
    mark = answer.now
    if mark is None:
        echo(f"{host}: the host is not in maintenance")
        return
    why = f": {visible(mark.why, 200)}" if mark.why else ""
    still = "stays" if answer.faults else "is"
    echo(f"{host}: {still} in maintenance, by {visible(mark.by, 80)}{why}")


def _document(answers: Answers[Any]) -> dict[str, Any]:
    return {"hosts": encode(answers.answers), "silent": list(answers.failures)}


def _end(
    answers: Answers[Any],
    services: tuple[str, ...],
    show: Callable[[str, Any], None],
    document: dict[str, Any] | None,
) -> NoReturn:
    """Print every answer or the JSON document, and exit with 0 only if every host succeeded."""
    each = answers.answers
    if document:
        options.print_json(document)
    for host, answer in each.items() if document is None else ():
        show(host, answer)
        for line in answer.faults:
            complain(host, visible(line))
    named = (answer.service_names for answer in each.values())
    unknown = misspelt(services, named) if services else []
    failed = any(answer.faults for answer in each.values())
    # If hosts have at least one of the services, the command has changed these hosts.
    finish(answers, failed=failed or bool(unknown), unknown=0 < len(services) == len(unknown))


@click.command("rollback")
@services_argument
@options.option("rollback --to")
@options.dry_option
@options.yes_option
@options.pyinfra_json_option
def rollback(hosts: Hosts, to: str | None, dry: bool, yes: bool, as_json: bool) -> None:
    """Switch to the previous release or to RELEASE, canaries first; switch back if the release
    fails.

    The plan does not change: the next deploy returns to the newer release unless you also set the
    tag back.
    """
    from sparkwright.run import rollout

    target = to or "the previous release"
    options.confirm(f"Switch {hosts.subject(link='of')} back to {target}?", yes=yes or dry)
    change = partial(rollout.rollback, to=to, chosen=hosts.services_of)
    sys.exit(hosts.show(change, as_json=as_json, planless=True, dry=dry, switches=True))


@click.command("remove")
@services_argument
@options.option("remove --weights")
@options.option("remove --bootstrap")
@options.yes_option
@options.json_option
def remove(hosts: Hosts, yes: bool, as_json: bool, bootstrap: bool | None, weights: bool) -> None:
    """Stop and remove services, units, releases and images; weights on request.

    For named hosts, the changes of `bootstrap` are also undone; --no-bootstrap keeps Docker and
    sudo for a later deploy. Containers that a deploy took over from a manual installation are
    started again. Exit with 0 only when every host answered.
    """
    if hosts.named_services and bootstrap:
        raise click.UsageError("--bootstrap needs whole hosts: name no service")
    if bootstrap is None:
        bootstrap = bool(hosts.limit) and not hosts.named_services
    steps = " and of its bootstrap" if bootstrap else ""
    subject = hosts.subject(f"everything of sparkwright's{steps}", "from")
    options.confirm(f"Remove {subject}?", yes=yes, dry=False)
    from sparkwright.run import changes

    change = partial(
        changes.removed, services=hosts.services_of, bootstrap=bootstrap, weights=weights
    )
    result = hosts.change(change, planless=True)
    if as_json:
        options.print_json(encode(result.answers))
    for name, answer in {} if as_json else result.answers.items():
        echo(f"{name}: removed {visible(', '.join(answer.done) or 'nothing')}")
        for line in answer.left:
            echo(f"{name}: left {visible(line)}")
        if not hosts.named_services:
            echo(f"{name}: deploys use this host again until you remove it from {hosts.inventory}")
    if result.failures:
        lost = ", ".join(result.failures)
        echo(f"{lost}: nothing was removed; run the command again when the hosts answer", err=True)
    finish(result)
