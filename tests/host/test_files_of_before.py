"""Files that the version before left on hosts, in the middle of something or at rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sparkwright.host import lock, status
from sparkwright.host.lib import documents
from sparkwright.host.lock import LockRequest, Owner
from sparkwright.host.release import request_document, request_of
from sparkwright.host.status import StatusRequest
from sparkwright.host.watch.state import WatchState
from sparkwright.host.watch.watch import document

GATE = {
    "name": "qwen36", "unit": "sparkwright-qwen36.service", "address": "127.0.0.1", "port": 8000,
    "secrets": "/opt/sparkwright/services/qwen36/secrets.env",
    "served_names": ["qwen36-fast", "qwen36-deep"], "boot_seconds": 900,
    "first_answer_seconds": 120, "warm_ups": 2, "door": ["127.0.0.1", 8001], "speculates": True,
    "thinking": False, "max_tokens": 32,
}  # fmt: skip
#: As roles/serving/switch.py of version 0.1 wrote it.
REQUEST: dict[str, Any] = {
    "id": "0123456789ab", "by": "ann@laptop", "settle": ["systemd-run", "--quiet"],
    "recover": "[Unit]\n",
    "services": [
        {
            "name": "qwen36", "home": "/opt/sparkwright/services/qwen36",
            "unit": "sparkwright-qwen36.service",
            "unit_path": "/etc/systemd/system/sparkwright-qwen36.service",
            "to": "b" * 12, "from": "a" * 12, "image": "ghcr.io/a/b:sha256-1",
            "secrets": "/opt/sparkwright/services/qwen36/secrets.env",
            "why": ["release b after a", "restart"], "restart": True,
            "gate": {**GATE, "hasty": True}, "soak_seconds": 75,
            "door": {
                "admin": "/run/a.sock", "master": "/run/m.sock", "leave": ["set a"],
                "close": ["set b"], "open": ["set c"], "server": ["qwen36", "self"],
                "notice_seconds": 7, "drain_seconds": 600, "others": False,
            },
            "files": {"/opt/x/compose.yaml": ["services: {}\n", 416]},
        }
    ],
    "strangers": ["by-hand always"],
    "doors": {
        "to": {
            "files": {"/opt/g/haproxy.cfg": ["text", 420]}, "unit": "sparkwright-gateway.service",
            "health": None, "config": "/opt/g/haproxy.cfg", "admin": "/run/a.sock",
            "states": "/run/states", "keep": [["a", "self", "127.0.0.1", "1", "2"]], "start": True,
        },
        "managed": ["/opt/g/haproxy.cfg"], "health": "sparkwright-health.service",
        "health_path": "/etc/systemd/system/sparkwright-health.service",
    },
}  # fmt: skip


def test_a_switch_is_read_and_written_with_the_same_keys() -> None:
    request = request_of(REQUEST)
    (service,) = request.services
    assert (service.from_release, service.gate.fail_fast) == ("a" * 12, True)
    assert service.gate.proxy == ("127.0.0.1", 8001)
    assert request_document(request) == _with_what_was_added(REQUEST)
    first = {**REQUEST["services"][0], "from": None, "door": None, "image": None, "gate": GATE}
    alone = {**REQUEST, "services": [first], "doors": None, "strangers": []}
    assert request_document(request_of(alone)) == _with_what_was_added(alone)


def _with_what_was_added(request: dict[str, Any]) -> dict[str, Any]:
    """Keys that 0.1 did not know, and passes over."""
    new = {"second_boot": False, "sleeps": False, "slept": False, "follower": False}
    services = [{**service, **new} for service in request["services"]]
    doors = request["doors"] and {
        **request["doors"], "to": {**request["doors"]["to"], "asleep": None},
    }  # fmt: skip
    return {**request, "services": services, "doors": doors, "active": {}, "activates": {}}


def test_the_status_of_a_host_of_before(tmp_path: Path) -> None:
    release = tmp_path / "services/qwen36/releases" / ("b" * 12)
    release.mkdir(parents=True)
    note = {"tag": "t", "image": "i", "recipe": "r", "models": {"o/m": "c"}, "gate": GATE,
            "served_names": ["qwen36-fast"]}  # fmt: skip
    (release / "release.json").write_text(json.dumps(note))
    (tmp_path / "services/qwen36/current").symlink_to(f"releases/{'b' * 12}")
    state = tmp_path / "state"
    (state / "switch").mkdir(parents=True)
    entry: dict[str, Any] = {
        "service": "qwen36", "from": None, "to": "b" * 12, "by": "ann", "at": 1,
        "why": [], "down_seconds": 0.0, "result": "good", "reasons": [], "strangers": [],
    }  # fmt: skip
    (state / "history.jsonl").write_text(f"\n{json.dumps(entry)}\n\n{{torn\n[]\n{{}}\n")
    check = {"name": "health", "ok": True, "seconds": 0.1, "detail": "200"}
    journal: dict[str, Any] = {
        "id": "1", "step": "proving", "result": None, "reasons": [], "down_seconds": 0.0,
        "checks": {"qwen36": [check]},
    }  # fmt: skip
    (state / "switch/progress.json").write_text(json.dumps(journal))
    (state / "watch.json").write_text('{"at": 1, "findings": [], "ring": [{"at": 1}]}')
    found = status.main(StatusRequest(str(tmp_path)))
    (entry_,) = found.history
    assert (entry_.from_release, entry_.to) == (None, "b" * 12)
    assert found.switch is not None
    assert found.switch.checks["qwen36"][0].ok
    kept = found.services["qwen36"].releases["b" * 12]
    assert (kept.tag, kept.proxy) == ("t", True)
    assert found.watch is not None
    assert found.lock is None


def test_a_lock_of_before_and_one_that_was_torn(tmp_path: Path) -> None:
    held = {"token": "t", "by": "bob@desk", "machine": "m", "pid": 7, "since": 100.5}
    (tmp_path / "lock.json").write_text(json.dumps(held))
    ours = Owner("u", "ann@laptop", "n", 8)
    answer = lock.main(LockRequest(str(tmp_path), take=ours))
    assert not answer.held
    assert answer.by == Owner("t", "bob@desk", "m", 7, 100.5)
    (tmp_path / "lock.json").write_text("")
    answer = lock.main(LockRequest(str(tmp_path), take=ours))
    assert (answer.held, answer.by and answer.by.by) == (False, "somebody")
    assert lock.main(LockRequest(str(tmp_path), take=ours, breaking=True)).held
    written = json.loads((tmp_path / "lock.json").read_text())
    assert list(written) == ["token", "by", "machine", "pid", "since"]
    lock.main(LockRequest(str(tmp_path), release="u"))
    assert json.loads((tmp_path / "lock-last.json").read_text()) == written


def test_samples_of_before_are_read_and_what_is_unknown_stays_absent(tmp_path: Path) -> None:
    sample = {
        "at": 1, "switching": False, "gpu": {"silent": "", "heat": "", "brake": "", "low": ""},
        "disks": {"/": [1, 2]},
        "services": {
            "down": {"active": "failed", "restarts": 3, "health": None, "drift": []},
            "up": {"active": "active", "restarts": 0, "health": 200, "running": 0.0,
                   "waiting": 0.0, "cache": 0.1, "progress": 5.0, "drift": ["x"]},
        },
    }  # fmt: skip
    finding = {"name": "drift", "service": None, "severity": "warning", "seen": "x", "since": 1}
    whole = {"at": 1, "findings": [finding], "ring": [sample]}
    (tmp_path / "watch.json").write_text(json.dumps(whole))
    state = documents.record(WatchState, tmp_path / "watch.json")
    assert state is not None
    assert document(state) == whole
