"""Document of an address for all models (``models.json``): models, pools, and rights of keys."""

from __future__ import annotations

import json
import re
from pathlib import Path

from sparkwright.host.lib.records import Malformed, dataclass, decode, field

#: What a model can be asked for.
KINDS = (
    "chat", "completion", "embedding", "rerank", "score", "transcription", "speech", "image",
)  # fmt: skip
#: systemd's socket, at which HAProxy hands requests over.
DOOR = "/run/sparkwright-models/door.sock"
#: Open WebUI's socket and unit, and the directory of its accounts, chats and files.
PAGE_SOCKET = "/run/sparkwright-open-webui/http.sock"
PAGE = "sparkwright-open-webui.service"
PAGE_DATA = "/var/lib/sparkwright-open-webui"
#: The database of usage; systemd makes its directory for the program's user.
USAGE = "/var/lib/sparkwright-models/usage.db"
#: Name of a pool with the same servers, unchecked, so that a request reaches a sleeping service.
WAKE = "wake-"
#: Names stand in headers and in labels of metrics.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Model:
    """One name that clients ask for.

    Attributes:
        pool: name in HAProxy's map of pools.
        kind: one of KINDS.
        context: tokens of the longest request with its answer; None if unknown.
        wakes: whether a request may go to the pool ``wake-NAME`` while no server is up.
    """

    pool: str
    kind: str
    context: int | None = None
    wakes: bool = False


@dataclass(frozen=True)
class Key:
    """Rights and limits of an API key, by its name; None: all models, or no limit."""

    models: tuple[str, ...] | None = None
    requests_minute: int | None = None
    requests_day: int | None = None
    tokens_minute: int | None = None
    tokens_day: int | None = None


@dataclass(frozen=True)
class Door:
    """The whole document.

    Attributes:
        name: name of the address.
        models: by the name that clients ask for.
        usage: path of the database of usage; large bodies lie unnamed in its directory for a while.
        pools: path of HAProxy's socket, with all pools.
        keys: by name; a key that is missing here has all models and no limit.
        peers: names of the site's other addresses: each address grants its share of a limit.
    """

    name: str
    models: dict[str, Model]
    usage: str
    pools: str
    keys: dict[str, Key] = field(default_factory=dict)
    peers: tuple[str, ...] = ()


def read(path: str) -> Door:
    """The document of a file.

    Raises:
        Malformed: it can't be read, or a value is impossible; the text has the file and the key.
    """
    try:
        door = decode(Door, json.loads(Path(path).read_text(encoding="utf-8")))
        _judge(door)
    except (OSError, ValueError, RecursionError) as error:
        raise Malformed(f"{path}: {error}. Deploy this host again to have it written.") from None
    return door


def _judge(door: Door) -> None:
    for name, model in door.models.items():
        if model.kind not in KINDS:
            raise Malformed(f"models.{name}.kind: {model.kind!r} is none of {', '.join(KINDS)}")
        if not _NAME.fullmatch(model.pool):
            raise Malformed(f"models.{name}.pool: {model.pool!r} is no name of a pool")
    for name, key in door.keys.items():
        missing = [model for model in key.models or () if model not in door.models]
        if missing:
            raise Malformed(f"keys.{name}.models: there is no {missing[0]!r}")
        for limit, value in vars(key).items():
            if isinstance(value, int) and value < 1:
                raise Malformed(f"keys.{name}.{limit}: {value} is less than 1")
