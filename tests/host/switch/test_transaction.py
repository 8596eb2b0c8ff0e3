"""The switch, step by step: programs named systemctl and docker that keep the running units in
files.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from sparkwright.checks.service.log_lines import lasting
from sparkwright.host import second_boot
from sparkwright.host import switch as transaction
from sparkwright.host.lib import docker, files, gpu, systemd
from sparkwright.host.lib.gpu import Gpu, Gpus
from sparkwright.host.lib.ranks import RankConfig
from sparkwright.host.lib.records import encode
from sparkwright.host.proxy.pool import Pool, ProxyRequest
from sparkwright.host.release import ServiceSwitch, SwitchRequest
from sparkwright.host.service import CheckResult, SmokeRequest
from sparkwright.host.smoke import check
from sparkwright.host.smoke.check import SmokeAnswer
from tests.host.programs import program
from tests.tables import Tables
from tests.unit.builders import ROOT, kept_service

cases = Tables(__file__)

OLD, NEW = "a" * 12, "b" * 12
RANK = RankConfig(
    1, ("x", "y"), ("10.0.0.1", "10.0.0.2"), 29501, (),
)  # fmt: skip
SYSTEMCTL = """#!/bin/sh
echo "$@" >> "$HOST/said"
verb=$1; shift
for unit in "$@"; do
  name=$(echo "$unit" | sed 's/^sparkwright-//; s/\\.service$//')
  case $verb in
    start) [ -L "$HOST/services/$name/current" ] && readlink "$HOST/services/$name/current" \\
             | sed 's|.*/||' > "$HOST/running-$name" ;;
    stop) rm -f "$HOST/running-$name" ;;
    is-active) [ -e "$HOST/running-$name" ] && echo active || echo inactive ;;
  esac
done
exit 0
"""
DOCKER = """#!/bin/sh
case "$1 $2" in
  "start "*) echo true > "$HOST/running-$2" ;;
  "stop "*) for last; do :; done; rm -f "$HOST/running-$last" ;;
