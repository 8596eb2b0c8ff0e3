"""Facts that preflight judges: a host as observed, and its part of the plan."""

from sparkwright.host.lib.gpu import Gpu
from sparkwright.host.lib.records import dataclass
from sparkwright.host.observe import Observation
from sparkwright.plan.desired import Desired
from sparkwright.plan.plan import HostPlan
from sparkwright.resolve.registry import ARCHITECTURES


@dataclass(frozen=True)
class HostFacts:
    """A host's observation and its desired state.

    Attributes:
        now: the controller's clock at the time of the observation, seconds since the epoch.
    """

    desired: Desired
    observed: Observation
    now: float

    @property
    def plan(self) -> HostPlan:
        """The host's plan."""
        return self.desired.plan

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """GPUs that nvidia-smi lists; empty if nvidia-smi fails."""
        return self.observed.gpu.gpus

    def serves(self, service: str) -> bool:
        """Return whether a sparkwright service already runs, with any release."""
        state = self.observed.services.get(service)
        return state is not None and state.container is not None and state.container.running

    @property
    def architecture(self) -> str:
        """The host's architecture by its name in registries."""
        return ARCHITECTURES.get(self.observed.architecture, self.observed.architecture)
