"""Decide which bootstrap steps a host still needs, and why a step is not possible.

Each step is compared with the host's state; the result is the step's remaining work, or an
obstacle.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from sparkwright.bootstrap import steps
from sparkwright.bootstrap.box import Box, Kind, box_of, finding
from sparkwright.bootstrap.firewall import network_of, openings, ports_of
from sparkwright.bootstrap.package_sources import Packages, every_package, packages_of
from sparkwright.bootstrap.steps import StepPlan, sums
from sparkwright.checks.host.docker import LEAST_DOCKER, docker_symptoms
from sparkwright.checks.host.hardware import LEAST_DRIVER, driver_symptoms
from sparkwright.checks.host.judge import CHECKS
from sparkwright.checks.host.remedies import install
from sparkwright.config.bootstrap_settings import Packaged, Step
from sparkwright.config.settings import HostSettings
from sparkwright.findings.finding import Finding, errors
from sparkwright.host.bootstrap.inspection import BootstrapRequest, BootstrapState
from sparkwright.host.bootstrap.prepare import Undo
from sparkwright.host.observe import ObservationRequest
from sparkwright.plan.plan import HostPlan

#: Steps that only write files, and that only a GB10 needs.
_OF_GB10 = ("clocks", "watchdog")


@dataclass(frozen=True)
class Judged:
    """Comparison of every step with the host's state.

    Attributes:
        addresses: the host's LAN addresses, as numbers.
    """

    plan: HostPlan
    box: Box
    state: BootstrapState
    addresses: tuple[str, ...]

    def of(self, name: str) -> Iterator[StepPlan | Finding]:
        """Yield the remaining step, or an obstacle; nothing if the step is done."""
        judge: Callable[[], Iterator[StepPlan | Finding]] | None
        if judge := getattr(self, f"_{name.replace('-', '_')}", None):
            yield from judge()
        elif self.state.gb10 or name not in _OF_GB10:
            names = (path.rpartition("/")[2] for path in steps.files()[name])
            units = tuple(unit for unit in names if unit.endswith(".service"))
            yield from self._writing(name, units)

    def _packages(self, step: Packaged) -> Packages:
        return packages_of(step, self.box, self.plan.settings.bootstrap_sources.get(step))

    def _installing(self, step: Packaged, packages: Packages | None = None) -> StepPlan | None:
        """Return the step that installs the missing packages."""
        packages = packages or self._packages(step)
        missing = tuple(name for name in packages.names if name not in self.state.packages)
        if not missing:
            return None
        repository = packages.repository
        files = {repository.list_file: repository.text} if repository else {}
        added = (f"add the repository {repository.uri}",) if repository else ()
        undo = Undo(missing, sums(files))
        would = (*added, f"install {', '.join(missing)}")
        return StepPlan(step, would, missing, repository, undo=undo)

    def _sudoers(self) -> Iterator[StepPlan | Finding]:
        if not self.state.passwordless:
            user = self.state.observed.user
            path, text = steps.sudoers_file(user)
            would = f"let {user} become root without a password ({path})"
            yield StepPlan("sudoers", (would,), sudoers=(path, text),
                           undo=Undo(files=sums({path: text})))  # fmt: skip

    def _docker(self) -> Iterator[StepPlan | Finding]:
        host = self.state.observed
        symptoms = docker_symptoms(host, LEAST_DOCKER)
        if other := [symptom for symptom in symptoms if symptom.check == "docker-kind"]:
            yield from CHECKS.report(other)
            return
        if self.box.kind is Kind.DGX and not host.docker_found:
            yield finding("docker-of-dgx-os", docker=install("docker", host.distribution))
            return
        present = host.docker_found and self.box.kind is not Kind.DGX
        if present and host.compose.ok:
            return
        if step := self._installing("docker", self._compose() if present else None):
            yield replace(step, enables=("docker.service",))

    def _compose(self) -> Packages:
        """Return the Compose package for the installed Docker."""
        if "docker-ce" in self.state.packages:
            return Packages(("docker-compose-plugin",))
        debian = self.box.kind is Kind.DEBIAN and self.box.major >= 13
        return Packages(("docker-compose" if debian else "docker-compose-v2",))

    def _nvidia_container_toolkit(self) -> Iterator[StepPlan | Finding]:
        name: Packaged = "nvidia-container-toolkit"
        restart: tuple[str, ...] = ()
        why: tuple[str, ...] = ()
        if self.state.observed.docker_found or "docker" in self.plan.settings.bootstrap:
            restart = ("docker.service",)
            why = ("restart Docker, which looks for the toolkit at its start",)
        if not self.state.observed.toolkit.ok:
            if step := self._installing(name):
                yield replace(step, would=(*step.would, *why), restarts=restart)
        elif self.state.docker_is_older:
            yield StepPlan(name, why, restarts=restart)

    def _driver(self) -> Iterator[StepPlan | Finding]:
        if has_driver(self.state):
            return
        if obstacle := driver_obstacle(self.box, self.state):
            yield obstacle
        elif step := self._installing("driver"):
            would = (*step.would, "reboot, if requested (--reboot)")
            apart = (
                f"the driver stays ({', '.join(step.packages)}): the host's GPU needs it. "
                "sudo apt purge removes the driver"
            )
            undo = replace(step.undo, packages=(), files={}, apart=apart)
            yield replace(step, would=would, undo=undo)

    @property
    def waits_for_reboot(self) -> bool:
        """Return whether a driver was installed since the boot and is not loaded yet."""
        came = set(self._packages("driver").names) & set(self.state.fresh)
        return bool(came) and not has_driver(self.state)

    def _docker_group(self) -> Iterator[StepPlan | Finding]:
        user = self.state.observed.user
        if user != "root" and "docker" not in self.state.groups:
            undo = Undo(commands=(("gpasswd", "--delete", user, "docker"),))
            would = f"make {user} a member of the group docker, which has root's rights"
            yield StepPlan("docker-group", (would,), group="docker", undo=undo)

    def _earlyoom(self) -> Iterator[StepPlan | Finding]:
        yield from self._writing("earlyoom", ("earlyoom.service",), self._installing("earlyoom"))

    def _swap(self) -> Iterator[StepPlan | Finding]:
        if self.state.observed.memory.swap:
            (file,) = steps.files()["swap"]
            for step in self._writing("swap"):
                back = ("sysctl", "-w", f"vm.swappiness={self.state.swappiness}")
                undo = replace(step.undo, commands=(back,) if self.state.swappiness else ())
                yield replace(step, commands=(("sysctl", "--load", file),), undo=undo)

    def _firewall(self) -> Iterator[StepPlan | Finding]:
        firewall = self.state.firewall
        if firewall is None:
            return
        network = network_of(self.state, self.addresses)
        if network is None:
            yield finding("firewall", firewall=firewall.name)
            return
        if rules := openings(firewall, network, ports_of(self.plan)):
            close = tuple(dict.fromkeys(command for rule in rules for command in rule.close))
            commands = tuple(command for rule in rules for command in rule.open)
            yield StepPlan("firewall", tuple(rule.summary for rule in rules), commands=commands,
                           undo=Undo(commands=close))  # fmt: skip

    def _writing(
        self, name: str, enables: tuple[str, ...] = (), installing: StepPlan | None = None
    ) -> Iterator[StepPlan]:
        """Return the step that writes the missing or changed files."""
        files, texts = steps.files()[name], self.state.observed.texts
        paths = [path for path, text in files.items() if texts.get(path) != text]
        if not paths and installing is None:
            return
        step = installing or StepPlan(name, ())
        own = tuple(unit for unit in enables if f"{steps.UNITS}/{unit}" in files)
        undo = replace(step.undo, files={**step.undo.files, **sums(files)}, units=own)
        would = (*step.would, *(f"write {path}" for path in paths))
        yield replace(step, would=would, files=files, enables=enables,
                      restarts=enables if paths else (), undo=undo)  # fmt: skip


#: Step -> ids of the preflight findings that the step fixes.
CURES: dict[str, frozenset[str]] = {
    "docker": frozenset({"docker", "docker-compose"}),
    "nvidia-container-toolkit": frozenset({"nvidia-container-toolkit"}),
    "driver": frozenset({"nvidia-driver"}),
    "docker-group": frozenset({"docker-user"}),
}


@dataclass(frozen=True)
class Decision:
    """Bootstrap steps that a host still needs.

    Attributes:
        steps: steps in their order; empty if nothing is left to do.
        reboot: whether the driver needs a reboot after the steps.
        findings: reasons why a step is not done; if a finding is an error, no step is done.
    """

    steps: tuple[StepPlan, ...] = ()
    reboot: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def cures(self) -> frozenset[str]:
        """Ids of the preflight findings that these steps fix."""
        names = [*(step.name for step in self.steps), *(["driver"] if self.reboot else [])]
        return frozenset[str]().union(*(CURES.get(name, frozenset()) for name in names))


def request_of(settings: HostSettings) -> BootstrapRequest:
    """Return the request for a host's state, with files and packages of every type of machine."""
    names = ["docker.io", "docker-ce"]
    for step in get_args(Packaged):
        source = settings.bootstrap_sources.get(step)
        names += [*every_package(step), *((source and source.packages) or ())]
    texts = tuple(path for files in steps.files().values() for path in files)
    return BootstrapRequest(ObservationRequest(texts=texts), tuple(dict.fromkeys(names)))