esac
exit 0
"""


@dataclass
class Check:
    """Fake of check.py, with releases that fail and a release that raises an unexpected error."""

    host: Path
    bad: set[str] = field(default_factory=set)
    raises: bool = False
    door: str | None = None
    #: A release that ends at its first start and serves after its second start, without its caches.
    crashes: str = ""

    def run(
        self,
        gate: SmokeRequest,
        look: Callable[[], object] = lambda: None,
        lasting: Callable[[], str] = str,
    ) -> SmokeAnswer:
        look()
        if self.crashes and self.crashes in (self.host / f"running-{gate.name}").read_text():
            self.crashes = ""
            text = f"the unit ended while starting{lasting()}"
            return SmokeAnswer((CheckResult("health", False, 0.0, text),))
        if self.raises:
            self.raises = False
            raise RuntimeError("nobody foresaw this")
        running = self.host / f"running-{gate.name}"
        release = running.read_text().strip() if running.exists() else "none"
        ok = release not in {*self.bad, "none"}
        return SmokeAnswer((CheckResult("health", ok, 0.0, f"{release} is not a good"),))

    def proxy_faults(self, gates: dict[str, SmokeRequest]) -> list[str]:
        return [f"{name}: {self.door}" for name, gate in gates.items() if gate.proxy and self.door]


@dataclass
class Doors:
    """Fake of the module ``proxies``, which writes the given files."""

    made: list[dict[str, Any]] = field(default_factory=list)

    def main(self, request: ProxyRequest) -> list[str]:
        self.made.append(dict(request.files))
        for path, (text, mode) in request.files.items():
            files.write(Path(path), text, mode)
        return []


@dataclass
class Host:
    """A host in a folder."""

    place: Path
    check: Check
    doors: Doors = field(default_factory=Doors)

    def service(
        self,
        name: str = "a",
        *,
        to: str = NEW,
        first: bool = False,
        gate: Any = None,
        follower: bool = False,
        pool: Pool | None = None,
        second_boot: bool = False,
        unit: str = "new unit",
        soak: float = 0.0,
        **changes: Any,
    ) -> ServiceSwitch:
        """A switch of a service to the new release."""
        asked = {"boot_seconds": 1, "port": 1, "compiled": "vllm/torch_compile_cache"}
        rendered = kept_service(to, name, self.place, **{**asked, **(gate or {})})
        service = replace(
            rendered, pool=pool, second_boot=second_boot, unit_text=unit, soak_seconds=soak,
            rank=RANK if follower else None, secret_names=("token",),
        )  # fmt: skip
        made = ServiceSwitch(
            service, None if first else OLD, ("a new tag",), restart=True,
            files={service.secrets: ("new key", 0o600), service.tokens["token"]: ("new", 0o400)},
        )  # fmt: skip
        return replace(made, **changes)

    def serves(self, name: str = "a") -> None:
        """Set the state after a former switch: the old release runs."""
        home = self.place / "services" / name
        files.write(home / "releases" / OLD / "unit.service", "old unit", 0o640)
        files.write(home / "secrets.env", "old key", 0o600)
        files.write(home / "secrets/token", "old", 0o400)
        files.write(self.place / "units" / f"sparkwright-{name}.service", "old unit", 0o644)
        files.point(home / "current", f"releases/{OLD}")
        files.point(home / "good", f"releases/{OLD}")
        (self.place / f"running-{name}").write_text(OLD)

    def switch(self, *services: ServiceSwitch, **more: Any) -> transaction.Switch:
        made = SwitchRequest("1", "ann@laptop", ("true",), "recover unit", services)
        request = replace(made, **more)
        state = self.place / "state/switch"
        files.write(state / "request.json", json.dumps(encode(request)), 0o600)
        return transaction.Switch(state, request)

    def state(self, name: str = "a") -> tuple[str | None, ...]:
        """The running release, `current`, the unit, the key and another secret."""
        running = self.place / f"running-{name}"
        home = self.place / "services" / name
        token = home / "secrets/token"
        assert (
            not token.exists() or (home / "secrets.env").read_text() == f"{token.read_text()} key"
        )
        return (
            running.read_text().strip() if running.exists() else None,
            (home / "current").readlink().name,
            (self.place / "units" / f"sparkwright-{name}.service").read_text(),
            (home / "secrets.env").read_text(),
        )

    def journal(self) -> dict[str, Any]:
        return dict(json.loads((self.place / "state/switch/progress.json").read_text()))


def _docker(folder: Path, path: str) -> Any:
    """Answers of Docker's API: all images exist, and the files name the running services."""
    _, kind, name, *_ = path.split("/")
    if kind == "images":
        return {"Id": "an-id"}
    running = folder / f"running-{name.removeprefix('sparkwright-')}"
    if not running.exists():
        return None
    labels = {"sparkwright.release": running.read_text().strip()}
    return {"Id": name, "State": {"Running": True}, "Config": {"Labels": labels}}


WAS, IS = (OLD, OLD, "old unit", "old key"), (NEW, NEW, "new unit", "new key")


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    programs = tmp_path / "bin"
    for name, text in (("systemctl", SYSTEMCTL), ("docker", DOCKER), ("journalctl", "#!/bin/sh\n")):
        program(programs, name, text)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("HOST", str(tmp_path))
    monkeypatch.setattr(systemd, "UNITS", tmp_path / "units")
    monkeypatch.setattr(docker, "get", lambda path, _=None: _docker(tmp_path, path))
    host = Host(tmp_path, Check(tmp_path))
    monkeypatch.setattr(transaction, "check", host.check)
    monkeypatch.setattr(transaction, "configure", host.doors)
    return host


def test_a_bad_release_is_reverted_completely_with_its_key(host: Host) -> None:
    host.serves()
    host.check.bad = {NEW}
    assert host.switch(host.service()).run() == "reverted"
    assert host.state() == WAS
    assert host.journal()["reasons"] == [f"a: health: {NEW} is not a good"]


