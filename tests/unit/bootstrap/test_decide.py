"""Type of a host's machine, and bootstrap's work on it."""

from typing import Any

import pytest

from sparkwright.bootstrap import steps
from sparkwright.bootstrap.box import Box, Kind, box_of
from sparkwright.bootstrap.decide import request_of
from sparkwright.findings.finding import Finding
from sparkwright.host.bootstrap.inspection import BootstrapState, Firewall
from sparkwright.host.observe import Distribution
from tests.tables import Tables
from tests.unit.bootstrap import states
from tests.unit.bootstrap.states import ALL, BOOKWORM, DGX, TRIXIE, UBUNTU, but, decided
from tests.unit.builders import plan

cases = Tables(__file__)

BOXES = {"dgx": DGX, "gb10": states.GB10, "ubuntu": UBUNTU, "jammy": states.JAMMY,
         "resolute": states.RESOLUTE, "trixie": TRIXIE, "bookworm": BOOKWORM}  # fmt: skip
TOOLKIT = "nvidia-container-toolkit"
UPDATES = "/etc/apt/apt.conf.d/52sparkwright-nvidia"


@cases("base", "changes", "kind")
def test_the_system_of_a_box_is_recognized(base: str, changes: dict[str, Any], kind: str) -> None:
    state = but(BOXES[base], **changes)
    box = box_of(state)
    assert isinstance(box, Box)
    assert box.kind is Kind[kind]
    assert box.architecture == {"x86_64": "amd64", "aarch64": "arm64"}[state.observed.architecture]


@cases("base", "changes")
def test_an_unknown_box_is_refused_with_its_description(base: str, changes: dict[str, Any]) -> None:
    if "distribution" in changes:
        changes = {**changes, "distribution": Distribution(*changes["distribution"])}
    state = but(BOXES[base], **changes)
    result = decided(state, *ALL)
    assert (result.steps, result.reboot) == ((), False)
    (finding,) = result.findings
    assert (finding.id, finding.stops) == ("bootstrap-system", True)
    assert state.observed.architecture in finding.observed
    assert "Debian 12 or 13" in finding.expected


@pytest.mark.parametrize("state", BOXES.values(), ids=BOXES)
def test_no_step_runs_without_a_request(state: BootstrapState) -> None:
    assert decided(but(state, docker=False, compose=False, toolkit=False)).steps == ()


@cases("base", "changes", "asked", "packages", "ids")
def test_only_missing_packages_are_installed(
    base: str, changes: dict[str, Any], asked: list[str], packages: list[list[str]], ids: list[str]
) -> None:
    result = decided(but(BOXES[base], **changes), *asked)
    assert [list(step.packages) for step in result.steps] == packages
    assert [finding.id for finding in result.findings] == ids
    # Packages of DGX OS come from its own sources.
    assert base != "dgx" or not any(step.repository for step in result.steps)


def test_a_docker_that_started_before_the_toolkits_installation_is_restarted() -> None:
    """A run was interrupted between the two steps."""
    state = but(UBUNTU, docker=True, compose=True, toolkit=True, docker_is_older=True)
    (step,) = decided(state, TOOLKIT).steps
    assert (step.packages, step.restarts) == ((), ("docker.service",))
    assert decided(state, "docker").steps == ()


class TestOnDgxOs:
    """Bootstrap only verifies software that DGX OS manages."""

    def test_the_driver_is_never_changed(self) -> None:
        for driver in (None, "570.1"):
            result = decided(but(DGX, driver=driver), *ALL)
            assert result.steps == ()
            assert not result.reboot
            (finding,) = result.findings
            assert finding.id == "bootstrap-driver"
            assert "DGX Dashboard" in finding.remedy
        assert not [step for step in decided(DGX, *ALL).steps if step.name == "driver"]
        # A user's own source does not allow a driver's installation either.
        mine = {"driver": {"packages": ["nvidia-driver-580-open"]}}
        assert decided(but(DGX, driver=None), "driver", sources=mine).steps == ()


