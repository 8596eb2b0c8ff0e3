"""Convert pydantic's errors into findings that name the key, the value and the remedy."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import mistake, suggest
from sparkwright.text.shipped_yaml import beside
from sparkwright.text.values import short

#: Kind of an error whose value may be a secret; messages hide the value.
HIDDEN = "hidden_value"
#: Kind of pydantic's error -> remedy.
_REMEDIES: dict[str, Any] = beside(__file__, "validation.yaml")
#: Pattern of a setting's text -> description of the required text.
_PATTERNS: dict[str, str] = _REMEDIES.pop("patterns")


def problems_of(
    error: ValidationError,
    where: str,
    keys: Mapping[int, Sequence[str]] | None = None,
    *,
    tagged: bool = False,
    allowed: Callable[[tuple[str, ...]], str] | None = None,
    places: Mapping[int, str] | None = None,
) -> Iterator[Finding]:
    """Yield the findings of a pydantic error, one for each problem.

    Args:
        where: file (and host), put before each key.
        keys: the keys allowed at each depth (1 is the top), for spelling remedies.
        tagged: whether the location starts with the branch of a tagged union.
        allowed: function that returns the allowed values of a missing key.
        places: depth -> remedy for a key that belongs to this depth, but is at another depth.
    """
    seen: set[str] = set()
    for item in error.errors():
        location = item["loc"][1:] if tagged else item["loc"]
        path = [str(part) for part in location if not _is_branch(part)]
        key = ".".join(path)
        value = item.get("input")
        kind = item["type"]
        again = key in seen or (kind == "bool_type" and key.rpartition(".")[0] in seen)
        seen.add(key)
        if again:
            continue
        if kind == "extra_forbidden":
            names = (keys or {}).get(len(path))
            problem = f"unknown key {path[-1]!r}"
            spelling = "remove the key, or correct its spelling"
            remedy = suggest(path[-1], names) if names else spelling
            for depth, place in (places or {}).items():
                if path[-1] in (keys or {}).get(depth, ()):
                    remedy = place.format(key=path[-1])
        elif kind == "missing":
            may = allowed(tuple(path)) if allowed else ""
            problem = "this key is missing"
            remedy = f"{_REMEDIES['missing']} ({may})" if may else _REMEDIES["missing"]
        elif kind in ("union_tag_not_found", "union_tag_invalid"):
            problem, remedy = "this entry has no kind", _REMEDIES["union_tag"]
        else:
            text = item["msg"].removeprefix("Value error, ").removeprefix("Input ").strip()
            text, _, advice = text.partition("; ")
            remedy = advice or _REMEDIES.get(kind, "write a value of the required form")
            if written := _PATTERNS.get(item.get("ctx", {}).get("pattern", "")):
                text, remedy = "not in the required form", written
            elif kind == "bool_type" and isinstance(value, dict | list):  # an argument's value
                text, remedy = "nested too deeply for a mapping", "write the value as a JSON text"
            text = text.partition(" or instance of ")[0]
            hidden = kind == HIDDEN or "secrets" in path
            problem = text if hidden else f"{short(_without_secrets(value))}: {text}"
        yield mistake(f"{where}: {key}" if key else where, problem, remedy)


def _without_secrets(value: Any) -> Any:
    """Return a value without its parts below ``secrets``."""
    if isinstance(value, dict):
        return {
            key: "(hidden)" if key == "secrets" else _without_secrets(item)
            for key, item in value.items()
        }
    return list(map(_without_secrets, value)) if isinstance(value, list | tuple) else value


def _is_branch(part: Any) -> bool:
    """Return whether a part of a location is the branch of an untagged union instead of the user's
    key.
    """
    return isinstance(part, str) and (
        part in ("bool", "int", "float", "str")
        or part.startswith(("[", "list[", "dict[", "function-", "constrained-"))
    )
