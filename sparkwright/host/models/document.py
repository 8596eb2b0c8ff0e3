"""Document of an address for all models (``models.json``): models, pools, and rights of keys."""

import json
import re
from pathlib import Path

from sparkwright.host.lib.records import Malformed, dataclass, decode, field

#: Kinds of requests that a model may support.
KINDS = (
    "chat", "completion", "embedding", "rerank", "score", "transcription", "speech", "image",
)  # fmt: skip
#: systemd's socket, to which HAProxy passes requests.
DOOR = "/run/sparkwright-models/door.sock"
#: Open WebUI's socket, its unit, and the directory of its accounts, chats and files.
PAGE_SOCKET = "/run/sparkwright-open-webui/http.sock"
PAGE = "sparkwright-open-webui.service"
PAGE_DATA = "/var/lib/sparkwright-open-webui"
#: The usage database; systemd makes its directory for the program's user.
USAGE = "/var/lib/sparkwright-models/usage.db"
#: Name of a pool with the same servers but without checks, through which a request reaches a
#: sleeping service.
WAKE = "wake-"
#: Largest body in bytes that may be sent to a second replica.
REPEATABLE = 1 << 20
#: Pattern of names, which appear in headers and in labels of metrics.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Model:
    """A model under the name that clients use.

    Attributes:
        pool: name of the model's pool in HAProxy's map of pools.
        kind: a member of KINDS.
        context: tokens of the longest request with its answer; None if unknown.
        wakes: whether a request may go to the pool ``wake-NAME`` while no server is up.
    """

    pool: str
    kind: str
    context: int | None = None
    wakes: bool = False


@dataclass(frozen=True)
class Key:
    """Rights and limits of an API key; None means all models, or no limit."""

    models: tuple[str, ...] | None = None
    requests_minute: int | None = None
    requests_day: int | None = None
    tokens_minute: int | None = None
    tokens_day: int | None = None


@dataclass(frozen=True)
class Door:
    """Document of an address.

    Attributes:
        name: name of the address.
        models: models by the name that clients use.
        usage: path of the usage database; its directory also holds large bodies for a while, as
            unnamed files.
        pools: path of HAProxy's socket in front of all pools.
        keys: keys by name; a missing key may use all models without limits.
        peers: names of the site's other addresses: each address grants its share of a limit.
    """

    name: str
    models: dict[str, Model]
    usage: str
    pools: str
    keys: dict[str, Key] = field(default_factory=dict)
    peers: tuple[str, ...] = ()


def read(path: str) -> Door:
    """Read a document from a file.

    Raises:
        Malformed: the file can't be read, or a value is impossible; the text has the file and the
        key.
    """
    try:
        door = decode(Door, json.loads(Path(path).read_text(encoding="utf-8")))
        _judge(door)
    except (OSError, ValueError, RecursionError) as error:
        raise Malformed(f"{path}: {error}. Deploy this host again to write the file.") from None
    return door


def _judge(door: Door) -> None:
    for name, model in door.models.items():
        if model.kind not in KINDS:
            raise Malformed(f"models.{name}.kind: {model.kind!r} is not one of {', '.join(KINDS)}")
        if not _NAME.fullmatch(model.pool):
            raise Malformed(f"models.{name}.pool: {model.pool!r} is not a valid name of a pool")
    for name, key in door.keys.items():
        missing = [model for model in key.models or () if model not in door.models]
        if missing:
            raise Malformed(f"keys.{name}.models: there is no model {missing[0]!r}")
        for limit, value in vars(key).items():
            if isinstance(value, int) and value < 1:
                raise Malformed(f"keys.{name}.{limit}: {value} is less than 1")
