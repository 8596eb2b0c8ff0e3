"""Ranks of a cluster: laid ready on every follower, then switched by the head's host alone."""

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
from sparkwright.operations.peer_keys import RunKeys
from sparkwright.operations.switching import UNIT
from sparkwright.plan.changes import changes
from sparkwright.plan.missing import digest
from sparkwright.plan.rollout import Rollout, batches
from sparkwright.run.state import HostRun, Run, attach
from tests.operations.harness import FakeHost, as_json, fake, run
from tests.operations.sites import ENGINE, KEY, looked_at, running
from tests.tables import Tables, merged
from tests.unit.builders import probe
from tests.unit.clusters.fleets import desired, names, of_ranks, pair

cases = Tables(__file__)

KEYS = Keys({"default": (KEY,)}, ENGINE, {"pair": Secret("sk-of-the-ranks")})
OLD = "0123456789ab"


class Fleet:
    """Hosts of one cluster, and a deploy of theirs."""

    def __init__(self, hosts: dict[str, Any], *, serves: str | None = None) -> None:
        self.order: list[tuple[str, Any]] = []
        self.broken: set[str] = set()
        self.hosts = {name: fake(None, jobs=self._ends(name)) for name in hosts}
        every = {}
        for name, host in self.hosts.items():
            host.name = name
            at = f"10.0.0.{name[-1]}"
            every[name] = HostRun(hosts[name], (), KEYS, None, None, None, name, host.memory, at)
        settings = RolloutSettings(canaries=1, batch="100%")
        self.run = Run(
            "inventory/lab.py", every, RunKeys(Secret("peers")),
            Rollout(batches(list(every), settings)), settings, dry=False,
        )  # fmt: skip
        attach(self.run, self.hosts)  # type: ignore[arg-type]
        first = next(iter(self.hosts.values()))
        for name, host in self.hosts.items():
            host.state = first.state
            host.state.active_hosts = set(self.hosts.values())
            item = every[name]
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
        """The role on every host, and its operations as pyinfra runs them: one after the other,
        each on all hosts."""
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
        # With its last file a release is whole.
        assert Path([*service.service.files][-1]).name == "release.json"
    assert len({request.services[0].to for _, request in fleet.order}) == 1


def test_a_follower_that_can_not_be_prepared_leaves_all_as_they_are(
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


# --- What of a follower is not as desired


@cases("seen", "arguments")
def test_what_a_follower_lacks(seen: dict[str, Any], arguments: list[str]) -> None:
    host_run = HostRun(
        pair()["spark-2"], (), KEYS, None, None, None, "spark-2", fake(None).memory, "10.0.0.2"
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
