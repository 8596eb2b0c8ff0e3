"""Problems in what the user wrote: all of them at once, each with its place and its remedy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True)
class Problem:
    """One mistake in the user's input.

    Attributes:
        where: file and key, e.g. ``group_data/sparks.py: services.qwen36.port``.
        what: what is wrong, with the offending value.
        remedy: what to write or do instead.
        host: the host it was found on, where it is one host's.
    """

    where: str
    what: str
    remedy: str
    host: str | None = None


class UserError(Exception):
    """The user's input can't be used. Carries every problem found, never just the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(dict.fromkeys(problems))
        super().__init__(str(self))

    def __str__(self) -> str:
        hosts: dict[tuple[str, str, str], list[str]] = {}
        for problem in self.problems:
            same = hosts.setdefault((problem.where, problem.what, problem.remedy), [])
            same.extend([problem.host] if problem.host else [])
        count = "1 problem" if len(hosts) == 1 else f"{len(hosts)} problems"
        lines = [f"{count}, nothing was touched:"]
        for (where, what, remedy), names in hosts.items():
            lines += [f"  * {': '.join([*filter(None, [', '.join(names)]), where])}"]
            lines += [f"    {what}", f"    -> {remedy}"]
        return "\n".join(lines)


def suggest(wrong: str, known: Sequence[str]) -> str:
    """A remedy for a misspelt word: the nearest known one, or all of them when none is near."""
    near = get_close_matches(wrong, known, n=1, cutoff=0.6)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known: {', '.join(sorted(known))}" if known else "there is none to choose from"
