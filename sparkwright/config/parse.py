"""Parse a host's inventory and group_data into settings; a mistake names its file and key."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from sparkwright.config.connection import CONNECTION_KEYS, connection_problems
from sparkwright.config.settings import HostSettings
from sparkwright.documents.bounds import Unusable, bounded
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import Messages, Problems, UserError, mistake
from sparkwright.findings.validation import problems_of

_MESSAGES = Messages(__file__)
#: Depth of a key -> where it is written.
_PLACES = {1: "write it beside 'services': it is the host's", 3: "write services.NAME.{key}"}


def _keys(annotation: Any, depth: int = 1) -> Iterator[tuple[int, str]]:
    """The keys of settings and of all that is in them, each with its depth."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            yield depth, name
            yield from _keys(field.annotation, depth + 1)
    deeper = depth + (get_origin(annotation) is dict)
    for argument in get_args(annotation):
        yield from _keys(argument, deeper)


@cache
def _known_keys() -> dict[int, list[str]]:
    """Keys by depth: 1 is the top, 3 a service's."""
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
            arguments (``_sudo`` ...) beyond those that are numbers are passed over.
        origin: file that a top-level key comes from, for messages.

    Raises:
        UserError: every problem of this host.
    """
    problems = Problems()
    own = dict(_within_bounds(host, data, origin, problems))
    problems += connection_problems(host, own, origin)
    own = {
        key: value
        for key, value in own.items()
        if key not in CONNECTION_KEYS and not key.startswith(("_", "my_"))
    }
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
    """Settings within the bounds of size and depth; the rest is a problem."""
    for key, value in data.items():
        try:
            if not key.startswith("my_"):
                bounded(value)
        except Unusable as error:
            problems.append(mistake(f"{origin(key)}: {key}", error.what, error.remedy, host))
        else:
            yield key, value
