"""``sparkwright dashboard``: the fleet on a page that stays open."""

from __future__ import annotations

import datetime as dt
import errno
import re
import secrets
import socket
import ssl
import subprocess
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from sparkwright.checks.configuration.parts import memory_of
from sparkwright.cli.lib.hosts import Hosts, connection_words, given, services_argument
from sparkwright.cli.lib.output import echo
from sparkwright.config.settings import EVERY_ADDRESS, LOOPBACK
from sparkwright.engines import log_patterns
from sparkwright.extras.dashboard import glance, render, server, view
from sparkwright.extras.dashboard.report import LAST_RUN, stored
from sparkwright.findings.user_error import Messages, UserError
from sparkwright.host import logs, status
from sparkwright.host.models import document, report
from sparkwright.results.status import Planned
from sparkwright.text.shipped_yaml import beside
from sparkwright.text.timestamps import utc
from sparkwright.text.visible import log_line, visible

if TYPE_CHECKING:
    from sparkwright.run.session import Session
    from sparkwright.run.state import HostRun

_MESSAGES = Messages(__file__)
#: Seconds between two queries of a host, and seconds to wait for an answer.
_INTERVAL, _GLANCE = 5.0, 20.0
#: Number of lines of a log to show.
_LINES = 200
#: Actions of a page with --control -> the command, and its arguments after the name.
_ACTIONS: dict[str, list[str]] = beside(__file__, "actions.yaml")
_NAME = re.compile(r"[A-Za-z0-9_@][A-Za-z0-9_.:@/-]{0,252}")


@click.command("dashboard")
@services_argument
@click.option("--page-port", "port", default=8484, show_default=True, type=click.IntRange(0, 65535),
              help="Port of the page; 0 takes a free port.")  # fmt: skip
@click.option("--listen", default=LOOPBACK, metavar="ADDRESS", show_default=True,
              help="Another address of this machine, over https only.")  # fmt: skip
@click.option("--control", is_flag=True,
              help="Let the page start, stop, restart and activate services.")  # fmt: skip
def command(hosts: Hosts, port: int, listen: str, control: bool) -> None:
    """Show the fleet on a page that stays open: services, speed, memory, findings, roll-outs.

    Open the printed address in a browser of this machine. Hosts are queried every five seconds, but
    only while a page is open. Without --control the page only reads; with it, the page can run
    these commands: start, stop, restart, activate and maintenance. --listen serves a phone, with a
    certificate of the site's own CA (.sparkwright/ca/ca.crt, which the phone imports). Ctrl-C ends
    the dashboard.
    """
    if control and any(name.endswith("password_prompt") or name == "same_sudo_password"
                       for name in given()):  # fmt: skip
        raise _MESSAGES.refusal("control-asks", "command line: --control")
    sockets = _listening(listen, port)
    with hosts.session(planless=True) as session:
        host = f"[{listen}]" if ":" in listen else listen.lower()
        if listen == LOOPBACK:  # other users' ports get every cookie of a host
            host = f"{secrets.token_hex(8)}.localhost"
        run = session.run
        fleet = view.Fleet({name: _expected(host) for name, host in run.hosts.items()}, hosts.means)
        site = server.Site(
            fleet=fleet,
            host=host,
            port=sockets[0].getsockname()[1],
            files={
                "/": ("text/html", partial(_page, hosts, control=control)),
                "/style.css": ("text/css", partial(render.part, "style.css")),
                "/script.js": ("text/javascript", partial(render.part, "script.js")),
            },
            record=_record,
            log=partial(_log, session),
            control=partial(_act, hosts, connection_words(), fleet) if control else None,
            tls=None if listen == LOOPBACK else _tls(listen),
        )
        for listening in sockets:
            serve = server.Server(listening, site).serve_forever
            threading.Thread(target=serve, args=(_INTERVAL,), daemon=True).start()
        if run.broken:
            echo(run.broken, err=True)
        echo(f"{site.url}/?token={site.token}")
        _watch(session, fleet)


def _watch(session: Session, fleet: view.Fleet) -> None:
    """Query every host while a page is open, until Ctrl-C."""
    from sparkwright.run.questions import follow
    from sparkwright.run.session import end_here

    end_here()
    watch = partial(follow, question=_glance, interval=_INTERVAL, wanted=lambda: fleet.pages > 0)
    for event in filter(None, session.watch(watch)):
        fleet.take(*event)


def _glance(host: Any, run: HostRun) -> glance.Glance:
    """Return the page's contents for one host with one remote execution.

    Raises:
        HostError: the contents can't be read; the message is the reason, in one line.
    """
    from sparkwright.facts.asking import ask
    from sparkwright.run.questions import load_request

    ports = {each.name: (each.gate.address, each.gate.port) for each in run.services}
    services = status.StatusRequest(run.settings.services_root, ports)
    usage = report.UsageRequest(document.USAGE, dt.datetime.now(dt.UTC).date().isoformat())
    request = glance.GlanceRequest(load_request(run), services, usage)
    return ask(host, glance, request, glance.Glance, timeout=_GLANCE)


