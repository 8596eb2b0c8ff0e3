"""A deploy accepts everything that `check` accepts: both use the same code."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from sparkwright.config.inventory import HostInput
from sparkwright.findings.user_error import UserError
from sparkwright.resolve import credentials
from sparkwright.site.desired import desired_fleet
from sparkwright.site.fleet import plan_fleet
from sparkwright.site.resolution import site_problems
from tests.fuzz.drawn_site import contents
from tests.unit.builders import SPARK, origin, plan, resolution

CASES: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("judged.yaml").read_text()
)


@pytest.fixture(autouse=True)
def _site(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARKWRIGHT_API_KEY", raising=False)
    credentials._accounts.cache_clear()
    texts: dict[str, bytes] = {
        "empty": b"", "bytes": b"\xff\xfe\x00", "short": b"short", "deep": b"[" * 100_000,
        "open": b"sk-0123456789abcdef", "pins": b"images: {}\nmodels: {}\n",
    }  # fmt: skip
    for name, text in texts.items():
        Path(name).write_bytes(text)
        Path(name).chmod(0o644 if name == "open" else 0o600)


def _inputs(data: Mapping[str, Any], host: str = "spark-1") -> list[HostInput]:
    return [HostInput(host, {"services": SPARK, **data}, origin)]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_check_and_deploy_report_the_same_problems(case: dict[str, Any]) -> None:
    data, other = case["host"], case.get("other", {})
    everyone = {"spark-1": {"services": SPARK, **data}}
    everyone |= {"spark-2": {"services": SPARK, **other}} if other else {}
    before = contents(Path())
    planned, beside = plan_fleet(_inputs(data)), _inputs(other, "spark-2") if other else []
    others = plan_fleet(beside).hosts
    texts = [*planned.problems, *site_problems(planned.hosts, everyone, others)]
    with pytest.raises(UserError) as raised:
        desired_fleet(_inputs(data), everyone, others=beside)
    assert list(raised.value.findings) == list(dict.fromkeys(texts))
    assert case["words"] in str(raised.value)
    assert contents(Path()) == before


def test_a_dry_run_makes_neither_key_nor_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = plan(SPARK)
    monkeypatch.setattr("sparkwright.site.desired.pinned", lambda _: resolution(planned))
    data = {"tls": "own", "keys": {"alice": {}}}
    everyone = {"spark-1": {"services": SPARK, **data}}
    before = contents(Path())
    first = desired_fleet(_inputs(data), everyone, dry=True).hosts["spark-1"]
    again = desired_fleet(_inputs(data), everyone, dry=True).hosts["spark-1"]
    assert contents(Path()) == before
    assert first.keys == again.keys  # both plans have the run's one key
    assert first.proxies
    assert first.proxies.tls
    real = desired_fleet(_inputs(data), everyone).hosts["spark-1"]
    made = {path.name for path in Path(".sparkwright").iterdir()}
    assert {"api_key", "ca", "engine_key", "keys"} <= made
    assert desired_fleet(_inputs(data), everyone, dry=True).hosts["spark-1"].keys == real.keys


def test_an_account_reaches_the_host_and_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparkwright.site.desired.pinned", lambda _: resolution(plan(SPARK)))
    Path("config.json").write_text('{"auths": {"ghcr.io": {"auth": "bWU6b25l"}}}')
    data = {"registry_auth_command": ["cat", "config.json"]}
    everyone = {"spark-1": {"services": SPARK, **data}}
    host = desired_fleet(_inputs(data), everyone, dry=True).hosts["spark-1"]
    assert host.accounts == {"https://ghcr.io": "me:one"}
    assert "me:one" not in repr(host)
