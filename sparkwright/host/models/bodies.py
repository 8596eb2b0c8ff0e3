"""Fields of a request's body that the address needs: the model, and the option for a stream's
usage.

Bodies are JSON or forms (``multipart/form-data``). A body that would delay other requests is parsed
by a separate process with bounded time and memory.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path

from sparkwright.host.lib.annotations import Any
from sparkwright.host.lib.records import dataclass, encode
from sparkwright.host.models.refusal import Refused

#: Largest number of bytes of a body; of a key's bodies; of all bodies; and of a body in memory.
LARGEST, OF_A_KEY, OF_ALL, IN_MEMORY = 64 << 20, 256 << 20, 1 << 30, 64 << 10
#: Share of a key's and of the total room for bodies above _SMALL; the rest is for small bodies.
_FOR_LARGE = 0.75
#: A body above either number is parsed separately: bytes, and commas, since each element takes time
#: and memory.
_SMALL, _ELEMENTS = 1 << 20, 50_000
#: CPU seconds and bytes of memory that the process for large bodies may use.
_SECONDS, _MEMORY = 5, 768 << 20
#: Largest number of a form's parts, of bytes of a part's head, and of bytes of a field's value and
#: of an inserted member.
_PARTS, _VALUE = 1000, 1024
_BOUNDARY = re.compile(r'multipart/form-data;.*\bboundary="?([^";]{1,70})', re.I)
#: Accepted head of a part: another parser could find the model's name in any other form. .NET
#: writes no quotes.
_PART = re.compile(
    rb"(?:\r\nContent-(?:Type|Length|Transfer-Encoding):[^\r\n]*)*"
    rb'\r\nContent-Disposition: *form-data; *name=(?:"([^"\\\r\n]*)"|([\w.-]+))'
    rb"""(?:; *filename=(?:"[^"\r\n]*"|[\w.-]+))?(?:; *filename\*=[\w.%'!~-]+)?"""
    rb"(?:\r\nContent-(?:Type|Length|Transfer-Encoding):[^\r\n]*)*",
    re.I,
)
_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv[2]); "
    "from sparkwright.host.models import bodies; bodies.child(sys.argv[1])"
)


@dataclass(frozen=True)
class Fields:
    """Fields of a body that was parsed.

    Attributes:
        model: the model's name.
        end: bytes before the object's closing brace.
        member: JSON member to insert there, so that a stream ends with its usage; empty if the
            client requests usage itself, or no stream.
    """

    model: str
    end: int = 0
    member: str = ""


class Room:
    """Bytes of all bodies in memory or on the disk, by key."""

    def __init__(self) -> None:
        self._held = Counter[str]()

    def hold(self, key: str, size: int, whole: int) -> None:
        """Count bytes of a body; a negative number releases the bytes.

        Args:
            whole: bytes of the whole body, if known.

        Raises:
            Refused: there is no room for the bytes.
        """
        held, share = self._held, _FOR_LARGE if whole > _SMALL else 1
        if held[key] + size > OF_A_KEY * share or held.total() + size > OF_ALL * share:
            raise Refused(503, "Too many large requests are under way.", 10)
        held[key] += size


def boundary(content_type: str = "") -> str:
    """Return the boundary of a form's parts; empty for any other body, which should be JSON.

    Raises:
        Refused: the header has two boundaries.
    """
    match = _BOUNDARY.match(content_type)
    if match and content_type.lower().count("boundary") > 1 + match[1].lower().count("boundary"):
        raise Refused(400, "The form has more than one boundary.")
    return match[1].strip() if match else ""


def small(file: Any) -> bytes | None:
    """Return the bytes of a body that this process can parse; None for a larger body."""
    file.seek(0)
    data: bytes = file.read(_SMALL + 1)
    return None if len(data) > _SMALL or data.count(b",") > _ELEMENTS else data


