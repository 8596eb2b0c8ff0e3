"""Contents of the page, which come only from runs, results and history."""

import datetime as dt
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import example_report
from sparkwright.checks.configuration.parts import Memory, Part, memory_of
from sparkwright.extras.bench.judgement import findings, likely
from sparkwright.extras.dashboard import contents
from sparkwright.extras.dashboard.render import html, plain, text
from sparkwright.findings.finding import Finding
from sparkwright.findings.user_error import mistake
from sparkwright.results.run_summary import Row, as_json
from sparkwright.results.status import switches
from sparkwright.text.short import natural
from sparkwright.text.visible import visible_text
from tests.golden import compare
from tests.tables import Tables
from tests.unit.builders import SPARK, catalog, plan
from tests.unit.extras.bench.bench_results import cell, result
from tests.unit.extras.dashboard.pages import benches, page_of
from tests.unit.results.test_status import answer

cases = Tables(__file__)

NOON = dt.datetime(2026, 7, 8, 12, tzinfo=dt.UTC)


@cache
def example() -> dict[str, Any]:
    """The invented fleet's contents."""
    return example_report.contents(hosts=3, runs=6)


#: Data of a healthy host.
ROW: Row = example_report.rows(1)[0]
MEASURED = {("spark-1", "qwen36"): result()}


def page(*, rows: Sequence[Row] | None = None, dry: bool = False, **changes: Any) -> contents.Page:
    """The invented fleet's page, or the page of a run with these rows."""
    if rows is not None:
        changes["last_run"] = contents.LastRun(NOON, dry, tuple(rows))
    return page_of(**{"made": NOON, "catalog": catalog(), **example(), **changes})


class Seen(HTMLParser):
    """A page's elements, attributes and text, and whether every element is closed in order."""

    VOID = frozenset({"meta", "link"})

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements[tag] += 1
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in self.VOID or self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        """All text, with single spaces."""
        return " ".join(" ".join(self.texts).split())


def test_the_page_sends_no_request() -> None:
    markup = html(page())
    assert markup == html(page())
    seen = Seen(markup)
    assert not seen.open
    assert not seen.elements.keys() & {"script", "img", "iframe", "object", "video", "form"}
    for name, value in seen.attributes:
        assert not name.startswith("on")
        if name in ("href", "src", "srcset", "action", "data"):
            assert value is not None
            assert value.startswith("#") or value == "data:,"
    assert "url(" not in markup
    assert "@import" not in markup
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'; img-src data:") in (
        seen.attributes
    )
    assert ("name", "viewport") in seen.attributes


def test_every_section_shows_its_data() -> None:
    seen = Seen(html(page())).text
    for name in (
        "3 hosts, 3 services", "NVIDIA GeForce RTX 5090", "580.142", "10.213.77.11:8000",
        "sha256-9edc67e56dd1", "z-lab/Qwen3.6-35B-A3B-DFlash@7c1458e4a6a6",
        "qwen36 KV cache and engine", "FAIL", "5/6 in 5.1 s", "84 of 85 in range",
        "37 of 85 worse", "the GPU clock is low", "me@laptop",
        "sparkwright bench spark-2 --service qwen36", "went back", "0aa1c5ffab17",
    ):  # fmt: skip
        assert name in seen


def test_tables_have_captions() -> None:
    seen = Seen(html(page()))
    attributes = Counter(seen.attributes)
    assert seen.elements["caption"] == seen.elements["table"] == attributes["role", "table"]
    assert attributes["role", "row"] == seen.elements["tr"]
    assert attributes["role", "cell"] == seen.elements["td"]
    assert ("lang", "en") in seen.attributes


#: Texts that would be markup without escaping, and parts that are easily forgotten.
_nasty = st.sampled_from(
    ["<script>alert(1)</script>", '"><img src=x onerror=y>', "</style>", "{{ 7 * 7 }}", "&amp;",
     "' onclick='x", "-->", "]]>", "</svg>"]
) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20).map("{}~".format)  # fmt: skip


def _read(name: str) -> Seen:
    """The page of a host that has this word in all of its texts."""
    (service,) = ROW.services
    assert service.smoke
    fields: Any = dict.fromkeys(("name", "tag", "release"), name)
    smoke = replace(service.smoke, failures=(name,))
    service = replace(service, **fields, image=f"a:sha256-{name}", models={name: name}, smoke=smoke)
    run = result(
        cell(errors=1), cell(concurrency=2), release=name,
        engine={"name": name, "version": name}, settings={"kv_cache_dtype": name},
        generator={"name": name, "version": name, "command": [name]},
    )  # fmt: skip
    switch = contents.Switch(host="h", service=name, who=name, when=NOON, after=name, ended=name)
    made = page(
        rows=[replace(ROW, services=(service,), refused=name, gpu=name, driver=name)],
        results={("spark-1", "qwen36"): run}, history=(switch,),
        memory={name: Memory(100.0, True, (Part("#", name, 1.0),))},
        problems=(mistake(name, name, name),),
    )  # fmt: skip
    return Seen(html(made, title=name))