def test_an_unexpected_error_restores_the_former_release(host: Host) -> None:
    host.serves()
    host.check.raises = True
    switch = host.switch(host.service())
    with pytest.raises(RuntimeError):
        switch.run()
    assert switch.rescue() == "failed"
    assert host.state() == WAS


def test_a_failed_new_service_does_not_prevent_the_rollback_of_another_service(host: Host) -> None:
    host.serves()
    host.check.bad = {NEW}
    assert host.switch(host.service(), host.service("b", first=True)).run() == "reverted"
    assert host.state() == WAS


def test_proxies_change_and_revert_with_the_switch(host: Host) -> None:
    host.serves()
    config = host.place / "gateway/haproxy.cfg"
    files.write(config, "old door", 0o644)
    texts = {str(config): ("new door", 0o644)}
    doors = ProxyRequest(texts, str(config), "none", "none", managed=(str(config),))
    pool = Pool("a", "none", "none", 0, 0)
    service = host.service(pool=pool, gate={"proxy": ("127.0.0.1", 1)})
    host.check.door = "HTTP 401 with the key"
    assert host.switch(service, proxies=doors).run() == "failed"  # restores the proxy, too
    assert config.read_text() == "old door"
    assert host.state() == WAS
    host.check.door = None
    assert host.switch(service, proxies=doors, id="2").run() == "good"
    assert config.read_text() == "new door"
    assert host.state() == IS


def test_a_missing_container_does_not_stop_the_switch(host: Host) -> None:
    host.serves()
    gone = host.service(to="c" * 12, files={})
    assert host.switch(gone).run() == "failed"
    assert host.state() == WAS
    text = host.place / "said"
    assert "stop" not in (text.read_text() if text.exists() else "")


@dataclass
class Boots:
    """A host's GPU, and the blocks of the KV cache at the first and second start."""

    host: Host
    gpu: str = "NVIDIA GB10"
    blocks: tuple[int, ...] = (1000, 4000)

    def compiled(
        self, *, warm: bool, release: str = NEW, graphs: bool = True, gpu: str = "NVIDIA GB10"
    ) -> None:
        self.gpu = gpu
        caches = self.host.place / "services/a/caches"
        (caches / "key").mkdir(parents=True)
        (caches / "current").symlink_to("key")
        if graphs:
            (caches / "key/vllm/torch_compile_cache").mkdir(parents=True)
        state = {"key": "key", "release": release, "started": 1.0, "warm": warm}
        (caches / "state.json").write_text(json.dumps(state))

    def starts(self) -> int:
        lines = (self.host.place / "said").read_text().splitlines()
        return lines.count("start sparkwright-a.service")


@pytest.fixture
def boots(host: Host, monkeypatch: pytest.MonkeyPatch) -> Boots:
    boots = Boots(host)
    host.serves()
    monkeypatch.setattr(gpu, "ask", lambda _: Gpus(True, 0, "", (Gpu(name=boots.gpu),)))
    monkeypatch.setattr(second_boot, "kv_blocks", lambda _: boots.blocks[boots.starts() - 1])
    return boots


@cases("case", "wanted", more=[({"warm": False, "release": OLD}, True)])
def test_a_start_that_did_not_compile_is_not_repeated(
    host: Host, boots: Boots, case: dict[str, Any], wanted: bool
) -> None:
    boots.compiled(**case)
    assert host.switch(host.service(second_boot=wanted)).run() == "good"
    assert boots.starts() == 1


def test_a_release_is_reverted_if_its_second_start_fails(host: Host, boots: Boots) -> None:
    boots.compiled(warm=False)

    def worse(gate: SmokeRequest, *_: object) -> SmokeAnswer:
        ok = boots.starts() != 2
        return SmokeAnswer((CheckResult("health", ok, 0.0, "it died"),))

    host.check.run = worse  # type: ignore[assignment,method-assign]
    assert host.switch(host.service(second_boot=True)).run() == "reverted"
    assert host.state() == WAS


# --- Crashes

OOM = "by-roles/share"
CUDA = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 256.00 MiB"


