"""Results of the deep smoke test: typed, as a table with the meaning of failures, and as files."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, computed_field

from sparkwright.findings.check import Check, Symptom, load
from sparkwright.findings.finding import Finding
from sparkwright.findings.render import Paint, text
from sparkwright.host.lib.records import dataclass, replace
from sparkwright.host.smoke.check import DeepCheckResult
from sparkwright.host.smoke.deep import DeepAnswer
from sparkwright.text.screen import folded
from sparkwright.text.table import columns, folded_rows
from sparkwright.text.visible import visible

#: The entry with causes that any check may have.
ANY = "any"
#: Directory of results for other commands, with one file per host and service.
DIRECTORY = Path(".sparkwright/smoke")
_WIDTH = 96
"""Characters of a detail in the table; a failure is shown in full below the table."""
#: The column of the table in which equal hosts differ.
_SECONDS = 4
_MARKS = {"passed": "ok", "skipped": "skipped"}


@cache
def checks() -> dict[str, Check]:
    """Return all checks by name in their order; the last check, ``any``, has causes that all checks
    share.
    """
    texts = load(Path(__file__).with_name("checks.yaml"))
    common = texts[ANY].cases
    return {name: replace(check, cases={**common, **check.cases}) for name, check in texts.items()}


class DeepVerdict(BaseModel):
    """All checks of one service on one host.

    Attributes:
        at: time when the checks ended, RFC 3339.
        planned: the release that the checks were made for.
        release: the running release; None if no release runs.
        journal: the service's last log lines, if a check failed.
    """

    model_config = ConfigDict(frozen=True)

    host: str
    service: str
    recipe: str
    at: str
    planned: str
    release: str | None
    checks: tuple[DeepCheckResult, ...]
    journal: tuple[str, ...] = ()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def findings(self) -> tuple[Finding, ...]:
        """The failed checks with their meaning."""
        failed = (check for check in self.checks if check.verdict not in ("passed", "skipped"))
        return tuple(
            checks().get(check.name, checks()[ANY]).finding(
                Symptom(check.name, check.cause or "", host=self.host, service=self.service,
                        observed=check.detail)
            )
            for check in failed
        )  # fmt: skip


@dataclass(frozen=True)
class DeepResult(DeepAnswer):
    """Checks of a service, with the recipe and the release that they were made for."""

    planned: str = ""
    recipe: str = "?"


def verdicts(host: str, answer: Mapping[str, DeepResult], now: datetime) -> list[DeepVerdict]:
    """Checks of a host's services, with the meaning of each failure."""
    at = now.astimezone(UTC).isoformat(timespec="seconds")
    return [
        DeepVerdict(host=host, service=name, at=at, **vars(result))
        for name, result in answer.items()
    ]


def render(results: Sequence[DeepVerdict], paint: Paint = str) -> str:
    """Render every check in a table, then every failure with its meaning and a place to look."""
    rows = [("HOST", "SERVICE", "CHECK", "VERDICT", "SECONDS", "DETAIL")]
    rows += [
        (
            item.host,
            item.service,
            check.name,
            _MARKS.get(check.verdict, "FAILED"),
            "-" if check.verdict == "skipped" else f"{check.seconds:.1f}",
            check.detail if len(check.detail) <= _WIDTH else f"{check.detail[: _WIDTH - 1]}…",
        )
        for item in results
        for check in item.checks
    ]
    table = columns(folded_rows(rows, _SECONDS, _number))
    return "\n".join([*table, *_details(results, paint)])


def _details(results: Sequence[DeepVerdict], paint: Paint) -> Iterator[str]:
    for entry in results:
        if entry.release and entry.release != entry.planned:
            yield ""
            yield (
                f"{entry.host} {entry.service}: release {visible(entry.release)} runs, but "
                f"the test is for the planned release {entry.planned}: see `sparkwright diff`"
            )
    if failed := [finding for item in results for finding in item.findings]:
        yield ""
        yield text(failed, paint=paint)
    for hosts, journal in folded((f"{item.host} {item.service}", item.journal) for item in results):
        if journal:
            yield f"{', '.join(hosts)}:"
        for line in journal:
            yield f"    journal: {visible(line)}"


def _number(seconds: str) -> float:
    return -1 if seconds == "-" else float(seconds)


def save(results: Sequence[DeepVerdict], directory: Path = DIRECTORY) -> None:
    """Write ``<host>-<service>.json`` for each service; a name can't lead to another folder."""
    directory.parent.mkdir(mode=0o700, exist_ok=True)
    directory.mkdir(exist_ok=True)
    for item in results:
        path = directory / f"{quote(item.host, safe='@')}-{quote(item.service, safe='')}.json"
        path.write_text(json.dumps(item.model_dump(), indent=1) + "\n", encoding="utf-8")
