"""How a command ended."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """A command's outcome.

    Attributes:
        code: exit code; None when it hung or is not there.
        found: whether there is such a command.
    """

    code: int | None
    out: str = ""
    err: str = ""
    found: bool = True

    @property
    def ok(self) -> bool:
        """Whether it ended well."""
        return self.code == 0

    @property
    def said(self) -> str:
        """The last line that it printed, of its errors first; empty for none."""
        lines = (self.err.strip() or self.out.strip()).splitlines()
        return lines[-1] if lines else ""
