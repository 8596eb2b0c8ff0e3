"""Proxies on a host: HAProxy in front of the services, and the address for all models."""

from collections.abc import Mapping
from dataclasses import replace

from pyinfra.context import ctx_host

from sparkwright.config.keys import ADDRESS, OWN, Keys
from sparkwright.facts.memory import memory
from sparkwright.facts.observation import observed
from sparkwright.facts.programs import entry, laid_out
from sparkwright.host.lib.systemd import UNITS
from sparkwright.host.observe import Observation, ObservationRequest
from sparkwright.host.proxy import configure as program
from sparkwright.host.proxy import health as health_program
from sparkwright.host.proxy import install
from sparkwright.host.proxy.pool import HEALTH_UNIT, UNIT, ProxyRequest
from sparkwright.operations.files import Files, missing_files, stopped, unwritten
from sparkwright.operations.lib.changing import Commands, act_by, change, operation
from sparkwright.plan.plan import HostPlan
from sparkwright.proxy import haproxy
from sparkwright.proxy.haproxy import Proxies
from sparkwright.proxy.proxies import health_file, health_unit

#: Name of HAProxy's package, in every distribution.
PACKAGE = "haproxy"


@operation()
def serving(proxies: Proxies | None, files: Files, *, later: bool = False) -> Commands:
    """Run exactly these proxies in HAProxy, without cutting off a connected client.

    Args:
        proxies: all proxies of the host; None removes all of them.
        files: the proxies' files (``files_of``): text and mode, by path.
        later: whether the files change with a switch of the services instead (``switched``).

    **Example:**

    .. code:: python

        proxies.serving(proxies=None, files={})
    """
    host = ctx_host.get()
    home = proxies or _empty(memory(host).services_root)
    state = observed(host, request_of(proxies, files))
    todo = pending(proxies, files, state)
    if proxies and todo:
        unwritten(files, state)
    yield from change(
        [] if later else todo,
        act_by(program, request(files, home, start=_free(proxies, state)), timeout=300),
        otherwise="proxies change with the services" if later else "proxies are as desired",
    )


@operation()
def installed(*, wanted: bool = True, environment: Mapping[str, str] | None = None) -> Commands:
    """Install the distribution's HAProxy, before any service is changed.

    Args:
        wanted: whether the host has a proxy.
        environment: variables for apt-get, such as ``http_proxy``.

    **Example:**

    .. code:: python

        proxies.installed()
    """
    asked = ObservationRequest(packages=(PACKAGE,) if wanted else ())
    state = observed(ctx_host.get(), asked)
    missing = wanted and state.packages[PACKAGE].version is None

    yield from change(
        ["install HAProxy"] if missing else [],
        # The timeout is longer than the wait for apt's lock.
        act_by(install, dict(environment or {}), timeout=1500),
        otherwise="HAProxy is installed" if wanted else "this host has no proxy",
    )


def files_of(proxies: Proxies | None, keys: Keys, plan: HostPlan) -> dict[str, tuple[str, int]]:
    """Return every file of the proxies: text and mode, by path.

    Args:
        keys: keys that clients may send, and the key for the host's own services.
        plan: plan of the host, whose own services have a health check.
    """
    if proxies is None:
        return {}
    rendered = haproxy.render_proxies(proxies)
    result = {
        # Write the files that the configuration names before the configuration itself, so that an
        # interruption leaves no dangling name.
        **key_files(proxies, keys),
        proxies.waiting_room: (rendered.waiting_room, 0o644),
        **proxies.tls_files,
        proxies.config: (rendered.config, 0o644),
        f"{UNITS}/{UNIT}": (rendered.unit, 0o644),
    }
    if health := health_file(plan):
        result |= {
            f"{proxies.home}/health.json": (health, 0o644),
            **{path: (text, 0o644) for path, text in _health_program(proxies.home).items()},
            f"{UNITS}/{HEALTH_UNIT}": (health_unit(plan), 0o644),
        }
    return result


def key_files(proxies: Proxies, keys: Keys) -> dict[str, tuple[str, int]]:
    """Return the files of the keys. The host's own tests use the proxies with the engine's key."""
    clients, serves = dict(keys.clients), any(proxy.engine_key for proxy in proxies.proxies)
    address = keys.address if proxies.limited else None
    clients |= {OWN: (keys.engine,)} if serves else {}
    clients |= {ADDRESS: (address,)} if address else {}
    files = {proxies.keys: (haproxy.key_map(clients), 0o600)}
    if serves or (address and proxies.pools):
        shown = haproxy.engine_map(keys.engine, address if proxies.pools else None)
        files[proxies.engine] = (shown, 0o600)
    return files


def _health_program(home: str) -> dict[str, str]:
    """Return the health program's files, text by path.

    The unit still names health.py, the only file of earlier versions, since a changed unit would
    need a reload.
    """
    return {**laid_out(home, health_program), f"{home}/health.py": entry(home, health_program)}


def units_of(files: Files) -> list[str]:
    """The units among the files of the proxies."""
    return [unit for unit in (UNIT, HEALTH_UNIT) if f"{UNITS}/{unit}" in files]


def request_of(proxies: Proxies | None, files: Files) -> ObservationRequest:
    """Request for the observation of the proxies."""
    tls = proxies.tls_places if proxies else ()
    return ObservationRequest(
        files=tuple(dict.fromkeys((*files, *tls))),
        units=tuple(units_of(files)),
        ports=tuple(proxy.port for proxy in proxies.proxies) if proxies else (),
        packages=(PACKAGE,) if proxies else (),
    )


def pending(proxies: Proxies | None, files: Files, state: Observation) -> list[str]:
    """Differences between the proxies and their desired state, as text."""
    if proxies is None:
        return ["remove the proxy"] if UNIT in state.unit_files else []
    todo = [f"write {path}" for path in missing_files(files, state)]
    todo += [
        f"remove {path}"
        for path in proxies.tls_places
        if path not in files and state.files.get(path)
    ]
    if _free(proxies, state):
        todo += stopped(units_of(files), state)
    return todo


def switched(
    proxies: Proxies | None, files: Files, seen: Observation, services_root: str
) -> ProxyRequest | None:
    """The proxies' part of a switch; None if they are as desired."""
    if not pending(proxies, files, seen):
        return None
    home = proxies or _empty(services_root)
    keys = [home.keys, home.engine]
    managed = [home.config, home.waiting_room, *keys, f"{UNITS}/{UNIT}", *home.tls_places]
    health = [f"{home.home}/health.json", *_health_program(home.home), f"{UNITS}/{HEALTH_UNIT}"]
    change = request(files, home, start=_free(proxies, seen))
    return replace(change, managed=(*managed, *health))


def request(files: Files, home: Proxies, *, start: bool) -> ProxyRequest:
    """Request about HAProxy for the host's programs."""
    return ProxyRequest(
        files=dict(files),
        config=home.config,
        admin=home.admin_socket,
        states=home.states,
        keep=tuple(haproxy.kept_servers(home)),
        start=start,
        asleep=home.asleep,
    )


def _free(proxies: Proxies | None, seen: Observation) -> bool:
    """Return whether the proxies' ports are free: a service that is not switched yet may use one of
    the ports.
    """
    listeners = [seen.ports.get(proxy.port) for proxy in proxies.proxies] if proxies else []
    return all(listener is None or UNIT in listener.cgroup for listener in listeners)


def _empty(services_root: str) -> Proxies:
    """Paths of the proxies' files, in a plan without proxies."""
    return Proxies((), home=f"{services_root}/gateway")
