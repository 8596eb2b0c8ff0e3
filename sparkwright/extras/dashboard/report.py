"""``sparkwright report``: the fleet on one page."""

import datetime as dt
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import click

from sparkwright.catalog import load_catalog
from sparkwright.checks.configuration.parts import memory_of
from sparkwright.checks.smoke.verdict import DIRECTORY as SMOKE
from sparkwright.cli.lib import options, selection
from sparkwright.cli.lib.extras import offered
from sparkwright.cli.lib.output import echo
from sparkwright.cli.lib.planned import load
from sparkwright.config.places import catalogs
from sparkwright.documents.text_files import make_folder
from sparkwright.extras.dashboard import contents
from sparkwright.extras.dashboard.page import page_of
from sparkwright.extras.dashboard.render import html, plain, text
from sparkwright.findings.finding import Finding

_STATE = Path(".sparkwright")
LAST_RUN = _STATE / "last-run.json"
_Command = Callable[..., None]
_FILE = click.Path(path_type=Path, dir_okay=False)
DOCUMENT = contents.Page


def _input(name: str, text: str, option: str) -> Callable[[_Command], _Command]:
    kind = click.Path(path_type=Path)
    return click.option(option, type=kind, default=_STATE / name, show_default=True, help=text)


def stored(
    hosts: selection.Selection,
    results: Path = _STATE / "bench",
    last_run: Path = LAST_RUN,
    status: Path = _STATE / "status.json",
    *,
    findings: bool = True,
    problems: Sequence[Finding] = (),
) -> contents.Page:
    """The page of the stored results of runs and benchmarks on the controller.

    Args:
        findings: whether the page has the watch's findings; a live page queries the hosts for
            findings.
        problems: problems that are shown with the problems of the files.
    """
    chosen = load(hosts).or_raise() if hosts != type(hosts)() else {}
    names = {host: [service.name for service in of.plan.services] for host, of in chosen.items()}
    planned = names or None
    catalog = next(iter(chosen.values())).catalog if chosen else load_catalog(catalogs())
    problems = [*problems]
    changes = contents.read_status(status, problems)
    return page_of(
        made=dt.datetime.now(dt.UTC),
        last_run=contents.read_last_run(last_run, problems),
        status=changes if findings else replace(changes, findings=()),
        deep=contents.read_deep(SMOKE, problems),
        planned=planned,
        memory={name: memory_of(host.plan, host.catalog) for name, host in chosen.items()},
        problems=problems,
        sections=[make(results, catalog, planned) for make in offered("report.section")],
    )


@click.command("report")
@selection.names_argument()
@_input("bench", "Stored benchmark results.", "--results")
@_input("last-run.json", "Record of the last run.", "--last-run")
@_input("status.json", "Changes of releases, if any.", "--status")
@click.option(
    "--output", type=_FILE, default=None,
    help="Path of the page.  [default: .sparkwright/report.html; with --json none]",
)  # fmt: skip
@options.json_option
def command(
    hosts: selection.Selection,
    results: Path,
    last_run: Path,
    status: Path,
    output: Path | None,
    as_json: bool,
) -> None:
    """Show the fleet on one page: state, memory, versions, smoke tests, speed, history.

    The page shows stored results of runs and benchmarks; no host is contacted. The page is one file
    that loads nothing from elsewhere. For named hosts or an inventory, the page shows the planned
    memory. Exit with 1 when a service has a fault, or is slower than its card.
    """
    page = stored(hosts, results, last_run, status)
    if output is None and not as_json:
        output = _STATE / "report.html"
    if output is not None:
        make_folder(output.parent)
        try:
            output.write_text(html(page), encoding="utf-8")
        except OSError as error:  # the error of a full disk has no file name
            raise OSError(error.errno, error.strerror, str(output)) from error
    if as_json:
        options.print_json(plain(page))
    else:
        echo(text(page))
        echo(f"The page: {output}")
    sys.exit(int(not page.well))
