"""Where notices go: ``notify`` in the settings; from elsewhere those with a secret in them.

An address is ``ntfy:``, ``mailto:`` or ``webhook:``; where secrets come from, every URL of
Apprise's too (``tgram://…``, ``discord://…``).
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from sparkwright.config.secret_commands import printed
from sparkwright.config.secrets import Command, Secret, refuse_readable
from sparkwright.documents import text_files as files
from sparkwright.documents.bounds import Unusable
from sparkwright.findings.user_error import Problems, mistake, refusal
from sparkwright.findings.validation import HIDDEN, problems_of

KINDS = ("ntfy", "mailto", "webhook")
#: Addresses of one site at most.
MOST = 20
_MAIL = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+")
_HOST = re.compile(r"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\]")
_RELAY = re.compile(rf"({_HOST.pattern})(?::([0-9]{{1,5}}))?")
_TOPIC = re.compile(r"[A-Za-z0-9_-]{1,64}")
#: Part of a path that is random: webhooks of chats have some, and whoever knows one can post.
_DRAWN = re.compile(r"(?=.*[0-9])[A-Za-z0-9_-]{16,}|[A-Za-z0-9_-]{32,}")
#: What a mail's address may say beside the recipient.
_MAIL_OPTIONS = ("smtp", "from")


@dataclass(frozen=True)
class Address:
    """Where notices go.

    Attributes:
        url: Apprise's, or ``https://`` of a webhook.
        shown: kind and host, without what may be secret: ``webhook at hooks.example.org``.
    """

    url: Secret
    shown: str

    @property
    def key(self) -> str:
        """Its name in files: the same for the same URL, and nothing of it."""
        return hashlib.sha256(self.url.value.encode()).hexdigest()[:16]


def _refused(what: str) -> PydanticCustomError:
    # The value is in no message: it may be a secret after all.
    return PydanticCustomError(HIDDEN, "{what}", {"what": what})


def _without_secret(text: str) -> str:
    try:
        address(text, "it")
    except ValueError as error:
        raise _refused(str(error)) from None
    if text.partition(":")[0] not in KINDS:
        raise _refused("ntfy:, mailto: or webhook: is needed here")
    rest = urlsplit(text.partition(":")[2])
    secret = (
        rest.username is not None
        or text.startswith("mailto://")
        or (not text.startswith("mailto:") and rest.query)
        or (text.startswith("webhook:") and any(map(_DRAWN.fullmatch, rest.path.split("/"))))
    )
    if secret:
        raise _refused(
            "this address has a secret in it, and settings are no place for one: put it into a "
            "file (notify_file) or have a command print it (notify_command)"
        )
    return text


#: An address that settings may hold.
NoticeAddress = Annotated[str, AfterValidator(_without_secret)]


class NoticeSettings(BaseModel):
    """A host's settings of notices, by the names in ``HostSettings``."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    notify: tuple[NoticeAddress, ...] = ()
    notify_file: str | None = None
    notify_command: Command | None = None


