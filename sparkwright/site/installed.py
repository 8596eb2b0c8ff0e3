"""Services as a host says that they are installed: what an emergency goes by, without a plan."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from sparkwright.checks.smoke.deep import LONG
from sparkwright.config.settings import THINKING_TOKENS, RolloutSettings
from sparkwright.engines import ENGINES, engine
from sparkwright.host.doctor import ExaminedService
from sparkwright.host.release import ServiceSwitch, SmokeRequest
from sparkwright.host.smoke.client import DeepRequest
from sparkwright.host.status import HostStatus, ServiceStatus
from sparkwright.proxy.haproxy import Proxies
from sparkwright.proxy.proxies import leave_and_return

#: What a service and a release can be called: nothing that leads out of their directories.
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
_RELEASE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
#: The deep test's checks of what only recipe and catalog promise.
_PROMISED = (
    *("thinking-off", "thinking-on", "tools", "image", "prefix-cache", "concurrency"),
    *LONG,
)
#: A host's own sockets of HAProxy; what is behind it does not matter here.
_PROXIES = Proxies(())
#: Without a gate in its release: the longest times of the catalog.
_BOOT_SECONDS = 900


@dataclass(frozen=True)
class Installed:
    """A service on a host; ``home`` is its directory there."""

    name: str
    home: str
    status: ServiceStatus

    @property
    def unit(self) -> str:
        """The systemd unit's name."""
        return f"sparkwright-{self.name}.service"

    @property
    def secrets(self) -> str:
        """The file with its API key."""
        return f"{self.home}/secrets.env"

    def gate(self, release: str | None) -> SmokeRequest | None:
        """The smoke test of a release, of this service and no other; None where it says none."""
        kept = self.status.releases.get(release or "")
        if kept is None or kept.gate is None:
            return None
        return replace(kept.gate, name=self.name, unit=self.unit, secrets=self.secrets)

    @property
    def follower(self) -> bool:
        """Whether the head of its cluster, on another host, answers for it."""
        gate = self.gate(self.status.current)
        return gate is not None and gate.follower

    @property
    def examined(self) -> ExaminedService:
        """What the doctor looks at; at a port that nobody has, where its release says none."""
        gate = self.gate(self.status.current)
        address, port = (gate.address, gate.port) if gate else ("127.0.0.1", 1)
        return ExaminedService(self.name, self.unit, address, port, self.home, self.secrets)

    @property
    def facts(self) -> dict[str, object] | None:
        """What the doctor takes for planned: the release that is to run here."""
        current = self.status.current
        kept = self.status.releases.get(current or "")
        if current is None or kept is None:
            return None
        gate = self.gate(current)
        return {
            "release": current,
            "tag": kept.tag,
            "names": list(gate.served_names) if gate else [],
            "boot_seconds": gate.boot_seconds if gate else _BOOT_SECONDS,
            "speculates": bool(gate and gate.speculates),
        }

    @property
    def deep(self) -> DeepRequest | None:
        """The deep test of what the release itself promises; None where it says nothing."""
        gate = self.gate(self.status.current)
        if gate is None or gate.engine not in ENGINES:
            return None
        own = engine(gate.engine)
        why = "what the recipe promises is not known while the plan is broken"
        skip = dict.fromkeys(_PROMISED, why)
        return DeepRequest(
            service=replace(gate, warm_ups=0),
            tool_parser=None,
            reasoning_parser=None,
            thinking_tokens=THINKING_TOKENS,
            max_num_seqs=None,
            context=None,
            prefix_caching=None,
            skip=skip if gate.speculates else {**skip, "speculation": "no drafter in its release"},
            guarded=own.routes.guarded,
            tokenizer=own.probes.tokenizer,
            context_errors=own.probes.context_errors,
        )

    def switch_to(self, release: str, why: str, settings: RolloutSettings) -> ServiceSwitch | None:
        """A switch to a release that the host still has; None where that has no smoke test."""
        gate = self.gate(release)
        if gate is None:
            return None
        pool = leave_and_return(_PROXIES, settings, self.name, others=False)
        return ServiceSwitch(
            name=self.name,
            home=self.home,
            unit=self.unit,
            unit_path=f"/etc/systemd/system/{self.unit}",
            to=release,
            from_release=self.status.current,
            image=None,
            secrets=self.secrets,
            why=(why,),
            restart=True,
            gate=replace(gate, fail_fast=True),
            soak_seconds=settings.soak_seconds,
            pool=pool if gate.proxy else None,
        )


def installed(services_root: str, seen: HostStatus) -> dict[str, Installed]:
    """The services of a host, by name.

    Raises:
        ValueError: for a name that none can have.
    """
    for name, one in seen.services.items():
        for release in (*one.releases, one.current, one.good):
            if not _NAME.fullmatch(name) or not _RELEASE.fullmatch(release or "none"):
                raise ValueError(f"{name[:60]!r} with release {str(release)[:60]!r} is no service")
    return {
        name: Installed(name, f"{services_root}/services/{name}", one)
        for name, one in seen.services.items()
    }
