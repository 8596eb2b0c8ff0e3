"""Arguments and variables that a third party's recipe may set: one list for each engine."""

import re
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import Any

from sparkwright.host.lib.records import dataclass

#: Values that are not words or numbers: paths, addresses, Python modules, structures in text and
#: shell variables.
_PLACE = re.compile(r"(?s)\s*[~{\[].*|.*[/\\$`].*|\s*[A-Za-z_]\w*(\.[A-Za-z_]\w*)+\s*(:.*)?")


#: Name and value of a part, and the reason for leaving the part out.
LeftOut = tuple[str, Any, str]


@dataclass(frozen=True)
class Allowlist:
    """Names that a third party's recipe may set, as patterns of fnmatch; ``argument.key`` is a key
    of an argument's mapping.

    Attributes:
        listed: the names, by ``arguments`` and ``env``; also ``=name=value``.
        texts: names with any text as value; the values of other names are words and numbers.
        refused: name, or ``=name=value`` -> reason of its refusal; ``=PLACE`` is for values other
            than words and numbers, ``=OTHER`` for unlisted names.
    """

    listed: Mapping[str, Collection[str]]
    texts: Collection[str]
    refused: Mapping[str, str]

    def kept(
        self, kind: str, name: str, value: Any, allowed: Collection[str], left_out: list[LeftOut]
    ) -> Any:
        """Return the value without the parts that a third party's recipe may not set; ``...`` if
        nothing is left.

        Args:
            kind: key of ``listed``.
            allowed: names that the site allows, with any value.
            left_out: list that gets name, value and reason of each part.
        """
        if isinstance(value, dict) and value and name not in allowed:
            kept = {
                k: self.kept(kind, f"{name}.{k}", v, allowed, left_out) for k, v in value.items()
            }
            return {key: part for key, part in kept.items() if part is not ...} or ...
        if name in allowed or (reason := self._reason(kind, name, value)) is None:
            return value
        left_out.append((name, value, reason))
        return ...

    def _reason(self, kind: str, name: str, value: Any) -> str | None:
        exact, values = f"={name}={value}", value if isinstance(value, list) else [value]
        names = [exact]
        if not any(fnmatchcase(each, own) for own in self.listed[kind] for each in (name, exact)):
            names += [name, name.partition(".")[0], "=OTHER"]
        elif name not in self.texts and any(_PLACE.fullmatch(str(each)) for each in values):
            names.append("=PLACE")
        rows = self.refused.items()
        return next((why for own, why in rows if any(fnmatchcase(n, own) for n in names)), None)
