"""Addresses of notices: from ``notify`` in the settings, or, if the address has a secret, from a
file or a command.

An address begins with ``ntfy:``, ``mailto:`` or ``webhook:``. Files and commands may also provide
any URL of Apprise (``tgram://…``, ``discord://…``).
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from sparkwright.config import secret_commands, secrets
from sparkwright.documents import text_files as files
from sparkwright.documents.bounds import Unusable
from sparkwright.findings import user_error, validation
from sparkwright.host.lib.records import dataclass
from sparkwright.text.shipped_yaml import beside

#: Largest number of addresses of one site.
MOST = 20
#: Forms of addresses, by kind.
_kinds = cache(partial(beside, __file__, "notices.yaml"))
_MESSAGES = user_error.Messages(__file__)
#: Random part of a path, as in a chat's webhook: anybody with this part can post.
_DRAWN = re.compile(r"(?=.*[0-9])[A-Za-z0-9_-]{16,}|[A-Za-z0-9_-]{32,}")


@dataclass(frozen=True)
class Address:
    """Destination of notices.

    Attributes:
        url: URL for Apprise, or a webhook's own URL.
        shown: kind and host, without parts that may be secret: ``webhook at hooks.example.org``.
        public: whether settings may contain the address: its kind is built in, and it has no
            secret.
    """

    url: secrets.Secret
    shown: str
    public: bool = False

    @property
    def key(self) -> str:
        """Name of the address in files: equal for the same URL, and without any part of the URL."""
        return hashlib.sha256(self.url.value.encode()).hexdigest()[:16]


def _without_secret(text: str) -> str:
    problem = (
        "this address contains a secret, which settings must not contain: put the address into "
        "a file (notify_file), or name a command that prints it (notify_command)"
    )
    try:
        if address(text, "").public:
            return text
        if text.partition(":")[0] not in _kinds():
            problem = "an address in the settings must begin with ntfy:, mailto: or webhook:"
    except ValueError as error:
        problem = str(error)
    # The value may be a secret, so messages leave it out.
    raise PydanticCustomError(validation.HIDDEN, "{what}", {"what": problem})


#: Address that settings may contain.
NoticeAddress = Annotated[str, AfterValidator(_without_secret)]


class NoticeSettings(BaseModel):
    """A host's settings for notices, with the same names as in ``HostSettings``."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    notify: tuple[NoticeAddress, ...] = ()
    notify_file: str | None = None
    notify_command: secrets.Command | None = None


def addresses(hosts: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[Address, ...]:
    """Return every address in the hosts' data, including addresses in files and from commands,
    without duplicates.

    Args:
        hosts: name and data of each host. Other settings are ignored, even if they are faulty.

    Raises:
        UserError: an address is invalid, or a secret can't be read.
    """
    problems, result = user_error.Problems(), dict[Address, None]()
    for name, data in hosts:
        try:
            settings = NoticeSettings.model_validate(dict(data))
        except ValidationError as error:
            problems += (problem.on(name) for problem in validation.problems_of(error, "settings"))
            continue
        with problems.collected():
            result |= dict.fromkeys(_of(settings))
    if len(result) > MOST:
        problems.append(_MESSAGES.mistake("notices-count", "notify", count=len(result), most=MOST))
    problems.stop()
    return tuple(result)


def _of(settings: NoticeSettings) -> Iterator[Address]:
    yield from (address(text, "") for text in settings.notify)
    if settings.notify_file:
        path = Path(settings.notify_file)
        try:
            text = files.read(path)
        except Unusable as error:
            raise _MESSAGES.refusal("notices", f"notify_file: {path}", error=error.fault) from None
        if fault := secrets.exposure(path, "the addresses of notices"):
            raise user_error.refusal(str(path), *fault)
        yield from _lines(text, f"notify_file: {path}")
    if settings.notify_command:
        text = secret_commands.printed(settings.notify_command, "notify_command")
        yield from _lines(text, "notify_command: its output")


def _lines(text: str, where: str) -> Iterator[Address]:
    for number, line in enumerate(text.splitlines(), 1):
        if (word := line.strip()) and not word.startswith("#"):
            try:
                yield address(word, f"address {number}")
            except ValueError as error:
                # The line itself is a secret, so the message leaves it out.
                raise _MESSAGES.refusal("notice", f"{where}, line {number}", error=error) from None


def address(text: str, label: str) -> Address:
    """Parse an address of the settings.

    Args:
        label: name to show for an Apprise URL, since its host may be a token.

    Raises:
        ValueError: the text is not an address; the message does not contain the text.
    """
    if not text.isprintable() or " " in text:
        raise ValueError("an address must not contain spaces or control characters")
    kind, _, rest = text.partition(":")
    if kind in _kinds() and not (kind == "mailto" and rest.startswith("//")):
        return _formed(_kinds()[kind], rest)
    if not rest.startswith("//") or not re.fullmatch(r"[a-z][a-z0-9]{1,20}", kind):
        raise ValueError("an address must begin with ntfy:, mailto: or webhook:")
    return Address(secrets.Secret(text), f"{kind}, {label}")


def _formed(kind: dict[str, Any], rest: str) -> Address:
    """Parse an address of a built-in kind."""
    for pattern, url, shown in kind["forms"]:
        match = re.fullmatch(pattern, rest, re.VERBOSE)
        if match is None or int(match.groupdict().get("port") or 1) >= 1 << 16:
            continue
        parts = {name: value for name, value in match.groupdict().items() if value is not None}
        parts = {"host": "localhost", "port": "25", "sender": parts.get("to", ""), **parts}
        secret = {"login", "query"} & parts.keys()
        drawn = any(map(_DRAWN.fullmatch, parts.get("path", "").split("/")))
        mails = {name: quote(parts[name], safe="") for name in ("to", "sender") if name in parts}
        made = url.format(rest=rest, **(parts | mails))
        return Address(secrets.Secret(made), shown.format(**parts), public=not secret and not drawn)
    raise ValueError(kind["needed"])


def as_json(url: str) -> str:
    """Return the URL with which Apprise posts JSON to a webhook; the webhook's query is kept."""
    parts = urlsplit(url)
    scheme = "jsons" if parts.scheme == "https" else "json"
    query = urlencode([(f"-{key}", value) for key, value in parse_qsl(parts.query)], safe="-")
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
    return f"{scheme}://{parts.netloc}{path}" + (f"?{query}" if query else "")
