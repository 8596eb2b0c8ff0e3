"""Services and ranks of clusters: planned changes, the requested switch, and its end."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyinfra.context import ctx_host

from roles.serving import serving
from sparkwright.config.keys import Keys
from sparkwright.config.secrets import Secret
from sparkwright.config.settings import RolloutSettings
from sparkwright.host.jobs import JobStatus
from sparkwright.host.lib.records import decode
from sparkwright.host.release import SwitchJournal, SwitchRequest
from sparkwright.operations import exclusive, services
from sparkwright.operations.lib import switching
from sparkwright.operations.lib.switching import UNIT, Interrupted
from sparkwright.plan.changes import changes
from sparkwright.plan.missing import digest
from sparkwright.plan.peer_keys import RunKeys
from sparkwright.plan.rollout import Rollout, batches
from sparkwright.run.state import HostRun, Run, attach
from tests.operations.harness import FakeHost, as_json, fake, run
from tests.operations.sites import ENGINE, KEY, host_run, looked_at, running, spark
from tests.tables import Tables, merged
from tests.unit.builders import plan, probe, wanted
from tests.unit.clusters.fleets import desired, names, of_ranks, pair

cases = Tables(__file__)

ROOT = "/opt/sparkwright"
RUN = host_run(spark())
(SERVICE,) = RUN.services
SECRETS = RUN.secrets
NOW = SERVICE.release
OLD = "0123456789ab"


def _host(*, jobs: Any = None, old: bool = False, **changes: Any) -> FakeHost:
    """A Spark on which the service runs as desired, or an earlier release of the service."""
    seen = probe(**{**running(RUN, OLD if old else None), **changes})
    host = fake(seen, services.request_of((SERVICE,), ROOT))
    host.answers["jobs"] = jobs or ends()
    return host


def ends(result: str = "good", *reasons: str, **journal: Any) -> Any:
    """Set the end of the requested switch."""

    def answer(request: Any) -> dict[str, JobStatus]:
        name = request_of(request)["id"]
        switch_journal = SwitchJournal(name, "ended", result, reasons, 2.5, **journal)
        return {UNIT: JobStatus(False, result != "good", as_json(switch_journal))}

    return answer


def request_of(asked: Any) -> Any:
    (job,) = asked["start"]
    return json.loads(job["files"][f"{ROOT}/state/switch/request.json"])


@cases("changes", "message", "restart")
def test_a_dry_run_names_every_difference(
    changes: dict[str, Any], message: str, restart: bool
) -> None:
    at = {
        "services": {"qwen36": changes.get("state", {})},
        "units": {SERVICE.unit: changes.get("unit", {})},
    }
    seen, message = merged(running(RUN), at), message.format(now=NOW)
    dry = run(_host(**seen), services.running, (SERVICE,), SECRETS)
    assert dry.host.lines == [f"would service qwen36: {message}"]
    assert (len(dry.commands), dry.host.asked) == (1, [])
    host = _host(**seen)
    ran = run(host, services.running, (SERVICE,), SECRETS, execute=True)
    assert ran.well, host.lines
    assert host.programs == ["lock", "jobs"]
    assert ran.memory.changes == [f"service qwen36: {message}"]
    assert ran.memory.stale
    (item,) = request_of(host.request("jobs"))["services"]
    asked = (item["service"]["release"], item["restart"], ", ".join(item["why"]))
    assert asked == (NOW, restart, message)


def test_a_service_as_planned_is_left_alone() -> None:
    for execute in (False, True):
        ran = run(_host(), services.running, (SERVICE,), SECRETS, execute=execute)
        assert (ran.commands, ran.host.asked) == ([], [])
        assert ran.host.noops == ["every service runs as desired"]
    assert run(_host(), services.running, (), {}).host.noops == ["this host has no service"]


@cases("settings", "service", "wished")
def test_a_second_start_requires_code_compiled_by_the_first(
    settings: dict[str, Any], service: dict[str, Any], wished: bool
) -> None:
    services_ = {"qwen36": {"recipe": "qwen36-35b-a3b-heretic-dflash", "port": 8000, **service}}
    (item,) = wanted(plan(services_, **settings)).services
    assert item.second_boot == wished


@cases("end", "failure", "lines")
def test_a_switch_that_did_not_end_well_fails_the_host(
    end: dict[str, Any], failure: str, lines: list[str]
) -> None:
    jobs = {UNIT: decode(JobStatus, end["job"])} if "job" in end else ends(*end["journal"])
    host = _host(old=True, jobs=jobs)
    ran = run(host, services.running, (SERVICE,), SECRETS, execute=True)
    assert not ran.well
    assert ran.memory.failure == failure
    assert host.lines[-1 - len(lines) :] == [failure, *lines]
    assert ran.memory.changes == []


def test_an_abandoned_switch_counts_as_an_interruption() -> None:
    host = _host(jobs={UNIT: JobStatus(False, False, {"id": "x", "step": "stopping"})})
    with pytest.raises(Interrupted, match="the switch was interrupted: it ended without output"):
        switching.follow(host)  # type: ignore[arg-type]


def test_a_switch_waits_for_its_turn_and_reports_its_result() -> None:
    texts: list[Any] = []
    host = _host(old=True)

    def turn(of: Any, carry_out: Any) -> SwitchJournal:
        texts.append(host.programs)
        result: SwitchJournal = carry_out(of)
        return result

    ran = run(
        host, services.running, (SERVICE,), SECRETS, execute=True, turn=turn,
        ended=lambda done, result: texts.append((done[0].to, result.result)),
    )  # fmt: skip
    # The lock is held while a host waits for its turn.
    assert texts == [["lock"], (NOW, "good")]
    assert ran.memory.changes[-1] == "down for 2.5 s"


def test_no_service_is_switched_back_to_its_running_release() -> None:
    ran = run(_host(), services.switched_back, list)
    assert (ran.commands, ran.host.noops) == ([], ["every service already runs this release"])


@pytest.mark.parametrize("number", [0, 2, 99])
def test_a_host_of_another_version_is_left_alone(number: int) -> None:
    state = {"qwen36": {"format": number, "current": OLD}}
    host = _host(**merged(running(RUN), {"services": state}))
    ran = run(host, services.running, (SERVICE,), SECRETS, execute=True)
    assert not ran.well
    assert host.asked == []
    assert "another version of sparkwright deployed this host" in host.lines[0]
    assert "sparkwright remove" in host.lines[0]


KEYS = Keys({"default": (KEY,)}, ENGINE, {"pair": Secret("sk-of-the-ranks")})


class Fleet:
    """Hosts of one cluster, and their deploy."""

    def __init__(self, hosts: dict[str, Any], *, serves: str | None = None) -> None:
        self.order: list[tuple[str, Any]] = []
        self.broken: set[str] = set()
        self.hosts = {name: fake(None, jobs=self._ends(name)) for name in hosts}
        runs = {}
        for name, host in self.hosts.items():
            host.name = name
            at = f"10.0.0.{name[-1]}"
            runs[name] = HostRun(hosts[name], (), KEYS, None, {}, None, None, name, host.memory, at)
        settings = RolloutSettings(canaries=1, batch="100%")
        self.run = Run(
            "inventory/lab.py", runs, RunKeys(Secret("peers")),
            Rollout(batches(list(runs), settings)), settings, dry=False,
        )  # fmt: skip
        attach(self.run, self.hosts)  # type: ignore[arg-type]
        first = next(iter(self.hosts.values()))
        for name, host in self.hosts.items():
            host.state = first.state
            host.state.active_hosts = set(self.hosts.values())
            item = runs[name]
            looked_at(host, item, **(running(item, serves) if serves else {}))

    def _ends(self, name: str) -> Callable[[Any], Any]:
        def answer(asked: Any) -> dict[str, JobStatus]:
            (job,) = asked["start"]
            path = "/opt/sparkwright/state/switch/request.json"
            request = decode(SwitchRequest, json.loads(job["files"][path]))
            self.order.append((name, request))
            result = "failed" if name in self.broken else "good"
            journal = SwitchJournal(request.id, "ended", result, ("it broke",), 1.0)
            return {UNIT: JobStatus(False, False, as_json(journal))}

        return answer

    def deploy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The role on every host, and its operations in pyinfra's order: one after the other,
        each on all hosts.
        """
        planned: dict[str, list[tuple[FakeHost, Any, dict[str, Any]]]] = {}

        def noted(operation: Any) -> Callable[..., None]:
            def note(*, name: str, **arguments: Any) -> None:
                planned.setdefault(name, []).append((ctx_host.get(), operation, arguments))

            return note

        monkeypatch.setattr(services, "running", noted(services.running))
        monkeypatch.setattr(exclusive, "declared", lambda **_: None)
        for host in self.hosts.values():
            monkeypatch.setattr(host, "loop", list, raising=False)
            with ctx_host.use(host):
                serving()
        for each in planned.values():
            for host, operation, arguments in each:
                if host.memory.failure is None:
                    run(host, operation, execute=True, **arguments)

    @property
    def switched(self) -> list[str]:
        """Hosts whose head was switched."""
        return [
            name
            for name, request in self.order
            if any(service.restart for service in request.services)
        ]


