"""Start a switch on a host, and follow it to its end.

The host carries out the switch without the controller.
"""

import getpass
import json
import secrets
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, partial

import gevent
from pyinfra.api.host import Host

from sparkwright.config.templates import properties, template
from sparkwright.engines import log_patterns
from sparkwright.facts.answers import HostError, typed
from sparkwright.facts.memory import memory
from sparkwright.facts.programs import laid_out
from sparkwright.host import release
from sparkwright.host import switch as program
from sparkwright.host.jobs import Job, WatchedJob
from sparkwright.host.lib import sandbox
from sparkwright.host.lib.records import encode
from sparkwright.host.lib.systemd import UNITS
from sparkwright.host.proxy.pool import ProxyRequest
from sparkwright.operations.lib import jobs
from sparkwright.operations.lib.progress import LIVE
from sparkwright.results.progress import phases
from sparkwright.text.shipped_yaml import beside

UNIT = "sparkwright-switch"
#: Path of the unit that completes a switch after a power cut.
RECOVERY = f"{UNITS}/sparkwright-recover.service"
#: Seconds between two requests for a switch's progress.
_EVERY = 5
_ENTRY = (
    'import sys; sys.path.insert(0, "{}"); from sparkwright.host import switch; '
    "sys.exit(switch.main(sys.argv[1:]))"
)
_steps = cache(partial(beside, __file__, "switch_steps.yaml"))


class Interrupted(HostError):
    """A switch without a result and without a running job."""


def why(ended: release.SwitchJournal) -> str:
    """Return the message about a failed switch: its faults, and the running
    release.
    """
    first, *rest = ended.reasons or ("the host gave no reason",)
    now = {
        "reverted": "the former release runs again",
        "failed": "no proved release runs here now",
    }[ended.result or release.FAILED]
    return "\n".join([f"{first}: {now}", *(f"    {line}" for line in rest)])


def switch(
    host: Host,
    services: Sequence[release.ServiceSwitch],
    *,
    unmanaged: Sequence[str] = (),
    proxies: ProxyRequest | None = None,
    active: Mapping[str, str] | None = None,
) -> release.SwitchJournal:
    """Switch these services as one transaction on the host, which continues without the controller.

    Args:
        unmanaged: ``name restart-policy`` of containers that stop to make room, and that a rollback
            starts again.
        proxies: changes of the host's proxies.
        active: group -> the running exclusive service, on which the decision was based.

    Raises:
        HostError: the switch can't begin, or the connection is lost for too long.
    """
    # A run without a switch saves 7 ms: it does not load the patterns of logs.
    from sparkwright.checks.service.log_lines import lasting

    root = memory(host).services_root
    home = place(root)
    name = secrets.token_hex(6)
    request = release.SwitchRequest(
        id=name,
        by=f"{getpass.getuser()}@{socket.gethostname()}",
        settle=settle(root),
        recover=recover(root),
        services=tuple(services),
        unmanaged=tuple(unmanaged),
        proxies=proxies,
        active=dict(active or {}),
        boot_lines=log_patterns("boot"),
        lasting=lasting(),
    )
    job = Job(
        unit=UNIT,
        description="sparkwright: switch services to another release",
        argv=_argv(home),
        files={**laid_out(home, program), f"{home}/request.json": json.dumps(encode(request))},
        properties=properties("switch"),
        urgent=True,
    )
    ended = follow(host, (job,))
    if ended.id != name:
        raise HostError(
            f"another switch is under way here ({_words(ended, 0)}): run again when it has ended"
        )
    # A result other than good or reverted proves nothing.
    proved = ended.result in (release.GOOD, release.REVERTED)
    return ended if proved else replace(ended, result=release.FAILED)


def settle(services_root: str) -> tuple[str, ...]:
    """Return the command that makes a host carry out the requested switch."""
    home = place(services_root)
    again = ["systemd-run", "--quiet", "--no-block", f"--unit={UNIT}"]
    return (*again, *sandbox.arguments(properties("switch")), "--", *_argv(home))


def recover(services_root: str) -> str:
    """Text of the unit that completes a switch after a power cut."""
    home = place(services_root)
    return template("serving/recover.service.j2").render(
        place=home, program=_ENTRY.format(home), services_root=services_root
    )


def _argv(home: str) -> tuple[str, ...]:
    entry = _ENTRY.format(home)
    return ("/usr/bin/python3", "-IS", "-c", entry, "--run", f"{home}/request.json")


def follow(host: Host, start: Sequence[Job] = ()) -> release.SwitchJournal:
    """Wait for the switch of a host to end.

    Args:
        start: the job that switches, if it must be started.

    Raises:
        Interrupted: the switch has no result, and its job does not run.
        HostError: the host does not answer.
    """
    watched = WatchedJob(UNIT, place(memory(host).services_root))
    try:
        while True:
            answer = jobs.status(host, [watched], _EVERY, start)[UNIT]
            start = ()
            journal = typed("sparkwright-jobs", release.SwitchJournal, answer.progress or {})
            if journal.step == "ended":
                return journal
            if not answer.running:
                reason = "; ".join(answer.journal[-2:]) or "it ended without output"
                raise Interrupted(f"the switch was interrupted: {reason}")
            LIVE.tell(host, _words(journal, answer.now), of=(journal.step, journal.phases))
    finally:
        LIVE.remove(host.name)


@contextmanager
def shown(host: Host, folder: str) -> Iterator[None]:
    """Show the progress of a host's program, read from the journal in its folder, until the
    program ends.
    """
    watched = WatchedJob("sparkwright-control", folder)

    def look() -> None:
        while True:
            gevent.sleep(_EVERY)
            with suppress(HostError):  # the caller that waits for the answer reports the error
                answer = jobs.status(host, [watched], 0)[watched.unit]
                journal = typed("sparkwright-jobs", release.SwitchJournal, answer.progress or {})
                if journal.step:
                    text = _words(journal, answer.now)
                    LIVE.tell(host, text, of=(journal.step, journal.phases))

    looking = gevent.spawn(look)
    try:
        yield
    finally:
        looking.kill()
        LIVE.remove(host.name)


def place(services_root: str) -> str:
    """Return the directory in which a host keeps a switch's files and progress."""
    return f"{services_root}/state/switch"


def _words(journal: release.SwitchJournal, now: float) -> str:
    """Describe the present step of a switch, and its duration so far."""
    return phases(journal.phases, now) or _steps().get(journal.step, "starting the switch")