def parse(data: bytes, boundary: str) -> Fields:
    """Parse the fields of a whole body.

    Raises:
        Refused: the body is neither JSON nor a form, or names no model or two models.
    """
    return _form(data, boundary.encode()) if boundary else _json(data)


def parse_apart(file: Any, boundary: str) -> Fields:
    """Parse the fields of a body in a file in a separate process; the call blocks.

    Raises:
        Refused: as in ``parse``, or the body takes too much time or memory.
    """
    import subprocess  # subprocess takes 8 ms to import: the child does not need it

    file.flush()
    file.seek(0)
    library = str(Path(__file__).parents[3])
    command = [sys.executable, "-IBS", "-c", _PROGRAM, boundary, library]
    done = subprocess.run(command, stdin=file.fileno(), capture_output=True, check=False)
    if done.returncode:
        raise Refused(400, "The body takes too much time or memory to parse.")
    outcome = json.loads(done.stdout)
    if isinstance(outcome, str):
        raise Refused(400, outcome)
    return Fields(**outcome)


def child(boundary: str) -> None:
    """Parse the body at standard input, and print its fields or a refusal's text."""
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    try:
        outcome = encode(parse(sys.stdin.buffer.read(), boundary))
    except Refused as error:
        outcome = str(error)
    print(json.dumps(outcome))


def _json(data: bytes) -> Fields:
    twice: list[str] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        # The fields of the outermost object, which is parsed last.
        repeated = len(result) < len(pairs)
        twice[:] = (Counter(key for key, _ in pairs) - Counter(result.keys())) if repeated else ()
        return result

    try:
        request = json.loads(data.decode(), object_pairs_hook=members)
    except RecursionError:
        raise Refused(400, "The JSON of the body is nested too deeply.") from None
    except ValueError:
        raise Refused(400, "The body is not JSON.") from None
    if twice:  # two parsers may choose different members
        raise Refused(400, f"The body has {twice[0][:60]!r} twice.")
    if not isinstance(request, dict) or not isinstance(request.get("model"), str):
        raise Refused(400, "The body is not a JSON object that names a model.")
    # An engine may read other values as true.
    if not isinstance(request.get("stream"), bool | None):
        raise Refused(400, "The body's stream must be true or false.")
    return Fields(request["model"], len(data.rstrip(b" \t\r\n")) - 1, _member(request))


def _member(request: dict[str, Any]) -> str:
    options = request.get("stream_options") or {}
    if request.get("stream") is not True or not isinstance(options, dict):
        return ""
    if options.get("include_usage") is True:
        return ""
    # This member comes last, so it overrides an existing member. Without include_usage, the client
    # would not have received usage in each event either.
    flags = {k: v for k, v in options.items() if isinstance(v, bool) and k.isascii()}
    flags.pop("continuous_usage_stats", None)
    member = f',"stream_options":{json.dumps({**flags, "include_usage": True})}'
    if len(member) > _VALUE:  # the member is in memory until the answer's end
        raise Refused(400, "The body's stream_options are too long.")
    return member


def _form(data: bytes, boundary: bytes) -> Fields:
    delimiter, models, at, parts = b"--" + boundary, [], 0, 0
    while (start := at + len(delimiter)) < len(data) and data[start : start + 2] != b"--":
        parts += 1
        body = data.find(b"\r\n\r\n", start)
        at = data.find(b"\r\n" + delimiter, max(body, start)) + 2
        if body < 0 or at < 2 or parts > _PARTS or not data.startswith(delimiter):
            raise Refused(400, "The form has a part without an end, or too many parts.")
        head = _PART.fullmatch(data, start, body) if body - start <= _VALUE else None
        if head is None:
            raise Refused(400, "The form has a part with invalid headers for a field or file.")
        if b"model" in head.groups():
            models.append(data[body + 4 : min(at - 2, body + 4 + _VALUE)])
    if len(models) != 1:
        raise Refused(400, f"The form names {len(models) or 'no'} models.")
    return Fields(models[0].decode(errors="replace").strip())