class TestDriver:
    """The driver is installed only if packages are enough, and no person is needed at the
    console.
    """

    @cases("base", "packages")
    def test_a_driver_is_installed_and_needs_a_reboot(self, base: str, packages: list[str]) -> None:
        state = BOXES[base]
        for driver in (None, "550.1"):
            result = decided(but(state, driver=driver), "driver")
            (step,) = result.steps
            assert step.packages == tuple(packages)
            assert result.reboot
            assert result.cures == {"nvidia-driver"}
            # The driver stays, since a host without a driver can't serve.
            assert step.undo.packages == ()
            assert step.undo.apart
        assert decided(state, "driver").steps == ()

    def test_each_debian_release_has_its_own_key(self) -> None:
        for state, key in ((TRIXIE, "8793F200"), (BOOKWORM, "3BF863CC")):
            (step,) = decided(but(state, driver=None), "driver").steps
            assert step.repository is not None
            assert (step.repository.fingerprint or "").endswith(key)

    def test_an_installed_driver_waits_for_its_reboot(self) -> None:
        names = ("nvidia-driver-580-open",)
        state = but(UBUNTU, driver=None, packages=names, fresh=names)
        result = decided(state, "driver")
        assert (result.steps, result.reboot) == ((), True)
        assert result.cures == {"nvidia-driver"}
        assert not decided(state, "docker").reboot
        # The driver was installed before this boot and is silent: another reboot fixes nothing.
        assert not decided(but(state, fresh=()), "driver").reboot

    @cases("base", "changes", "message")
    def test_obstacles_to_a_driver_are_named(
        self, base: str, changes: dict[str, Any], message: str
    ) -> None:
        state = but(BOXES[base], **changes)
        result = decided(state, "driver")
        assert (result.steps, result.reboot) == ((), False)
        (finding,) = result.findings
        assert message in f"{finding.observed} {finding.remedy}"


def test_passwordless_sudo_comes_first_or_no_step_runs() -> None:
    state = but(UBUNTU, passwordless=False)
    (finding,) = decided(state, "docker").findings
    assert (finding.id, finding.stops) == ("bootstrap-sudo", True)
    first, second = decided(state, "docker", "sudoers").steps
    assert (first.name, second.name) == ("sudoers", "docker")
    assert first.sudoers == ("/etc/sudoers.d/sparkwright-me", "me ALL=(ALL) NOPASSWD: ALL\n")
    (finding,) = decided(but(state, sudo="sudo: a password is required"), "sudoers").findings
    assert finding.id == "sudo"
    assert "--password" in finding.remedy


def test_the_user_becomes_a_member_of_the_docker_group() -> None:
    (step,) = decided(UBUNTU, "docker-group").steps
    assert step.group == "docker"
    assert step.undo.commands == (("gpasswd", "--delete", "me", "docker"),)
    assert decided(but(UBUNTU, user="root"), "docker-group").steps == ()


def test_files_are_written_if_they_differ() -> None:
    (step,) = decided(UBUNTU, "earlyoom").steps
    assert step.packages == ("earlyoom",)
    assert step.files == steps.files()["earlyoom"]
    assert "--prefer (vllm|VLLM|llama-server|sglang) --avoid" in str(step.files)
    assert set(step.undo.files) == set(steps.files()["earlyoom"])
    there = {**steps.files()["earlyoom"], **steps.files()["unattended-upgrades"]}
    state = but(UBUNTU, packages=("earlyoom",), texts=dict(there))
    assert decided(state, "earlyoom", "unattended-upgrades").steps == ()
    (step,) = decided(but(state, texts={**there, UPDATES: "# mine"}),
                      "earlyoom", "unattended-upgrades").steps  # fmt: skip
    assert (step.name, step.would) == (
        "unattended-upgrades", (f"write {UPDATES}",)
    )  # fmt: skip


