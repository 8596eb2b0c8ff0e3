"""``sparkwright report``: one file, exit codes, and no traceback."""

import json
from pathlib import Path

import pytest

from lab import example_report
from sparkwright.extras.bench.store import save
from tests.unit.cli.answering import exits, run
from tests.unit.cli.test_cli import loaded_modules
from tests.unit.extras.bench.bench_results import cell, result


@pytest.fixture
def project(here: Path) -> Path:
    """A project's folder as runs and benchmarks leave it, as the working directory."""
    example_report.write(here / ".sparkwright", hosts=3, runs=6)
    # The invented results are where `--results` looks by default.
    return here


def test_report_without_arguments_uses_stored_results_and_names_the_page(project: Path) -> None:
    done = exits(1, "report")
    assert "spark-2/qwen36: decode, one stream is worse than the card" in done.output
    assert done.output.rstrip().endswith("The page: .sparkwright/report.html")
    assert "580.142" in (project / ".sparkwright/report.html").read_text()


def test_report_exits_with_0_without_findings(project: Path) -> None:
    alone = ("--last-run", "none", "--status", "none", "--results")
    assert "There is nothing to show" in run("report", *alone, "none").output
    save(project / "mine", result())
    done = run("report", *alone, "mine", "--output", "p.html")
    assert (done.exit_code, Path("p.html").exists()) == (0, True)
    save(project / "mine", result(cell(decode=1), when=result().when.replace(year=2027)))
    assert run("report", *alone, "mine").exit_code == 1


def test_an_inventory_adds_the_memory_and_chooses_the_hosts(project: Path, checkout: Path) -> None:
    state = project / ".sparkwright"
    paths = ["--results", f"{state}/bench", "--last-run", f"{state}/last-run.json",
             "--status", f"{state}/status.json", "--output", f"{project}/page.html"]  # fmt: skip
    exits(0, "report", "inventory/lab.py", "--limit", "spark-1", *paths)
    page = (project / "page.html").read_text()
    assert "Memory as planned" in page
    assert "spark-1" in page
    assert "spark-2" not in page
    assert run("report", "spark-1", *paths).exit_code == 0
    assert run("report", "inventory/lab.py", "--limit", "spark-9", *paths).exit_code == 2


def test_report_json_has_all_contents_and_writes_no_page(project: Path) -> None:
    assert json.loads(run("report", "--json").output)["well"] is False
    assert not (project / ".sparkwright/report.html").exists()
    run("report", "--json", "--output", "also.html")
    assert Path("also.html").exists()


def test_a_broken_result_is_a_warning_in_terminal_and_page(project: Path) -> None:
    bad = project / ".sparkwright/bench/spark-1/qwen36/20270101T000000Z.json"
    bad.write_text("{")
    done = run("report")
    assert f"error: input: {bad.relative_to(project)}\n    observed: not valid JSON" in done.output
    page = (project / ".sparkwright/report.html").read_text()
    assert "Files that could not be read" in page
    assert bad.name in page


def test_report_runs_without_pyinfra() -> None:
    arguments = ["report", "--json", "--results", "x", "--last-run", "x", "--status", "x"]
    assert "pyinfra" not in loaded_modules(f"from sparkwright.cli import main; main({arguments})")
