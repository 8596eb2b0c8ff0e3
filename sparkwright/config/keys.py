"""Named API keys, which the proxies accept, and their files on the controller.

A key has up to two values at a time. Beside the key's file, ``.new`` has the next value during a
rotation, ``.old`` has the previous value, which stays valid after a rotation, and ``.revoked``
marks a key without a value.
"""

import hashlib
import hmac
import os
from collections.abc import Mapping
from pathlib import Path

from sparkwright.config.secret_commands import line
from sparkwright.config.secrets import VARIABLE, Secret, Source, api_key, checked, made, of_service
from sparkwright.config.settings import HostSettings
from sparkwright.findings import finding, user_error
from sparkwright.host.lib.records import dataclass, field

_MESSAGES = user_error.Messages(__file__)
#: Name of the fleet's own key (``api_key_file``).
DEFAULT = "default"
#: Name under which a host tests its own proxies.
OWN = "sparkwright"
#: Name under which an address for all models sends its requests to the proxies of services.
ADDRESS = "address"
DIRECTORY = Path(".sparkwright/keys")
#: Source of the keys between proxies and engines, and between the ranks of a cluster.
ENGINE = Path(".sparkwright/engine_key")


@dataclass(frozen=True)
class Keys:
    """The keys of a host.

    Attributes:
        clients: name -> values that the host's proxies accept; a revoked key has no value. The
            fleet's own key is included, with its current value first.
        engine: key that the proxies send to engines in place of the client's key. This key never
            leaves the host.
        address: key that the fleet's address sends to services' proxies together with a client's
            key.
        page: secret with which Open WebUI signs its sessions.
        ranks: cluster -> the secret by which its ranks recognize each other.
        services: (service, name of the secret) -> the user's secret for the service.
    """

    clients: Mapping[str, tuple[Secret, ...]]
    engine: Secret
    ranks: Mapping[str, Secret] = field(default_factory=dict)
    services: Mapping[tuple[str, str], Secret] = field(default_factory=dict)
    address: Secret = field(default_factory=lambda: Secret(""))
    page: Secret = field(default_factory=lambda: Secret(""))

    @property
    def default(self) -> Secret:
        """The current value of the fleet's own key."""
        return self.clients[DEFAULT][0]