def test_swap_and_clocks_are_set_only_on_a_gb10() -> None:
    assert decided(UBUNTU, "swap", "clocks", "watchdog").steps == ()
    (watchdog,) = decided(DGX, "watchdog").steps
    assert watchdog.enables == ()  # systemd is not reloaded under a running container
    assert watchdog.commands == ()
    assert "RuntimeWatchdogSec=60s" in next(iter(watchdog.files.values()))
    swap, clocks = decided(but(DGX, swap=15 << 30, swappiness=60), "swap", "clocks").steps
    assert swap.commands == (("sysctl", "--load", "/etc/sysctl.d/90-sparkwright-swap.conf"),)
    assert swap.undo.commands == (("sysctl", "-w", "vm.swappiness=60"),)
    assert clocks.enables == clocks.undo.units == ("gpu-clocks.service",)
    assert "nvidia-smi -lgc 200,2150" in next(iter(clocks.files.values()))


class TestFirewall:
    """Ports are opened to the host's own network, if a firewall is active."""

    ADDRESS = "192.168.1.22"

    def test_without_an_active_firewall_no_port_is_opened(self) -> None:
        assert decided(UBUNTU, "firewall", address=self.ADDRESS).steps == ()

    def _step(self, kind: str, *rules: str) -> Any:
        state = but(UBUNTU, firewall=Firewall(kind, rules))
        steps = decided(state, "firewall", address=self.ADDRESS).steps
        return steps[0] if steps else None

    def test_ufw_gets_the_missing_rules(self) -> None:
        step = self._step("ufw")
        ports = [command[-1] for command in step.commands]
        assert ports == ["8000", "18650"]
        arguments = "ufw allow proto tcp from 192.168.1.0/24 to any port 8000"
        assert step.commands[0] == tuple(arguments.split())
        assert step.undo.commands[0][:3] == ("ufw", "delete", "allow")
        rules = [
            f"### tuple ### allow tcp {port} 0.0.0.0/0 any 192.168.1.0/24 in" for port in ports
        ]
        assert self._step("ufw", *rules) is None
        step = self._step("ufw", *rules[1:])
        assert [command[-1] for command in step.commands] == ["8000"]

    def test_rules_of_firewalld_are_read(self) -> None:
        step = self._step("firewalld")
        rule = step.commands[0][2].removeprefix("--add-rich-rule=")
        assert rule == (
            'rule family="ipv4" source address="192.168.1.0/24" port port="8000" protocol="tcp" '
            "accept"
        )
        assert len(self._step("firewalld", rule).would) == len(step.would) - 1

    @pytest.mark.parametrize("address", [None, "10.9.9.9"])
    def test_no_port_is_opened_to_an_unknown_network(self, address: str | None) -> None:
        state = but(UBUNTU, firewall=Firewall("ufw"), networks=("nonsense", "192.168.1.22/24"))
        result = decided(state, "firewall", address=address)
        assert result.steps == ()
        (finding,) = result.findings
        assert (finding.id, finding.stops) == ("bootstrap-firewall", False)


def test_the_users_own_sources_take_precedence() -> None:
    mine, text = cases.data["sources"], cases.data["text"]
    docker, earlyoom = decided(TRIXIE, "docker", "earlyoom", sources=mine).steps
    assert docker.packages == ("docker-ce",)
    assert docker.repository is not None
    assert docker.repository.text == text
    assert (earlyoom.packages, earlyoom.repository) == (("earlyoom-mine",), None)
    settings = plan(bootstrap=ALL, bootstrap_sources=mine).settings
    assert {"docker-ce", "earlyoom-mine", "nvidia-open"} <= set(request_of(settings).packages)


def test_one_error_prevents_every_step() -> None:
    result = decided(but(DGX, driver=None, packages=()), "docker", "driver")
    assert result.steps == ()
    assert isinstance(result.findings[0], Finding)
