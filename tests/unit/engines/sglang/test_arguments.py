"""Arguments that an SGLang version takes, and the mistakes of its own rules."""

from dataclasses import replace
from typing import Any

import pytest

from sparkwright.checks.configuration import RULES, check_host
from sparkwright.checks.configuration.facts import assumed_hardware
from sparkwright.engines.command_line import read_words
from sparkwright.engines.sglang.data import PARSER
from sparkwright.engines.sglang.engine import ENGINE, limits
from sparkwright.plan.service import container_command
from tests.tables import Tables
from tests.unit.builders import catalog, plan

cases = Tables(__file__)

RECIPE = "qwen38-27b-nvfp4-sglang-spark"
TABLES = PARSER.tables


def _found(version: str | None, arguments: dict[str, Any]) -> list[tuple[str, str]]:
    findings = RULES.report(PARSER.check(version, arguments, {}, {}))
    assert all(item.observed and item.reason and item.remedy and item.source for item in findings)
    return [(item.id, (item.subject.key or "").removeprefix("arguments.")) for item in findings]


@cases("arguments", "rule")
def test_a_mistake_is_reported_at_its_key(arguments: dict[str, Any], rule: str) -> None:
    assert _found("0.5.20", arguments) == [(rule, list(arguments)[-1])]


@pytest.mark.parametrize(
    "name", [name for name in ENGINE.parser.data["settings"] if name != "nccl_init_addr"]
)
def test_every_argument_that_is_a_setting_exists_in_sglang(name: str) -> None:
    tables = [TABLES.table(version) for version in TABLES.versions()]
    assert any(name in table.arguments for table in tables)


def test_a_container_is_read_back_as_planned() -> None:
    (service,) = plan({"s": {"recipe": RECIPE}}).services
    read = read_words(container_command(service).arguments)
    running = limits({name: " ".join(values) for name, values in read.items()})
    planned = limits(dict(service.arguments))
    assert replace(running, speculative=None) == replace(planned, speculative=None)
    assert running.speculates
    assert planned.speculates
    assert running.context == 262144


def test_ranks_meet_at_the_head() -> None:
    assert limits({"nnodes": "2", "dist_init_addr": "10.0.0.1:29501"}).head == "10.0.0.1"


def test_an_early_image_is_refused_on_a_spark() -> None:
    host = plan({"s": {"recipe": RECIPE}})
    host = replace(host, services=(replace(host.services[0], version="0.5.9"),))
    findings = {item.id: item for item in check_host(host, catalog(), assumed_hardware(host))}
    assert findings["sglang-old-on-gb10"].observed == "SGLang 0.5.9 on compute capability 12.1"