#: The page with a harmless word.
_PLAINLY = cache(lambda: _read("word"))


@given(_nasty)
def test_text_of_a_host_is_never_markup(word: str) -> None:
    plainly, nastily = _PLAINLY(), _read(word)
    assert nastily.elements == plainly.elements
    assert [name for name, _ in nastily.attributes] == [name for name, _ in plainly.attributes]
    shown = "".join(nastily.texts)
    assert shown.count(visible_text(word)) >= 20
    assert shown == visible_text(shown)


def test_the_page_as_json_has_the_same_contents() -> None:
    data = json.loads(json.dumps(plain(page())))
    assert data["well"] is False
    assert [row["host"] for row in data["fleet"]] == ["rtx-1", "spark-1", "spark-2"]
    bench = data["benches"][2]
    assert bench["result"]["gpu"]["driver"] == "580.142"
    assert bench["cells"][0]["verdicts"][0]["published"] == [91.7, 91.7]
    assert data["memory"]["spark-1"]["parts"][-1] == {"mark": "o", "name": "system", "gib": 8.0}


def test_memory_equals_the_plans_budget() -> None:
    own = memory_of(plan(SPARK, sidecars={"asr": 4}), catalog())
    assert [(part.name, round(part.gib)) for part in own.parts] == [
        ("qwen36 weights", 21), ("qwen36 KV cache and engine", 62), ("asr", 4), ("system", 8),
    ]  # fmt: skip
    assert own.total_gib == 119.7
    assert own.free_gib == pytest.approx(119.7 * 0.3 - 12)


def test_an_empty_page_names_the_missing_files() -> None:
    empty = page_of(made=NOON, catalog=catalog())
    assert empty.well
    seen = Seen(html(empty)).text
    assert "No run and no results yet" in seen
    assert "No results yet" in seen
    assert text(empty) == "There is nothing to show: no run, no results."


def _states(*rows: Row, **changes: Any) -> dict[str, tuple[str, bool]]:
    made = page(**{"rows": rows, "results": {}, "history": (), **changes})
    return {row.host: (row.state, row.well) for row in made.fleet}


def test_states_equal_the_terminal_reports() -> None:
    bare = (replace(ROW.services[0], smoke=None),)
    refused = replace(ROW, refused="refused by preflight: gpu", services=bare)
    unknown = replace(ROW, services=bare)
    for row, state, well in (
        (ROW, "serving", True), (replace(ROW, changes=("x",)), "serving, changed", True),
        (refused, "left alone", False), (replace(refused, changes=("x",)), "failed", False),
        (unknown, "unknown", False),
    ):  # fmt: skip
        assert _states(row) == {"spark-1": (state, well)}
    assert _states(unknown, dry=True) == {"spark-1": ("planned", True)}
    assert _states(results=MEASURED) == {"spark-1": ("measured only", True)}
    # The page shows no release of a refused host.
    (shown,) = page(rows=[refused], results={}).fleet
    assert (shown.release, shown.image, shown.address, shown.models) == (None, None, None, ())


def test_an_inventory_selects_the_hosts_and_names_undeployed_services() -> None:
    made = page(planned={"spark-1": ["qwen36"], "spark-9": ["qwen36"]})
    states = {row.host: row.state for row in made.fleet}
    assert states == {"spark-1": "serving", "spark-9": "not deployed"}
    shown: list[Any] = [bench.result for bench in benches(made)]
    shown += [*made.history, *made.smoke]
    assert {entry.host for entry in shown} == {"spark-1"}
    # The newest change of a release comes first.
    times = [switch.when for switch in page().history]
    assert len(set(times)) == 6
    assert times == sorted(times, reverse=True)


def test_versions_are_shown_side_by_side() -> None:
    drivers = [(v.value, v.hosts) for v in page().versions if v.component == "driver"]
    assert drivers == [("580.142", ("spark-2",)), ("580.95.05", ("rtx-1", "spark-1"))]


def test_a_slow_service_is_a_finding_for_each_measure_with_the_worst_load() -> None:
    slow = benches(page())[2]
    assert [line.partition(" is worse")[0] for line in findings(slow)][:2] == [
        "decode, one stream", "decode, together",
    ]  # fmt: skip
    verdicts = [each for each in slow.verdicts if each.measure == "decode"]
    ratio = min(verdict.ratio for verdict in verdicts if verdict.state == "worse")
    assert f", {ratio:.2f} times the card's" in next(findings(slow))
    assert next(cause.id for cause, _ in likely(slow)) == "clock-low"
    assert not list(findings(benches(page())[1]))


