"""Each step of bootstrap against what the host is: what is left of it, or what is in its way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from sparkwright.bootstrap import driver, steps
from sparkwright.bootstrap.box import Box, Kind
from sparkwright.bootstrap.findings import HOSTS, error, warning
from sparkwright.bootstrap.firewall import network_of, openings, ports_of
from sparkwright.bootstrap.sources import Packages, packages_of
from sparkwright.bootstrap.steps import StepPlan, sums
from sparkwright.checks.host.docker import OTHER_DOCKERS
from sparkwright.checks.host.judge import CHECKS
from sparkwright.checks.host.remedies import install
from sparkwright.config.bootstrap import Packaged, PackageSource
from sparkwright.findings.check import Symptom
from sparkwright.findings.finding import Finding
from sparkwright.host.bootstrap.inspection import BootstrapState
from sparkwright.host.bootstrap.prepare import Undo
from sparkwright.plan.plan import HostPlan


@dataclass(frozen=True)
class Judged:
    """Every step, judged against what the host is.

    Attributes:
        addresses: the host's own in the LAN, as numbers.
    """

    plan: HostPlan
    box: Box
    state: BootstrapState
    addresses: tuple[str, ...]

    def of(self, name: str) -> Iterator[StepPlan | Finding]:
        """The step as it is to be done, or what is in its way; nothing where it is done."""
        judge: Callable[[], Iterator[StepPlan | Finding]] = getattr(
            self, f"_{name.replace('-', '_')}"
        )
        yield from judge()

    def _source(self, step: Packaged) -> PackageSource | None:
        return self.plan.settings.bootstrap_sources.get(step)

    def _installing(self, step: Packaged, packages: Packages | None) -> StepPlan | None:
        """The step that installs those of the packages that are not there."""
        missing = tuple(
            one for one in (packages.names if packages else ()) if one not in self.state.packages
        )
        if not missing or packages is None:
            return None
        repository = packages.repository
        files = {repository.list_file: repository.text} if repository else {}
        added = (f"add the repository {repository.uri}",) if repository else ()
        undo = Undo(missing, sums(files))
        words = (*added, f"install {', '.join(missing)}")
        return StepPlan(step, words, missing, repository, undo=undo)

    def _sudoers(self) -> Iterator[StepPlan | Finding]:
        if not self.state.passwordless:
            place, text = steps.sudoers_file(self.state.user)
            words = f"let {self.state.user} become root without a password ({place})"
            yield StepPlan("sudoers", (words,), sudoers=(place, text),
                           undo=Undo(files=sums({place: text})))  # fmt: skip

    def _docker(self) -> Iterator[StepPlan | Finding]:
        kind = self.state.docker_kind
        if kind in OTHER_DOCKERS:
            needed = "Docker Engine, or no Docker yet"
            symptom = Symptom(
                "docker-kind", kind, expected=needed, install="run again", source=HOSTS
            )
            yield from CHECKS.report([symptom])
            return
        packages = packages_of("docker", self.box, self._source("docker"))
        if self.box.kind is Kind.DGX and not self.state.docker:
            yield error(
                "bootstrap-docker", "DGX OS without its Docker", "the Docker that came with DGX OS",
                "DGX OS keeps Docker, driver and kernel to each other: nothing foreign is put in",
                install("docker", self.state.distribution), HOSTS,
            )  # fmt: skip
            return
        if self.state.docker and self.box.kind is not Kind.DGX:
            packages = None if self.state.compose else self._compose()
        step = self._installing("docker", packages)
        if step:
            yield replace(step, enables=("docker.service",))

    def _compose(self) -> Packages:
        """Compose for the Docker that is there."""
        if "docker-ce" in self.state.packages:
            return Packages(("docker-compose-plugin",))
        debian = self.box.kind is Kind.DEBIAN and self.box.major >= 13
        return Packages(("docker-compose" if debian else "docker-compose-v2",))

    def _nvidia_container_toolkit(self) -> Iterator[StepPlan | Finding]:
        name: Packaged = "nvidia-container-toolkit"
        restart: tuple[str, ...] = ()
        why: tuple[str, ...] = ()
        if self.state.docker or "docker" in self.plan.settings.bootstrap:
            restart = ("docker.service",)
            why = ("restart Docker, which looks for the toolkit at its start",)
        if not self.state.toolkit:
            step = self._installing(name, packages_of(name, self.box, self._source(name)))
            if step:
                yield replace(step, would=(*step.would, *why), restarts=restart)
        elif self.state.docker_is_older:
            yield StepPlan(name, why, restarts=restart)

    def _driver(self) -> Iterator[StepPlan | Finding]:
        packages = packages_of("driver", self.box, self._source("driver"))
        if driver.is_new_enough(self.state):
            return
        obstacle = driver.obstacle(self.box, self.state)
        if obstacle:
            yield obstacle
        elif step := self._installing("driver", packages):
            words = (*step.would, "reboot, where asked for (--reboot)")
            apart = (
                f"the driver stays ({', '.join(step.packages)}): the host has no GPU without it; "
                "sudo apt purge takes it away"
            )
            undo = replace(step.undo, packages=(), files={}, apart=apart)
            yield replace(step, would=words, undo=undo)

    @property
    def waits_for_reboot(self) -> bool:
        """Whether a driver came since the boot, and does not answer yet."""
        packages = packages_of("driver", self.box, self._source("driver"))
        came = any(one in self.state.fresh for one in (packages.names if packages else ()))
        return came and not driver.is_new_enough(self.state)

    def _docker_group(self) -> Iterator[StepPlan | Finding]:
        user = self.state.user
        if user != "root" and "docker" not in self.state.groups:
            undo = Undo(commands=(("gpasswd", "--delete", user, "docker"),))
            words = f"make {user} a member of the group docker, which may do all that root may"
            yield StepPlan("docker-group", (words,), group="docker", undo=undo)

    def _earlyoom(self) -> Iterator[StepPlan | Finding]:
        packages = packages_of("earlyoom", self.box, self._source("earlyoom"))
        step = self._installing("earlyoom", packages)
        yield from self._writing("earlyoom", steps.EARLYOOM, ("earlyoom.service",), step)

    def _unattended_upgrades(self) -> Iterator[StepPlan | Finding]:
        yield from self._writing("unattended-upgrades", steps.UPDATES)

    def _swap(self) -> Iterator[StepPlan | Finding]:
        if self.state.swap:
            (place,) = steps.SWAP
            for step in self._writing("swap", steps.SWAP):
                back = ("sysctl", "-w", f"vm.swappiness={self.state.swappiness}")
                undo = replace(step.undo, commands=(back,) if self.state.swappiness else ())
                yield replace(step, commands=(("sysctl", "--load", place),), undo=undo)

    def _firewall(self) -> Iterator[StepPlan | Finding]:
        firewall = self.state.firewall
        if firewall is None:
            return
        network = network_of(self.state, self.addresses)
        if network is None:
            yield warning(
                "bootstrap-firewall", f"{firewall.name}, and no network of the host's is known in "
                f"which others reach it", "the network that clients are in",
                "ports are opened to the LAN alone", "set lan_address to the host's address there",
            )  # fmt: skip
            return
        found = openings(firewall, network, ports_of(self.plan))
        if found:
            undo = Undo(commands=tuple(dict.fromkeys(w for one in found for w in one.close)))
            commands = tuple(w for one in found for w in one.open)
            yield StepPlan("firewall", tuple(one.words for one in found), commands=commands,
                           undo=undo)  # fmt: skip

    def _clocks(self) -> Iterator[StepPlan | Finding]:
        if self.state.gb10:
            yield from self._writing("clocks", steps.CLOCK_CAP, (steps.CLOCKS_UNIT,))

    def _writing(
        self, name: str, files: dict[str, str], enables: tuple[str, ...] = (),
        installing: StepPlan | None = None,
    ) -> Iterator[StepPlan]:  # fmt: skip
        """The step that writes those of the files that are not as they must be."""
        wrong = {path: text for path, text in files.items() if self.state.texts.get(path) != text}
        if not wrong and installing is None:
            return
        step = installing or StepPlan(name, ())
        own = tuple(unit for unit in enables if f"{steps.UNITS}/{unit}" in files)
        undo = replace(step.undo, files={**step.undo.files, **sums(files)}, units=own)
        words = (*step.would, *(f"write {path}" for path in wrong))
        yield replace(step, would=words, files=files, enables=enables,
                      restarts=enables if wrong else (), undo=undo)  # fmt: skip