def _prints(host: Host, name: str) -> None:
    """The unit's journal is a capture of a real engine on an H200."""
    lines = (ROOT / "tests/fixtures/vllm/h200-0.24.0" / f"{name}.log").read_text().splitlines()
    text = "\n".join(line.partition("]: ")[2] or line for line in lines)
    (host.place / "log").write_text(text)
    program(host.place / "bin", "journalctl", 'cat "$HOST/log"')


def test_a_release_that_dies_in_use_is_reverted_with_the_engines_error(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.serves()
    _prints(host, "failed/worker-killed")
    ended = {"a": "another container"}
    monkeypatch.setattr(transaction.Switch, "_soak", lambda switch, _: switch._died(ended))
    assert host.switch(host.service(soak=1.0)).run() == "reverted"
    assert "EngineDeadError" in host.journal()["reasons"][0]


@pytest.mark.parametrize(("log", "result"), [(OOM, "reverted"), ("failed/cache-noise", "good")])
def test_a_crash_that_no_restart_fixes_gets_no_second_start(
    host: Host, log: str, result: str
) -> None:
    """On an H200, a share of 0.995 failed, and then passed once without its caches. The switch
    accepted this share, whose later starts failed.
    """
    host.serves()
    (host.place / "services/a/caches/key.suspect").mkdir(parents=True)
    _prints(host, log)
    host.check.crashes = NEW
    assert host.switch(host.service(), lasting=lasting()).run() == result
    assert host.state() == (IS if result == "good" else WAS)
    if result == "reverted":
        (reason, *_) = host.journal()["reasons"]
        assert "a restart does not fix it: weights, graphs and KV cache need more" in reason


def test_a_switch_does_not_wait_for_a_first_release_that_no_restart_fixes(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real gate runs while systemd is about to start the unit again."""
    monkeypatch.setattr(transaction, "check", check)
    again = 'printf "ActiveState=activating\\nSubState=auto-restart\\n"'
    program(host.place / "bin", "systemctl", f'[ "$1" = show ] && {again}\nexit 0')
    _prints(host, OOM)
    first = host.service(first=True, gate={"address": "127.0.0.1", "boot_seconds": 5})
    first = replace(first, files=first.files | {first.service.secrets: ("VLLM_API_KEY=a", 0o600)})
    assert host.switch(first, lasting=lasting()).run() == "failed"
    (reason, *_) = host.journal()["reasons"]
    assert reason.startswith(f"a: health: the unit ended while starting: {CUDA}")
    assert "(remedy: set gpu_memory_utilization: 0.80, or halve max_model_len" in reason


def test_an_unused_secret_is_removed_with_its_last_release(host: Host) -> None:
    secret = host.place / "services/a/secrets/retired"
    for result, names in (("reverted", ()), ("good", ("retired",)), ("good", ())):
        host.serves()
        files.write(secret, "retired", 0o400)
        record = replace(kept_service(OLD, "a", host.place), secret_names=names)
        files.write(host.place / f"services/a/releases/{OLD}/release.json", record.record, 0o640)
        host.check.bad = {NEW} if result == "reverted" else set()
        assert host.switch(host.service(), id=f"{result}{names}").run() == result
        assert secret.exists() == (result == "reverted" or bool(names))
    back = host.service(to=OLD)
    back = replace(back, service=replace(back.service, secret_names=("retired",)), files={})
    assert host.switch(back, id="back").run() == "failed"
    assert "reads the secret retired, which is not on the host" in host.journal()["reasons"][0]
    assert host.state() == IS


# --- Ranks that follow


def test_a_followers_release_is_staged_and_its_engine_keeps_running(host: Host) -> None:
    host.serves()
    switch = host.switch(host.service(restart=False, follower=True))
    assert switch.run() == "good"
    # Unit and `current` still belong to the head's running release.
    assert host.state() == (OLD, OLD, "old unit", "new key")
    assert (host.place / "services/a/releases" / NEW / "unit.service").read_text() == "new unit"
    text = (host.place / "said").read_text()
    assert "stop" not in text
    assert "start sparkwright-a.service" in text
