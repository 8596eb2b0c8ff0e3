"""Parse a host's inventory and group_data into settings; a mistake names its file and key.

pyinfra does not validate a host's connection keys: with port 70000 it connects to port 4464, and
with a negative number of retries it runs no operation at all. This module also validates these
keys.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sparkwright.config.settings import HostSettings
from sparkwright.config.values import Address, ControllerFile, Port, Seconds, Whole
from sparkwright.documents.bounds import Unusable, bounded
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import Messages, Problems, UserError, mistake
from sparkwright.findings.validation import problems_of

_Retries = Annotated[Whole, Field(ge=0, le=100)]
_Words = Annotated[str, Field(min_length=1, max_length=1024)]


class Connection(BaseModel):
    """Keys of a host's data that pyinfra reads. None leaves pyinfra's default."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    ssh_hostname: Address | None = None
    ssh_port: Port | None = None
    ssh_user: _Words | None = None
    ssh_key: _Words | None = None
    ssh_allow_agent: bool | None = None
    ssh_look_for_keys: bool | None = None
    ssh_forward_agent: bool | None = None
    ssh_config_file: ControllerFile | None = None
    ssh_known_hosts_file: ControllerFile | None = None
    ssh_strict_host_key_checking: Literal["yes", "no", "off", "accept-new", "ask"] | None = None
    ssh_paramiko_connect_kwargs: dict[str, Any] | None = None
    ssh_connect_retries: _Retries | None = None
    ssh_connect_retry_min_delay: Seconds | None = None
    ssh_connect_retry_max_delay: Seconds | None = None
    ssh_file_transfer_protocol: Literal["sftp", "scp"] | None = None
    retries: _Retries | None = Field(default=None, alias="_retries")
    retry_delay: Seconds | None = Field(default=None, alias="_retry_delay")
    timeout: Seconds | None = Field(default=None, alias="_timeout")


#: Keys with values that are validated but never shown.
_SECRET = ("ssh_password", "ssh_key_password")
CONNECTION_KEYS = (
    *(name for name in Connection.model_fields if name.startswith("ssh_")),
    *_SECRET,
)


def connection_problems(
    host: str, data: Mapping[str, Any], origin: Callable[[str], str]
) -> Iterator[Finding]:
    """Find faults in the keys of a host's data that pyinfra reads."""
    try:
        Connection.model_validate(dict(data))
    except ValidationError as error:
        for problem in problems_of(error, ""):
            key = problem.subject.key or ""
            where = f"{origin(key.partition('.')[0])}: {key}"
            yield mistake(where, problem.observed, problem.remedy, host)
    for secret in _SECRET:
        if not isinstance(data.get(secret), str | None):
            where = f"{origin(secret)}: {secret}"
            yield mistake(where, "this is not text", "write it in quotes", host)


_MESSAGES = Messages(__file__)
#: Depth at which a key is valid -> remedy for a misplaced key.
_PLACES = {1: "write it beside 'services', in the host's settings", 3: "write services.NAME.{key}"}


def _keys(annotation: Any, depth: int = 1) -> Iterator[tuple[int, str]]:
    """Yield the keys of settings and of their nested types, each with its depth."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            yield depth, name
            yield from _keys(field.annotation, depth + 1)
    deeper = depth + (get_origin(annotation) is dict)
    for argument in get_args(annotation):
        yield from _keys(argument, deeper)


@cache
def _known_keys() -> dict[int, list[str]]:
    """Return the known keys by depth: 1 for keys of a host, 3 for keys of a service."""
    result = {1: list(CONNECTION_KEYS)}
    for depth, name in _keys(HostSettings):
        result.setdefault(depth, []).append(name)
    return result


def parse_settings(
    host: str, data: Mapping[str, Any], origin: Callable[[str], str]
) -> HostSettings:
    """Validate one host's data.

    Args:
        host: the host's name, for messages.
        data: all host data; the user's own keys, which start with ``my_``, and pyinfra's global
            arguments (``_sudo`` ...) without numbers are ignored.
        origin: file that a top-level key comes from, for messages.

    Raises:
        UserError: a setting is invalid; the message names every problem of this host.
    """
    problems = Problems()
    own = dict(_within_bounds(host, data, origin, problems))
    problems += connection_problems(host, own, origin)
    own = {
        key: value
        for key, value in own.items()
        if key not in CONNECTION_KEYS and not key.startswith(("_", "my_"))
    }
    if own.pop("load_balancer", None) is not None:
        where = f"{origin('load_balancer')}: load_balancer"
        problems.append(_MESSAGES.mistake("load-balancer", where, host))
    if "services" not in own:
        if "services" not in data:
            problems.append(_MESSAGES.mistake("no-services", "services", host))
        own["services"] = {}
    try:
        settings = HostSettings.model_validate(own)
    except ValidationError as error:
        for problem in problems_of(error, "", _known_keys(), places=_PLACES):
            top, *rest = (problem.subject.key or "").split(".")
            where = f"{origin(top)}: {'.'.join((top, *rest))}"
            problems.append(mistake(where, problem.observed, problem.remedy, host))
        raise UserError(problems) from None
    problems.stop()
    return settings


def _within_bounds(
    host: str, data: Mapping[str, Any], origin: Callable[[str], str], problems: list[Finding]
) -> Iterator[tuple[str, Any]]:
    """Yield the settings within the bounds of size and depth; add a problem for every other
    setting.
    """
    for key, value in data.items():
        try:
            if not key.startswith("my_"):
                bounded(value)
        except Unusable as error:
            problems.append(mistake(f"{origin(key)}: {key}", error.fault, error.remedy, host))
        else:
            yield key, value