def decide(plan: HostPlan, state: BootstrapState, addresses: Sequence[str]) -> Decision:
    """Return the requested steps that are not done yet.

    Args:
        addresses: the host's LAN addresses, as numbers.
    """
    asked, user = plan.settings.bootstrap, state.observed.user
    if state.observed.sudo is not None:
        return Decision(findings=(finding("sudo", user=user, sudo=state.observed.sudo),))
    box = box_of(state)
    if isinstance(box, Finding):
        return Decision(findings=(box,))
    if not state.passwordless and "sudoers" not in asked:
        return Decision(findings=(finding("password", user=user),))
    judged = Judged(plan, box, state, tuple(addresses))
    results = [result for name in get_args(Step) if name in asked for result in judged.of(name)]
    findings = tuple(result for result in results if isinstance(result, Finding))
    if errors(findings):
        return Decision(findings=findings)
    todo = tuple(result for result in results if isinstance(result, StepPlan))
    installs = any(step.name == "driver" for step in todo)
    reboot = "driver" in asked and (installs or judged.waits_for_reboot)
    return Decision(todo, reboot, findings)


def has_driver(state: BootstrapState) -> bool:
    """Return whether nvidia-smi reports a driver that preflight accepts."""
    gpus, distribution = state.observed.gpu, state.observed.distribution
    return not any(driver_symptoms(gpus, LEAST_DRIVER, distribution))


def driver_obstacle(box: Box, state: BootstrapState) -> Finding | None:
    """Return the reason to install no driver on this host; None if a driver may be installed."""
    causes = {
        "driver-of-dgx-os": box.kind is Kind.DGX,
        "driver-of-gb10": box.kind is Kind.GB10,
        "driver-without-gpu": not state.nvidia,
        "driver-of-installer": state.driver_installer,
        # From Ubuntu 26.04 on Canonical signs the modules (GLM-5.3-Flash-EXL3#47).
        "driver-under-secure-boot": state.secure_boot
        and (box.kind, box.major) != (Kind.UBUNTU, 26),
    }
    cause = next((cause for cause, applies in causes.items() if applies), None)
    if cause is None:
        return None
    return finding(
        cause,
        driver=f"driver {state.driver}" if state.driver else "no driver answers",
        needed=f"NVIDIA driver >= {LEAST_DRIVER}",
        update=install("driver", state.observed.distribution),
    )