@pytest.fixture(params=[2, 4, 8])
def many(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Any]]:
    count = request.param
    if count == 2:
        yield pair()
    else:
        yield desired(dict.fromkeys(names(count), of_ranks(tmp_path, tensor=count)))


@pytest.mark.parametrize("serves", [None, OLD])
def test_followers_are_ready_before_their_head_is_switched(
    many: dict[str, Any], serves: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = Fleet(many, serves=serves)
    fleet.deploy(monkeypatch)
    assert [name for name, _ in fleet.order] == [*names(len(many))[1:], "spark-1"]
    assert fleet.switched == ["spark-1"]
    for name, request in fleet.order[:-1]:
        (service,) = request.services
        assert (service.service.follower, service.restart) == (True, False), name
        files = {Path(path).name: text for path, (text, _) in service.files.items()}
        assert ENGINE.value not in str(files)
        assert files["secrets.env"] == "SPARKWRIGHT_RANKS=sk-of-the-ranks\n"
        # A release is complete with its last file.
        assert Path([*service.service.files][-1]).name == "release.json"
    assert len({request.services[0].to for _, request in fleet.order}) == 1


def test_an_unprepared_follower_leaves_all_ranks_unchanged(
    many: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = Fleet(many, serves=OLD)
    last = names(len(many))[-1]
    fleet.broken = {last}
    fleet.deploy(monkeypatch)
    assert fleet.switched == []
    why = fleet.hosts["spark-1"].memory.failure or ""
    assert why.startswith(
        f"not switched: the ranks of a cluster are switched together, and {last} of cluster pair "
        "failed: it broke"
    )


@pytest.mark.parametrize("why", ["failed", "left", "absent"])
@pytest.mark.parametrize("serves", [None, OLD])
def test_a_head_is_not_switched_without_a_follower(
    why: str, serves: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = Fleet(pair(), serves=serves)
    if why == "failed":
        fleet.run.hosts["spark-2"].memory.failure = "refused by preflight: gpu"
    elif why == "left":
        fleet.run.hosts["spark-2"].left = "in maintenance"
    else:
        del fleet.run.hosts["spark-2"], fleet.hosts["spark-2"]
    if why != "absent":
        fleet.hosts["spark-2"].state.active_hosts.discard(fleet.hosts["spark-2"])
    fleet.deploy(monkeypatch)
    assert fleet.switched == []
    assert "spark-2 of cluster pair" in (fleet.hosts["spark-1"].memory.failure or "")


# --- Missing parts of a follower


@cases("seen", "arguments")
def test_missing_parts_of_a_follower_are_named(seen: dict[str, Any], arguments: list[str]) -> None:
    host_run = HostRun(
        pair()["spark-2"], (), KEYS, None, {}, None, None, "spark-2", fake(None).memory, "10.0.0.2"
    )
    (service,) = host_run.services
    state = dict(seen.get("state", {}))
    if "unit" in state:
        state["unit"] = digest(state["unit"])
    changed = {"services": {"chat": state}, "units": {service.unit: seen.get("unit", {})}}
    lacking = changes(service, host_run.secrets, probe(**merged(running(host_run), changed)))
    assert [
        line.split(" ")[0] if line.startswith("release") else line for line in lacking
    ] == arguments