def test_the_cause_of_the_most_loads_comes_first() -> None:
    lazy = cell(decode=50, tpot=0.02, acceptance=0.1)
    slow = {"decode": 20, "tpot": 0.05, "acceptance": 0.9}
    busy = [cell(category=name, **slow) for name in ("math", "prose")]
    bench = benches(page(results={("spark-1", "qwen36"): result(lazy, *busy)}))[0]
    named = [(cause.id, loads) for cause, loads in likely(bench)]
    assert named[0] == ("other-process", 2)
    assert ("drafter-revision", 1) in named


def test_the_terminal_shows_a_summary_of_the_page() -> None:
    problem = mistake("bench/x.json", "broken", "correct it")
    compare("report/terminal.txt", f"{text(page(problems=(problem,)))}\n")
    failing = text(page(results={("spark-1", "qwen36"): result(cell(errors=2))}))
    assert "spark-1/qwen36: 2 requests failed" in failing


def test_hosts_sort_in_natural_order() -> None:
    mixed = ["spark-10", "spark-2", "10", "a", "9b"]
    assert sorted(mixed, key=natural) == ["9b", "10", "a", "spark-2", "spark-10"]


def test_a_stored_run_is_read_back(tmp_path: Path) -> None:
    rows = tuple(example_report.rows(3))
    file = tmp_path / "last-run.json"
    file.write_text(as_json(rows, dry=True))
    problems: list[Finding] = []
    run = contents.read_last_run(file, problems)
    assert run == replace(run, hosts=rows, dry=True) if run else False
    # Records of earlier versions have neither checks nor GPU.
    old = json.loads(file.read_text())
    for host in old["hosts"]:
        del host["gpu"], host["driver"], host["services"][0]["smoke"]["checks"]
    file.write_text(json.dumps(old))
    run = contents.read_last_run(file, problems)
    assert run
    assert run.hosts[0].gpu is None
    assert problems == []


@cases("written", "message")
def test_an_unreadable_record_is_named(tmp_path: Path, written: str, message: str) -> None:
    file = tmp_path / "last-run.json"
    file.write_text(written)
    problems: list[Finding] = []
    assert contents.read_last_run(file, problems) is None
    assert str(file) in problems[0].subject.place
    assert any(message in f"{problem.subject} {problem.observed}" for problem in problems)


def test_a_history_keeps_its_readable_entries_oldest_first(tmp_path: Path) -> None:
    file = tmp_path / "status.json"
    good = example_report.history(1)
    file.write_text(json.dumps({"history": [*reversed(good), {"host": "x"}], "more": 1}))
    problems: list[Finding] = []
    read = contents.read_status(file, problems).history
    assert [switch.after for switch in read] == ["0aa1c5ffab17", "1b45a560efec"]
    assert {problem.subject.place.partition("history.")[2][0] for problem in problems} == {"2"}
    assert contents.read_status(tmp_path / "nowhere.json", problems).history == []
    file.write_text('{"history": 7}')
    assert contents.read_status(file, problems).history == []
    assert problems[-1].observed == "7: should be a valid list"


def test_the_history_equals_the_history_of_the_status_command(tmp_path: Path) -> None:
    kept = tmp_path / "status.json"
    kept.write_text(json.dumps({"history": switches({"spark-1": answer()})}))
    problems: list[Finding] = []
    (switch,) = contents.read_status(kept, problems).history
    assert not problems
    assert (switch.host, switch.after, switch.ended) == ("spark-1", "b" * 12, "serving")


def test_a_deep_smoke_test_of_the_same_release_replaces_the_runs_smoke_test(tmp_path: Path) -> None:
    service = ROW.services[0]
    checks = [
        {"name": "image", "verdict": "failed", "seconds": 1.5, "detail": "!!!!", "cause": "marks",
         "meaning": "written by the version before"},
        {"name": "tools", "verdict": "skipped", "seconds": 0, "detail": "no parser"},
    ]  # fmt: skip
    verdict = {
        "host": "spark-1", "service": "qwen36", "recipe": "r", "at": "2026-07-08T11:00:00Z",
        "planned": service.release, "release": service.release, "checks": checks,
    }  # fmt: skip
    (tmp_path / "one.json").write_text(json.dumps(verdict))
    (tmp_path / "broken.json").write_text('{"host": 1}')
    problems: list[Finding] = []
    deep = contents.read_deep(tmp_path, problems)
    assert "broken.json" in problems[0].subject.place
    (shown,) = page(rows=[ROW], deep=deep).smoke
    assert (list(shown.checks), shown.passed, shown.total) == (["image"], 0, 1)
    (failure,) = shown.failures
    assert failure.startswith("image: !!!! (the vision tower was skipped while loading")
    assert "; take a commit of 2026-06-18 or later" in failure
    other = deep[0].model_copy(update={"release": "0" * 12})
    assert page(rows=[ROW], deep=[other]).smoke == page(rows=[ROW]).smoke