def addresses(hosts: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[Address, ...]:
    """Every address that the hosts' data name, each once; those of files and commands are read.

    Args:
        hosts: name and data of each. Other settings do not matter, and may be wrong.

    Raises:
        UserError: for what is no address, and for a secret that can't be had.
    """
    problems, result = Problems(), dict[Address, None]()
    for name, data in hosts:
        try:
            settings = NoticeSettings.model_validate(dict(data))
        except ValidationError as error:
            problems += (problem.on(name) for problem in problems_of(error, "settings"))
            continue
        with problems.collected():
            result |= dict.fromkeys(_of(settings))
    if len(result) > MOST:
        problems.append(mistake("notify", f"{len(result)} addresses", f"name {MOST} at most"))
    problems.stop()
    return tuple(result)


def _of(settings: NoticeSettings) -> Iterator[Address]:
    yield from (address(text, "") for text in settings.notify)
    if settings.notify_file:
        path = Path(settings.notify_file)
        try:
            text = files.read(path)
        except Unusable as error:
            where = f"notify_file: {path}"
            raise refusal(where, error.what, "write one address per line into it") from None
        refuse_readable(path, "the addresses of notices")
        yield from _lines(text, f"notify_file: {path}")
    if settings.notify_command:
        text = printed(settings.notify_command, "notify_command")
        yield from _lines(text, "notify_command: its output")


def _lines(text: str, where: str) -> Iterator[Address]:
    for number, line in enumerate(text.splitlines(), 1):
        if (word := line.strip()) and not word.startswith("#"):
            try:
                yield address(word, f"address {number}")
            except ValueError as error:
                # Without the line itself: it is a secret.
                remedy = "see docs/monitoring.md, Notices"
                raise refusal(f"{where}, line {number}", str(error), remedy) from None


def address(text: str, place: str) -> Address:
    """An address as the settings have it.

    Args:
        place: how a URL of Apprise's is called, whose host may be a token.

    Raises:
        ValueError: for what is none; the text has nothing of it.
    """
    if not text.isprintable() or " " in text:
        raise ValueError("an address has no spaces or control characters")
    kind, _, rest = text.partition(":")
    if kind == "ntfy":
        return _ntfy(rest)
    if kind == "mailto" and not rest.startswith("//"):
        return _mail(rest)
    if kind == "webhook":
        return _webhook(rest)
    if not rest.startswith("//") or not re.fullmatch(r"[a-z][a-z0-9]{1,20}", kind):
        raise ValueError("an address begins with ntfy:, mailto: or webhook:")
    return Address(Secret(text), f"{kind}, {place}")


def _ntfy(rest: str) -> Address:
    if "//" not in rest:
        if not _TOPIC.fullmatch(rest):
            raise ValueError("ntfy:TOPIC has letters, digits, _ and - in its topic, 64 at most")
        return Address(Secret(f"ntfys://{rest}?image=no"), "ntfy at ntfy.sh")
    url = _http(rest, "ntfy:https://HOST/TOPIC")
    topic = url.path.strip("/")
    if url.query or not _TOPIC.fullmatch(topic):
        raise ValueError("ntfy:https://HOST/TOPIC has one topic, and nothing after it")
    scheme = "ntfys" if url.scheme == "https" else "ntfy"
    made = f"{scheme}://{url.netloc}/{topic}?image=no&mode=private"
    return Address(Secret(made), f"ntfy at {url.hostname}")


def _mail(rest: str) -> Address:
    to, _, query = rest.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    relay = _RELAY.fullmatch(options.get("smtp", "localhost"))
    sender = options.get("from", to)
    mails = _MAIL.fullmatch(to) and _MAIL.fullmatch(sender)
    if not mails or not relay or set(options) - {*_MAIL_OPTIONS}:
        raise ValueError(
            "mailto:NAME@DOMAIN may be followed by ?smtp=HOST:PORT (localhost:25 without) and "
            "&from=NAME@DOMAIN; a login goes into mailtos://USER:PASSWORD@HOST?to=NAME@DOMAIN, "
            "in notify_file or notify_command"
        )
    arguments = urlencode({"to": to, "from": sender, "mode": "insecure", "format": "text"})
    host, port = relay.groups()
    return Address(Secret(f"mailto://{host}:{port or 25}?{arguments}"), f"mail to {to} by {host}")


def _webhook(rest: str) -> Address:
    url = _http(rest, "webhook:https://HOST/PATH")
    return Address(Secret(url.geturl()), f"webhook at {url.hostname}")


def _http(rest: str, form: str) -> SplitResult:
    try:
        url = urlsplit(rest)
        named = url.scheme in ("http", "https") and _HOST.fullmatch(url.hostname or "")
        fine = bool(named) and (url.port or 1) > 0 and not url.fragment
    except ValueError:
        fine = False
    if not fine:
        raise ValueError(f"{form} is needed")
    return url


def as_json(url: str) -> str:
    """A webhook's URL as Apprise takes it for a POST of JSON; its query stays the URL's own."""
    parts = urlsplit(url)
    scheme = "jsons" if parts.scheme == "https" else "json"
    query = urlencode([(f"-{key}", value) for key, value in parse_qsl(parts.query)], safe="-")
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~")
    return f"{scheme}://{parts.netloc}{path}" + (f"?{query}" if query else "")