def _expected(run: HostRun) -> view.Expected:
    """A host as planned."""
    from sparkwright.run.ending import service_row

    services, models = {}, {}
    for decided, service in run.desired.planned_services:
        row = service_row(run, decided, service)
        url = "" if row.head else f"{row.url}/v1"
        services[row.name] = Planned(row.release, row.tag, {}, (), url, row.served_names)
        models[row.name] = decided.body.repository
    memory = memory_of(run.desired.plan, run.desired.catalog) if services else None
    return view.Expected(services, models, memory, run.plan_known)


def _page(hosts: Hosts, *, control: bool) -> str:
    """The page, with new results of runs and benchmarks."""
    try:
        page = stored(hosts, findings=False)
    except UserError as error:  # the plan may change while the page is open
        page = stored(Hosts(), findings=False, problems=error.findings)
    return render.html(page, live=True, actions=tuple(_ACTIONS) if control else ())


def _record() -> float:
    """Time of the last run's record, which is part of the page."""
    return LAST_RUN.stat().st_mtime if LAST_RUN.exists() else 0.0


def _log(session: Session, name: str, service: str) -> str:
    """The last lines of a service's log, or the reason why there are no lines."""
    from sparkwright.facts.asking import HostError, ask
    from sparkwright.facts.memory import memory

    root, hidden = session.run.hosts[name].settings.services_root, "|".join(log_patterns("probes"))
    request = logs.LogsRequest((service,), root, _LINES, None, hidden)
    host = next(host for host in session.hosts if host.name == name)
    try:
        if not host.connected:
            raise HostError(memory(host).failure or "not reached")
        answer = ask(host, logs, request, logs.LogsAnswer, timeout=_GLANCE)
    except HostError as error:
        return f"{name}: {visible(str(error))}\n"
    lines = [f"{utc(line.at):%Y-%m-%d %H:%M:%SZ} {log_line(line.text)}" for line in answer.lines]
    return "\n".join([*lines, visible(answer.fault)]).strip() or "nothing is logged"


def _act(
    hosts: Hosts, connection: list[str], fleet: view.Fleet, action: str, host: str, service: str
) -> tuple[bool, str]:
    """Run a command of the page, like the command line; return whether the command succeeded, and
    the command's output.
    """
    subcommand, *options = _ACTIONS.get(action, [""])
    names = [host] if subcommand == "maintenance" else [host, service]
    services = fleet.services(host)
    chosen = services is not None and {host, *services} >= {*names}
    if not (subcommand and chosen and all(map(_NAME.fullmatch, names))):
        return False, "this action or service does not exist"
    data = [word for value in hosts.overrides for word in ("--data", value)]
    done = subprocess.run(
        [sys.executable, "-m", "sparkwright", subcommand, str(hosts.inventory), "/".join(names),
         *options, *data, *connection],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", check=False,
    )  # fmt: skip
    return done.returncode == 0, "\n".join(map(visible, done.stdout.strip().splitlines()))


def _listening(address: str, port: int) -> list[socket.socket]:
    """Open the listening sockets of the page.

    Browsers look for names in ``.localhost`` at ::1 first: another user's program that listens
    there would get the token.

    Raises:
        UserError: the address is a wildcard, or the page can't listen at the address.
    """
    sockets: list[socket.socket] = []
    for place in (address, "::1") if address == LOOPBACK else (address,):
        family = socket.AF_INET6 if ":" in place else socket.AF_INET
        try:
            sockets.append(socket.create_server((place, port), family=family, backlog=64))
        except OSError as error:
            if sockets and error.errno != errno.EADDRINUSE:
                break  # this machine has no IPv6
            where, reason = f"command line: --listen {place} --page-port {port}", error.strerror
            raise _MESSAGES.refusal("not-listening", where, reason=reason or error) from None
        bound, port = sockets[0].getsockname()[:2]
        if bound in EVERY_ADDRESS:  # also "", 0 or ::0
            where = "command line: --listen"
            raise _MESSAGES.refusal("every-address", where, address=repr(address))
    return sockets


def _tls(address: str) -> ssl.SSLContext:
    """TLS context with a certificate of the site's own CA for one address.

    Raises:
        UserError: the CA can't be used.
    """
    from sparkwright.tls.authority import authority, host_certificate
    from sparkwright.tls.names import label

    now, name = dt.datetime.now(dt.UTC), f"dashboard.{address}"
    signer = authority(now, names=[address])
    host_certificate(signer, name, [address], now)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(signer.path.parent / "hosts" / f"{label(name)}.pem")
    return context
