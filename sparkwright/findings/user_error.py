"""Mistakes in the user's files: all reported at once, each with its place and its remedy."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache, partial
from typing import Any

from sparkwright.findings.finding import INPUT, Finding, Severity, Subject
from sparkwright.findings.render import count, text, together
from sparkwright.text.shipped_yaml import beside


def mistake(
    where: str, problem: str, remedy: str, host: str | None = None, *, reason: str = ""
) -> Finding:
    """Return the finding of a mistake in the user's input.

    Args:
        where: file and key, e.g. ``group_data/sparks.py: services.qwen36.port``.
        problem: the mistake, with the offending value.
        remedy: the text to write or the step to take.
        host: the host with the mistake, if the mistake concerns one host.
        reason: why the mistake matters.
    """
    file, _, key = where.partition(": ")
    return Finding(
        INPUT,
        Severity.ERROR,
        Subject(host, None, file, key or None),
        problem,
        reason=reason,
        remedy=remedy,
    )


class UserError(Exception):
    """The user's input can't be used. The error has all findings, not only the first."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings: tuple[Finding, ...] = tuple(dict.fromkeys(findings))
        super().__init__(str(self))

    def __str__(self) -> str:
        problems = count(len(together(self.findings)), "problem")
        return f"{problems}; nothing was touched:\n{text(self.findings, indent=2)}"


#: A fault: key below a setting, problem, remedy.
Fault = tuple[str, str, str]


def mistakes(where: str, faults: Iterable[Fault], host: str | None = None) -> Iterator[Finding]:
    """Yield the findings of mistakes in keys below a setting."""
    for key, problem, remedy in faults:
        yield mistake(f"{where}.{key}", problem, remedy, host)


def refusal(where: str, problem: str, remedy: str, host: str | None = None) -> UserError:
    """Return the error of a single mistake; see ``mistake``."""
    return UserError([mistake(where, problem, remedy, host)])


class Messages:
    """Texts of mistakes, from a YAML file beside a module: id -> ``observed``, ``remedy`` and
    optionally ``reason``; in ``observed`` and ``remedy``, ``{NAME}`` stands for a fact.
    """

    def __init__(self, module: str, file: str = "messages.yaml") -> None:
        self._texts = cache(partial(beside, module, file))

    def fault(self, message: str, key: str, /, **facts: Any) -> Fault:
        """Return a fault in a key below a setting."""
        text = self._texts()[message]
        return key, text["observed"].format_map(facts), text["remedy"].format_map(facts)

    def mistake(
        self, message: str, where: str, host: str | None = None, /, **facts: Any
    ) -> Finding:
        """Return the finding of a mistake with a text of the table; see ``mistake``."""
        reason = self._texts()[message].get("reason", "")
        return mistake(*self.fault(message, where, **facts), host, reason=reason)

    def refusal(
        self, message: str, where: str, host: str | None = None, /, **facts: Any
    ) -> UserError:
        """Return the error of a single mistake."""
        return UserError([self.mistake(message, where, host, **facts)])


class Problems(list[Finding]):
    """Collected findings, which ``stop`` raises together."""

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Add the findings of a UserError instead of raising it."""
        try:
            yield
        except UserError as error:
            self += error.findings

    def stop(self) -> None:
        """Raise UserError if there are findings."""
        if self:
            raise UserError(self)


def suggest(misspelt: str, names: Sequence[str], cutoff: float = 0.6) -> str:
    """Return a remedy for a misspelt word: the nearest valid word, or all valid words if no word is
    near.
    """
    near = get_close_matches(misspelt, names, n=1, cutoff=cutoff)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"known: {', '.join(sorted(set(names)))}" if names else "there is no name to choose from"