class KeyFile:
    """The files of one key.

    Attributes:
        path: file with the key's current value.
        new: file with the value that a rotation brings to the hosts.
        old: file with the value from before a rotation.
        revoked: empty file that exists while the key is revoked.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        kinds = ("new", "old", "revoked")
        self.new, self.old, self.revoked = (path.with_name(f"{path.name}.{kind}") for kind in kinds)

    def values(self, *, dry: bool = False) -> tuple[Secret, ...]:
        """Return the valid values; a missing key is made, except for a revoked key or a dry run."""
        current = () if self.revoked.exists() else (api_key(self.path, {}, dry=dry),)
        beside = (item for item in (self.new, self.old) if item.exists())
        return (*current, *(api_key(item, {}) for item in beside))

    def begin(self) -> None:
        """Make the new value of a rotation; an existing new value stays."""
        api_key(self.new, {})

    def promote(self) -> None:
        """Make the new value the current value. The previous value stays valid."""
        if self.path.exists():
            made(self.old, self.path.read_text(encoding="utf-8"))
        self.new.replace(self.path)
        self.revoked.unlink(missing_ok=True)

    def retire(self) -> None:
        """Delete the value from before the rotation."""
        self.old.unlink(missing_ok=True)

    def revoke(self) -> None:
        """Delete every value, and make no new value until the next rotation."""
        made(self.revoked, "")
        for path in (self.path, self.new, self.old):
            path.unlink(missing_ok=True)


def source_of(settings: HostSettings, name: str) -> Source:
    """Return the source of a key. Raises KeyError for a name without a key on the host."""
    if name == DEFAULT:
        return settings.api_key_source
    return settings.keys[name].command or str(DIRECTORY / name)


def keys_of(
    host: str,
    settings: HostSettings,
    environment: Mapping[str, str],
    *,
    dry: bool = False,
    commands: bool = True,
) -> Keys:
    """Return the keys of a host; missing keys are made.

    Args:
        dry: whether the run writes nothing.
        commands: whether to run commands of services' secrets; otherwise these secrets are left
            out.

    Raises:
        UserError: a key is unusable, or two names share a key.
    """
    problems = user_error.Problems()
    clients = _clients(host, settings, environment, problems, dry=dry)
    services: dict[tuple[str, str], Secret] = {}
    for name, service in settings.services.items():
        for secret in service.secrets:
            with problems.collected():
                if commands or secret.command is None:
                    where = f"services.{name}.secrets.{secret.name}"
                    text = of_service(secret.source, secret.variable, environment, where)
                    services[name, secret.name] = text
    problems.stop()
    main = clients[DEFAULT]
    # If the API key comes from the environment or a command, the keys below are derived from it, so
    # that every controller derives the same keys. An existing engine key file takes precedence.
    elsewhere = VARIABLE in environment or isinstance(settings.api_key_source, tuple)
    base = main[0] if elsewhere and not ENGINE.exists() else api_key(ENGINE, {}, dry=dry)

    def made_of(purpose: str) -> Secret:
        result = hmac.new(base.value.encode(), purpose.encode(), hashlib.sha256)
        return Secret(f"sk-{result.hexdigest()}")

    ranks = {name: made_of(f"ranks of cluster {name}") for name in settings.clusters}
    address = made_of("the address of all models")
    page = made_of(f"sessions of Open WebUI on {host}")
    # The text must not change: each host's engine key is derived from this text.
    engine = made_of(f"vLLM on {host}")
    return Keys(clients, engine, ranks, services, address, page)


def key_problems(
    host: str, settings: HostSettings, environment: Mapping[str, str]
) -> list[finding.Finding]:
    """Find faults in the existing keys, without running a command or making a key."""
    problems = user_error.Problems()
    _clients(host, settings, environment, problems, dry=True, commands=False)
    return [problem.on(host) for problem in problems]


def _clients(
    host: str,
    settings: HostSettings,
    environment: Mapping[str, str],
    problems: user_error.Problems,
    *,
    dry: bool,
    commands: bool = True,
) -> dict[str, tuple[Secret, ...]]:
    """Return the values of each client's key.

    Keys from commands are included only if the commands may run.
    """
    clients: dict[str, tuple[Secret, ...]] = {}
    for name in (DEFAULT, *settings.keys):
        source = source_of(settings, name)
        given = name == DEFAULT and VARIABLE in environment
        with problems.collected():
            if isinstance(source, str) and not given:
                clients[name] = KeyFile(Path(source)).values(dry=dry)
            elif name == DEFAULT and (given or commands):
                clients[name] = (api_key(source, environment),)
            elif isinstance(source, tuple) and commands:
                where = f"keys.{name}.command"
                clients[name] = (checked(line(source, where), where),)
    names: dict[str, str] = {}
    for name, value in ((name, each.value) for name, values in clients.items() for each in values):
        if (other := names.setdefault(value, name)) != name:
            names_of = {"key": name, "other": other}
            problems.append(_MESSAGES.mistake("same-key", f"keys.{name}", host, **names_of))
    return clients


def rotated(settings: HostSettings, name: str) -> KeyFile:
    """Return the files of a key that a command is about to change.

    Raises:
        UserError: the key does not come from a file on the controller.
    """
    source = source_of(settings, name)
    if name == DEFAULT and VARIABLE in os.environ:
        raise _MESSAGES.refusal("key-of-environment", f"environment: {VARIABLE}", variable=VARIABLE)
    if isinstance(source, tuple):
        where = "api_key_command" if name == DEFAULT else f"keys.{name}.command"
        raise _MESSAGES.refusal("key-of-command", where)
    return KeyFile(Path(source))
