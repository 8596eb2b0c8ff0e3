"""What `check` calls right a deploy does not refuse: both judge by the same code, in one go."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sparkwright.config.inventory import HostInput
from sparkwright.findings.user_error import UserError
from sparkwright.resolve import credentials
from sparkwright.site.desired import desired_fleet
from sparkwright.site.fleet import plan_fleet
from sparkwright.site.judged import site_problems
from tests.fuzz.site import contents
from tests.unit.builders import SPARK, origin

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a pool of nobody": ({"load_balancer": {"other": {"port": 9000}}}, {}, "has a service 'other'"),
    "a replica that serves not": (
        {"load_balancer": {"qwen36": {"port": 9000, "hosts": ["spark-9"]}}},
        {},
        "spark-9 has no service 'qwen36'",
    ),
    "a replica with a port that is none": (
        {"load_balancer": {"qwen36": {"port": 9000}}},
        {"services": {"qwen36": {"port": 70000}}},
        "services.qwen36 of spark-2",
    ),
    "a replica whose services are none": (
        {"load_balancer": {"qwen36": {"port": 9000, "hosts": ["spark-2"]}}},
        {"services": "qwen36"},
        "spark-2 has no service 'qwen36'",
    ),
    "a replica that is alone": (
        {"load_balancer": {"qwen36": {"port": 9000}}},
        {"services": {"qwen36": {"port": 8000, "bind": "127.0.0.1"}}},
        "only spark-2 itself reaches it",
    ),
    "a pool on a service's port": (
        {"load_balancer": {"qwen36": {"port": 18000}}},
        {},
        "port 18000 is taken by 'qwen36'",
    ),
    "a token that is not there": ({"hub_token_file": "none"}, {}, "hub_token_file: none"),
    "a token that is none": ({"hub_token_file": "bytes"}, {}, "not UTF-8"),
    "an empty token": ({"hub_token_file": "empty"}, {}, "this is no token"),
    "accounts that are not there": ({"registry_auth_file": "none"}, {}, "registry_auth_file: none"),
    "accounts that are none": ({"registry_auth_file": "deep"}, {}, "no config.json of Docker's"),
    "a key that others read": ({"api_key_file": "open"}, {}, "chmod 600 open"),
    "a key that is none": ({"api_key_file": "short"}, {}, "this is no usable API key"),
    "a key of bytes": ({"api_key_file": "bytes"}, {}, "not UTF-8"),
    "a canary that is no host": (
        {"rollout": {"canaries": ["spark-1", "spark-l"]}},
        {},
        "no host of the inventory is called 'spark-l'",
    ),
    "a bundle that is not there": ({"bundle": "none"}, {}, "there is no directory 'none'"),
    "a bundle that is a file": ({"bundle": "empty"}, {}, "there is no directory 'empty'"),
    "a lock that is not there": ({"lock_file": "none.lock"}, {}, "nothing would be pinned"),
    "a lock that is none": ({"lock_file": "short"}, {}, "short"),
    "a lock without a pin": ({"lock_file": "pins"}, {}, "is not locked"),
}


@pytest.fixture(autouse=True)
def _site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPARKWRIGHT_API_KEY", raising=False)
    credentials._accounts.cache_clear()
    texts: dict[str, bytes] = {
        "empty": b"", "bytes": b"\xff\xfe\x00", "short": b"short", "deep": b"[" * 100_000,
        "open": b"sk-0123456789abcdef", "pins": b"images: {}\nmodels: {}\n",
    }  # fmt: skip
    for name, text in texts.items():
        Path(name).write_bytes(text)
        Path(name).chmod(0o644 if name == "open" else 0o600)


def _inputs(data: Mapping[str, Any]) -> list[HostInput]:
    return [HostInput("spark-1", {"services": SPARK, **data}, origin)]


@pytest.mark.parametrize("case", CASES)
def test_check_and_deploy_say_the_same(case: str) -> None:
    data, other, words = CASES[case]
    everyone = {
        "spark-1": {"services": SPARK, **data},
        "spark-2": {"services": SPARK, **other},
    }
    before = contents(Path())
    planned = plan_fleet(_inputs(data))
    said = [*planned.problems, *site_problems(planned.hosts, everyone)]
    with pytest.raises(UserError) as raised:
        desired_fleet(_inputs(data), everyone)
    assert list(raised.value.findings) == list(dict.fromkeys(said))
    assert words in str(raised.value)
    assert contents(Path()) == before


def test_a_dry_run_makes_neither_key_nor_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.unit.builders import plan, resolution

    planned = plan(SPARK)
    monkeypatch.setattr("sparkwright.site.desired.pinned", lambda _: resolution(planned))
    data = {"tls": "own", "keys": {"alice": {}}}
    everyone = {"spark-1": {"services": SPARK, **data}}
    before = contents(Path())
    first = desired_fleet(_inputs(data), everyone, dry=True).hosts["spark-1"]
    again = desired_fleet(_inputs(data), everyone, dry=True).hosts["spark-1"]
    assert contents(Path()) == before
    assert first.keys == again.keys  # all hosts of a run have one key
    assert first.proxies
    assert first.proxies.tls
    real = desired_fleet(_inputs(data), everyone).hosts["spark-1"]
    made = {path.name for path in Path(".sparkwright").iterdir()}
    assert {"api_key", "ca", "engine_key", "keys"} <= made
    assert desired_fleet(_inputs(data), everyone, dry=True).hosts["spark-1"].keys == real.keys
